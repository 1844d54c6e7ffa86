//! A module's file that was found, and its code.

use std::fs::File;
use std::io::Read;

use archive::session::Event;
use archive::{Identity, NewInput};
use pyo3::prelude::*;

use crate::boot;
use crate::marshal;

/// A module's file, as the search has found it.
#[pyclass(frozen, module = "snapboot.archive")]
pub struct Source {
    /// The path of the file.
    #[pyo3(get)]
    pub path: String,
    /// Of a package its directory, else None.
    #[pyo3(get)]
    pub folder: Option<String>,
    /// What the compiled file would be called; None where Python has to say it.
    #[pyo3(get)]
    pub cached: Option<String>,
    /// Whether it is an extension module.
    #[pyo3(get)]
    pub is_extension: bool,
    pub identity: Identity,
}

#[pymethods]
impl Source {
    /// The code that the archive has for the file as it was found, else None.
    fn load<'py>(&self, python: Python<'py>) -> Option<Bound<'py, PyAny>> {
        let payload: &'static [u8] = {
            let mut held = boot::hold();
            let boot = held.as_mut()?;
            let (event, entry) = boot.session.find(boot.code, self.path.as_bytes(), Some(&self.identity));
            if matches!(event, Event::Miss | Event::Stale) {
                return None;
            }
            // Code is never packed: it is read where it lies.
            entry?.plain()?
        };
        marshal::load(python, payload).ok()
    }

    /// Bytes of the file.
    #[getter]
    fn size(&self) -> u64 {
        self.identity.size
    }

    /// Keeps `code`, the bytes that `marshal.dumps` made of it, for the file as it was found. `compiled`: the compiled file that it came
    /// from; None where it was compiled just now.
    #[pyo3(signature = (code, compiled))]
    fn keep(&self, code: Vec<u8>, compiled: Option<&str>) {
        if let Some(boot) = boot::hold().as_mut() {
            let path = self.path.clone().into_bytes();
            let mut inputs = vec![NewInput::File(path.clone(), self.identity)];
            if let Some(compiled) = compiled {
                let Ok(identity) = Identity::of(compiled) else { return };
                if !identity.is_settled {
                    return;
                }
                if !is_of(compiled, &identity, &self.identity) {
                    inputs.push(NewInput::File(compiled.as_bytes().to_vec(), identity));
                }
            }
            if boot.session.wants(boot.code, &path, &self.identity) {
                boot.session.add(boot.code, path, inputs, code, false);
            }
        }
    }
}

/// Whether a compiled file surely has the code of the source as that is now. Python believes it where time and size of the source are as
/// noted, and, where it has the source's hash, sometimes without looking at the source.
fn is_of(path: &str, compiled: &Identity, source: &Identity) -> bool {
    let mut head = [0; 8];
    let has_times = File::open(path).and_then(|mut file| file.read_exact(&mut head)).is_ok() && head[4..] == [0; 4];
    has_times && compiled.ctime > source.ctime
}
