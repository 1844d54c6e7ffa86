//! Writes code objects for [`super::decode`].
#![allow(unsafe_code)]

use std::collections::HashMap;

use pyo3::ffi::{PyBytes_AsString, PyBytes_Size, PyObject};
use pyo3::prelude::*;
use pyo3::types::PyString;

use super::decode::Types;
use super::layout::{read, Layout, BYTES, COLLECTOR_HEAD, INTERNED, ITEMS, TEXT_STATE};
use super::memory::ALIGNMENT;
use super::opcodes::{Head, Opcode, PATH};
use crate::document::utf8_of;
use crate::marshal;

/// Constants contain each other no deeper than source can nest. Deeper ones are left to marshal.
const DEEPEST: usize = 200;

/// Encodes code for `decode`. `path`: that of the module's file. `None`: the format cannot express some part of the code.
pub fn encode(layout: &'static Layout, code: &Bound<'_, PyAny>, path: &Bound<'_, PyString>) -> Option<Vec<u8>> {
    let mut encoder = Encoder {
        python: code.py(),
        layout,
        types: Types::get(code.py()),
        path: path.as_ptr(),
        instructions: Vec::new(),
        memory: 0,
        known: HashMap::new(),
    };
    // SAFETY: the objects live as long as the code, and the token of `code` says that this thread may call Python.
    unsafe { encoder.write(code.as_ptr(), 0)? };
    let head = Head { memory: u32::try_from(encoder.memory).ok()?, objects: encoder.known.len() as u32 };
    Some(head.followed_by(encoder.instructions))
}

struct Encoder<'py> {
    python: Python<'py>,
    layout: &'static Layout,
    types: Types,
    /// The string that stands for the path of the module's file.
    path: *mut PyObject,
    instructions: Vec<u8>,
    /// What `decode` needs for them (bytes).
    memory: usize,
    /// The number of each object that was written.
    known: HashMap<*mut PyObject, u16>,
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
                self.instructions.extend([Opcode::Constant as u8, constant as u8]);
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

    fn write_opcode(&mut self, opcode: Opcode, size: usize) -> Option<()> {
        self.instructions.push(opcode as u8);
        self.instructions.extend(u32::try_from(size).ok()?.to_le_bytes());
        Some(())
    }

    /// Records how much memory the last object takes.
    fn reserve(&mut self, size: usize) {
        self.memory += size.next_multiple_of(ALIGNMENT);
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
            self.write_opcode(Opcode::Code, tail.len())?;
            for (start, size) in layout.plain {
                self.instructions.extend(std::slice::from_raw_parts(code.cast::<u8>().add(*start), *size));
            }
            self.instructions.extend(numbers.iter().flat_map(|number: &u16| number.to_le_bytes()));
            self.instructions.extend(tail);
            self.reserve(layout.code + tail.len());
        }
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
            self.write_opcode(Opcode::Tuple, length)?;
            self.instructions.extend(numbers.iter().flat_map(|number: &u16| number.to_le_bytes()));
            self.reserve(COLLECTOR_HEAD + first + 8 * length);
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
            let opcode = match (is_interned, is_plain) {
                (true, _) => Opcode::Name,
                (_, true) => Opcode::Ascii,
                _ => Opcode::Text,
            };
            self.write_opcode(opcode, utf8.len())?;
            self.instructions.extend(utf8);
            if opcode as u8 == Opcode::Ascii as u8 {
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
        self.write_opcode(Opcode::Bytes, content.len())?;
        self.instructions.extend(content);
        self.reserve(BYTES + content.len() + 1);
        Some(())
    }

    /// Numbers, frozensets and the like: few, and with more layouts. marshal writes them.
    unsafe fn write_other(&mut self, object: *mut PyObject) -> Option<()> {
        let python = self.python;
        // SAFETY: an object that lives.
        let bytes = marshal::save(&unsafe { Bound::from_borrowed_ptr(python, object) }).ok()?;
        self.write_opcode(Opcode::Other, bytes.len())?;
        self.instructions.extend(bytes);
        Some(())
    }
}
