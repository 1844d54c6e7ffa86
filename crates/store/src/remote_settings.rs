//! The user's own settings of the remote store: `[remote]` in `snapboot/snapboot.toml` in the user's configuration. Each stands for a variable
//! of the environment, which wins. The file of a project never counts: whoever names the store and its keys can have this machine run code.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use failure::{Failure, Result};
use serde::Deserialize;

/// The file, in the directory of the user's configuration.
pub const FILE: &str = "snapboot/snapboot.toml";
/// The variable that names the remote store.
pub const URL: &str = "SNAPBOOT_REMOTE";

/// A file of the user's settings.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    remote: Remote,
}

/// Its table about the remote store.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
struct Remote {
    url: Option<String>,
    keys: Vec<PathBuf>,
    secret_key: Option<PathBuf>,
    sign_command: Option<String>,
    timeout: Option<u64>,
    read_only: Option<bool>,
}

/// The variables that the user's settings stand for, without those that are set. None where there is no such file. Fails if it is invalid, or
/// if others can have put it there.
pub fn variables() -> Result<Vec<(&'static str, OsString)>> {
    let Some(file) = place() else { return Ok(Vec::new()) };
    match file.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(Failure::io("read", &file, &error)),
        Ok(_) => {}
    }
    let text = trust::read(&file).map_err(|refusal| {
        Failure::refusal(format!("{refusal}, so its settings of the remote store cannot be relied on."))
    })?;
    let all = parse(&String::from_utf8_lossy(&text), &file)?;
    Ok(all.into_iter().filter(|(name, _)| std::env::var_os(name).is_none()).collect())
}

/// Whether the environment or the user's settings name a remote store. Settings that are invalid do, so that somebody is told.
pub(crate) fn is_named() -> bool {
    match std::env::var_os(URL) {
        Some(url) => !url.is_empty(),
        None => variables().map_or(true, |set| set.iter().any(|(name, _)| *name == URL)),
    }
}

/// The variables of a file.
fn parse(text: &str, file: &Path) -> Result<Vec<(&'static str, OsString)>> {
    let wrong = |what: &str| Failure::refusal(format!("{}: {what}", file.display()));
    let File { remote } = toml::from_str(text).map_err(|error| {
        let line = error.span().map_or(1, |span| text[..span.start].matches('\n').count() + 1);
        Failure::refusal(format!("{}:{line}: {}", file.display(), error.message().trim()))
    })?;
    let beside = |path: &PathBuf| file.parent().unwrap_or(Path::new("/")).join(path);
    let keys =
        std::env::join_paths(remote.keys.iter().map(beside)).map_err(|_| wrong("no path of keys can hold a colon."))?;
    let all = [
        (URL, remote.url.map(OsString::from)),
        ("SNAPBOOT_REMOTE_KEYS", Some(keys).filter(|keys| !keys.is_empty())),
        ("SNAPBOOT_REMOTE_SECRET_KEY", remote.secret_key.as_ref().map(|key| beside(key).into_os_string())),
        ("SNAPBOOT_REMOTE_SIGN_COMMAND", remote.sign_command.map(OsString::from)),
        ("SNAPBOOT_REMOTE_TIMEOUT", remote.timeout.map(|seconds| seconds.to_string().into())),
        ("SNAPBOOT_REMOTE_READ_ONLY", remote.read_only.map(|is_set| u8::from(is_set).to_string().into())),
    ];
    Ok(all.into_iter().filter_map(|(name, value)| Some((name, value?))).collect())
}

/// The file. Ignores the home of another user, to which `sudo -E` leads.
fn place() -> Option<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || absolute("HOME").filter(|home| trust::is_home(home)).map(|home| home.join(".config"));
    Some(absolute("XDG_CONFIG_HOME").or_else(home)?.join(FILE))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Vec<(&'static str, OsString)>> {
        parse(text, Path::new("/home/u/.config/snapboot/snapboot.toml"))
    }

    #[test]
    fn each_key_stands_for_a_variable() {
        let text = "[remote]\nurl = 's3://bucket'\nkeys = ['a.pub', '/etc/b.pub']\nsecret-key = 'key'\nsign-command = 'sign'\ntimeout = 5\n\
                    read-only = true\n";
        let expected = [
            ("SNAPBOOT_REMOTE", "s3://bucket"),
            ("SNAPBOOT_REMOTE_KEYS", "/home/u/.config/snapboot/a.pub:/etc/b.pub"),
            ("SNAPBOOT_REMOTE_SECRET_KEY", "/home/u/.config/snapboot/key"),
            ("SNAPBOOT_REMOTE_SIGN_COMMAND", "sign"),
            ("SNAPBOOT_REMOTE_TIMEOUT", "5"),
            ("SNAPBOOT_REMOTE_READ_ONLY", "1"),
        ];
        assert_eq!(parsed(text).unwrap(), expected.map(|(name, value)| (name, OsString::from(value))));
        assert!(parsed("").unwrap().is_empty() && parsed("[remote]\n").unwrap().is_empty());
    }

    #[test]
    fn mistakes_are_told_with_their_line() {
        for (text, words) in [
            ("[remote]\n\nurll = 'x'\n", "snapboot.toml:3: unknown field `urll`"),
            ("[remote]\ntimeout = 'x'\n", "snapboot.toml:2: invalid type"),
            ("[remot]\n", "snapboot.toml:1: unknown field `remot`"),
            ("[remote]\nkeys = ['a:b']\n", "no path of keys can hold a colon"),
            ("= x", "snapboot.toml:1: "),
        ] {
            let told = parsed(text).unwrap_err().message;
            assert!(told.contains(words), "{text}: {told}");
        }
    }
}
