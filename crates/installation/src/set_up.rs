//! How a file of ours gets into an ordinary start: by the variable that the interpreter reads, which the file takes back.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use failure::{Failure, Result};

/// RUBYOPT that requires `set_up`, and leaves what there was before.
pub fn ruby_option(set_up: &Path) -> Result<OsString> {
    if set_up.as_os_str().as_bytes().iter().any(u8::is_ascii_whitespace) {
        return Err(Failure::refusal(format!(
            "RUBYOPT cannot name {}, because of the blank in it. Install Snapboot in a directory without blanks in its path, or \
             put require \"snapboot/setup\" into the program.",
            set_up.display()
        )));
    }
    let mut option = OsString::from("-r");
    option.push(set_up);
    if let Some(before) = std::env::var_os("RUBYOPT") {
        option.push(" ");
        option.push(before);
    }
    Ok(option)
}

/// PYTHONPATH with the directory of `set_up`, before what there was. None where what there was could not be told from nothing then, or a
/// colon in the directory would split it.
pub fn python_path(set_up: &Path) -> Option<OsString> {
    let before = std::env::var_os("PYTHONPATH");
    let directory = set_up.parent().unwrap_or(Path::new("/")).as_os_str();
    if directory.as_bytes().contains(&b':') || before.as_deref() == Some(OsStr::new("")) {
        return None;
    }
    let mut path = directory.to_owned();
    if let Some(before) = before {
        path.push(":");
        path.push(before);
    }
    Some(path)
}
