//! The search for a module along `sys.path`, and which of its entries it leaves to Python.

use std::borrow::Cow;

use archive::session::{Directories, Session};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::{PyBool, PyDict, PyList, PyString, PyTuple};

use crate::audit;
use crate::boot::{self, Boot};
use crate::search::{search, Found, Outcome};
use crate::source::Source;

/// find(tail, entries, importers, finder, loaders, usual) -> Source, None if no entry has the module, or False if Python's own finders have
/// to search.
///
/// tail: the last part of the module's name. entries: directories, a list of str. importers: sys.path_importer_cache. finder: the type of
/// the finders of directories; Python asks any other importer of an entry. loaders: the `_loaders` of such a finder, the same objects
/// unless somebody has replaced them. usual: whether a directory without an importer would get such a finder.
#[pyfunction]
pub fn find<'py>(
    python: Python<'py>,
    tail: &Bound<'_, PyAny>,
    entries: &Bound<'_, PyList>,
    importers: &Bound<'_, PyDict>,
    finder: &Bound<'_, PyAny>,
    loaders: &Bound<'_, PyList>,
    usual: bool,
) -> PyResult<Bound<'py, PyAny>> {
    archive::session::stir();
    match search_entries(tail, entries, importers, &Usual { finder, loaders }, usual).unwrap_or(Outcome::Unknown) {
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

/// Searches the entries in order. None: Python has to search.
fn search_entries(
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

/// Whether a path is a directory that can be listed.
pub fn is_directory(path: &str, directories: &mut Directories, session: &mut Session) -> bool {
    let id = directories.id(path.as_bytes());
    directories.is_listed(id, session)
}
