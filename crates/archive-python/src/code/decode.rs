//! Makes code objects from what [`super::encode`] has written.
//!
//! marshal calls Python's allocator for each object, interns each name anew, and lets each code object be checked and completed. Here the
//! objects of a module lie side by side in memory of their own, as complete as when they were written. They are never freed: each has one
//! more reference than its holders account for.
#![allow(unsafe_code)]

use std::ffi::c_char;
use std::ptr::copy_nonoverlapping;
use std::sync::{Mutex, PoisonError};

use pyo3::ffi::{PyErr_Clear, PyObject, PyUnicode_FromStringAndSize, Py_IncRef, Py_ssize_t};
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};

use super::layout::{
    write, Layout, BYTES, BYTES_HASH, COLLECTOR_HEAD, ITEMS, TEXT_HASH, TEXT_LENGTH, TEXT_STATE, TYPE,
};
use super::memory::{Memory, ALIGNMENT};
use super::names::Names;
use super::opcodes::{Head, Instructions, Opcode, PATH};
use super::versions;
use crate::marshal;

extern "C" {
    // Types and constants, which every version exports under these names.
    static mut PyCode_Type: u8;
    static mut PyTuple_Type: u8;
    static mut PyBytes_Type: u8;
    static mut PyUnicode_Type: u8;
    static mut _Py_NoneStruct: u8;
    static mut _Py_TrueStruct: u8;
    static mut _Py_FalseStruct: u8;
    static mut _Py_EllipsisObject: u8;
}

/// The types of the objects made here, and Python's constants.
#[derive(Clone, Copy)]
pub struct Types {
    pub code: *mut PyObject,
    pub tuple: *mut PyObject,
    pub bytes: *mut PyObject,
    pub text: *mut PyObject,
    /// `None`, `True`, `False`, `...`, `()`, in this order.
    pub constants: [*mut PyObject; 5],
}

impl Types {
    pub fn get(python: Python<'_>) -> Self {
        Self {
            code: (&raw mut PyCode_Type).cast(),
            tuple: (&raw mut PyTuple_Type).cast(),
            bytes: (&raw mut PyBytes_Type).cast(),
            text: (&raw mut PyUnicode_Type).cast(),
            constants: [
                (&raw mut _Py_NoneStruct).cast(),
                (&raw mut _Py_TrueStruct).cast(),
                (&raw mut _Py_FalseStruct).cast(),
                (&raw mut _Py_EllipsisObject).cast(),
                // Python has one such tuple, and keeps it.
                PyTuple::empty(python).as_ptr(),
            ],
        }
    }
}

/// Kept from one module to the next. Used only by the holder of the interpreter's lock, and never while Python code runs.
static KEPT: Mutex<Option<Kept>> = Mutex::new(None);

struct Kept {
    memory: Memory,
    names: Names,
}

/// Decodes the code. `path`: that of the module's file. `None` if the bytes are not from `encode`, or there is no memory.
pub fn decode<'py>(layout: &'static Layout, bytes: &[u8], path: &Bound<'py, PyString>) -> Option<Bound<'py, PyAny>> {
    let python = path.py();
    let (head, instructions) = Head::read(bytes)?;
    let mut held = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    let kept = held.get_or_insert_with(|| Kept { memory: Memory::new(), names: Names::default() });
    let memory = kept.memory.take(head.memory as usize)?;
    let mut decoder = Decoder {
        layout,
        types: Types::get(python),
        names: &mut kept.names,
        path: path.as_ptr(),
        free: Free { next: memory, left: head.memory as usize },
        objects: Vec::with_capacity(head.objects as usize),
    };
    // SAFETY: the token says that this thread holds the lock. The result is owned by the caller from now on.
    unsafe {
        let code = decoder.read(instructions, python)?;
        Py_IncRef(code);
        Some(Bound::from_owned_ptr(python, code))
    }
}

/// Whether enough code was made since [`trim`] to call that.
pub fn has_grown() -> bool {
    KEPT.lock().unwrap_or_else(PoisonError::into_inner).as_ref().is_some_and(|kept| kept.memory.has_grown())
}

/// Returns memory that was taken in advance to the kernel.
pub fn trim() {
    if let Some(kept) = KEPT.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
        kept.memory.trim();
    }
}

/// The unused part of the module's memory.
struct Free {
    next: *mut u8,
    left: usize,
}

impl Free {
    fn take(&mut self, size: usize) -> Option<*mut u8> {
        let size = size.next_multiple_of(ALIGNMENT);
        self.left = self.left.checked_sub(size)?;
        let start = self.next;
        self.next = start.wrapping_add(size);
        Some(start)
    }
}

struct Decoder<'a> {
    layout: &'static Layout,
    types: Types,
    names: &'a mut Names,
    path: *mut PyObject,
    free: Free,
    objects: Vec<*mut PyObject>,
}

impl Decoder<'_> {
    /// The last of the objects, which is code.
    ///
    /// # Safety
    /// The caller holds the interpreter's lock, and the instructions are what `encode` wrote for this layout.
    unsafe fn read(&mut self, mut instructions: Instructions<'_>, python: Python<'_>) -> Option<*mut PyObject> {
        let mut is_code = false;
        while !instructions.is_empty() {
            let opcode = Opcode::from_number(instructions.byte()?)?;
            is_code = matches!(opcode, Opcode::Code);
            if matches!(opcode, Opcode::Constant) {
                let constant = *self.types.constants.get(usize::from(instructions.byte()?))?;
                self.objects.push(constant);
                continue;
            }
            let size = instructions.number()? as usize;
            // SAFETY: as the caller says; each makes one object of what it is given.
            let object = unsafe {
                match opcode {
                    Opcode::Name => self.names.interned(self.layout, instructions.take(size)?),
                    Opcode::Ascii => self.ascii(instructions.take(size)?)?,
                    Opcode::Text => new_text(instructions.take(size)?),
                    Opcode::Bytes => self.bytes(instructions.take(size)?)?,
                    Opcode::Tuple => self.tuple(instructions.take(size.checked_mul(2)?)?)?,
                    Opcode::Code => self.code(&mut instructions, size)?,
                    Opcode::Other => marshal::load(python, instructions.take(size)?).ok()?.into_ptr(),
                    Opcode::Constant => return None,
                }
            };
            if object.is_null() {
                // SAFETY: the caller holds the lock.
                unsafe { PyErr_Clear() };
                return None;
            }
            self.objects.push(object);
        }
        self.objects.last().copied().filter(|_| is_code)
    }

    /// Creates an object with one reference, its own; everything after type and count is zero.
    unsafe fn new_object(&mut self, size: usize, kind: *mut PyObject) -> Option<*mut PyObject> {
        let object = self.free.take(size)?.cast::<PyObject>();
        // SAFETY: every object starts with these fields, and has room for them.
        unsafe {
            write(object, 0, 1_usize);
            write(object, TYPE, kind);
        }
        Some(object)
    }

    /// The object of that number, with one more reference.
    unsafe fn referred(&self, number: [u8; 2]) -> Option<*mut PyObject> {
        let number = u16::from_le_bytes(number);
        let object = if number == PATH { self.path } else { *self.objects.get(usize::from(number))? };
        // SAFETY: an object that lives.
        unsafe { Py_IncRef(object) };
        Some(object)
    }

    unsafe fn ascii(&mut self, text: &[u8]) -> Option<*mut PyObject> {
        let layout = self.layout;
        // SAFETY: the fields of an ASCII string, with room for its content and a zero byte, which is there.
        unsafe {
            let object = self.new_object(layout.ascii + text.len() + 1, self.types.text)?;
            write(object, TEXT_LENGTH, text.len());
            write(object, TEXT_HASH, -1_isize); // not known yet: it differs from process to process
            write(object, TEXT_STATE, layout.plain_text());
            copy_nonoverlapping(text.as_ptr(), object.cast::<u8>().add(layout.ascii), text.len());
            Some(object)
        }
    }

    unsafe fn bytes(&mut self, content: &[u8]) -> Option<*mut PyObject> {
        // SAFETY: the fields of bytes, with room for the content and a zero byte, which is there.
        unsafe {
            let object = self.new_object(BYTES + content.len() + 1, self.types.bytes)?;
            write(object, ITEMS, content.len());
            write(object, BYTES_HASH, -1_isize);
            copy_nonoverlapping(content.as_ptr(), object.cast::<u8>().add(BYTES), content.len());
            Some(object)
        }
    }

    unsafe fn tuple(&mut self, numbers: &[u8]) -> Option<*mut PyObject> {
        let length = numbers.len() / 2;
        // SAFETY: the fields of a tuple, with room for its items. What the collector keeps before it is zero: it does not walk over the tuple,
        // as over no tuple of constants that it has seen once.
        unsafe {
            self.free.take(COLLECTOR_HEAD)?;
            let first = self.layout.tuple;
            let object = self.new_object(first + 8 * length, self.types.tuple)?;
            write(object, ITEMS, length);
            self.layout.begin_tuple(object);
            for (place, number) in numbers.chunks_exact(2).enumerate() {
                write(object, first + 8 * place, self.referred([number[0], number[1]])?);
            }
            Some(object)
        }
    }

    unsafe fn code(&mut self, instructions: &mut Instructions<'_>, size: usize) -> Option<*mut PyObject> {
        let layout = self.layout;
        // SAFETY: the fields of code of this layout, with room for what follows them.
        unsafe {
            let object = self.new_object(layout.code.checked_add(size)?, self.types.code)?;
            for (start, length) in layout.plain {
                copy_nonoverlapping(instructions.take(*length)?.as_ptr(), object.cast::<u8>().add(*start), *length);
            }
            for (field, _) in layout.objects {
                let number = instructions.take(2)?;
                write(object, *field, self.referred([number[0], number[1]])?);
            }
            copy_nonoverlapping(instructions.take(size)?.as_ptr(), object.cast::<u8>().add(layout.code), size);
            if let Some((array, _)) = layout.array.filter(|_| size > 0) {
                write(object, array, object.cast::<u8>().add(layout.code));
            }
            if let Some(field) = layout.version {
                write(object, field, versions::unused(field)?);
            }
            Some(object)
        }
    }
}

unsafe fn new_text(text: &[u8]) -> *mut PyObject {
    // SAFETY: so many bytes are there.
    unsafe { PyUnicode_FromStringAndSize(text.as_ptr().cast::<c_char>(), text.len() as Py_ssize_t) }
}
