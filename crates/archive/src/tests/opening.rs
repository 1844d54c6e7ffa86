//! Which archives are used, by owner and mode, and which files are left alone.

use std::fs::{self, Permissions};
use std::os::unix::fs::{chown, symlink, PermissionsExt};
use std::path::Path;

use super::support::*;
use crate::*;

fn open(path: &Path) -> Result<Archive, Error> {
    Archive::open(path, Path::new("/"))
}

/// The error that a writer gets.
fn write(path: &Path, program: &Program) -> Error {
    let mut batch = Batch::default();
    batch.add(code(&program.path("a.rb"), b"code"));
    append(path, program.root(), batch, DEFAULT_BOUND).unwrap_err()
}

fn sample() -> Program {
    let program = Program::new();
    program.write("a.rb", "a");
    program.store(&[("a.rb", b"code")]);
    program
}

#[test]
fn an_archive_is_made_for_its_owner_alone() {
    let program = sample();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    assert_eq!(mode(&program.archive_path()), 0o600);
    // The application's own folder has the mode that the application would give it.
    fs::create_dir(program.path("own")).unwrap();
    assert_eq!(mode(&program.path("tmp/cache")), mode(&program.path("own")));
    // An archive that was made readable stays so.
    fs::set_permissions(program.archive_path(), Permissions::from_mode(0o644)).unwrap();
    prune(&program.archive_path(), None, DEFAULT_BOUND).unwrap();
    assert_eq!(mode(&program.archive_path()), 0o644);
}

#[test]
fn an_archive_that_others_could_have_written_is_not_used() {
    let (program, path) = (sample(), sample().archive_path());
    assert!(open(&path).err().unwrap().is_absence());
    let path = program.archive_path();
    for mode in [0o620, 0o602, 0o666] {
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        assert!(matches!(open(&path), Err(Error::Mode { mode: found, .. }) if found == mode));
        assert!(matches!(write(&path, &program), Error::Mode { .. }));
    }
    fs::set_permissions(&path, Permissions::from_mode(0o444)).unwrap();
    assert!(open(&path).is_ok());
    if chown(&path, Some(4321), None).is_ok() {
        assert!(matches!(open(&path), Err(Error::Owner { owner: 4321, .. })));
        assert!(matches!(write(&path, &program), Error::Owner { .. }));
    }
}

#[test]
fn links_are_not_followed() {
    let program = sample();
    let link = program.path("link.archive");
    symlink(program.archive_path(), &link).unwrap();
    let message = open(&link).err().unwrap().to_string();
    assert!(message.contains("symbolic link"), "{message}");
    assert!(write(&link, &program).to_string().contains("symbolic link"));
}

#[test]
fn what_is_no_archive_is_left_alone() {
    let program = sample();
    let text = program.write("notes.txt", "something else, and more than the first sixteen bytes");
    assert!(matches!(open(&text), Err(Error::NotAnArchive(_))));
    assert!(matches!(write(&text, &program), Error::NotAnArchive(_)));
    assert!(fs::read_to_string(&text).unwrap().starts_with("something else"));
    assert!(matches!(open(program.root()), Err(Error::NotAFile(_))));
    let short = program.write("short", "x");
    assert!(matches!(write(&short, &program), Error::NotAnArchive(_)));
}

#[test]
fn what_is_no_archive_in_the_way_of_a_new_file_is_left_alone() {
    let program = sample();
    let mut beside = program.archive_path().into_os_string();
    beside.push(".new");
    fs::write(&beside, "notes").unwrap();
    let error = prune(&program.archive_path(), None, DEFAULT_BOUND).unwrap_err();
    assert!(matches!(error, Error::NotAnArchive(_)) && error.to_string().contains(".archive.new"), "{error}");
    assert_eq!(fs::read(&beside).unwrap(), b"notes");
    // Leftovers of a killed writer do no harm.
    for left in [&b""[..], &fs::read(program.archive_path()).unwrap()[..4300]] {
        fs::write(&beside, left).unwrap();
        prune(&program.archive_path(), None, DEFAULT_BOUND).unwrap();
        assert!(!Path::new(&beside).exists());
    }
}

#[test]
fn an_archive_of_another_version_is_replaced() {
    let program = sample();
    let mut bytes = fs::read(program.archive_path()).unwrap();
    bytes[8] = 99;
    let sum = checksum(&bytes[..12]);
    bytes[12..16].copy_from_slice(&sum.to_le_bytes());
    fs::write(program.archive_path(), &bytes).unwrap();
    let error = open(&program.archive_path()).err().unwrap();
    assert!(matches!(error, Error::Version { found: 99, .. }) && error.is_absence());
    program.store(&[("a.rb", b"new")]);
    assert_eq!(program.open().find(&scope(), &[b"./a.rb"]).unwrap().plain(), Some(&b"new"[..]));
}
