//! Entries that wait to be appended.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use record::Record;
use sha2::{Digest, Sha256};

use crate::build::{Draft, Payload, Raw};
use crate::entry::{Entry, Row};
use crate::identity::{Content, Identity};
use crate::key::{Context, Kind, Scope};
use crate::location::Root;
use crate::pack::{Decoder, Packer};
use crate::records::{encoding, input_kind, Input};
use crate::{checksum, MAX_PAYLOAD};

/// An input of an entry, as the entry's maker saw it. Paths are absolute.
#[derive(Clone, Debug, Hash)]
pub enum NewInput {
    /// A file, as it was before it was read.
    File(Vec<u8>, Identity),
    /// A directory, as it was before it was listed.
    Directory(Vec<u8>, Identity),
    /// A path at which there was nothing.
    Absent(Vec<u8>),
    /// An environment variable and its value, if it was set.
    Variable(Vec<u8>, Option<Vec<u8>>),
}

/// An entry to be stored.
#[derive(Clone, Debug)]
pub struct NewEntry {
    /// The kind of its payload.
    pub kind: Kind,
    /// The context in which it holds.
    pub context: Context,
    /// Its name. An absolute path below the application's root becomes relative to it when it is stored.
    pub name: Vec<u8>,
    /// Its inputs.
    pub inputs: Vec<NewInput>,
    /// Its payload.
    pub payload: Vec<u8>,
    /// Whether it is compressed. Readers need a [`crate::Decoder`] then.
    pub compress: bool,
}

/// Entries to be appended together: the newest of each key. Queueing the same entry repeatedly takes no more memory.
#[derive(Default)]
pub struct Batch {
    contexts: Vec<Context>,
    items: Vec<Item>,
    /// The index of a key in `items`.
    by_key: HashMap<Vec<u8>, usize>,
    /// Items whose payload will be packed, in order, and the size of the block that they fill (bytes).
    waiting: Vec<usize>,
    waiting_size: usize,
    packer: Packer<'static>,
    /// The last queued entry of each key, also before [`Batch::take`], by the key's hash.
    marks: HashMap<u64, Mark>,
}

struct Item {
    inputs: Inputs,
    payload: Queued,
}

enum Inputs {
    New(Vec<NewInput>),
    Again(Vec<(Input, Vec<u8>)>),
}

enum Queued {
    Ready(Payload<'static>),
    /// To be packed. An item can leave an open block, but not a closed one.
    Waiting(Vec<u8>),
}

/// What distinguishes an entry from another one of the same key.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Mark {
    inputs: u64,
    payload: (u32, usize),
}

impl Batch {
    /// Queues an entry, unless the same one was queued before. It is not stored if its inputs change before it is appended.
    pub fn add(&mut self, entry: NewEntry) {
        let is_settled = entry.inputs.iter().all(|input| match input {
            NewInput::File(_, identity) | NewInput::Directory(_, identity) => identity.is_settled,
            NewInput::Absent(_) | NewInput::Variable(..) => true,
        });
        if !is_settled || entry.payload.len() as u64 > MAX_PAYLOAD {
            return;
        }
        let key = Scope::new(entry.kind, &entry.context).key(&entry.name);
        let payload = (checksum(&entry.payload), entry.payload.len());
        let mark = Mark { inputs: hash_of(&entry.inputs), payload };
        if self.marks.insert(hash_of(&key), mark) == Some(mark) {
            return;
        }
        if !self.contexts.contains(&entry.context) {
            self.contexts.push(entry.context);
        }
        self.queue(key, Inputs::New(entry.inputs), entry.payload, entry.compress);
    }

    /// Queues an entry again that was [`crate::Freshness::Revalidated`]: with the current times of its inputs. Does nothing if that was
    /// done before.
    pub fn again(&mut self, entry: &Entry<'_>) {
        let mark = Mark { inputs: hash_of(entry.inputs_bytes()), payload: (0, entry.plain_size()) };
        if self.marks.insert(hash_of(entry.key_bytes()), mark) == Some(mark) {
            return;
        }
        let mut decoder = Decoder::default();
        let Some(payload) = decoder.decode(entry) else { return };
        let (payload, is_packed) = (payload.to_vec(), entry.encoding() == encoding::PACKED);
        let inputs = entry.inputs().map(|Row { input, name }| (input, name.to_vec())).collect();
        self.queue(entry.key_bytes().to_vec(), Inputs::Again(inputs), payload, is_packed);
    }

    /// Whether the newest queued entry of that name, also before [`Batch::take`], has exactly these inputs.
    pub fn has(&self, scope: &Scope, name: &[u8], inputs: &[NewInput]) -> bool {
        self.marks.get(&hash_of(scope.key(name))).is_some_and(|mark| mark.inputs == hash_of(inputs))
    }

    fn queue(&mut self, key: Vec<u8>, inputs: Inputs, payload: Vec<u8>, pack: bool) {
        let at = *self.by_key.entry(key).or_insert(self.items.len());
        if let Some(item) = self.items.get_mut(at) {
            item.inputs = inputs;
            match std::mem::replace(&mut item.payload, Queued::Ready(Payload::Plain(Cow::Borrowed(b"")))) {
                Queued::Waiting(old) => {
                    self.waiting.retain(|waiting| *waiting != at);
                    self.waiting_size -= Packer::room(old.len());
                }
                Queued::Ready(Payload::Packed { place, .. }) => self.packer.forget(place),
                Queued::Ready(Payload::Plain(_)) => {}
            }
        } else {
            self.items.push(Item { inputs, payload: Queued::Ready(Payload::Plain(Cow::Borrowed(b""))) });
        }
        if !pack {
            self.items[at].payload = Queued::Ready(Payload::Plain(payload.into()));
            return;
        }
        self.waiting_size += Packer::room(payload.len());
        self.items[at].payload = Queued::Waiting(payload);
        self.waiting.push(at);
        if self.waiting_size >= Packer::FULL {
            self.pack();
        }
    }

    /// Packs the waiting items into a block.
    fn pack(&mut self) {
        for at in self.waiting.drain(..) {
            let item = &mut self.items[at];
            if let Queued::Waiting(payload) = &mut item.payload {
                item.payload = Queued::Ready(self.packer.payload(std::mem::take(payload).into(), true));
            }
        }
        self.waiting_size = 0;
    }

    /// Takes the queue, which is empty afterwards. A hash of each entry stays, so that it is not queued again.
    pub fn take(&mut self) -> Batch {
        let marks = std::mem::take(&mut self.marks);
        let rest = Batch { marks, ..Batch::default() };
        std::mem::replace(self, rest)
    }

    /// Number of entries in the queue.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether there is nothing to append.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// The entries in their written form, with the digests of their inputs; without those whose inputs have changed.
    pub(crate) fn finish(mut self, root: &Root) -> Draft<'static> {
        self.pack();
        let note = |key: Vec<u8>, text: &[u8]| Raw {
            key: key.into(),
            inputs: 0,
            inputs_bytes: Vec::new().into(),
            payload: Payload::Plain(text.to_vec().into()),
        };
        let contexts = self.contexts.iter();
        let contexts = contexts.map(|it| note(Scope::new(Kind::Context, it).key(b""), it.description.as_bytes()));
        let mut keys = vec![Vec::new(); self.items.len()];
        self.by_key.into_iter().for_each(|(key, at)| keys[at] = key);
        let items = keys.into_iter().zip(self.items).filter_map(|(key, item)| {
            let (prefix, name) = key.split_at(crate::key::KEY_PREFIX);
            let Queued::Ready(payload) = item.payload else { return None };
            let rows: Option<Vec<_>> = match item.inputs {
                Inputs::New(inputs) => inputs.iter().map(|input| new_row(input, name, root)).collect(),
                Inputs::Again(inputs) => inputs.into_iter().map(|row| row_again(row, name, root)).collect(),
            };
            let (rows, key) = (rows?, [prefix, &root.name(name).concat()].concat());
            let inputs_bytes = inputs_bytes(&rows).into();
            Some(Raw { key: key.into(), inputs: rows.len() as u32, inputs_bytes, payload })
        });
        let entries = std::iter::once(note(root_key(), root.as_bytes())).chain(contexts).chain(items).collect();
        Draft { entries, packer: self.packer, ..Draft::default() }
    }
}

fn hash_of(thing: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    thing.hash(&mut hasher);
    hasher.finish()
}

/// The key under which the application's root is stored, for people: its path when the last entry was stored.
pub(crate) fn root_key() -> Vec<u8> {
    [&[Kind::Context as u8], &[0; 8][..], b"root"].concat()
}

/// The row of an input, with its name; `None` if its state differs from what the maker saw.
fn new_row(input: &NewInput, key_name: &[u8], root: &Root) -> Option<(Input, Vec<u8>)> {
    let named = |path: &[u8]| if path == key_name { Vec::new() } else { root.name(path).concat() };
    match input {
        NewInput::File(path, identity) | NewInput::Directory(path, identity) => {
            let content = Content::read(Path::new(OsStr::from_bytes(path))).ok()?;
            content.identity.is_same(identity).then(|| (file_row(&content), named(path)))
        }
        NewInput::Absent(path) => Some((Input { kind: input_kind::ABSENT, ..Input::default() }, named(path))),
        NewInput::Variable(name, None) => Some((Input { kind: input_kind::UNSET, ..Input::default() }, name.clone())),
        NewInput::Variable(name, Some(value)) => {
            let (size, digest) = (value.len() as u64, Sha256::digest(value).into());
            Some((Input { kind: input_kind::VARIABLE, size, digest, ..Input::default() }, name.clone()))
        }
    }
}

/// A row with the current times of a file; `None` if its content has changed.
fn row_again((input, name): (Input, Vec<u8>), key_name: &[u8], root: &Root) -> Option<(Input, Vec<u8>)> {
    if !matches!(input.kind, input_kind::FILE | input_kind::DIRECTORY) {
        return Some((input, name));
    }
    let path = root.join(if name.is_empty() { key_name } else { &name });
    let row = file_row(&Content::read(Path::new(OsStr::from_bytes(&path))).ok().filter(|now| now.identity.is_settled)?);
    (row.kind == input.kind && row.digest == input.digest).then_some((row, name))
}

fn file_row(content: &Content) -> Input {
    let Identity { is_directory, size, mtime, ctime, .. } = content.identity;
    let kind = if is_directory { input_kind::DIRECTORY } else { input_kind::FILE };
    Input { kind, name_size: 0, size, mtime, ctime, digest: content.digest }
}

fn inputs_bytes(rows: &[(Input, Vec<u8>)]) -> Vec<u8> {
    let mut bytes = vec![0; rows.len() * Input::SIZE];
    for ((input, name), room) in rows.iter().zip(bytes.chunks_exact_mut(Input::SIZE)) {
        Input { name_size: name.len() as u32, ..*input }.encode(room);
    }
    rows.iter().for_each(|(_, name)| bytes.extend_from_slice(name));
    bytes
}
