//! What is trusted and what is not, as far as one user can test it; tests/store/test_attacks.py tests with two.

use std::fs::{create_dir, set_permissions, write, Permissions};
use std::os::unix::fs::{symlink, PermissionsExt};

use super::*;

/// A directory that everybody may enter, as its real path.
fn scene() -> (tempfile::TempDir, PathBuf) {
    let top = tempfile::tempdir().unwrap();
    set_mode(top.path(), 0o755);
    let path = top.path().canonicalize().unwrap();
    (top, path)
}

fn set_mode(path: &Path, mode: u32) {
    set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

#[test]
fn files_and_directories_that_others_write_are_refused() {
    let (_top, path) = scene();
    let (inner, file) = (path.join("inner"), path.join("inner/file"));
    create_dir(&inner).unwrap();
    write(&file, "x").unwrap();
    assert_eq!(read(&file).unwrap(), b"x");
    set_mode(&file, 0o646);
    assert!(matches!(open(&file).unwrap_err().what, What::Writers(0o646)));
    set_mode(&file, 0o644);
    set_mode(&inner, 0o757);
    assert_eq!(open(&file).unwrap_err().path, inner);
    set_mode(&inner, 0o1777);
    open(&file).unwrap();
    check_directory(&inner).unwrap();
    assert!(check_own_directory(&inner).is_err());
}

#[test]
fn where_no_group_comes_its_permission_to_write_counts_for_nothing() {
    /// A group that /etc/group does not have.
    const GROUP: u32 = 54321;
    let (_top, path) = scene();
    let open_to_group = |file: &Path| {
        set_mode(file, 0o664);
        std::os::unix::fs::chown(file, None, Some(GROUP)).is_ok()
    };
    let (inner, file) = (path.join("inner"), path.join("inner/file"));
    create_dir(&inner).unwrap();
    write(&file, "x").unwrap();
    if !open_to_group(&file) {
        return; // only root may do that
    }
    assert!(matches!(open(&file).unwrap_err().what, What::Writers(0o664)));
    set_mode(&inner, 0o700);
    open(&file).unwrap();
    // Back up, and down another way.
    let other = path.join("other");
    write(&other, "x").unwrap();
    open_to_group(&other);
    assert!(open(&inner.join("../other")).is_err());
    symlink(&other, inner.join("link")).unwrap();
    assert!(open(&inner.join("link")).is_err());
}

#[test]
fn own_links_lead_where_their_targets_are_trusted() {
    let (_top, path) = scene();
    let [real, open_to_all] = ["real", "all"].map(|name| path.join(name));
    for directory in [&real, &open_to_all] {
        create_dir(directory).unwrap();
        write(directory.join("file"), "x").unwrap();
    }
    set_mode(&open_to_all, 0o777);
    symlink("real", path.join("relative")).unwrap();
    symlink(&real, path.join("absolute")).unwrap();
    symlink("../all/file", real.join("out")).unwrap();
    symlink("loop", path.join("loop")).unwrap();
    assert_eq!(read(&path.join("relative/file")).unwrap(), b"x");
    assert_eq!(read(&path.join("absolute/../relative/./file")).unwrap(), b"x");
    assert!(open(&path.join("relative/out")).is_err());
    assert!(open(&path.join("loop")).is_err());
}

#[test]
fn what_is_no_file_is_refused_at_once() {
    let (_top, path) = scene();
    let pipe = path.join("pipe");
    rustix::fs::mknodat(CWD, &pipe, FileType::Fifo, Mode::from_raw_mode(0o644), 0).unwrap();
    assert!(matches!(open(&pipe).unwrap_err().what, What::NoFile));
    assert!(open(&path).is_err() && open(Path::new("/dev/null")).is_err());
    assert!(look::open(&pipe).is_err() && look::open(Path::new("/dev/null")).is_err() && look::open(&path).is_err());
    assert!(open(&path.join("nosuch")).unwrap_err().is_absence());
}

#[test]
fn a_place_need_not_exist_yet() {
    let (_top, path) = scene();
    check_place(&path.join("a/b/c")).unwrap();
    let inner = path.join("inner");
    create_dir(&inner).unwrap();
    set_mode(&inner, 0o777);
    assert_eq!(check_place(&inner.join("a/b")).unwrap_err().path, inner);
    // A program's own directory holds its code.
    check_place_below(&inner, &inner.join("tmp/cache")).unwrap();
    create_dir(inner.join("tmp")).unwrap();
    set_mode(&inner.join("tmp"), 0o777);
    assert!(check_place_below(&inner, &inner.join("tmp/cache")).is_err());
}
