//! Names of files that are being written beside those whose place they take. What a killed command has left is removed by the next.

use std::fs;
use std::io;
use std::path::Path;

const BEGINNING: &str = ".snapboot.";

/// Puts a file into its place at once: starts look for it at any time. `make` writes it at the path that it gets, in `folder`, which is of the
/// same file system.
pub fn replace(folder: &Path, path: &Path, make: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<()> {
    let draft = folder.join(format!("{BEGINNING}{}", std::process::id()));
    let _ = fs::remove_file(&draft);
    let put = make(&draft).and_then(|()| fs::rename(&draft, path));
    // Two names of one file are not exchanged, and the draft stays (rename(2)).
    let _ = fs::remove_file(&draft);
    put
}

/// Removes the drafts of processes that are gone. Errors are ignored.
pub fn remove_old(folder: &Path) {
    for file in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = file.file_name();
        let process =
            name.to_str().and_then(|name| name.strip_prefix(BEGINNING)).filter(|number| number.parse::<u32>().is_ok());
        if process.is_some_and(|number| !Path::new("/proc").join(number).exists()) {
            let _ = fs::remove_file(file.path());
        }
    }
}
