//! The notation for the objects of a parsed document: one letter each, and its data. [`crate::document`] makes them again.
//!
//! | letter | object | what follows |
//! | --- | --- | --- |
//! | `s`, `S` | str | UTF-8; those after `S` are numbered |
//! | `r` | the str of that number | a size |
//! | `i`, `1` | int | 8 bytes; one byte, 0 to 255 |
//! | `f` | float | 8 bytes |
//! | `n`, `y`, `x` | None, True, False | |
//! | `b` | bytes | bytes |
//! | `{`, `<` | dict, OrderedDict | a size, keys and values in turn |
//! | `[`, `(` | list, tuple | a size, objects |
//! | `=` | an object that occurs again: numbered when it is complete | the object |
//! | `*` | that object | a size |
//! | `d` | date, time, datetime, timedelta or timezone of `datetime` | the type's name in bytes, a tuple of arguments |
//!
//! Sizes are in groups of seven bits, the highest first; all but the last have the top bit. Text and bytes follow their size. A document
//! with an object that has no letter, or that contains itself, is not stored. The order of a set depends on how it was filled, so there is
//! no letter for it.

use std::collections::HashMap;

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};

use crate::document::{ordered_type, utf8, DEEPEST};

/// Longer strings (bytes) seldom occur again.
const OFTEN: usize = 64;

/// Writes the object, if it can be stored.
pub fn write(object: &Bound<'_, PyAny>) -> Option<Vec<u8>> {
    let mut writer = Writer { written: Vec::new(), texts: HashMap::new(), seen: HashMap::new(), shared: 0 };
    writer.count(object, 0)?;
    writer.object(object, 0)?;
    Some(writer.written)
}

struct Writer {
    written: Vec<u8>,
    /// The number of each string that was written.
    texts: HashMap<Vec<u8>, usize>,
    /// Containers, by address: whether one occurs again, and its number once it was written.
    seen: HashMap<usize, (bool, Option<usize>)>,
    shared: usize,
}

impl Writer {
    /// Records which objects occur again.
    fn count(&mut self, object: &Bound<'_, PyAny>, depth: usize) -> Option<()> {
        if is_scalar(object) {
            return Some(());
        }
        if depth > DEEPEST {
            return None;
        }
        if let Some((again, _)) = self.seen.get_mut(&(object.as_ptr() as usize)) {
            *again = true;
            return Some(());
        }
        self.seen.insert(object.as_ptr() as usize, (false, None));
        if is_dict(object) {
            for (key, value) in object.cast::<PyDict>().ok()?.iter() {
                self.count(&key, depth + 1)?;
                self.count(&value, depth + 1)?;
            }
        } else if object.is_exact_instance_of::<PyList>() || object.is_exact_instance_of::<PyTuple>() {
            for element in object.try_iter().ok()? {
                self.count(&element.ok()?, depth + 1)?;
            }
        }
        Some(())
    }

    fn object(&mut self, object: &Bound<'_, PyAny>, depth: usize) -> Option<()> {
        if depth > DEEPEST {
            return None;
        }
        if is_scalar(object) {
            return self.scalar(object);
        }
        match self.seen.get(&(object.as_ptr() as usize)).copied() {
            Some((_, Some(number))) => {
                self.written.push(b'*');
                self.size(number);
                Some(())
            }
            Some((true, None)) => {
                self.written.push(b'=');
                self.container(object, depth)?;
                self.seen.insert(object.as_ptr() as usize, (true, Some(self.shared)));
                self.shared += 1;
                Some(())
            }
            _ => self.container(object, depth),
        }
    }

    fn scalar(&mut self, object: &Bound<'_, PyAny>) -> Option<()> {
        if let Ok(text) = object.cast_exact::<PyString>() {
            self.text(utf8(text)?);
        } else if object.is_none() {
            self.written.push(b'n');
        } else if let Ok(truth) = object.cast_exact::<PyBool>() {
            self.written.push(if truth.is_true() { b'y' } else { b'x' });
        } else if object.is_exact_instance_of::<PyInt>() {
            let number = object.extract::<i64>().ok()?;
            match u8::try_from(number) {
                Ok(number) => self.written.extend([b'1', number]),
                Err(_) => {
                    self.written.push(b'i');
                    self.written.extend(number.to_le_bytes());
                }
            }
        } else {
            let number = object.cast_exact::<PyFloat>().ok()?.extract::<f64>().ok()?;
            self.written.push(b'f');
            self.written.extend(number.to_le_bytes());
        }
        Some(())
    }

    fn container(&mut self, object: &Bound<'_, PyAny>, depth: usize) -> Option<()> {
        if is_dict(object) {
            let is_plain = object.is_exact_instance_of::<PyDict>();
            let dict = object.cast::<PyDict>().ok()?;
            self.written.push(if is_plain { b'{' } else { b'<' });
            self.size(dict.len());
            // The order of an OrderedDict is its own.
            for key in object.try_iter().ok()? {
                let key = key.ok()?;
                self.object(&key, depth + 1)?;
                self.object(&dict.get_item(&key).ok()??, depth + 1)?;
            }
        } else if let Ok(bytes) = object.cast_exact::<PyBytes>() {
            self.written.push(b'b');
            self.bytes(bytes.as_bytes());
        } else if object.is_exact_instance_of::<PyList>() {
            self.elements(b'[', object, depth)?;
        } else if object.is_exact_instance_of::<PyTuple>() {
            self.elements(b'(', object, depth)?;
        } else {
            let kind = object.get_type();
            let name = kind.name().ok()?.to_string();
            let known = ["date", "time", "datetime", "timedelta", "timezone"].contains(&name.as_str())
                && object.py().import("datetime").ok()?.getattr(name.as_str()).ok()?.is(&kind);
            if !known {
                return None;
            }
            // The arguments that `pickle` would use: a packed state for dates and times, followed by their zone.
            let arguments = match name.as_str() {
                "timezone" => object.call_method0("__getinitargs__").ok()?,
                _ => object.call_method0("__reduce__").ok()?.get_item(1).ok()?,
            };
            self.written.push(b'd');
            self.bytes(name.as_bytes());
            self.elements(b'(', &arguments, depth)?;
        }
        Some(())
    }

    fn elements(&mut self, letter: u8, object: &Bound<'_, PyAny>, depth: usize) -> Option<()> {
        self.written.push(letter);
        self.size(object.len().ok()?);
        for element in object.try_iter().ok()? {
            self.object(&element.ok()?, depth + 1)?;
        }
        Some(())
    }

    fn text(&mut self, text: &[u8]) {
        if text.len() > OFTEN {
            self.written.push(b's');
            self.bytes(text);
        } else if let Some(number) = self.texts.get(text).copied() {
            self.written.push(b'r');
            self.size(number);
        } else {
            self.texts.insert(text.to_vec(), self.texts.len());
            self.written.push(b'S');
            self.bytes(text);
        }
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.size(bytes.len());
        self.written.extend(bytes);
    }

    fn size(&mut self, size: usize) {
        let groups = (usize::BITS - size.leading_zeros()).div_ceil(7).max(1);
        for group in (0..groups).rev() {
            let bits = (size >> (7 * group) & 0x7f) as u8;
            self.written.push(if group > 0 { bits | 0x80 } else { bits });
        }
    }
}

/// Objects that contain nothing. Only `is` shows whether two of them are one object.
fn is_scalar(object: &Bound<'_, PyAny>) -> bool {
    object.is_exact_instance_of::<PyString>()
        || object.is_exact_instance_of::<PyInt>()
        || object.is_exact_instance_of::<PyFloat>()
        || object.is_exact_instance_of::<PyBool>()
        || object.is_none()
}

fn is_dict(object: &Bound<'_, PyAny>) -> bool {
    object.is_exact_instance_of::<PyDict>() || object.get_type().as_ptr() == ordered_type()
}
