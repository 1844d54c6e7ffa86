//! What is going to be appended.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use image::Record;
use sha2::{Digest, Sha256};

use crate::build::Raw;
use crate::entry::{Entry, Row};
use crate::identity::{Content, Identity};
use crate::key::{Context, Kind, Scope};
use crate::place::Root;
use crate::records::{encoding, input_kind, Input};
use crate::stored::Encoder;
use crate::{checksum, MOST_PAYLOAD};

/// Something that an entry depends on, as its maker saw it. Paths are absolute.
#[derive(Clone, Debug)]
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
    /// What it holds.
    pub kind: Kind,
    /// In which context it holds.
    pub context: Context,
    /// Its name. An absolute path below the application's root becomes relative to it when it is stored.
    pub name: Vec<u8>,
    /// What it depends on.
    pub inputs: Vec<NewInput>,
    /// What it holds.
    pub payload: Vec<u8>,
    /// Whether it is to be stored in a smaller form, if there is one; its readers need a [`crate::Decoder`] then.
    pub compress: bool,
}

/// Entries to be appended together.
#[derive(Default)]
pub struct Batch {
    contexts: Vec<Context>,
    items: Vec<Item>,
    encoder: Encoder,
}

enum Item {
    New { key: Vec<u8>, inputs: Vec<NewInput>, stored: Stored },
    Again { key: Vec<u8>, inputs: Vec<(Input, Vec<u8>)>, stored: Stored },
}

/// A payload in the form in which it is going to be stored.
struct Stored {
    encoding: u32,
    plain_size: u32,
    payload: Vec<u8>,
}

impl Batch {
    /// Queues an entry. What has changed by the time it is appended is left out then.
    pub fn add(&mut self, entry: NewEntry) {
        let is_settled = entry.inputs.iter().all(|input| match input {
            NewInput::File(_, identity) | NewInput::Directory(_, identity) => identity.is_settled,
            NewInput::Absent(_) | NewInput::Variable(..) => true,
        });
        let Some(plain_size) = u32::try_from(entry.payload.len()).ok().filter(|size| u64::from(*size) <= MOST_PAYLOAD)
        else {
            return;
        };
        if !is_settled {
            return;
        }
        let smaller = if entry.compress { self.encoder.encode(&entry.payload) } else { None };
        let stored = match smaller {
            Some(payload) => Stored { encoding: encoding::ZSTD, plain_size, payload },
            None => Stored { encoding: encoding::PLAIN, plain_size, payload: entry.payload },
        };
        let key = Scope::new(entry.kind, &entry.context).key(&entry.name);
        if !self.contexts.contains(&entry.context) {
            self.contexts.push(entry.context);
        }
        self.items.push(Item::New { key, inputs: entry.inputs, stored });
    }

    /// Queues an entry once more, which was [`crate::Freshness::Revalidated`]: with the times that its inputs have now.
    pub fn again(&mut self, entry: &Entry<'_>) {
        let Some(payload) = entry.stored() else { return };
        let head = entry.head();
        let stored = Stored { encoding: head.encoding, plain_size: head.plain_size, payload: payload.to_vec() };
        let inputs = entry.inputs().map(|Row { input, name }| (input, name.to_vec())).collect();
        self.items.push(Item::Again { key: entry.key_bytes().to_vec(), inputs, stored });
    }

    /// Number of entries in the queue.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether there is nothing to append.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// The entries as they are written, with the digests of their inputs; without those whose inputs have changed.
    pub(crate) fn finish(self, root: &Root) -> Vec<Raw<'static>> {
        let mut raws = Vec::with_capacity(1 + self.contexts.len() + self.items.len());
        let note = |key, payload: &[u8]| {
            let (plain_size, payload) = (payload.len() as u32, payload.to_vec());
            Stored { encoding: encoding::PLAIN, plain_size, payload }.raw(key, 0, Vec::new())
        };
        raws.push(note(root_key(), root.as_bytes()));
        for context in self.contexts {
            raws.push(note(Scope::new(Kind::Context, &context).key(b""), context.description.as_bytes()));
        }
        raws.extend(self.items.into_iter().filter_map(|item| match item {
            Item::New { key, inputs, stored } => {
                let (prefix, name) = key.split_at(crate::key::KEY_PREFIX);
                let key = [prefix, &root.name(name).concat()].concat();
                let rows = inputs.iter().map(|input| new_row(input, name, root)).collect::<Option<Vec<_>>>()?;
                Some(stored.raw(key, rows.len(), inputs_bytes(&rows)))
            }
            Item::Again { key, inputs, stored } => {
                let name = &key[crate::key::KEY_PREFIX..];
                let rows = inputs.into_iter().map(|row| row_again(row, name, root)).collect::<Option<Vec<_>>>()?;
                Some(stored.raw(key, rows.len(), inputs_bytes(&rows)))
            }
        }));
        raws
    }
}

impl Stored {
    fn raw(self, key: Vec<u8>, inputs: usize, inputs_bytes: Vec<u8>) -> Raw<'static> {
        Raw {
            key: key.into(),
            inputs: inputs as u32,
            inputs_bytes: inputs_bytes.into(),
            encoding: self.encoding,
            plain_size: self.plain_size,
            payload_sum: checksum(&self.payload),
            payload: self.payload.into(),
        }
    }
}

/// The key under which the application's root is noted, for people: where it was when something was stored last.
pub(crate) fn root_key() -> Vec<u8> {
    [&[Kind::Context as u8], &[0; 8][..], b"root"].concat()
}

/// The row of an input, with its name; `None` when it is not what its maker saw.
fn new_row(input: &NewInput, key_name: &[u8], root: &Root) -> Option<(Input, Vec<u8>)> {
    let named = |path: &[u8]| if path == key_name { Vec::new() } else { root.name(path).concat() };
    match input {
        NewInput::File(path, identity) | NewInput::Directory(path, identity) => {
            let content = Content::of(Path::new(OsStr::from_bytes(path))).ok()?;
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

/// A row with the times that a file has now; `None` when it is not what it was.
fn row_again((input, name): (Input, Vec<u8>), key_name: &[u8], root: &Root) -> Option<(Input, Vec<u8>)> {
    if !matches!(input.kind, input_kind::FILE | input_kind::DIRECTORY) {
        return Some((input, name));
    }
    let path = root.join(if name.is_empty() { key_name } else { &name });
    let row = file_row(&Content::of(Path::new(OsStr::from_bytes(&path))).ok().filter(|now| now.identity.is_settled)?);
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
