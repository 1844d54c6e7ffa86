//! Writes code objects for [`super::decode`].
#![allow(unsafe_code)]

use std::collections::HashMap;

use pyo3::ffi::{PyBytes_AsString, PyBytes_Size, PyObject};
use pyo3::prelude::*;
use pyo3::types::PyString;

use super::decode::Types;
use super::layout::{read, Layout, BYTES, CODE_FLAGS, COLLECTOR_HEAD, INTERNED, ITEMS, OF_FUNCTION, TEXT_STATE};
use super::memory::ALIGNMENT;
use super::notes::{Head, Note, PASSING, PATH};
use super::passing::References;
use crate::document::utf8_of;
use crate::marshal;

/// Constants contain each other no deeper than source can nest. Deeper ones are left to marshal.
const DEEPEST: usize = 200;

/// Encodes code for `decode`. `path`: that of the module's file. `version_place`: see `versions`; any number if code has none. `None`: the
/// format cannot express some part of the code.
pub fn encode(
    layout: &'static Layout,
    code: &Bound<'_, PyAny>,
    path: &Bound<'_, PyString>,
    version_place: i32,
) -> Option<Vec<u8>> {
    let mut encoder = Encoder {
        python: code.py(),
        layout,
        types: Types::get(code.py()),
        path: path.as_ptr(),
        notes: Vec::new(),
        codes: 0,
        written: Vec::new(),
        references: References::default(),
        known: HashMap::new(),
    };
    // SAFETY: the objects live as long as the code, and the token of `code` says that this thread may call Python.
    let module = unsafe { encoder.write(code.as_ptr(), 0)? };
    if !layout.later.is_empty() {
        encoder.mark_passing(module);
    }
    let size = |is_passing| {
        let sizes =
            encoder.written.iter().filter(|written| written.is_passing == is_passing).map(|written| written.memory);
        u32::try_from(sizes.sum::<usize>()).ok()
    };
    let objects = encoder.known.len() as u32;
    let head = Head { memory: size(false)?, passing: size(true)?, objects, codes: encoder.codes, version_place };
    Some(head.followed_by(encoder.notes))
}

struct Encoder<'py> {
    python: Python<'py>,
    layout: &'static Layout,
    types: Types,
    /// The string that stands for the path of the module's file.
    path: *mut PyObject,
    notes: Vec<u8>,
    codes: u32,
    /// Of each object, in the order of writing.
    written: Vec<Written>,
    references: References,
    /// The number of each object that was written.
    known: HashMap<*mut PyObject, u16>,
}

struct Written {
    /// Where its note is.
    note: usize,
    /// What `decode` needs for it (bytes).
    memory: usize,
    is_passing: bool,
}

impl Encoder<'_> {
    /// Writes the object, and before it what it refers to. Its number, in the order of writing.
    ///
    /// # Safety
    /// `object` lives, and the caller holds the interpreter's lock.
    unsafe fn write(&mut self, object: *mut PyObject, depth: usize) -> Option<u16> {
        if let Some(number) = self.known.get(&object) {
            return Some(*number);
        }
        if depth > DEEPEST {
            return None;
        }
        let types = self.types;
        // SAFETY: every object has a type. What each function asks for is what the type says.
        unsafe {
            let kind = read::<*mut PyObject>(object, super::layout::TYPE);
            if kind == types.code {
                self.write_code(object, depth)?;
            } else if kind == types.tuple && read::<usize>(object, ITEMS) > 0 {
                self.write_tuple(object, depth)?;
            } else if kind == types.text {
                self.write_text(object)?;
            } else if kind == types.bytes {
                self.write_bytes(object)?;
            } else if let Some(constant) = types.constants.iter().position(|one| *one == object) {
                self.begin_note(Note::Constant);
                self.notes.push(constant as u8);
            } else {
                self.write_other(object)?;
            }
        }
        self.number(object)
    }

    fn number(&mut self, object: *mut PyObject) -> Option<u16> {
        let number = u16::try_from(self.known.len()).ok().filter(|number| *number < PATH)?;
        self.known.insert(object, number);
        Some(number)
    }

    fn begin_note(&mut self, note: Note) {
        self.written.push(Written { note: self.notes.len(), memory: 0, is_passing: false });
        self.notes.push(note as u8);
    }

    fn note(&mut self, note: Note, size: usize) -> Option<()> {
        self.begin_note(note);
        self.notes.extend(u32::try_from(size).ok()?.to_le_bytes());
        Some(())
    }

    /// Notes that the object whose note is the last one takes so much memory.
    fn reserve(&mut self, size: usize) {
        if let Some(written) = self.written.last_mut() {
            written.memory += size.next_multiple_of(ALIGNMENT);
        }
    }

    /// The number of the object whose note is the last one.
    fn last(&self) -> u16 {
        self.known.len() as u16
    }

    fn mark_passing(&mut self, module: u16) {
        for number in self.references.passing(module) {
            let written = &mut self.written[usize::from(number)];
            written.is_passing = true;
            self.notes[written.note] |= PASSING;
        }
    }

    unsafe fn write_code(&mut self, code: *mut PyObject, depth: usize) -> Option<()> {
        let layout = self.layout;
        let mut numbers = Vec::with_capacity(layout.objects.len());
        // SAFETY: the layout is that of code objects of this Python, which says what follows.
        unsafe {
            for (place, (field, _)) in layout.objects.iter().enumerate() {
                let object = read::<*mut PyObject>(code, *field);
                let is_path = place == layout.filename && self.is_path(object);
                numbers.push(if is_path { PATH } else { self.write(object, depth + 1)? });
            }
            let tail = layout.tail(code);
            self.note(Note::Code, tail.len())?;
            for (start, size) in layout.plain {
                self.notes.extend(std::slice::from_raw_parts(code.cast::<u8>().add(*start), *size));
            }
            self.notes.extend(numbers.iter().flat_map(|number: &u16| number.to_le_bytes()));
            self.notes.extend(tail);
            self.reserve(layout.code + tail.len());
            let is_function = read::<u32>(code, CODE_FLAGS) & OF_FUNCTION != 0;
            self.references.add_code(self.last(), numbers, is_function);
        }
        self.codes += 1;
        Some(())
    }

    /// Whether that text is the path of the module's file: it is not written, since the file may be moved.
    unsafe fn is_path(&self, text: *mut PyObject) -> bool {
        // SAFETY: two strings, which live.
        text == self.path || unsafe { utf8_of(text).is_some() && utf8_of(text) == utf8_of(self.path) }
    }

    unsafe fn write_tuple(&mut self, tuple: *mut PyObject, depth: usize) -> Option<()> {
        // SAFETY: a tuple has so many items, which live as long as it does.
        unsafe {
            let length = read::<usize>(tuple, ITEMS);
            let first = self.layout.tuple;
            let mut numbers = Vec::with_capacity(length);
            for place in 0..length {
                numbers.push(self.write(read(tuple, first + 8 * place), depth + 1)?);
            }
            self.note(Note::Tuple, length)?;
            self.notes.extend(numbers.iter().flat_map(|number: &u16| number.to_le_bytes()));
            self.reserve(COLLECTOR_HEAD + first + 8 * length);
            self.references.add_tuple(self.last(), numbers);
        }
        Some(())
    }

    unsafe fn write_text(&mut self, text: *mut PyObject) -> Option<()> {
        // SAFETY: a string, which has flags.
        unsafe {
            let Some(utf8) = utf8_of(text) else {
                return self.write_other(text); // it has surrogates
            };
            let is_interned = read::<u32>(text, TEXT_STATE) & INTERNED != 0;
            let is_plain = self.layout.ascii_text(text).is_some_and(|text| text.len() > 1);
            let note = match (is_interned, is_plain) {
                (true, _) => Note::Name,
                (_, true) => Note::Ascii,
                _ => Note::Text,
            };
            self.note(note, utf8.len())?;
            self.notes.extend(utf8);
            if note as u8 == Note::Ascii as u8 {
                self.reserve(self.layout.ascii + utf8.len() + 1);
            }
        }
        Some(())
    }

    unsafe fn write_bytes(&mut self, bytes: *mut PyObject) -> Option<()> {
        // SAFETY: bytes have so many bytes.
        let content =
            unsafe { std::slice::from_raw_parts(PyBytes_AsString(bytes).cast::<u8>(), PyBytes_Size(bytes) as usize) };
        // Python has the short ones only once.
        if content.len() < 2 {
            // SAFETY: an object that lives.
            return unsafe { self.write_other(bytes) };
        }
        self.note(Note::Bytes, content.len())?;
        self.notes.extend(content);
        self.reserve(BYTES + content.len() + 1);
        self.references.add_bytes(self.last());
        Some(())
    }

    /// Numbers, frozensets and the like: few, and with more layouts. marshal writes them.
    unsafe fn write_other(&mut self, object: *mut PyObject) -> Option<()> {
        let python = self.python;
        // SAFETY: an object that lives.
        let bytes = marshal::save(&unsafe { Bound::from_borrowed_ptr(python, object) }).ok()?;
        self.note(Note::Other, bytes.len())?;
        self.notes.extend(bytes);
        Some(())
    }
}
