//! The key of images: a digest of what is known before a boot. Machines for which one of these parts differs have no use for each other's
//! images, so they never see them; all else is an input, and is compared.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use failure::{Failure, Result};
use inputs::cpu::Level;
use store::Folder;

use crate::chunks::hex_digest;

/// How many hexadecimal digits a key has.
const DIGITS: usize = 32;

/// The key of images of this folder's command and kind. Fails if the folder does not say whose it is.
pub fn of_folder(folder: &Folder) -> Result<String> {
    let command = folder.command().ok_or_else(|| {
        Failure::failed(format!(
            "{} should be the folder of a command of the store, and its command.json cannot be read.",
            folder.path().display()
        ))
    })?;
    let kind = folder.name_for_kind("image");
    Ok(digest(&parts(&kind, command.identity(), &runtime_digests(command.interpreter())?)))
}

/// The key of images that `snapboot freeze` writes. `words`: what identifies what was asked for.
pub fn of_file(interpreter: &Path, words: &[OsString]) -> Result<String> {
    let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
    Ok(digest(&parts("file", &words.join("\0"), &runtime_digests(interpreter)?)))
}

/// The key of a boot archive. It may serve several runtimes: its entries know theirs.
pub fn of_archive(place: &Path, root: &Path) -> String {
    let identity = [place, root].map(|path| path.to_string_lossy().into_owned()).join("\0");
    digest(&parts(&format!("archive {}", archive::VERSION), &identity, &[]))
}

/// The parts, in the order in which they are digested. The C library counts by the loader, which belongs to one build of it.
fn parts(kind: &str, identity: &str, runtime: &[String]) -> Vec<String> {
    let level = Level::highest().map_or_else(|| "none".to_owned(), |level| format!("{level:?}"));
    let fixed = [
        format!("format {}", image::VERSION),
        format!("snapboot {}", env!("CARGO_PKG_VERSION")),
        format!("architecture {} {level}", std::env::consts::ARCH),
        format!("kind {kind}"),
        format!("command {identity}"),
    ];
    fixed.into_iter().chain(runtime.iter().cloned()).collect()
}

/// The digests of the interpreter and of its loader, if it has one.
fn runtime_digests(interpreter: &Path) -> Result<Vec<String>> {
    // A program without a loader is linked statically.
    let files = [Some(interpreter.to_owned()), runtime::loader_of(interpreter).ok()];
    let digest_of = |path: PathBuf| {
        let content = std::fs::read(&path).map_err(|error| Failure::io("read", &path, &error))?;
        Ok(format!("runtime {} {}", path.display(), hex_digest(&content)))
    };
    files.into_iter().flatten().map(digest_of).collect()
}

/// Each part ends with a NUL, so no two lists of parts are the same text.
fn digest(parts: &[String]) -> String {
    let text: String = parts.iter().map(|part| format!("{part}\0")).collect();
    hex_digest(text.as_bytes())[..DIGITS].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_counts_and_so_does_where_it_ends() {
        let key = |parts: &[&str]| digest(&parts.iter().map(|part| (*part).to_owned()).collect::<Vec<_>>());
        let all = [key(&["a", "b"]), key(&["ab", ""]), key(&["a", "c"]), key(&["b", "a"]), key(&["a", "b", ""])];
        for (at, one) in all.iter().enumerate() {
            assert_eq!(one.len(), DIGITS);
            assert!(!all[at + 1..].contains(one), "{all:?}");
        }
    }
}
