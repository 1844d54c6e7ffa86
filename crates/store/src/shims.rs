//! Remembers where the shims of version managers lead: asking pyenv or rbenv takes longer than most programs need to start.
//!
//! Their answers depend on the variables, on the version files in the working directory and above it, on that of the manager, and on which
//! versions are installed. All of that is in the name of the file that holds the answer.

use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use runtime::shims::{root_in, shim_manager, VARIABLES, VERSION_FILES};
use runtime::Shim;

use crate::location;
use crate::Store;

/// The answers of one store.
pub struct Shims {
    /// Holds a file for each.
    folder: PathBuf,
}

impl Shims {
    /// The answers of a store.
    pub fn in_store(store: &Store) -> Shims {
        Shims { folder: store.cache().join(".shims") }
    }

    /// Where a shim leads; None if unknown. `text`: the beginning of the shim.
    pub fn target(&self, shim: &Path, text: &[u8]) -> Option<PathBuf> {
        let path = trust::read(&self.file(shim, text)?).ok()?;
        let program = PathBuf::from(OsString::from_vec(path));
        program.is_file().then_some(program)
    }

    /// Remembers where a shim leads. An error while writing is ignored.
    pub fn remember(&self, shim: &Shim) {
        let mut text = Vec::new();
        let read = trust::look::open(&shim.script).and_then(|file| file.take(4096).read_to_end(&mut text));
        let Some(file) = read.ok().and_then(|_| self.file(&shim.script, &text)) else { return };
        if file.exists() || location::make(&self.folder).is_err() {
            return;
        }
        let _ = location::write(&file, shim.program.as_os_str().as_bytes());
    }

    /// The file of a shim, for the current state.
    fn file(&self, shim: &Path, text: &[u8]) -> Option<PathBuf> {
        let manager = shim_manager(text)?;
        let mut state = vec![shim.as_os_str().as_bytes().to_vec(), text.to_vec()];
        let mut variables: Vec<(OsString, OsString)> = std::env::vars_os().filter(|(name, _)| counts(name)).collect();
        variables.sort();
        state.extend(variables.into_iter().flat_map(|(name, value)| [name.into_vec(), value.into_vec()]));
        let here = std::env::current_dir().ok()?;
        for folder in here.ancestors() {
            for name in VERSION_FILES {
                state.push(trust::look::read(&folder.join(name)).unwrap_or_default());
            }
        }
        for root in [root_in(text), manager.parent().and_then(Path::parent).map(Path::to_owned)].into_iter().flatten() {
            state.push(trust::look::read(&root.join("version")).unwrap_or_default());
            let versions = root.join("versions").metadata();
            state.push(versions.map_or(0, |versions| versions.mtime() ^ versions.mtime_nsec()).to_le_bytes().to_vec());
        }
        Some(self.folder.join(format!("{:016x}", image::checksum(&state.join(&0)))))
    }
}

fn counts(name: &OsStr) -> bool {
    ["PATH", "HOME"].iter().any(|other| name == *other)
        || VARIABLES.iter().any(|start| name.as_bytes().starts_with(start.as_bytes()))
}
