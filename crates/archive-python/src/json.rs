//! The scanner of the module `json`, served from the archive. Not written in Python, it appears in no traceback.

use std::sync::Mutex;

use pyo3::exceptions::PyAttributeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFloat, PyInt, PyModule, PyString, PyTuple, PyType};

use crate::data::{self, Known};
use crate::document::{ordered_type, utf8};

/// Shorter texts (bytes) are parsed as fast as they are looked up.
const SHORTEST: usize = 4096;
/// Documents that begin later are some of many in one text.
const LATEST: usize = 16;

/// The installed replacements, to be removed again.
struct Hook {
    module: Py<PyModule>,
    make: Py<PyAny>,
    ours: Py<PyAny>,
}

static HOOK: Mutex<Option<Hook>> = Mutex::new(None);

/// serve_json(module, context, pause) -> None. Lets the scanners made by that module, `json.scanner`, use the archive.
///
/// context: what documents depend on besides their text. pause: (isenabled, disable, enable) of the module `gc`.
#[pyfunction]
pub fn serve_json(module: &Bound<'_, PyModule>, context: String, pause: Bound<'_, PyTuple>) -> PyResult<()> {
    let python = module.py();
    // A module that is being executed has neither yet.
    let (Ok(make), Ok(fast)) = (module.getattr("make_scanner"), module.getattr("c_make_scanner")) else {
        return Ok(());
    };
    if !make.is(&fast) || make.is_none() {
        return Ok(());
    }
    data::begin(&pause);
    let maker = Maker { make: make.clone().unbind(), context };
    let ours = Bound::new(python, maker)?.into_any();
    module.setattr("make_scanner", &ours)?;
    let hook = Hook { module: module.clone().unbind(), make: make.unbind(), ours: ours.clone().unbind() };
    *HOOK.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(hook);
    if let Some(decoder) = default_decoder(python) {
        decoder.setattr("scan_once", ours.call1((&decoder,))?)?;
    }
    Ok(())
}

/// Removes it: from now on `json` works as without the archive.
fn take_out(python: Python<'_>) -> PyResult<()> {
    let hook = HOOK.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
    let Some(hook) = hook else { return Ok(()) };
    let module = hook.module.bind(python);
    if module.getattr("make_scanner")?.is(&hook.ours) {
        module.setattr("make_scanner", &hook.make)?;
    }
    if let Some(decoder) = default_decoder(python) {
        let scanner = decoder.getattr("scan_once")?;
        if let Ok(scanner) = scanner.cast::<Scanner>() {
            decoder.setattr("scan_once", &scanner.get().scan)?;
        }
    }
    Ok(())
}

/// The decoder that `json.loads` uses without options, once it exists.
fn default_decoder(python: Python<'_>) -> Option<Bound<'_, PyAny>> {
    let modules = python.import("sys").ok()?.getattr("modules").ok()?;
    modules.get_item("json").ok()?.getattr("_default_decoder").ok()
}

/// Makes scanners, as `_json.make_scanner` does.
#[pyclass(frozen, name = "make_scanner", module = "_json")]
struct Maker {
    make: Py<PyAny>,
    context: String,
}

#[pymethods]
impl Maker {
    #[pyo3(signature = (*arguments, **options))]
    fn __call__<'py>(
        &self,
        arguments: &Bound<'py, PyTuple>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let python = arguments.py();
        let scan = self.make.bind(python).call(arguments, options)?;
        match kind_of(&scan) {
            Some(kind) if data::is_on() => {
                let context = format!("{} {kind}", self.context);
                let scanner = Scanner { scan: scan.unbind(), context };
                Ok(Bound::new(python, scanner)?.into_any())
            }
            _ => Ok(scan),
        }
    }
}

/// The kind of results under a scanner's options; `None` if functions of the program decide.
fn kind_of(scan: &Bound<'_, PyAny>) -> Option<&'static str> {
    let python = scan.py();
    let option = |name| scan.getattr(name).ok();
    // A constant (NaN) is never stored, so it does not matter who parses it.
    let is_plain = option("object_hook")?.is_none()
        && option("parse_float")?.is(PyType::new::<PyFloat>(python))
        && option("parse_int")?.is(PyType::new::<PyInt>(python));
    let pairs = option("object_pairs_hook")?;
    let is_ordered = pairs.as_ptr() == ordered_type();
    if !is_plain || !(is_ordered || pairs.is_none()) {
        return None;
    }
    Some(match (option("strict")?.is_truthy().ok()?, is_ordered) {
        (true, false) => "strict dict",
        (true, true) => "strict OrderedDict",
        (false, false) => "dict",
        (false, true) => "OrderedDict",
    })
}

/// Scans a text, as a scanner of `_json` does.
#[pyclass(frozen, name = "Scanner", module = "_json")]
struct Scanner {
    scan: Py<PyAny>,
    context: String,
}

#[pymethods]
impl Scanner {
    #[pyo3(signature = (*arguments, **options))]
    fn __call__<'py>(
        &self,
        arguments: &Bound<'py, PyTuple>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let python = arguments.py();
        let scan = self.scan.bind(python);
        if options.is_some() || !data::is_on() {
            return scan.call(arguments, options);
        }
        let Some((text, start)) = file_like(arguments) else { return scan.call(arguments, None) };
        let Some(bytes) = utf8(&text) else { return scan.call(arguments, None) };
        let context = format!("{} at {start}", self.context);
        let known = data::look_up(python, &context, bytes);
        if !data::is_on() {
            take_out(python)?;
        }
        match known {
            Known::Parsed(object, end) => Ok((object, end).into_pyobject(python)?.into_any()),
            Known::Ignored => scan.call(arguments, None),
            Known::Unknown => {
                let result = scan.call(arguments, None)?;
                if ![&b"NaN"[..], b"Infinity"].iter().any(|constant| contains(bytes, constant)) {
                    let (object, end) = result.extract::<(Bound<'_, PyAny>, u64)>()?;
                    data::keep(&context, bytes, &object, end);
                }
                Ok(result)
            }
        }
    }

    fn __getattr__<'py>(&self, python: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        self.scan.bind(python).getattr(name).map_err(|_| PyAttributeError::new_err(name.to_owned()))
    }
}

/// A text that may come from a file, and the start of its document.
fn file_like<'py>(arguments: &Bound<'py, PyTuple>) -> Option<(Bound<'py, PyString>, usize)> {
    let text = arguments.get_item(0).ok()?.cast_into_exact::<PyString>().ok()?;
    let start = arguments.get_item(1).ok()?.cast_into_exact::<PyInt>().ok()?.extract::<usize>().ok()?;
    (arguments.len() == 2 && start <= LATEST && text.len().ok()? >= SHORTEST).then_some((text, start))
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}
