//! Real paths of features that were loaded by another path: from Ruby 3.1 on a file is loaded once, whatever paths lead to it.
//! Ruby notes that only of the files that it reads itself.

use std::collections::HashSet;

use crate::ruby::{self, Protected, Value};

/// What is known of $LOADED_FEATURES.
pub struct Features {
    array: Value,
    /// A copy that shares its elements with the array as long as nobody changes that.
    copy: Value,
    /// Number of features that were looked at.
    length: usize,
    /// Real paths of features, as far as they are others than the features.
    aliases: HashSet<Box<[u8]>>,
}

impl Features {
    pub fn new() -> Protected<Self> {
        let array = ruby::keep(ruby::global(c"$LOADED_FEATURES")?)?;
        Ok(Features { array, copy: ruby::keep(ruby::array()?)?, length: 0, aliases: HashSet::new() })
    }

    /// Whether a feature with this real path was loaded by another path. `real_path` is that of a path, if it is another one.
    pub fn has_alias(&mut self, real: &[u8], mut real_path: impl FnMut(&[u8]) -> Option<Vec<u8>>) -> Protected<bool> {
        if !ruby::is_same_array(self.array, self.copy, self.length)? {
            let length = ruby::length(self.array)?;
            let is_longer = length >= self.length && ruby::length(self.copy)? == self.length;
            if !is_longer || ruby::elements(self.array, self.length) != ruby::elements(self.copy, self.length) {
                self.length = 0;
                self.aliases.clear();
            }
            for position in self.length..length {
                let feature = ruby::entry_of(self.array, position);
                let feature = if feature.is_string() { ruby::bytes_in_place(feature)? } else { b"" };
                if feature.starts_with(b"/") {
                    self.aliases.extend(real_path(feature).map(Vec::into_boxed_slice));
                }
            }
            ruby::replace(self.copy, self.array)?;
            self.length = length;
        }
        Ok(!self.aliases.is_empty() && self.aliases.contains(real))
    }
}
