//! A program in a directory of its own, with an archive.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tempfile::TempDir;

use crate::{append, Appended, Archive, Batch, Context, Identity, Kind, NewEntry, NewInput, Scope, DEFAULT_BOUND};

/// The directory of a program.
pub struct Program {
    directory: TempDir,
}

impl Program {
    pub fn new() -> Self {
        Program { directory: tempfile::tempdir().unwrap() }
    }

    pub fn root(&self) -> &Path {
        self.directory.path()
    }

    pub fn archive_path(&self) -> PathBuf {
        self.path("tmp/cache/snapboot.archive")
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.root().join(name)
    }

    /// Writes a file.
    pub fn write(&self, name: &str, content: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    pub fn open(&self) -> Archive {
        Archive::open(&self.archive_path(), self.root()).unwrap()
    }

    pub fn append(&self, batch: Batch) -> Appended {
        append(&self.archive_path(), self.root(), batch, DEFAULT_BOUND).unwrap()
    }

    /// Stores entries of kind code for files with these names, with payloads.
    pub fn store(&self, files: &[(&str, &[u8])]) -> Appended {
        let mut batch = Batch::default();
        files.iter().for_each(|(name, payload)| batch.add(code(&self.path(name), payload)));
        assert_eq!(batch.len(), files.len());
        self.append(batch)
    }
}

/// The context of the tests.
pub fn context() -> Context {
    Context::new("test 1.0")
}

/// Look-ups of code.
pub fn scope() -> Scope {
    Scope::new(Kind::Code, &context())
}

pub fn bytes(path: &Path) -> &[u8] {
    path.as_os_str().as_encoded_bytes()
}

/// An entry for the code of a file, as if the file had settled.
pub fn code(path: &Path, payload: &[u8]) -> NewEntry {
    let identity = settled(path);
    let inputs = vec![NewInput::File(bytes(path).to_vec(), identity)];
    entry(Kind::Code, bytes(path), inputs, payload)
}

pub fn settled(path: &Path) -> Identity {
    Identity { is_settled: true, ..Identity::stat(path).unwrap() }
}

pub fn entry(kind: Kind, name: &[u8], inputs: Vec<NewInput>, payload: &[u8]) -> NewEntry {
    NewEntry { kind, context: context(), name: name.to_vec(), inputs, payload: payload.to_vec(), compress: false }
}

/// Gives a file another mtime (and ctime) with the same content.
pub fn touch(path: &Path) {
    let file = fs::File::options().write(true).open(path).unwrap();
    file.set_modified(SystemTime::now() - Duration::from_secs(1000)).unwrap();
}
