//! Where the image goes: its default name, and what must not be overwritten.

use std::ffi::{OsStr, OsString};
use std::fs::Metadata;
use std::io::Read;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use failure::{Failure, Result};
use rustix::fs::{access, Access};

/// The image's path: `-o`, or NAME.img in the current directory, after the script or the command `named`. Absolute.
pub fn path(given: Option<&Path>, named: &Path) -> Result<PathBuf> {
    let path = match given {
        Some(path) => path.to_owned(),
        None => {
            let mut name = named.file_stem().unwrap_or(OsStr::new("program")).to_owned();
            // `python3.11` has no extension.
            if named.extension().is_some_and(|extension| extension.as_encoded_bytes().iter().all(u8::is_ascii_digit)) {
                name = named.file_name().map(OsString::from).unwrap_or(name);
            }
            name.push(".img");
            PathBuf::from(name)
        }
    };
    std::path::absolute(&path).map_err(|error| Failure::io("write", &path, &error))
}

/// Refuses an output that cannot be written, or that would destroy something. `sources` are the files of the command.
pub fn check<'a>(output: &Path, mut sources: impl Iterator<Item = &'a Path>) -> Result<()> {
    let shown = output.display();
    let refuse = |why: String| Err(Failure::refusal(why));
    let directory = output.parent().unwrap_or(Path::new("/"));
    if output.as_os_str().as_encoded_bytes().ends_with(b"/") || output.is_dir() {
        return refuse(format!(
            "-o names the directory {shown}, but it should name the image file: write -o {}.",
            output.join("NAME.img").display()
        ));
    }
    if !directory.is_dir() {
        return refuse(format!(
            "cannot write {shown}: there is no directory {}. Make it first, or check the spelling.",
            directory.display()
        ));
    }
    if let Err(error) = access(directory, Access::WRITE_OK | Access::EXEC_OK) {
        return Err(Failure::io("write into", directory, &error.into()));
    }
    let existing = match output.symlink_metadata() {
        Ok(existing) => existing,
        Err(_) => return Ok(()),
    };
    let target = output.metadata().ok();
    let same =
        |path: &Path| path.metadata().ok().is_some_and(|it| target.as_ref().is_some_and(|other| identical(&it, other)));
    if let Some(source) = sources.find(|source| same(source)) {
        return refuse(format!(
            "-o names {shown}, which is {}, a part of the command itself. Choose another name for the image.",
            source.display()
        ));
    }
    if !existing.is_symlink() && !existing.is_file() {
        return refuse(format!(
            "-o names {shown}, which exists and is not a regular file. Choose another name for the image."
        ));
    }
    let is_replaceable = target.is_none_or(|target| target.len() == 0) || is_image(output);
    if !is_replaceable {
        return refuse(format!(
            "-o names {shown}, which exists and is not an image. Remove it first, or choose another name."
        ));
    }
    Ok(())
}

fn identical(one: &Metadata, other: &Metadata) -> bool {
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

/// Whether `snapboot freeze` wrote the file, in any version and state.
fn is_image(path: &Path) -> bool {
    let mut elf = [0; 4];
    let mut magic = [0; 7];
    let Ok(mut file) = trust::look::open(path) else { return false };
    // The first byte of the magic is zero in an unfinished image, so it is not compared.
    file.read_exact(&mut elf).is_ok()
        && elf == *b"\x7fELF"
        && file.read_exact_at(&mut magic, image::HEAD_OFFSET as u64 + 1).is_ok()
        && magic == *b"SNAPBT\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_name_is_the_programs() {
        let name = |named: &str| path(None, Path::new(named)).unwrap().file_name().unwrap().to_owned();
        assert_eq!(name("bin/rails"), "rails.img");
        assert_eq!(name("./app.py"), "app.img");
        assert_eq!(name("/usr/bin/python3.11"), "python3.11.img");
        assert_eq!(name("/usr/bin/ruby"), "ruby.img");
    }

    #[test]
    fn files_that_are_no_images_are_not_overwritten() {
        let top = tempfile::tempdir().unwrap();
        let message = |path: &Path, sources: &[&Path]| check(path, sources.iter().copied()).unwrap_err().message;
        let source = top.path().join("app.py");
        std::fs::write(&source, "print()").unwrap();
        assert!(message(&source, &[&source]).contains("a part of the command itself"));
        assert!(message(&source, &[]).contains("is not an image"));
        assert!(message(top.path(), &[]).contains("names the directory"));
        assert!(message(&top.path().join("no/app.img"), &[]).contains("there is no directory"));
        assert!(message(Path::new("/dev/null"), &[]).contains("not a regular file"));
        assert!(check(&top.path().join("new.img"), std::iter::empty()).is_ok());
    }

    #[test]
    fn images_and_empty_files_are_replaced() {
        let top = tempfile::tempdir().unwrap();
        let mut bytes = vec![0; image::HEAD_OFFSET + 64];
        bytes[..4].copy_from_slice(b"\x7fELF");
        bytes[image::HEAD_OFFSET + 1..][..7].copy_from_slice(b"SNAPBT\n");
        for (name, content) in [("unfinished.img", bytes), ("empty.img", Vec::new())] {
            std::fs::write(top.path().join(name), content).unwrap();
            assert!(check(&top.path().join(name), std::iter::empty()).is_ok(), "{name}");
        }
    }
}
