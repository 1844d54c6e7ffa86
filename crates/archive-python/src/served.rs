//! A function that parses texts, served from the archive. Not written in Python, it appears in no traceback.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString, PyTuple};

use crate::data::{self, Known};
use crate::document::utf8;

/// served(function, question, pause) -> a replacement for the function, which answers from the archive if it can.
///
/// question: called with the positional arguments (a tuple) and the others (a dict or None). None: the archive is not asked. Else: the text
/// (str or bytes), what the result depends on besides it (str), and a function to call before the original, or None. pause: (isenabled,
/// disable, enable) of the module `gc`.
#[pyfunction]
pub fn served(
    python: Python<'_>,
    function: Py<PyAny>,
    question: Py<PyAny>,
    pause: Bound<'_, PyTuple>,
) -> PyResult<Py<Served>> {
    data::begin(&pause);
    Py::new(python, Served { function, question })
}

// See `served`. A doc comment would hide `__doc__`.
#[pyclass(frozen, name = "function", module = "builtins")]
pub struct Served {
    function: Py<PyAny>,
    question: Py<PyAny>,
}

#[pymethods]
impl Served {
    #[pyo3(signature = (*arguments, **options))]
    fn __call__<'py>(
        &self,
        arguments: &Bound<'py, PyTuple>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let function = self.function.bind(arguments.py());
        let Some((text, context, before)) = self.ask(arguments, options) else {
            return function.call(arguments, options);
        };
        let bytes = match text.cast_exact::<PyString>() {
            Ok(text) => utf8(text),
            Err(_) => text.cast_exact::<PyBytes>().ok().map(|bytes| bytes.as_bytes()),
        };
        let known = bytes.map_or(Known::Ignored, |bytes| data::look_up(arguments.py(), &context, bytes));
        if let Known::Parsed(object, _) = known {
            return Ok(object);
        }
        if !before.is_none() {
            before.call0()?;
        }
        let result = function.call(arguments, options)?;
        if let (Known::Unknown, Some(bytes)) = (known, bytes) {
            data::keep(&context, bytes, &result, 0);
        }
        Ok(result)
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

    /// It is pickled by its name.
    fn __reduce__<'py>(&self, python: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.function.bind(python).getattr("__qualname__")
    }

    fn __repr__(&self, python: Python<'_>) -> PyResult<String> {
        Ok(self.function.bind(python).repr()?.to_string())
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

type Question<'py> = (Bound<'py, PyAny>, String, Bound<'py, PyAny>);

impl Served {
    fn ask<'py>(&self, arguments: &Bound<'py, PyTuple>, options: Option<&Bound<'py, PyDict>>) -> Option<Question<'py>> {
        if !data::is_on() {
            return None;
        }
        let asked = self.question.bind(arguments.py()).call1((arguments, options)).ok()?;
        asked.extract().ok()
    }
}
