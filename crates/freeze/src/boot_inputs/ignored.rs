//! Paths that a boot accessed and does not depend on, each with its reason.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use recorder::{PathAccess, State};

/// Why a path is not an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The image itself, and files that freezes and thaws put beside it.
    Image,
    /// The front end and the freezer: they are part of every image.
    FrontEnd,
    /// The boot created, removed or wrote to it.
    Written,
    /// Bytecode that Python derives from a source: the source counts.
    Bytecode,
    /// The script, which each start reads.
    Script,
    /// It cannot be read now, and the boot could not read it either.
    Unknown,
}

/// The paths that are known beforehand.
pub struct Ignored {
    /// The directory of the image, by all its names: the boot may have used another one than the user.
    homes: Vec<PathBuf>,
    /// The name of the image.
    image_name: OsString,
    /// The prefix of its control directories' names.
    control_dir: Vec<u8>,
    /// Directories of Snapboot's own files.
    own: Vec<PathBuf>,
    /// PYTHONPYCACHEPREFIX of the boot.
    bytecode: Option<PathBuf>,
    /// The script, if each start reads it.
    script: Option<PathBuf>,
}

impl Ignored {
    /// `output` is the image, `own` are files and directories of this installation, and `bytecode` is Python's
    /// directory for bytecode, if it is elsewhere.
    pub fn new(output: &Path, own: Vec<PathBuf>, bytecode: Option<&OsStr>) -> Self {
        let home = output.parent().unwrap_or(Path::new("/"));
        let homes = home.canonicalize().into_iter().chain([home.to_owned()]).collect();
        let image_name = output.file_name().unwrap_or_default().to_owned();
        let control_dir = [b".", image_name.as_encoded_bytes(), b".freezing-"].concat();
        let bytecode = bytecode.filter(|it| !it.is_empty()).map(PathBuf::from);
        Ignored { homes, image_name, control_dir, own, bytecode, script: None }
    }

    /// Ignores the script as well.
    pub fn with_script(self, script: Option<&Path>) -> Self {
        Ignored { script: script.map(Path::to_owned), ..self }
    }

    /// The name of the image.
    pub fn image_name(&self) -> &OsStr {
        &self.image_name
    }

    /// Why the path is not an input; None if it is.
    pub fn reason(&self, path: &Path, access: &PathAccess, places: &HashMap<PathBuf, PathAccess>) -> Option<Reason> {
        if self.is_image(path) {
            return Some(Reason::Image);
        }
        if self.is_own(path) || access.state == State::Directory && self.leads_only_to_own(path, places) {
            return Some(Reason::FrontEnd);
        }
        let made = |path: &Path| places.get(path).is_some_and(|access| access.made);
        if access.written || path.ancestors().any(made) {
            return Some(Reason::Written);
        }
        if self.script.as_deref() == Some(path) {
            return Some(Reason::Script);
        }
        if self.is_bytecode(path, places) {
            return Some(Reason::Bytecode);
        }
        (*access.target_state() == State::Unknown).then_some(Reason::Unknown)
    }

    /// Whether a path belongs to Snapboot itself.
    pub fn is_own(&self, path: &Path) -> bool {
        self.own.iter().any(|own| path.starts_with(own))
    }

    /// Whether a directory only leads to Snapboot's own files: the boot looked up nothing else below it.
    fn leads_only_to_own(&self, directory: &Path, places: &HashMap<PathBuf, PathAccess>) -> bool {
        let is_on_the_way = |path: &Path| self.own.iter().any(|own| own.starts_with(path));
        is_on_the_way(directory)
            && !places.keys().any(|path| path.starts_with(directory) && !self.is_own(path) && !is_on_the_way(path))
    }

    fn is_image(&self, path: &Path) -> bool {
        // The control directory is identified by its name, wherever a link to it may be.
        if path.iter().any(|part| part.as_encoded_bytes().starts_with(&self.control_dir)) {
            return true;
        }
        let Some(rest) = self.homes.iter().find_map(|home| path.strip_prefix(home).ok()) else { return false };
        let first = rest.components().next().map(|part| part.as_os_str().as_encoded_bytes());
        first.is_some_and(|name| {
            name != b"__pycache__" && image::is_unlisted(name, self.image_name().as_encoded_bytes())
        })
    }

    /// `__pycache__` itself, and a file in it whose source was also looked up.
    fn is_bytecode(&self, path: &Path, places: &HashMap<PathBuf, PathAccess>) -> bool {
        if path.file_name() == Some(OsStr::new("__pycache__")) {
            return true;
        }
        let (Some(directory), Some(name)) = (path.parent(), path.file_name().and_then(OsStr::to_str)) else {
            return false;
        };
        let directory = match &self.bytecode {
            Some(prefix) => match directory.strip_prefix(prefix) {
                // Everything there is bytecode or a directory for it.
                Ok(_) if !name.ends_with(".pyc") => return true,
                Ok(rest) => Path::new("/").join(rest),
                Err(_) => return false,
            },
            None if directory.file_name() == Some(OsStr::new("__pycache__")) => {
                directory.parent().unwrap_or(directory).to_owned()
            }
            None => return false,
        };
        // `name.cpython-311.pyc`, `name.cpython-311.opt-1.pyc`
        let stem = name.split(".cpython-").next().unwrap_or(name);
        places.contains_key(&directory.join(stem).with_extension("py"))
            || places.contains_key(&directory.join(format!("{stem}.py")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_to_an_installation_counts_for_the_rest_of_what_lies_on_it() {
        let ignored = Ignored::new(Path::new("/nowhere/app.img"), vec![PathBuf::from("/opt/tools/snapboot")], None);
        let looked = |state| PathAccess { looked: true, looked_at_link: true, state, ..PathAccess::default() };
        let mut places: HashMap<PathBuf, PathAccess> =
            ["/opt", "/opt/tools", "/opt/tools/snapboot", "/opt/tools/snapboot/lib"]
                .into_iter()
                .map(|path| (PathBuf::from(path), looked(State::Directory)))
                .collect();
        let reason = |path, places: &_| ignored.reason(Path::new(path), &looked(State::Directory), places);
        assert_eq!(reason("/opt", &places), Some(Reason::FrontEnd));
        assert_eq!(reason("/opt/tools", &places), Some(Reason::FrontEnd));
        places.insert("/opt/app/lib.rb".into(), looked(State::Absent));
        assert_eq!(reason("/opt", &places), None);
        assert_eq!(reason("/opt/tools", &places), Some(Reason::FrontEnd));
        assert_eq!(reason("/opt/tools/snapboot/lib", &places), Some(Reason::FrontEnd));
    }
}
