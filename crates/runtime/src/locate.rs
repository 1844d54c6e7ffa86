//! Finds the file that a command name means, as a shell does.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use failure::{reason, Failure, Result};
use image_file::kind::Kind;
use rustix::fs::{access, Access};

/// The default of PATH, as in shells.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// The value of PATH.
pub fn search_path() -> OsString {
    std::env::var_os("PATH").unwrap_or_else(|| DEFAULT_PATH.into())
}

/// Finds the file that `name` starts: `name` itself if it contains a slash, otherwise the first executable of that name
/// in `search_path` (the value of PATH). Symbolic links are kept, since the link identifies a virtual environment.
pub fn locate(name: &OsStr, search_path: &OsStr) -> Result<PathBuf> {
    if name.is_empty() {
        return Err(Failure::refusal("the command is an empty string: say which program to freeze, after --."));
    }
    if name.as_bytes().contains(&b'/') {
        let path = PathBuf::from(name);
        return executable(&path).map(|()| path);
    }
    for directory in std::env::split_paths(search_path) {
        // An empty entry means the current directory.
        let candidate = if directory.as_os_str().is_empty() { Path::new(".").join(name) } else { directory.join(name) };
        if candidate.is_file() && access(&candidate, Access::EXEC_OK).is_ok() {
            return Ok(candidate);
        }
    }
    let here = if Kind::is_image(Path::new(name)) {
        return Err(image_refusal(Path::new(name)));
    } else if Path::new(name).extension() == Some(OsStr::new("img")) && !Path::new(name).exists() {
        format!(
            " If it is the image to write, name it before the command: snapboot freeze -o {} -- COMMAND.",
            name.display()
        )
    } else if Path::new(name).is_file() {
        format!(
            " There is a file of that name here: write ./{0}, or name its interpreter (python {0}).",
            name.display()
        )
    } else {
        " Check the spelling, or give its path.".to_owned()
    };
    Err(Failure::refusal(format!("cannot find the command {}: it is in no directory of PATH.{here}", name.display())))
}

/// The message about an image in place of a command.
pub fn image_refusal(image: &Path) -> Failure {
    Failure::refusal(format!(
        "{0} is an image already: expected the Python or Ruby command to make one of. To make this image again as it was \
         made: snapboot refreeze {0}. To start it: snapboot run {0}. To make another one, name the command that it was made \
         of, which snapboot inspect {0} tells.",
        image.display()
    ))
}

/// Fails unless `path` is an executable file.
fn executable(path: &Path) -> Result<()> {
    let metadata = path.metadata().map_err(|error| Failure::io("start", path, &error))?;
    if metadata.is_dir() {
        return Err(Failure::refusal(format!(
            "cannot start {}: it is a directory. Name a program in it.",
            path.display()
        )));
    }
    access(path, Access::EXEC_OK).map_err(|error| {
        Failure::refusal(format!(
            "cannot start {0}: {1}. It is not executable: name its interpreter (python {0}, ruby {0}), or chmod +x it.",
            path.display(),
            reason(&error.into())
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{set_permissions, write, Permissions};
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn path_entries_are_tried_in_order_and_must_be_executable() {
        let top = tempfile::tempdir().unwrap();
        for (directory, mode) in [("plain", 0o644), ("first", 0o755), ("second", 0o755)] {
            std::fs::create_dir(top.path().join(directory)).unwrap();
            let file = top.path().join(directory).join("tool");
            write(&file, "").unwrap();
            set_permissions(&file, Permissions::from_mode(mode)).unwrap();
        }
        let path = std::env::join_paths(["plain", "first", "second"].map(|name| top.path().join(name))).unwrap();
        assert_eq!(locate(OsStr::new("tool"), &path).unwrap(), top.path().join("first/tool"));
        assert!(locate(OsStr::new("other"), &path).unwrap_err().message.contains("no directory of PATH"));
        let plain = top.path().join("plain/tool");
        assert!(locate(plain.as_os_str(), &path).unwrap_err().message.contains("not executable"));
        assert!(locate(top.path().as_os_str(), &path).unwrap_err().message.contains("is a directory"));
    }
}
