//! A start that an unusable image of the store has handed over: another image may fit it, and a new one is asked for.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use freeze::Content;
use image_file::starts;
use runtime::search_path;

use crate::fit::{fits, is_guarded, own_words};
use crate::{background, Command, Folder, NoImageReason};

/// The subcommand that an image of the store executes instead of its program.
pub const SUBCOMMAND: &str = "fallback";

/// A start that an image has handed over.
pub struct Start {
    /// The image.
    pub image: PathBuf,
    /// The program that it was made from, and its argv.
    pub program: PathBuf,
    /// All words, the name first.
    pub argv: Vec<OsString>,
}

/// How such a start goes on.
pub enum Next {
    /// With this image of the same command, which fits it.
    Other(PathBuf),
    /// The ordinary way; an image for the next start was asked for.
    Asked,
    /// The ordinary way; no image will be made, for this reason.
    None(NoImageReason),
}

impl Start {
    /// Parses the words that a launcher has put after the subcommand: see [`image::Command::store_words`].
    pub fn parse(words: &[OsString]) -> Option<Start> {
        let [image, _reason, program, argv @ ..] = words else { return None };
        let start = Start { image: image.into(), program: program.into(), argv: argv.to_vec() };
        (!argv.is_empty()).then_some(start)
    }

    /// The arguments: the words after those of the command. None if the image cannot be read any more, which knows those.
    pub fn arguments(&self) -> Option<&[OsString]> {
        self.argv.get(own_words(&self.image)?..)
    }

    /// Whether one of its arguments is a guard of an image, which is then no image for this start. Nothing is wrong with it.
    fn is_guarded_by(&self, image: &Path) -> bool {
        self.arguments().is_some_and(|arguments| !arguments.is_empty() && is_guarded(image, arguments))
    }

    /// Writes again whose folder this is, as when somebody has removed a store in which an image was being made. None if it is not this
    /// start's command.
    fn write_command(&self, folder: &Folder) -> Option<Command> {
        let words: Vec<OsString> =
            [self.program.as_os_str().to_owned()].into_iter().chain(self.argv[1..].iter().cloned()).collect();
        let (command, _) = Command::split(&words, &search_path(), None).ok()?.command?;
        (folder.path().file_name() == Some(OsStr::new(&command.key())) && folder.make(&command).is_ok())
            .then_some(command)
    }

    /// Decides how it goes on. `limit`: of the store (bytes).
    pub fn next(&self, limit: u64) -> Next {
        let asked = |why: Option<NoImageReason>| why.map_or(Next::Asked, Next::None);
        let Some(folder) = Folder::containing(&self.image).filter(Folder::is_own) else {
            return Next::None(NoImageReason::NotOwn);
        };
        let Some(command) = folder.command().or_else(|| self.write_command(&folder)) else {
            return Next::None(NoImageReason::NoCommand);
        };
        let libraries = folder.with(Content::Libraries).images();
        if self.is_guarded_by(&self.image) {
            let mut others = libraries.into_iter().filter(|_| folder.content() == Content::Program);
            let other = others.find(|image| fits(image) && !self.is_guarded_by(image));
            return other.map_or(Next::None(NoImageReason::Guarded), Next::Other);
        }
        let images = folder.images();
        // Without its arguments, it would be another start.
        let fitting = |images: &[PathBuf]| {
            let other = images.iter().find(|image| **image != self.image && fits(image));
            other.filter(|_| self.arguments().is_some()).cloned()
        };
        let goes_on_with = |other: PathBuf| {
            starts::take_back_fallback(&self.image);
            Next::Other(other)
        };
        let second = || fitting(&libraries).filter(|_| folder.content() == Content::Program);
        // If this one fits, none of its kind is better.
        if fits(&self.image) {
            let Some(second) = second() else {
                return asked(background::ask_again(&folder, &self.image, limit));
            };
            background::ask_once_edits_pause(&folder, &self.image, limit);
            return goes_on_with(second);
        }
        if let Some(other) = fitting(&images) {
            return goes_on_with(other);
        }
        let program = folder.with(Content::Program);
        let why = background::ask_for_new(&program, &command, program.images().len(), limit);
        second().map_or_else(|| asked(why), goes_on_with)
    }
}
