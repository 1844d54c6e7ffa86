//! $LOADED_FEATURES, indexed: which features are loaded, as Ruby's own index would say, without the real paths of the whole
//! load path that Ruby needs for that.
//!
//! With Ruby's own means each new feature costs a copy of the whole array and some twenty entries in Ruby's index. When Ruby
//! has not been asked for a long time, features are just appended: Ruby makes its index anew if it needs that again.

use std::collections::HashSet;

use crate::names::{self, Extension};
use crate::ruby::{self, Value};

/// Where a chain of features ends.
const END: u32 = u32::MAX;

/// After so many features without a question to Ruby they are just appended.
const PATIENCE: u32 = 512;

/// An index of $LOADED_FEATURES by the last component of their paths. The array itself holds the paths.
pub struct Features {
    array: Value,
    /// A copy that shares its elements with the array as long as nobody changes that; or the last element that was just
    /// appended, which is not frozen as long as Ruby has not looked at it.
    copy: Value,
    is_appended: bool,
    /// Features since Ruby was asked, and after how many of them they are appended.
    unasked: u32,
    patience: u32,
    /// Number of features in the index.
    length: usize,
    /// Positions in the array by the low bits of the tag; each feature's tag and the position before it in its chain.
    heads: Vec<u32>,
    links: Vec<(u32, u32)>,
    /// Real paths of features that were loaded by another path, as far as was looked.
    aliases: HashSet<Box<[u8]>>,
    looked_at: usize,
}

/// How a feature is provided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Provided {
    /// As a script.
    Script,
    /// As an extension library, or under a name without any extension.
    Otherwise,
    /// Not at all.
    No,
}

impl Features {
    pub fn new() -> Self {
        Features {
            array: ruby::keep(ruby::global(c"$LOADED_FEATURES")),
            copy: ruby::keep(ruby::array()),
            is_appended: false,
            unasked: 0,
            patience: PATIENCE,
            length: 0,
            heads: vec![END; 1024],
            links: Vec::new(),
            aliases: HashSet::new(),
            looked_at: 0,
        }
    }

    /// The array.
    pub fn array(&self) -> Value {
        self.array
    }

    /// Whether the array is as it was when the index was made.
    pub fn is_current(&self) -> bool {
        if self.is_appended {
            let last = ruby::entry(self.copy, 0);
            let is_last =
                ruby::entry(self.array, self.length - 1) == last && ruby::entry(self.array, self.length).is_nil();
            return is_last && !ruby::is_frozen(last);
        }
        ruby::is_same_array(self.array, self.copy, self.length)
    }

    /// Ruby is about to be asked, and needs its own index.
    pub fn note_question(&mut self) {
        self.unasked = 0;
    }

    /// Whether the next feature is just to be appended.
    pub fn is_to_append(&mut self) -> bool {
        self.unasked += 1;
        self.unasked > self.patience
    }

    /// Gets ready for what `length` elements of the array are now: the answer is the first that has to be [`push`](Self::push)ed.
    pub fn restart(&mut self, length: usize) -> usize {
        if self.is_appended {
            // Ruby has made its index anew; or somebody has changed the array.
            self.unasked = 0;
            self.patience *= 2;
        }
        let is_longer = !self.is_appended && length >= self.length && ruby::length(self.copy) == self.length;
        if !is_longer || ruby::elements(self.array, self.length) != ruby::elements(self.copy, self.length) {
            self.length = 0;
            self.links.clear();
            self.heads.fill(END);
            self.aliases.clear();
            self.looked_at = 0;
        }
        self.length
    }

    /// The next element of the array.
    pub fn push(&mut self, feature: &[u8]) {
        if self.links.len() * 2 >= self.heads.len() {
            let slots = self.heads.len() * 4;
            self.heads.clear();
            self.heads.resize(slots, END);
            for (position, (tag, next)) in self.links.iter_mut().enumerate() {
                let head = &mut self.heads[*tag as usize & (slots - 1)];
                *next = std::mem::replace(head, position as u32);
            }
        }
        let tag = names::tag(names::without_extension(feature));
        let slot = tag as usize & (self.heads.len() - 1);
        let next = std::mem::replace(&mut self.heads[slot], self.length as u32);
        self.links.push((tag, next));
        self.length += 1;
    }

    /// All elements were pushed: later changes of the array will be noticed.
    pub fn finish(&mut self) {
        self.is_appended = false;
        ruby::replace(self.copy, self.array);
    }

    /// The last element that was pushed was just appended to the array.
    pub fn finish_appended(&mut self, element: Value) {
        self.is_appended = true;
        ruby::replace(self.copy, ruby::array_of(&[element]));
    }

    /// Whether one of the features is what `feature` asks for. `is_root` says whether a path is in the load path.
    pub fn provided(&self, feature: &[u8], extension: Extension, is_root: impl Fn(&[u8]) -> bool) -> Provided {
        let stem = extension.stem(feature);
        let mut best = Provided::No;
        for path in self.chain(stem) {
            let Some((start, kind)) = names::matches(path, stem, extension) else { continue };
            let is_found = start == 0 || (!stem.starts_with(b"/") && is_root(&path[..start - 1]));
            if is_found && kind == Provided::Script {
                return kind;
            }
            if is_found {
                best = kind;
            }
        }
        best
    }

    /// Whether exactly this path is among the features.
    pub fn contains(&self, path: &[u8]) -> bool {
        self.chain(names::without_extension(path)).any(|feature| feature == path)
    }

    /// The features whose last component is that of `stem`.
    fn chain<'a>(&'a self, stem: &[u8]) -> impl Iterator<Item = &'a [u8]> {
        let wanted = names::tag(stem);
        let mut position = self.heads[wanted as usize & (self.heads.len() - 1)];
        std::iter::from_fn(move || {
            while position != END {
                let at = position as usize;
                let (tag, next) = self.links[at];
                position = next;
                if tag == wanted {
                    return Some(self.feature(at));
                }
            }
            None
        })
    }

    /// The feature at a position of the index.
    fn feature<'a>(&self, position: usize) -> &'a [u8] {
        let feature = ruby::entry(self.array, position);
        // What is no string, or has a NUL, was pushed as an empty one and is in no chain that is asked for.
        if feature.is_string() {
            ruby::c_bytes(feature).to_bytes()
        } else {
            b""
        }
    }

    /// Whether a feature with this real path was loaded by another path. `real_path` is that of a path, if it is another one.
    pub fn has_alias(&mut self, real: &[u8], mut real_path: impl FnMut(&[u8]) -> Option<Vec<u8>>) -> bool {
        while self.looked_at < self.length {
            let feature = self.feature(self.looked_at);
            self.looked_at += 1;
            if feature.starts_with(b"/") {
                if let Some(real) = real_path(feature) {
                    self.aliases.insert(real.into());
                }
            }
        }
        !self.aliases.is_empty() && self.aliases.contains(real)
    }
}
