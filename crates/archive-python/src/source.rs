//! The file of a module, and its code.

use std::fs::File;
use std::io::Read;

use archive::session::Event;
use archive::{Identity, NewInput};
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::boot;

/// A module's file, as the search found it.
#[pyclass(frozen, module = "snapboot.archive")]
pub struct Source {
    /// The path of the file.
    #[pyo3(get)]
    pub path: String,
    /// For a package its directory, else None.
    #[pyo3(get)]
    pub folder: Option<String>,
    /// The path of the compiled file; None if Python has to compute it.
    #[pyo3(get)]
    pub cached: Option<String>,
    /// Whether it is an extension module.
    #[pyo3(get)]
    pub is_extension: bool,
    pub identity: Identity,
}

#[pymethods]
impl Source {
    /// load(path) -> the archived code for this state of the file, else None. path: the code's future `co_filename`.
    fn load<'py>(&self, path: &Bound<'py, PyString>) -> Option<Bound<'py, PyAny>> {
        let (code, payload): (_, &'static [u8]) = {
            let mut held = boot::hold();
            let boot = held.as_mut()?;
            let (event, entry) = boot.session.find(boot.code_scope, self.path.as_bytes(), Some(&self.identity));
            if matches!(event, Event::Miss | Event::Stale) {
                return None;
            }
            // Code is never packed: it is read in place.
            (boot.code.clone(), entry?.plain()?)
        };
        code.load(payload, path)
    }

    /// keep(code, compiled, path) -> None. Stores code that has not run yet for this state of the file. compiled: the compiled file that it
    /// came from; None if it was compiled just now. path: see `load`. Raises what `marshal.dumps` raises.
    fn keep(&self, code: &Bound<'_, PyAny>, compiled: Option<&str>, path: &Bound<'_, PyString>) -> PyResult<()> {
        let name = self.path.clone().into_bytes();
        let mut inputs = vec![NewInput::File(name.clone(), self.identity)];
        if let Some(compiled) = compiled {
            let Some(identity) = Identity::stat(compiled).ok().filter(|identity| identity.is_settled) else {
                return Ok(());
            };
            if !is_of(compiled, &identity, &self.identity) {
                inputs.push(NewInput::File(compiled.as_bytes().to_vec(), identity));
            }
        }
        let kept = boot::hold()
            .as_mut()
            .and_then(|boot| boot.session.wants(boot.code_scope, &name, &self.identity).then(|| boot.code.clone()));
        if let Some(kept) = kept {
            // The boot is not held meanwhile: creating objects may start a garbage collection, which may run any code.
            let payload = kept.save(code, path)?;
            if let Some(boot) = boot::hold().as_mut() {
                boot.session.add(boot.code_scope, name, inputs, payload, false);
            }
        }
        Ok(())
    }
}

/// Whether a compiled file surely belongs to the source's current state. Python accepts it if the recorded time and size of the source
/// match, and, if it has the source's hash, sometimes without reading the source.
fn is_of(path: &str, compiled: &Identity, source: &Identity) -> bool {
    let mut head = [0; 8];
    let has_times = File::open(path).and_then(|mut file| file.read_exact(&mut head)).is_ok() && head[4..] == [0; 4];
    has_times && compiled.ctime > source.ctime
}
