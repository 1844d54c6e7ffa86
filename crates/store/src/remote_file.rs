//! Images that `snapboot freeze` writes, through the store that many machines share (remote.rs): whoever asks for the same image, with the
//! same options in the same directory, takes it from there.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use failure::{Failure, Result};
use freeze::{FreezeRequest, Progress, Target, Written};

use crate::{remote, remote_settings};

/// An image that many machines may want.
pub struct SharedFile {
    /// The words of `snapboot-remote` for it: the interpreter, and what was asked for.
    words: Vec<OsString>,
    output: PathBuf,
}

/// An image that was taken from the remote store.
pub struct PulledFile {
    /// Where it is.
    pub path: PathBuf,
    /// Its size (bytes).
    pub size: u64,
    /// How long that took.
    pub took: Duration,
}

impl SharedFile {
    /// The image of a request, if there is a remote store and others could use it: not one whose use has a limit, which would be that of all
    /// machines together. Fails as the freeze would before it boots anything.
    pub fn for_request(request: &FreezeRequest, progress: &dyn Progress) -> Result<Option<SharedFile>> {
        let is_limited = request.max_age.is_some() || request.max_thaws.is_some();
        let Some(origin) = request.origin.as_ref().filter(|_| remote_settings::is_named() && !is_limited) else {
            return Ok(None);
        };
        let Target { interpreter, main, output } = Target::resolve(request, progress)?;
        let mut words = vec![interpreter.into_os_string(), main.unwrap_or_default().into_os_string()];
        words.push(origin.directory.clone().into());
        words.extend(origin.options.iter().map(OsString::from));
        words.push("--".into());
        words.extend(request.command.iter().cloned());
        Ok(Some(SharedFile { words, output }))
    }

    /// Takes the image from the remote store, if it has one whose inputs agree here. Fails if something is wrong with the store.
    pub fn pull(&self) -> Result<Option<PulledFile>> {
        let begun = Instant::now();
        let done = remote::executed(&self.words_for(remote::FETCH_FILE, &self.output))?;
        match done.status.code() {
            Some(0) => {
                let size = self.output.metadata().map_err(|error| Failure::io("read", &self.output, &error))?.len();
                Ok(Some(PulledFile { path: self.output.clone(), size, took: begun.elapsed() }))
            }
            Some(status) if status == i32::from(remote::NO_IMAGE) => Ok(None),
            _ => Err(remote::failure_of(&done)),
        }
    }

    /// Gives an image that was made here. Fails if it stays here, or something is wrong with the store. An incomplete one is not given.
    pub fn push(&self, written: &Written) -> Result<()> {
        if written.lacks {
            return Ok(());
        }
        let done = remote::executed(&self.words_for(remote::PUSH_FILE, &written.path))?;
        if done.status.success() {
            Ok(())
        } else {
            Err(remote::failure_of(&done))
        }
    }

    fn words_for<'a>(&'a self, word: &'a str, image: &'a std::path::Path) -> Vec<&'a OsStr> {
        [word.as_ref(), image.as_os_str()].into_iter().chain(self.words.iter().map(OsString::as_os_str)).collect()
    }
}
