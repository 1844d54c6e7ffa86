//! A start that an image of the store has handed over, since it cannot be used: another image may fit it, and a new one is asked for.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::fit::{fits, own_words};
use crate::{background, limits, Folder};

/// The subcommand that an image of the store executes instead of its program.
pub const SUBCOMMAND: &str = "fallback";

/// A start that an image has handed over.
pub struct Start {
    /// The image.
    pub image: PathBuf,
    /// Why it could not be used.
    pub reason: String,
    /// The program that it was made from, and its argv.
    pub program: PathBuf,
    /// All words, the name first.
    pub argv: Vec<OsString>,
}

impl Start {
    /// Takes the words apart that a launcher has put behind the subcommand: see [`image::Command::store_words`].
    pub fn parse(words: &[OsString]) -> Option<Start> {
        let [image, reason, program, argv @ ..] = words else { return None };
        let start = Start {
            image: image.into(),
            reason: reason.to_string_lossy().into_owned(),
            program: program.into(),
            argv: argv.to_vec(),
        };
        (!argv.is_empty()).then_some(start)
    }

    /// Another image of the same command that fits this start, and the arguments for it. Where this one fitted there is none better.
    pub fn other_image(&self) -> Option<(PathBuf, &[OsString])> {
        let folder = Folder::of(&self.image).filter(Folder::is_own)?;
        if fits(&self.image) {
            return None;
        }
        let arguments = self.argv.get(own_words(&self.image)?..)?;
        let other = folder.images().into_iter().find(|image| *image != self.image && fits(image))?;
        Some((other, arguments))
    }

    /// Asks for an image for the next start like this one. Returns why none will be made, if none will.
    pub fn ask_for_image(&self) -> Option<String> {
        let folder = Folder::of(&self.image).filter(Folder::is_own);
        let (Some(folder), limit) = (folder, limits::of_environment()) else {
            return Some("its folder belongs to another user, or others may write to it".to_owned());
        };
        if fits(&self.image) {
            return background::ask_again(&folder, &self.image, limit);
        }
        let Some(command) = folder.command() else {
            return Some("its folder does not say of which command it is".to_owned());
        };
        background::ask_for_new(&folder, &command, folder.images().len(), limit)
    }
}
