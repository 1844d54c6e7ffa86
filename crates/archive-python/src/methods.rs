//! The functions of the module `snapboot_python`, for `snapboot/archive` of the Python package.

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

use archive::session::{Absence, Directories, Parts, Session, Settings, Share};
use archive::{Application, Identity, Kind};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::{PyBool, PyBytes, PyDict, PyList, PyString, PyTuple};

use crate::audit;
use crate::boot::{self, Boot};
use crate::code::{self, Code};
use crate::cwd::Cwd;
use crate::entry_points::{entry_points_at, serve_entry_points};
use crate::json::serve_json;
use crate::listener::listen;
use crate::search::{search, Endings, Found, Outcome};
use crate::served::served;
use crate::source::Source;

/// Adds them.
pub fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(open, module)?)?;
    module.add_function(wrap_pyfunction!(find, module)?)?;
    module.add_function(wrap_pyfunction!(source_at, module)?)?;
    module.add_function(wrap_pyfunction!(list_directory, module)?)?;
    module.add_function(wrap_pyfunction!(begin_round, module)?)?;
    module.add_function(wrap_pyfunction!(trim, module)?)?;
    module.add_function(wrap_pyfunction!(counters, module)?)?;
    module.add_function(wrap_pyfunction!(place, module)?)?;
    module.add_function(wrap_pyfunction!(fetch, module)?)?;
    module.add_function(wrap_pyfunction!(store, module)?)?;
    module.add_function(wrap_pyfunction!(is_on, module)?)?;
    module.add_function(wrap_pyfunction!(serve_json, module)?)?;
    module.add_function(wrap_pyfunction!(served, module)?)?;
    module.add_function(wrap_pyfunction!(serve_entry_points, module)?)?;
    module.add_function(wrap_pyfunction!(entry_points_at, module)?)?;
    module.add_function(wrap_pyfunction!(listen, module)?)?;
    module.add_function(wrap_pyfunction!(flush, module)?)
}

/// open(program, description, extensions, tag, sample) -> None, or a str that says why there is no archive.
///
/// program: the path that identifies this program. description: what code depends on besides its source. extensions: the endings of
/// extension modules. tag: see `Endings`. sample: code of any function.
#[pyfunction]
fn open(
    python: Python<'_>,
    program: &str,
    description: &str,
    extensions: Vec<String>,
    tag: Option<String>,
    sample: &Bound<'_, PyAny>,
) -> Option<String> {
    let opened = Settings::read().and_then(|settings| {
        let cwd = std::env::current_dir().map_err(Absence::NoDirectory)?;
        Session::open(settings, Application::of_program(Path::new(program)), &cwd)
    });
    match opened {
        Err(absence) => Some(absence.to_string()),
        Ok(mut session) => {
            let code_scope = session.scope(Kind::Code, &format!("{description} {}", code::FORM));
            let directories = Directories::new(&mut session, Share::Heard);
            session.parts = Parts { code: is_on("code"), lookups: is_on("lookups") };
            archive::session::flush_at_exit();
            audit::watch(python);
            boot::set(Boot {
                session,
                directories,
                cwd: Cwd::default(),
                code_scope,
                code: Arc::new(Code::new(sample)),
                endings: Endings { extensions, tag },
            });
            None
        }
    }
}

/// find(tail, entries, importers, finder, loaders, usual) -> Source, None if no entry has the module, or False if Python's own finders have
/// to search.
///
/// tail: the last part of the module's name. entries: directories, a list of str. importers: sys.path_importer_cache. finder: the type of
/// the finders of directories; Python asks any other importer of an entry. loaders: the `_loaders` of such a finder, the same objects
/// unless somebody has replaced them. usual: whether a directory without an importer would get such a finder.
#[pyfunction]
fn find<'py>(
    python: Python<'py>,
    tail: &Bound<'_, PyAny>,
    entries: &Bound<'_, PyList>,
    importers: &Bound<'_, PyDict>,
    finder: &Bound<'_, PyAny>,
    loaders: &Bound<'_, PyList>,
    usual: bool,
) -> PyResult<Bound<'py, PyAny>> {
    match look(tail, entries, importers, &Usual { finder, loaders }, usual).unwrap_or(Outcome::Unknown) {
        Outcome::Found(found) => {
            let cached = boot::hold().as_ref().and_then(|boot| found.cached(&boot.endings));
            let Found { path, folder, is_extension, identity, .. } = found;
            Ok(Bound::new(python, Source { path, folder, cached, is_extension, identity })?.into_any())
        }
        Outcome::NotHere => Ok(python.None().into_bound(python)),
        Outcome::Unknown => Ok(PyBool::new(python, false).to_owned().into_any()),
    }
}

/// An unmodified `FileFinder` has its loaders, path, modification time and two listings.
const FINDER_ATTRIBUTES: usize = 5;

/// Python's own importer for a directory.
struct Usual<'a, 'py> {
    finder: &'a Bound<'py, PyAny>,
    loaders: &'a Bound<'py, PyList>,
}

impl Usual<'_, '_> {
    /// Whether that is the importer of the directory `entry`. Compares by identity: no Python code may run.
    fn is_it(&self, importer: &Bound<'_, PyAny>, entry: &Bound<'_, PyString>) -> Option<bool> {
        let python = importer.py();
        if !importer.get_type().is(self.finder) {
            return Some(false);
        }
        // If it was given a method of its own, Python has to ask that.
        let names = importer.getattr(intern!(python, "__dict__")).ok()?;
        if names.cast::<PyDict>().ok()?.len() != FINDER_ATTRIBUTES {
            return Some(false);
        }
        let path = importer.getattr(intern!(python, "path")).ok()?;
        let loaders = importer.getattr(intern!(python, "_loaders")).ok()?;
        let (path, loaders) = (path.cast::<PyString>().ok()?, loaders.cast::<PyList>().ok()?);
        if loaders.len() != self.loaders.len() || !(path.is(entry) || text(path)? == text(entry)?) {
            return Some(false);
        }
        for (one, other) in loaders.iter().zip(self.loaders.iter()) {
            let (one, other) = (one.cast::<PyTuple>().ok()?, other.cast::<PyTuple>().ok()?);
            if !(one.get_item(0).ok()?.is(&other.get_item(0).ok()?)
                && one.get_item(1).ok()?.is(&other.get_item(1).ok()?))
            {
                return Some(false);
            }
        }
        Some(true)
    }
}

fn text<'a>(string: &'a Bound<'_, PyString>) -> Option<Cow<'a, str>> {
    string.extract().ok()
}

/// `None`: Python has to search.
fn look(
    tail: &Bound<'_, PyAny>,
    entries: &Bound<'_, PyList>,
    importers: &Bound<'_, PyDict>,
    own: &Usual<'_, '_>,
    usual: bool,
) -> Option<Outcome> {
    let tail = tail.extract::<PyBackedStr>().ok()?;
    let mut held = boot::hold();
    let Boot { session, directories, cwd, endings, .. } = held.as_mut()?;
    if !session.parts.lookups {
        return None;
    }
    if audit::has_changed() {
        directories.begin_round();
    }
    directories.pass_time();
    for entry in entries.iter() {
        let entry = entry.cast::<PyString>().ok()?;
        let importer = importers.get_item(entry).ok()?;
        match &importer {
            Some(importer) if importer.is_none() => continue,
            Some(importer) if own.is_it(importer, entry)? => {}
            None if usual => {}
            _ => return None,
        }
        let mut path: Cow<'_, str> = Cow::Owned(entry.extract().ok()?);
        if path.is_empty() {
            path = Cow::Borrowed(cwd.path(directories)?);
        }
        if !path.starts_with('/') || path.ends_with('/') {
            return None;
        }
        // A zip file, or nothing, which Python remembers.
        if importer.is_none() && !is_directory(&path, directories, session) {
            return None;
        }
        match search(&path, &tail, endings, directories, session) {
            Outcome::NotHere => {}
            outcome => return Some(outcome),
        }
    }
    Some(Outcome::NotHere)
}

fn is_directory(path: &str, directories: &mut Directories, session: &mut Session) -> bool {
    let id = directories.id(path.as_bytes());
    directories.is_listed(id, session)
}

/// source_at(path) -> Source, for a file that Python has found; None if it is gone.
#[pyfunction]
fn source_at(path: PyBackedStr) -> Option<Source> {
    let identity = Identity::stat(&*path).ok().filter(|identity| !identity.is_directory && path.starts_with('/'))?;
    Some(Source { path: path.to_string(), folder: None, cached: None, is_extension: false, identity })
}

/// list_directory(path) -> None. Stores the names in that directory, if it can be listed.
#[pyfunction]
fn list_directory(path: &str) {
    if let Some(Boot { session, directories, .. }) = boot::hold().as_mut() {
        is_directory(path, directories, session);
    }
}

/// trim() -> None. Returns memory to the kernel that was taken in advance, and pages of the archive that were read, if that is much since
/// the last call.
#[pyfunction]
fn trim() {
    if code::has_grown() {
        code::trim();
        if let Some(boot) = boot::hold().as_ref() {
            boot.session.release();
        }
    }
}

/// begin_round() -> None. Every listing of a directory is compared before its next use.
#[pyfunction]
fn begin_round() {
    if let Some(boot) = boot::hold().as_mut() {
        boot.directories.begin_round();
    }
}

/// fetch(name, context) -> bytes that were stored under that name in that context, or None.
#[pyfunction]
fn fetch<'py>(python: Python<'py>, name: &[u8], context: &str) -> Option<Bound<'py, PyBytes>> {
    let mut held = boot::hold();
    let session = &mut held.as_mut()?.session;
    let scope = session.scope(Kind::Memo, context);
    let (_, entry) = session.find(scope, name, None);
    Some(PyBytes::new(python, entry?.plain()?))
}

/// store(name, payload, context) -> None. Queues an entry that depends on nothing but its name and its context.
#[pyfunction]
fn store(name: &[u8], payload: Vec<u8>, context: &str) {
    if let Some(boot) = boot::hold().as_mut() {
        let scope = boot.session.scope(Kind::Memo, context);
        boot.session.add(scope, name.to_vec(), Vec::new(), payload, false);
    }
}

/// is_on(part) -> whether that part of the archive is not switched off by its variable: see PARTS in imports.py.
#[pyfunction]
fn is_on(part: &str) -> bool {
    let value = std::env::var_os(format!("SNAPBOOT_ARCHIVE_{}", part.to_uppercase()));
    value.is_none_or(|value| value != "off" && value != "0")
}

/// counters() -> (hits, misses, stale, revalidated)
#[pyfunction]
fn counters() -> (usize, usize, usize, usize) {
    let counters = boot::hold().as_ref().map(|boot| boot.session.counters).unwrap_or_default();
    (counters.hits, counters.misses, counters.stale, counters.revalidated)
}

/// place() -> the archive's path, or None without one.
#[pyfunction]
fn place() -> Option<std::ffi::OsString> {
    boot::hold().as_ref().map(|boot| boot.session.path().as_os_str().to_owned())
}

/// flush() -> None, or a str that says why nothing was written.
#[pyfunction]
fn flush(python: Python<'_>) -> Option<String> {
    // A writer may wait for another process.
    python.detach(archive::session::flush).err().map(|error| error.to_string())
}
