//! The property `entry_points` of `importlib.metadata.Distribution`, served from the archive: the parsed content of a file
//! `entry_points.txt`. Python itself finds the distributions. Not written in Python, it appears in no traceback.

use std::io::ErrorKind;
use std::sync::OnceLock;

use archive::{Identity, Kind, NewInput};
use pyo3::prelude::*;
use pyo3::types::{PyTuple, PyType};

use crate::boot;
use crate::listener;
use crate::marshal;

/// serve_entry_points(distribution, make) -> None. Serves the property of that class from the archive.
///
/// make: called on first use. Returns two functions, or None if the archive should not be asked. The first one is called with the
/// distribution, and returns the property's value; None: the archive does not have it. The second one is called with the distribution and
/// the value found otherwise.
#[pyfunction]
pub fn serve_entry_points(distribution: &Bound<'_, PyType>, make: Py<PyAny>) -> PyResult<()> {
    let python = distribution.py();
    let property = python.import("builtins")?.getattr("property")?;
    let usual = distribution.getattr("entry_points")?;
    if !usual.get_type().is(&property) {
        return Ok(());
    }
    let ours = EntryPoints { function: usual.getattr("fget")?.unbind(), make, functions: OnceLock::new() };
    distribution.setattr("entry_points", property.call1((Bound::new(python, ours)?,))?)
}

/// entry_points_at(path, context) -> what was stored for the file of that absolute path, an object of marshal; False if there is no such
/// file; else a File that can be stored, or None.
///
/// context: what it depends on besides the file.
#[pyfunction]
pub fn entry_points_at<'py>(python: Python<'py>, path: &str, context: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
    let identity = match Identity::stat(path) {
        Ok(identity) if !identity.is_directory => identity,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Ok(Some(pyo3::types::PyBool::new(python, false).to_owned().into_any()))
        }
        _ => return Ok(None),
    };
    let (scope, payload) = {
        let mut held = boot::hold();
        let Some(boot) = held.as_mut() else { return Ok(None) };
        let scope = boot.session.scope(Kind::Data, context);
        let (_, entry) = boot.session.find(scope, path.as_bytes(), Some(&identity));
        (scope, entry.and_then(|entry| entry.plain()))
    };
    match payload.and_then(|payload| marshal::load(python, payload).ok()) {
        Some(known) => Ok(Some(known)),
        None => Ok(Some(Bound::new(python, Listed { path: path.to_owned(), identity, scope })?.into_any())),
    }
}

/// A file without an entry in the archive, in its state before it was read.
#[pyclass(frozen, module = "snapboot.archive", name = "File")]
pub struct Listed {
    path: String,
    identity: Identity,
    scope: usize,
}

#[pymethods]
impl Listed {
    /// Stores the parsed content of the file, as `marshal.dumps` has written it.
    fn keep(&self, payload: Vec<u8>) {
        let path = self.path.clone().into_bytes();
        if let Some(boot) = boot::hold().as_mut() {
            if boot.session.wants(self.scope, &path, &self.identity) {
                let inputs = vec![NewInput::File(path.clone(), self.identity)];
                boot.session.add(self.scope, path, inputs, payload, false);
            }
        }
    }
}

/// The two functions from `make`.
type Functions = Option<(Py<PyAny>, Py<PyAny>)>;

// See `serve_entry_points`. A doc comment would hide `__doc__`.
#[pyclass(frozen, name = "function", module = "builtins")]
struct EntryPoints {
    function: Py<PyAny>,
    make: Py<PyAny>,
    functions: OnceLock<Functions>,
}

#[pymethods]
impl EntryPoints {
    fn __call__<'py>(&self, distribution: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let python = distribution.py();
        let function = self.function.bind(python);
        let Some((answer, keep)) = self.functions(python) else { return function.call1((distribution,)) };
        let begun = listener::begin();
        let Ok(answer) = answer.bind(python).call1((distribution,)) else { return function.call1((distribution,)) };
        // The answer, and without one what to store with it.
        let Ok((known, file)) = answer.extract::<(Bound<'py, PyAny>, Bound<'py, PyAny>)>() else {
            return function.call1((distribution,));
        };
        if file.is_none() {
            listener::report(python, "entry points of distributions", begun);
            return Ok(known);
        }
        let result = function.call1((distribution,))?;
        // An error: a result of unexpected form.
        let _ = keep.bind(python).call1((file, &result));
        Ok(result)
    }

    fn __repr__(&self, python: Python<'_>) -> PyResult<String> {
        Ok(self.function.bind(python).repr()?.to_string())
    }

    /// In a class it is a method, as functions are.
    fn __get__<'py>(
        slf: &Bound<'py, Self>,
        object: &Bound<'py, PyAny>,
        _kind: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if object.is_none() {
            return Ok(slf.as_any().clone());
        }
        slf.py().import("types")?.getattr("MethodType")?.call1((slf, object))
    }

    #[getter]
    fn __wrapped__(&self, python: Python<'_>) -> Py<PyAny> {
        self.function.clone_ref(python)
    }

    #[getter]
    fn __doc__<'py>(&self, python: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.function.bind(python).getattr("__doc__")
    }

    #[getter]
    fn __module__<'py>(&self, python: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.function.bind(python).getattr("__module__")
    }

    fn __getattr__<'py>(&self, python: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        self.function.bind(python).getattr(name)
    }
}

impl EntryPoints {
    fn functions(&self, python: Python<'_>) -> Option<&(Py<PyAny>, Py<PyAny>)> {
        // Not `get_or_init`: Python code may let another thread come here.
        if self.functions.get().is_none() {
            let made = self.make.bind(python).call0().and_then(|made| Ok(made.extract::<Bound<'_, PyTuple>>()?));
            let pair = made.and_then(|made| Ok((made.get_item(0)?.unbind(), made.get_item(1)?.unbind()))).ok();
            let _ = self.functions.set(pair);
        }
        self.functions.get()?.as_ref()
    }
}
