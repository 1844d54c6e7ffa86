//! Names of features, and the kinds of files that their extensions select.

/// The kind of file that a feature's extension selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extension {
    /// `.rb`: a script.
    Script,
    /// `.so` or `.o`: an extension library.
    Library,
    /// None that Ruby knows: a script, else a library.
    None,
}

/// What a name is relative to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// `/...`: nothing.
    Absolute,
    /// `./...`, `../...`, `~...`: the working directory, a home.
    Explicit,
    /// The load path.
    LoadPath,
}

impl Extension {
    /// That of a feature.
    pub fn in_feature(feature: &[u8]) -> Self {
        match feature {
            [.., b'.', b'r', b'b'] => Extension::Script,
            [.., b'.', b's', b'o'] | [.., b'.', b'o'] => Extension::Library,
            _ => Extension::None,
        }
    }

    /// The feature without it.
    pub fn stem(self, feature: &[u8]) -> &[u8] {
        match self {
            Extension::None => feature,
            _ => without_extension(feature),
        }
    }
}

impl Place {
    /// That of a feature.
    pub fn in_feature(feature: &[u8]) -> Self {
        match feature {
            [b'/', ..] => Place::Absolute,
            [b'~', ..] | [b'.', b'/', ..] | [b'.', b'.', b'/', ..] => Place::Explicit,
            _ => Place::LoadPath,
        }
    }
}

/// Whether a name needs no resolution: no empty component, `.` or `..`, and ASCII only, where no encoding matters.
pub fn is_plain(feature: &[u8]) -> bool {
    let components = feature.strip_prefix(b"/").unwrap_or(feature).split(|byte| *byte == b'/');
    feature.len() < 1000 && feature.is_ascii() && components.into_iter().all(|part| !matches!(part, b"" | b"." | b".."))
}

/// A path without an extension that Ruby knows.
pub fn without_extension(path: &[u8]) -> &[u8] {
    match path {
        [stem @ .., b'.', b'r', b'b'] | [stem @ .., b'.', b's', b'o'] | [stem @ .., b'.', b'o'] => stem,
        _ => path,
    }
}
