//! The version managers whose shims are followed, pyenv and rbenv: how their shims look, and by what they choose a version.

use std::path::PathBuf;

use crate::shebang::words;

/// Variables by which they choose begin with one of these.
pub const VARIABLES: [&str; 2] = ["PYENV_", "RBENV_"];

/// Files with a version, in the current directory or one above it.
pub const VERSION_FILES: [&str; 2] = [".python-version", ".ruby-version"];

/// The version manager behind a shim of this text: `exec "/path/pyenv" exec "$program" "$@"`.
pub fn shim_manager(text: &[u8]) -> Option<PathBuf> {
    let text = std::str::from_utf8(text).ok()?;
    let command =
        text.lines().find_map(|line| line.trim().strip_prefix("exec ")?.strip_suffix("exec \"$program\" \"$@\""))?;
    words(command.as_bytes())?.into_iter().next().map(PathBuf::from)
}

/// The manager's folder of versions, as a shim names it: `export PYENV_ROOT="/path"`.
pub fn root_in(text: &[u8]) -> Option<PathBuf> {
    let text = std::str::from_utf8(text).ok()?;
    let value = text.lines().find_map(|line| line.trim().strip_prefix("export ")?.split_once("ENV_ROOT="))?.1;
    Some(PathBuf::from(value.trim_matches('"')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shims_manager_is_read_from_its_last_line() {
        let shim = "#!/usr/bin/env bash\nset -e\nprogram=\"${0##*/}\"\n\nexec \"/opt/pyenv/libexec/pyenv\" exec \"$program\" \"$@\"\n";
        assert_eq!(shim_manager(shim.as_bytes()), Some(PathBuf::from("/opt/pyenv/libexec/pyenv")));
    }
}
