//! The files that the boot depended on, and whether they stayed the same while it ran.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use image::{ContentDigest, Input, MappedFile, Section, Tables, TablesWriter};

use crate::failure::{Failure, Result};

/// What of a file tells that it is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Size in bytes.
    pub size: u64,
    /// Last change of the content (ns since 1970).
    pub mtime: i64,
    /// Last change of the inode (ns since 1970).
    pub ctime: i64,
}

impl Identity {
    /// Looks at a file.
    pub fn of(path: &Path) -> io::Result<Self> {
        let metadata = path.metadata()?;
        let nanoseconds = |seconds: i64, rest: i64| seconds * 1_000_000_000 + rest;
        Ok(Identity {
            size: metadata.len(),
            mtime: nanoseconds(metadata.mtime(), metadata.mtime_nsec()),
            ctime: nanoseconds(metadata.ctime(), metadata.ctime_nsec()),
        })
    }
}

/// The digest of a file's content, as records have it.
pub fn content_digest(path: &Path) -> io::Result<[u8; 16]> {
    let mut file = File::open(path)?;
    let mut digest = ContentDigest::default();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(digest.finish()),
            count => digest.update(&buffer[..count]),
        }
    }
}

/// Files and what they were when the image was written.
#[derive(Debug, Default)]
pub struct Inputs {
    /// Loaded files, sorted, each once.
    loaded: Vec<(PathBuf, Identity)>,
    /// Libraries and other files that the freezer recorded as mapped.
    mapped: Vec<(PathBuf, Identity)>,
}

impl Inputs {
    /// Records the loaded files, and the mapped ones with the identity that the freezer saw.
    ///
    /// `begun` is when the freeze began (ns since 1970). A file that was changed later may have been loaded in its old or
    /// in its new form, so the freeze is void then: fails and names the file.
    pub fn record(loaded: &[PathBuf], mapped: Vec<(PathBuf, Identity)>, begun: i64) -> Result<Self> {
        let names: BTreeSet<&Path> = loaded.iter().filter_map(|path| existing(path)).collect();
        let mut recorded = Inputs { loaded: Vec::with_capacity(names.len()), mapped };
        for path in names {
            recorded.loaded.push((path.to_owned(), Identity::of(path).map_err(|_| changed(path))?));
        }
        let young = |(_, identity): &&(PathBuf, Identity)| identity.mtime >= begun || identity.ctime >= begun;
        if let Some((path, _)) = recorded.all().find(young) {
            return Err(changed(path));
        }
        Ok(recorded)
    }

    /// Fails when one of the files is not what it was when it was recorded.
    pub fn still_unchanged(&self) -> Result<()> {
        match self.all().find(|(path, identity)| Identity::of(path).ok() != Some(*identity)) {
            Some((path, _)) => Err(changed(path)),
            None => Ok(()),
        }
    }

    /// Writes the loaded files, those of a directory together (the launcher looks them up from there), and the digests of the
    /// mapped ones, which the freezer has written.
    pub fn write(&self, dumped: &Tables<'_>, tables: &mut TablesWriter) -> Result<()> {
        let digest = |path: &Path| content_digest(path).map_err(|error| Failure::io("read", path, &error));
        let mut files: Vec<MappedFile> = dumped.rows(Section::Files)?.collect();
        for (row, (path, _)) in files.iter_mut().zip(&self.mapped) {
            row.digest = digest(path)?;
        }
        tables.replace_all(Section::Files, &files);
        let mapped: BTreeSet<&Path> = self.mapped.iter().map(|(path, _)| path.as_path()).collect();
        let mut loaded: Vec<_> = self.loaded.iter().filter(|(path, _)| !mapped.contains(path.as_path())).collect();
        loaded.sort_by_key(|(path, _)| (path.parent(), path.file_name()));
        for (path, identity) in loaded {
            let digest = digest(path)?;
            let path = tables.text(path.as_os_str().as_bytes());
            let Identity { size, mtime, ctime } = *identity;
            tables.push(Section::Inputs, &Input { path, size, mtime, ctime, digest });
        }
        Ok(())
    }

    fn all(&self) -> impl Iterator<Item = &(PathBuf, Identity)> {
        self.loaded.iter().chain(&self.mapped)
    }
}

/// The file behind a loaded name: itself or, for a module inside a zip archive, the archive. None for names that are no
/// absolute paths (built-in features); a path that does not exist is kept, and found missing later.
fn existing(path: &Path) -> Option<&Path> {
    if !path.is_absolute() {
        return None;
    }
    path.ancestors().find(|above| above.is_file()).or(Some(path))
}

fn changed(path: &Path) -> Failure {
    Failure::failed(format!(
        "{} changed (or went away) while the program booted, so the image would be void and was not written. Freeze again when \
         nothing edits or generates that file.",
        path.display()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_younger_than_the_freeze_makes_it_void() {
        let top = tempfile::tempdir().unwrap();
        let file = top.path().join("lib.py");
        std::fs::write(&file, "a").unwrap();
        let identity = Identity::of(&file).unwrap();
        let loaded = [file.clone(), PathBuf::from("enumerator.so")];
        assert!(Inputs::record(&loaded, Vec::new(), identity.ctime + 1).is_ok());
        let void = Inputs::record(&loaded, Vec::new(), identity.ctime).unwrap_err();
        assert!(void.message.contains("lib.py changed"), "{}", void.message);
        let void = Inputs::record(&[top.path().join("gone.py")], Vec::new(), i64::MAX).unwrap_err();
        assert!(void.message.contains("gone.py"), "{}", void.message);
    }

    #[test]
    fn an_edit_after_recording_is_noticed() {
        let top = tempfile::tempdir().unwrap();
        let file = top.path().join("lib.py");
        std::fs::write(&file, "a").unwrap();
        let inputs = Inputs::record(std::slice::from_ref(&file), Vec::new(), i64::MAX).unwrap();
        inputs.still_unchanged().unwrap();
        std::fs::write(&file, "longer").unwrap();
        assert!(inputs.still_unchanged().is_err());
    }

    #[test]
    fn a_module_in_an_archive_depends_on_the_archive() {
        let top = tempfile::tempdir().unwrap();
        let archive = top.path().join("lib.zip");
        std::fs::write(&archive, "PK").unwrap();
        assert_eq!(existing(&archive.join("pkg/mod.py")), Some(archive.as_path()));
    }
}
