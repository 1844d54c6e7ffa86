//! The store that many machines share: before a builder makes an image it looks there, and it gives what it has made. The program
//! `snapboot-remote` does both (crates/remote). Whatever goes wrong there is recorded, and the builder makes an image as if there were none.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::{Command as Program, Output, Stdio};

use failure::{Failure, Result};
use image_file::info::Info;
use image_file::ImageFile;
use installation::Installation;
use serde::{Deserialize, Serialize};

use crate::attempt::{Attempts, Outcome};
use crate::build::{is_unused, For};
use crate::folder::Lock;
use crate::{background, remote_settings, Folder, PutOff};

/// The words of `snapboot-remote` that take an image, and give images.
pub const FETCH: &str = "fetch";
/// See [`FETCH`].
pub const PUSH: &str = "push";
/// The same for an image that `snapboot freeze` writes.
pub const FETCH_FILE: &str = "fetch-file";
/// See [`FETCH_FILE`].
pub const PUSH_FILE: &str = "push-file";
/// The words that take and give a boot archive.
pub const FETCH_ARCHIVE: &str = "fetch-archive";
/// See [`FETCH_ARCHIVE`].
pub const PUSH_ARCHIVE: &str = "push-archive";
/// Ends a lease.
pub const RELEASE: &str = "release";
/// The option of [`PUSH`] before a lease, which ends then.
pub const LEASED: &str = "--lease";
/// The last word of [`FETCH`]: whether the builder waits for an image that another machine makes.
pub const PATIENT: &str = "patient";
const IMPATIENT: &str = "impatient";
/// The exit status of [`FETCH_FILE`] if there is no such image.
pub const NO_IMAGE: u8 = 4;
/// The exit status of [`FETCH`] if another machine makes the image.
pub const MADE_ELSEWHERE: u8 = 3;
pub use crate::put_off::LEASE;
/// The word with which it says whose images are used.
pub const CHECK: &str = "check";
/// The file in a command's folder with what was said last.
const FILE: &str = "remote.json";
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
    let said: Option<Said> = remote_settings::is_named().then(|| folder.read(&folder.name_for_kind(FILE))).flatten();
    said.filter(|said| !said.text.is_empty())
}

/// Which images of the remote store are used, or why none is; None if there is no such store.
pub fn check() -> Option<Result<String>> {
    remote_settings::is_named().then(|| {
        let done = executed(&[CHECK.as_ref()])?;
        match done.status.success() {
            true => Ok(String::from_utf8_lossy(&done.stdout).trim_end().to_owned()),
            false => Err(failure_of(&done)),
        }
    })
}

/// What `snapboot-remote` says of its failure.
pub(crate) fn failure_of(done: &Output) -> Failure {
    let said = String::from_utf8_lossy(&done.stderr);
    Failure::refusal(said.trim_end().trim_start_matches("snapboot: "))
}

/// What a look into the remote store has led to.
pub(crate) enum Look {
    /// An image is there, recorded as if it had been made here.
    Pulled,
    /// Another machine makes one.
    MadeElsewhere,
    /// There is none, and it is this machine's turn to make one.
    NoImage(Option<Lease>),
}

/// Keeps other machines from making the same image until it is dropped.
pub(crate) struct Lease(OsString);

impl Drop for Lease {
    fn drop(&mut self) {
        if !self.0.is_empty() {
            // If that fails, it ends by itself.
            let _ = executed(&[RELEASE.as_ref(), &self.0]);
        }
    }
}

/// Takes an image from the remote store if it has one that fits.
pub(crate) fn look(folder: &Folder, own: &Lock, output: &Path, whom: &For<'_>, for_news: Option<bool>) -> Look {
    // Starts have reported what no image has yet, wherever it was made.
    if !remote_settings::is_named() || for_news == Some(true) {
        return Look::NoImage(None);
    }
    let Ok(snapboot) = std::env::current_exe() else { return Look::NoImage(None) };
    let terminal = background::terminal_word(whom.terminal);
    let patience = if !whom.somebody_waits && PutOff::may_wait_for_others(folder) { PATIENT } else { IMPATIENT };
    let unused = is_unused(output);
    let (status, printed) = execute(
        folder,
        &[
            FETCH.as_ref(),
            snapboot.as_os_str(),
            folder.path().as_os_str(),
            output.as_os_str(),
            terminal.as_ref(),
            patience.as_ref(),
        ],
    );
    match status {
        Some(0) if record_made(folder, own, output, whom.environment, for_news, unused) => Look::Pulled,
        Some(status) if status == i32::from(MADE_ELSEWHERE) => Look::MadeElsewhere,
        _ => Look::NoImage(Some(printed).filter(|lease| !lease.is_empty()).map(|lease| Lease(lease.into()))),
    }
}

/// Gives an image to the remote store, and ends the lease for it.
pub(crate) fn push(folder: &Folder, image: &Path, lease: Option<Lease>) {
    if !remote_settings::is_named() {
        return;
    }
    let word = lease.map(|mut lease| std::mem::take(&mut lease.0));
    let option = word.iter().flat_map(|word| [LEASED.as_ref(), word.as_os_str()]);
    let words: Vec<&OsStr> = [PUSH.as_ref()].into_iter().chain(option).chain([image.as_os_str()]).collect();
    execute(folder, &words);
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

/// Runs `snapboot-remote`, and records what it says. Returns its exit status, if it has one, and what it has printed.
fn execute(folder: &Folder, words: &[&OsStr]) -> (Option<i32>, String) {
    let (status, printed, text) = match executed(words) {
        Ok(done) => {
            let [printed, text] =
                [&done.stdout, &done.stderr].map(|it| String::from_utf8_lossy(it).trim_end().to_owned());
            (done.status.code(), printed, text)
        }
        Err(failure) => (None, String::new(), failure.message),
    };
    let text = text.chars().take(MOST_SAID).collect();
    let said = Said { about: words[0].to_string_lossy().into_owned(), text };
    // Nothing depends on it.
    let _ = folder.write(&folder.name_for_kind(FILE), &said);
    (status, printed)
}

/// Runs `snapboot-remote` with these words. It ends by itself (SNAPBOOT_REMOTE_TIMEOUT).
pub(crate) fn executed(words: &[&OsStr]) -> Result<Output> {
    let program = Installation::find()?.remote()?;
    let done = Program::new(&program).args(words).envs(remote_settings::variables()?).stdin(Stdio::null()).output();
    done.map_err(|error| Failure::io("execute", &program, &error))
}
