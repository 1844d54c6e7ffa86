//! The code of a module in the archive, and its conversion to objects.
//!
//! If the layout of the running Python is known, code is stored as [`encode`] writes it and made by [`decode`]; otherwise as marshal writes
//! it. The first byte says which. With marshal alone, a start that imports many modules takes 9 to 11 % more CPU
//! (docs/decisions/74-code-is-laid-out-where-python-agrees.md). Nothing is written into memory of the interpreter's own.

mod decode;
mod encode;
mod layout;
mod memory;
mod names;
mod opcodes;
mod versions;

use std::collections::HashSet;
use std::sync::Mutex;

use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::marshal;
pub use decode::{has_grown, trim};
use layout::Layout;

/// The name of the format for stored code, besides the version of Python: a new number if the format changes.
pub const FORM: &str = "objects 4";

const MARSHALLED: u8 = 0;
const LAID_OUT: u8 = 1;

/// How this process reads and writes code.
pub struct Code {
    /// `None`: all code is stored in marshal's format.
    layout: Option<&'static Layout>,
    /// Files whose code was decoded before. Decoded code is never freed, so a module that is loaded repeatedly gets Python's own from then
    /// on.
    decoded: Mutex<HashSet<String>>,
}

impl Code {
    /// `sample`: code of any function with a name of more than one ASCII letter.
    pub fn new(sample: &Bound<'_, PyAny>) -> Self {
        let layout = layout::matching(sample).filter(|layout| versions::are_counted(sample.py(), layout));
        Self { layout, decoded: Mutex::default() }
    }

    /// Decodes stored code; `None` if Python has to load it. `path`: that of the module's file.
    pub fn load<'py>(&self, kept: &[u8], path: &Bound<'py, PyString>) -> Option<Bound<'py, PyAny>> {
        match kept.split_first()? {
            (&MARSHALLED, bytes) => marshal::load(path.py(), bytes).ok(),
            (&LAID_OUT, bytes) => {
                let is_first = self.decoded.lock().ok()?.insert(path.extract().ok()?);
                decode::decode(self.layout.filter(|_| is_first)?, bytes, path)
            }
            _ => None,
        }
    }

    /// Encodes code that has not run yet.
    pub fn save(&self, code: &Bound<'_, PyAny>, path: &Bound<'_, PyString>) -> PyResult<Vec<u8>> {
        let laid_out = self.layout.and_then(|layout| encode::encode(layout, code, path));
        let (form, bytes) = match laid_out {
            Some(bytes) => (LAID_OUT, bytes),
            None => (MARSHALLED, marshal::save(code)?),
        };
        Ok([&[form], bytes.as_slice()].concat())
    }
}
