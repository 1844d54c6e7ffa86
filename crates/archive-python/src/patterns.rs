//! The function that compiles regular expressions, served from the archive.
//!
//! It is not a Python function, because that would be a frame between the compiler and its caller: warnings name the line a fixed number of
//! frames away, and tracebacks show all frames.

use archive::Kind;
use pyo3::exceptions::PyAttributeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString, PyTuple};

use crate::boot;
use crate::listener;
use crate::marshal;

/// Longer patterns (characters) are made by programs, and seldom twice.
const LONGEST: usize = 20_000;

/// Replaces the function `compile` of the module with which `re` compiles.
#[pyclass(frozen, module = "snapboot.archive", name = "compile")]
pub struct Compile {
    original: Py<PyAny>,
    make: Py<PyAny>,
    context: String,
    is_importing: Py<PyAny>,
    keep: Py<PyAny>,
}

#[pymethods]
impl Compile {
    /// original: the function. make: `_sre.compile`. context: what the compiler depends on. is_importing: returns whether a module is being
    /// imported. keep: called with the name, pattern and flags of a pattern that the archive does not have.
    #[new]
    fn new(original: Py<PyAny>, make: Py<PyAny>, context: String, is_importing: Py<PyAny>, keep: Py<PyAny>) -> Self {
        Compile { original, make, context, is_importing, keep }
    }

    #[pyo3(signature = (p, flags=None))]
    fn __call__<'py>(&self, p: &Bound<'py, PyAny>, flags: Option<&Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
        let python = p.py();
        let original = self.original.bind(python);
        let Some(name) = self.name(p, flags) else { return call(original, p, flags) };
        let begun = listener::begin();
        if let Some(arguments) = self.stored(python, &name) {
            let make = self.make.bind(python);
            let all: Vec<_> = std::iter::once(p.clone()).chain(arguments.iter()).collect();
            let pattern = make.call1(PyTuple::new(python, all)?);
            listener::report(python, "regular expressions", begun);
            return pattern;
        }
        let pattern = call(original, p, flags)?;
        // An error: a compiler of unexpected form.
        let _ = self.keep.bind(python).call1((PyBytes::new(python, &name), p, flags));
        Ok(pattern)
    }

    /// Other attributes of the function.
    fn __getattr__<'py>(&self, python: Python<'py>, name: &Bound<'py, PyString>) -> PyResult<Bound<'py, PyAny>> {
        self.original.bind(python).getattr(name).map_err(|_| PyAttributeError::new_err(name.to_string()))
    }
}

fn call<'py>(
    function: &Bound<'py, PyAny>,
    p: &Bound<'py, PyAny>,
    flags: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    match flags {
        Some(flags) => function.call1((p, flags)),
        None => function.call1((p,)),
    }
}

impl Compile {
    /// A pattern's name in the archive. `None`: it is not looked up there.
    fn name(&self, p: &Bound<'_, PyAny>, flags: Option<&Bound<'_, PyAny>>) -> Option<Vec<u8>> {
        let python = p.py();
        let (kind, text) = if let Ok(text) = p.cast_exact::<PyString>() {
            ("str", text.extract::<std::borrow::Cow<'_, str>>().ok()?.into_owned().into_bytes())
        } else {
            ("bytes", p.cast_exact::<PyBytes>().ok()?.as_bytes().to_vec())
        };
        if text.len() > LONGEST || !self.is_importing.bind(python).call0().ok()?.extract::<bool>().ok()? {
            return None;
        }
        let flags: i64 = flags.map_or(Some(0), |flags| flags.extract().ok())?;
        Some([format!("{kind} {flags} ").into_bytes(), text].concat())
    }

    fn stored<'py>(&self, python: Python<'py>, name: &[u8]) -> Option<Bound<'py, PyTuple>> {
        let payload = {
            let mut held = boot::hold();
            let session = &mut held.as_mut()?.session;
            let scope = session.scope(Kind::Memo, &self.context);
            session.find(scope, name, None).1?.plain()?
        };
        marshal::load(python, payload).ok()?.cast_into().ok()
    }
}
