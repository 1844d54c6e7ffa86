//! The functions of the module `snapboot_python`, for `snapboot/archive` of the Python package.

use std::path::Path;
use std::sync::Arc;

use archive::session::{Absence, Directories, Parts, Session, Settings, Share};
use archive::{Application, Identity, Kind};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::PyBytes;

use crate::audit;
use crate::boot::{self, Boot};
use crate::calm::when_calm;
use crate::code::{self, Code};
use crate::cwd::Cwd;
use crate::entry_points::{entry_points_at, serve_entry_points};
use crate::json::serve_json;
use crate::listener::listen;
use crate::search::Endings;
use crate::served::served;
use crate::source::Source;
use crate::sys_path::{find, is_directory};

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
    module.add_function(wrap_pyfunction!(when_calm, module)?)?;
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

/// is_on(part) -> whether that part of the archive is not switched off by its variable: see PARTS in messages.py.
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
