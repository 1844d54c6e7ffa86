//! Names of files that are being written beside those whose place they take. What a killed command has left is removed by the next.

use std::fs;
use std::path::{Path, PathBuf};

const BEGINNING: &str = ".snapboot.";

/// The path of this process' draft in a folder.
pub fn path(folder: &Path) -> PathBuf {
    folder.join(format!("{BEGINNING}{}", std::process::id()))
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
