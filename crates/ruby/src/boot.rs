//! What a feature's name leads to: decided from the lists of directories, $LOAD_PATH and $LOADED_FEATURES, without Ruby code.

use std::ffi::CString;

use archive::{Found, Identity};

use crate::autoloads::Autoloads;
use crate::code::Code;
use crate::directories::{real_path, Answer, Directories, DirectoryId};
use crate::features::{Features, Provided};
use crate::heap::Heap;
use crate::load_path::LoadPath;
use crate::loading::{Loader, Loading};
use crate::names::{self, Extension, Place};
use crate::ruby::Value;
use crate::store::Store;

/// What this process knows besides the archive.
pub struct Boot {
    pub directories: Directories,
    pub load_path: LoadPath,
    pub features: Features,
    pub loading: Loading,
    pub code: Code,
    pub autoloads: Autoloads,
    pub heap: Heap,
    /// Whether a file is loaded once whatever paths lead to it (from Ruby 3.1 on).
    pub knows_real_paths: bool,
    /// `load` with a module around it is going on, somewhere: Ruby's own state says so, which only Ruby can keep.
    pub wrapped: usize,
}

/// A file to be loaded.
#[derive(Debug)]
pub struct Script {
    pub path: CString,
    /// Its real path, if that is another one.
    pub real: Option<Vec<u8>>,
    pub identity: Identity,
}

/// What is to be done for a feature.
#[derive(Debug)]
pub enum Step {
    /// Nothing: it is loaded.
    Nothing,
    /// Nothing: this thread is loading that file already.
    Circular(CString),
    /// Another thread is loading it.
    Wait(u64),
    /// Load a script.
    Script(Script),
    /// Let Ruby load what is at that path.
    Path(CString),
    /// Say that it is nowhere.
    NotFound,
    /// Let Ruby look for it.
    Ordinary,
}

impl Boot {
    /// What a feature leads to. `feature` is [plain](names::is_plain) and not relative to the working directory.
    pub fn decide(&mut self, feature: &[u8], thread: Value, store: &mut Store) -> Step {
        self.directories.pass_time();
        let extension = Extension::of(feature);
        let (directories, load_path) = (&self.directories, &self.load_path);
        let is_root = |path: &[u8]| load_path.contains(path, directories);
        let provided = self.features.provided(feature, extension, is_root);
        if provided == Provided::Script || (provided != Provided::No && extension != Extension::None) {
            return Step::Nothing;
        }
        let stem = extension.stem(feature);
        let is_wanted = |path: &[u8]| {
            names::matches(path, stem, extension).is_some_and(|(start, _)| start == 0 || is_root(&path[..start - 1]))
        };
        match self.loading.loader(thread, is_wanted) {
            Loader::Other(number) => return Step::Wait(number),
            Loader::Itself => return Step::Circular(CString::new(feature).unwrap_or_default()),
            Loader::Nobody => {}
        }
        let mut found = self.look(feature, stem, extension, provided == Provided::No, store);
        // RubyGems asks for it once more right after the outermost require.
        if found == Answer::NotThere && provided == Provided::No && !self.directories.was_missing(feature) {
            // It may have been put there just now.
            self.directories.begin_round();
            found = self.look(feature, stem, extension, provided == Provided::No, store);
            if found == Answer::NotThere {
                self.directories.note_missing(feature);
            }
        }
        match found {
            Answer::There((directory, name)) => self.step(directory, &name, thread, store),
            Answer::NotThere if provided != Provided::No => Step::Nothing,
            Answer::NotThere => Step::NotFound,
            Answer::Unknown => Step::Ordinary,
        }
    }

    /// Where a feature is: the directory, and the name in it.
    fn look(
        &mut self,
        feature: &[u8],
        stem: &[u8],
        extension: Extension,
        with_libraries: bool,
        store: &mut Store,
    ) -> Answer<(DirectoryId, Vec<u8>)> {
        let endings: &[&[u8]] = match extension {
            Extension::Script => &[b".rb"],
            Extension::Library => &[b".so"],
            Extension::None if with_libraries => &[b".rb", b".so"],
            Extension::None => &[b".rb"],
        };
        let slash = stem.iter().rposition(|byte| *byte == b'/');
        let (folder, base) = slash.map_or((&b""[..], stem), |slash| (&stem[..slash], &stem[slash + 1..]));
        if Place::of(feature) == Place::Absolute {
            let directory = self.directories.id(folder);
            return self.look_in(&[directory], &[], base, endings, store);
        }
        let Some(roots) = self.load_path.roots() else { return Answer::Unknown };
        let roots = roots.to_vec();
        let components: Vec<&[u8]> =
            if folder.is_empty() { Vec::new() } else { folder.split(|byte| *byte == b'/').collect() };
        match self.look_in(&roots, &components, base, endings, store) {
            // Ruby goes on with `x.so.rb`.
            Answer::NotThere if extension == Extension::Library => Answer::Unknown,
            found => found,
        }
    }

    fn look_in(
        &mut self,
        roots: &[DirectoryId],
        components: &[&[u8]],
        base: &[u8],
        endings: &[&[u8]],
        store: &mut Store,
    ) -> Answer<(DirectoryId, Vec<u8>)> {
        for ending in endings {
            for root in roots {
                let mut directory = *root;
                let mut is_there = true;
                for component in components {
                    match self.directories.below(directory, component, store) {
                        Answer::There(below) => directory = below,
                        Answer::NotThere => {
                            is_there = false;
                            break;
                        }
                        Answer::Unknown => return Answer::Unknown,
                    }
                }
                if !is_there {
                    continue;
                }
                match self.directories.find(directory, &[base, ending], store) {
                    Answer::There(Found::File) => return Answer::There((directory, [base, ending].concat())),
                    Answer::There(Found::Link) => {
                        let name = [base, ending].concat();
                        if Identity::of(&*self.path(directory, &name)).is_ok_and(|identity| !identity.is_directory) {
                            return Answer::There((directory, name));
                        }
                    }
                    Answer::There(Found::Directory) | Answer::NotThere => {}
                    Answer::There(Found::Other) | Answer::Unknown => return Answer::Unknown,
                }
            }
        }
        Answer::NotThere
    }

    fn path(&self, directory: DirectoryId, name: &[u8]) -> Vec<u8> {
        [self.directories.path(directory), b"/", name].concat()
    }

    /// What is to be done with the file that was found.
    fn step(&mut self, directory: DirectoryId, name: &[u8], thread: Value, store: &mut Store) -> Step {
        let path = self.path(directory, name);
        if !path.is_ascii() {
            return Step::Ordinary;
        }
        if self.features.contains(&path) {
            return Step::Nothing;
        }
        match self.loading.loader(thread, |loading| loading == path) {
            Loader::Other(number) => return Step::Wait(number),
            Loader::Itself => return Step::Circular(CString::new(path).unwrap_or_default()),
            Loader::Nobody => {}
        }
        // A file that vanished, or may not be read, is one that Ruby looks behind.
        let Ok(identity) = Identity::of(&*path) else { return Step::Ordinary };
        let Ok(c_path) = CString::new(path) else { return Step::Ordinary };
        if identity.is_directory {
            return Step::Ordinary;
        }
        let Ok(real) = self.real_path(directory, name, store) else { return Step::Ordinary };
        if self.knows_real_paths && self.is_loaded_elsewhere(real.as_deref().unwrap_or(c_path.to_bytes()), store) {
            return Step::Nothing;
        }
        if name.ends_with(b".rb") {
            Step::Script(Script { path: c_path, real, identity })
        } else {
            Step::Path(c_path)
        }
    }

    /// A script that `load` was given by its path. `None`: Ruby has to see to it.
    pub fn script_at(&mut self, path: &[u8], store: &mut Store) -> Option<Script> {
        let slash = path.iter().rposition(|byte| *byte == b'/')?;
        let identity = Identity::of(path).ok().filter(|identity| !identity.is_directory)?;
        let directory = self.directories.id(&path[..slash]);
        let real = self.real_path(directory, &path[slash + 1..], store).ok()?;
        Some(Script { path: CString::new(path).ok()?, real, identity })
    }

    /// Where a feature with extension is in the load path. `None`: Ruby has to see to it.
    pub fn find_script(&mut self, feature: &[u8], store: &mut Store) -> Option<Script> {
        self.directories.pass_time();
        match self.look(feature, Extension::Script.stem(feature), Extension::Script, false, store) {
            Answer::There((directory, name)) => self.script_at(&self.path(directory, &name), store),
            _ => None,
        }
    }

    /// The real path of a file, if it is another one than its own.
    fn real_path(&mut self, directory: DirectoryId, name: &[u8], store: &mut Store) -> Result<Option<Vec<u8>>, ()> {
        let path = self.path(directory, name);
        if self.directories.find(directory, &[name], store) != Answer::There(Found::File) {
            let real = real_path(&path).ok_or(())?;
            return Ok((real != path).then_some(real));
        }
        Ok(self.directories.real(directory)?.map(|real| [real, b"/", name].concat()))
    }

    /// Whether a file was loaded by another path.
    fn is_loaded_elsewhere(&mut self, real: &[u8], store: &mut Store) -> bool {
        if self.features.contains(real) {
            return true;
        }
        let directories = &mut self.directories;
        self.features.has_alias(real, |feature| {
            let slash = feature.iter().rposition(|byte| *byte == b'/')?;
            let (folder, name) = (&feature[..slash], &feature[slash + 1..]);
            let directory = directories.id(folder);
            if directories.find(directory, &[name], store) != Answer::There(Found::File) {
                return real_path(feature).filter(|real| real != feature);
            }
            directories.real(directory).ok()?.map(|real| [real, b"/", name].concat())
        })
    }
}
