//! The store that many machines share: before a builder makes an image it looks there, and it gives what it has made. The program
//! `snapboot-remote` does both (crates/remote). Whatever goes wrong there is recorded, and the builder makes an image as if there were none.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command as Program, Stdio};

use failure::{Failure, Result};
use image_file::info::Info;
use image_file::ImageFile;
use installation::Installation;
use serde::{Deserialize, Serialize};

use crate::attempt::{Attempts, Outcome};
use crate::build::{is_unused, For};
use crate::folder::Lock;
use crate::{background, Folder};

/// The variable that names the remote store.
const VARIABLE: &str = "SNAPBOOT_REMOTE";
/// The words of `snapboot-remote` that take an image, and give images.
pub const FETCH: &str = "fetch";
/// See [`FETCH`].
pub const PUSH: &str = "push";
/// The word with which it says whose images are used.
pub const CHECK: &str = "check";
/// The file in a command's folder with what was said last.
const FILE: &str = "remote.json";
/// The file in a command's folder with the hash seed of its images.
const HASH_SEED: &str = "hash-seed.json";
/// How much of it is kept (characters).
const MOST_SAID: usize = 2000;

/// What `snapboot-remote` has said last about a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Said {
    /// [`FETCH`] or [`PUSH`].
    pub about: String,
    /// The message.
    pub text: String,
}

/// What was said last about images of this command on their way; None if nothing was.
pub fn last_said(folder: &Folder) -> Option<Said> {
    let said: Option<Said> = is_named().then(|| folder.read(&folder.name_for_kind(FILE))).flatten();
    said.filter(|said| !said.text.is_empty())
}

/// Which images of the remote store are used, or why none is; None if there is no such store.
pub fn check() -> Option<Result<String>> {
    is_named().then(|| {
        let program = Installation::find()?.remote()?;
        let done = Program::new(&program).arg(CHECK).stdin(Stdio::null()).output();
        let done = done.map_err(|error| Failure::io("execute", &program, &error))?;
        let text = |printed: &[u8]| String::from_utf8_lossy(printed).trim_end().to_owned();
        match done.status.success() {
            true => Ok(text(&done.stdout)),
            false => Err(Failure::refusal(text(&done.stderr).trim_start_matches("snapboot: "))),
        }
    })
}

/// The hash seed that images of this folder share with those of other machines, so that the next one has much in common with them: that of the
/// newest, or one that is drawn now. None without a remote store.
pub(crate) fn shared_hash_seed(folder: &Folder) -> Option<u32> {
    is_named().then(|| {
        hash_seed(folder).unwrap_or_else(|| {
            let seed = freeze::new_hash_seed();
            keep_hash_seed(folder, seed);
            seed
        })
    })
}

/// The hash seed of this folder's images, if they share one.
pub fn hash_seed(folder: &Folder) -> Option<u32> {
    folder.read(&folder.name_for_kind(HASH_SEED))
}

/// Keeps the hash seed that the folder's next image should have.
pub fn keep_hash_seed(folder: &Folder, seed: u32) {
    // The next image has another one then, and less in common with this one.
    let _ = folder.write(&folder.name_for_kind(HASH_SEED), &seed);
}

fn is_named() -> bool {
    std::env::var_os(VARIABLE).is_some_and(|url| !url.is_empty())
}

/// Takes an image from the remote store, and records it as if it had been made here. Returns whether one is there.
pub(crate) fn pull(folder: &Folder, own: &Lock, output: &Path, whom: &For<'_>, for_news: Option<bool>) -> bool {
    // Starts have reported what no image has yet, wherever it was made.
    if !is_named() || for_news == Some(true) {
        return false;
    }
    let Ok(snapboot) = std::env::current_exe() else { return false };
    let terminal = background::terminal_word(whom.terminal);
    let words =
        [FETCH.as_ref(), snapboot.as_os_str(), folder.path().as_os_str(), output.as_os_str(), terminal.as_ref()];
    let unused = is_unused(output);
    execute(folder, &words) && record_made(folder, own, output, whom.environment, for_news, unused)
}

/// Gives an image to the remote store.
pub(crate) fn push(folder: &Folder, image: &Path) {
    if is_named() {
        execute(folder, &[PUSH.as_ref(), image.as_os_str()]);
    }
}

/// Records an image that was pulled. The caller holds the lock of the folder.
pub fn record(folder: &Folder, own: &Lock, image: &Path, environment: &str, for_news: Option<bool>) {
    record_made(folder, own, image, environment, for_news, false);
}

/// `unused`: whether no start has thawed the image that it has replaced.
fn record_made(
    folder: &Folder,
    own: &Lock,
    image: &Path,
    environment: &str,
    for_news: Option<bool>,
    unused: bool,
) -> bool {
    let mut attempts = Attempts::load(folder);
    if !own.is_there() || attempts.begin(folder, for_news).is_err() {
        return false;
    }
    let learnt = ImageFile::open(image).map_or(0, |image| Info::read(&image.tables()).learnt.len());
    attempts.count_made(unused, (learnt, Default::default()), false);
    attempts.end(folder, environment, Outcome::Made { image: image.to_owned() }, []);
    true
}

/// Runs `snapboot-remote`, and records what it says. Returns whether it has succeeded. It ends by itself (SNAPBOOT_REMOTE_TIMEOUT).
fn execute(folder: &Folder, words: &[&OsStr]) -> bool {
    let program = Installation::find().and_then(|installation| installation.remote());
    let (is_done, text) = match program {
        Err(failure) => (false, failure.message),
        Ok(program) => match Program::new(program).args(words).stdin(Stdio::null()).stdout(Stdio::null()).output() {
            Ok(done) => (done.status.success(), String::from_utf8_lossy(&done.stderr).trim_end().to_owned()),
            Err(error) => (false, format!("snapboot-remote cannot be executed: {}.", failure::reason(&error))),
        },
    };
    let text = text.chars().take(MOST_SAID).collect();
    let said = Said { about: words[0].to_string_lossy().into_owned(), text };
    // Nothing depends on it.
    let _ = folder.write(&folder.name_for_kind(FILE), &said);
    is_done
}
