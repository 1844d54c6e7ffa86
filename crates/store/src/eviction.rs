//! The maximum size of the store, and which images are removed first.

use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use image_file::starts;
use rustix::process::test_kill_process;

use crate::{clock, location, Folder, Store};

/// The variable that names the limit of the store.
pub const LIMIT_VARIABLE: &str = "SNAPBOOT_STORE_SIZE";
/// The default limit (bytes).
pub const DEFAULT_LIMIT: u64 = 2 << 30;

/// The limit of the store (bytes), from the environment. An invalid value counts as none.
pub fn size_limit() -> u64 {
    std::env::var(LIMIT_VARIABLE).ok().and_then(|text| parse(&text).ok()).unwrap_or(DEFAULT_LIMIT)
}

/// The size of an image on disk (bytes).
pub fn size(image: &Path) -> u64 {
    image.metadata().map_or(0, |status| status.blocks() * 512)
}

/// When an image was used last, as far as that was counted; otherwise, when it was made.
pub fn last_used(image: &Path) -> SystemTime {
    let made = image.metadata().and_then(|status| status.modified()).ok();
    let known = [starts::last_start(image), made].into_iter().flatten();
    known.max_by_key(|moment| clock::by_age(*moment)).unwrap_or(SystemTime::UNIX_EPOCH)
}

/// Reads a size as people write it: a number of bytes, or one with K, M, G or T behind it (powers of 1024).
pub fn parse(text: &str) -> Result<u64, NoSize> {
    let digits = text.trim_end_matches(|it: char| !it.is_ascii_digit());
    let power = match text[digits.len()..].to_ascii_uppercase().trim_end_matches("IB").trim_end_matches('B') {
        "" => 0,
        "K" => 1,
        "M" => 2,
        "G" => 3,
        "T" => 4,
        _ => return Err(NoSize),
    };
    let number: u64 = digits.parse().map_err(|_| NoSize)?;
    number.checked_mul(1 << (10 * power)).ok_or(NoSize)
}

/// A text that is no size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoSize;

impl fmt::Display for NoSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("expected a size such as 500M or 2G")
    }
}

impl std::error::Error for NoSize {}

/// Removes images, the least recently used first, until the total size is not above `limit` (bytes). Images of installed commands count,
/// and stay. Returns the removed ones.
pub fn prune(store: &Store, limit: u64) -> Vec<PathBuf> {
    let tools = store.tools();
    let (mut images, mut total) = (Vec::new(), 0);
    for folder in store.folders() {
        for image in folder.all_images() {
            let size = size(&image);
            total += size;
            if !folder.path().starts_with(&tools) {
                images.push((last_used(&image), size, image, folder.clone()));
            }
        }
    }
    images.sort_by_key(|(used, ..)| clock::by_age(*used));
    let mut removed = Vec::new();
    for (_, size, image, folder) in images {
        if total <= limit {
            break;
        }
        if remove_image(&image) {
            total -= size;
            if folder.all_images().is_empty() {
                remove(&folder);
            }
            removed.push(image);
        }
    }
    removed
}

/// Removes what killed builders have left in the folders of the store: control directories, and drafts of files. Those that may be in use
/// stay.
pub fn sweep(store: &Store) {
    for folder in store.folders() {
        freeze::remove_abandoned(folder.path());
        for entry in fs::read_dir(folder.path()).into_iter().flatten().flatten() {
            if location::draft_of(&entry.file_name()).is_some_and(|process| test_kill_process(process).is_err()) {
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}

/// Removes an image and the files beside it; running starts keep it until their end. Returns whether it is gone.
pub fn remove_image(image: &Path) -> bool {
    let is_gone = fs::remove_file(image).is_ok();
    if is_gone {
        let _ = fs::remove_file(image.with_extension("img.seen"));
    }
    is_gone
}

/// Removes a folder with its contents, unless a builder is at work there.
fn remove(folder: &Folder) {
    if let Some(_lock) = folder.lock() {
        let _ = fs::remove_dir_all(folder.path());
    }
}

/// Removes a folder with its contents, also while a builder is at work there: it finds the folder gone, and puts nothing into another one
/// of that name.
pub fn remove_in_any_case(folder: &Folder) {
    let _ = fs::remove_file(folder.command_file());
    let name = folder.path().file_name().unwrap_or_default();
    let mut aside = OsString::from(".");
    aside.push(name);
    aside.push(format!(".{}", std::process::id()));
    // Under another name, nobody adds a file to it while it is being emptied.
    let aside = folder.path().with_file_name(aside);
    let is_aside = fs::rename(folder.path(), &aside).is_ok();
    let _ = fs::remove_dir_all(if is_aside { &aside } else { folder.path() });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_killed_builders_left_is_swept_away() {
        let top = tempfile::tempdir().unwrap();
        let store = Store::in_folder(top.path());
        let folder = store.cache().join("tool-1");
        fs::create_dir_all(&folder).unwrap();
        let command = r#"{"name":"tool","words":["tool"],"file":"/tool","identity":"tool"}"#;
        fs::write(folder.join("command.json"), command).unwrap();
        // No process has this number: it is above the kernel's limit.
        for directory in [".1.img.freezing-4194305", ".7.img.freezing-4194305", "1.img.freezing-4194305"] {
            fs::create_dir(folder.join(directory)).unwrap();
            fs::write(folder.join(directory).join("image"), "half of it").unwrap();
        }
        let own = format!(".attempt.json.{}", std::process::id());
        for draft in [".attempt.json.4194305", ".notes", &own] {
            fs::write(folder.join(draft), "{").unwrap();
        }
        sweep(&store);
        let mut left: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, [own.as_str(), ".notes", "1.img.freezing-4194305", "command.json"]);
    }

    #[test]
    fn sizes_are_read_as_people_write_them() {
        assert_eq!(
            ["7", "5K", "500M", "2g", "2GiB", "1TB"].map(|text| parse(text).unwrap()),
            [7, 5 << 10, 500 << 20, 2 << 30, 2 << 30, 1 << 40]
        );
        assert!(["", "G", "2X", "-1", "99999999999T"].iter().all(|text| parse(text).is_err()));
    }
}
