//! `SNAPBOOT_ON_STALE`: what to do if an image cannot be used.
//!
//! An unknown value counts as the default and is no error, since the ordinary start would not have one. SNAPBOOT_LOG,
//! `snapboot check` and `snapboot inspect --why` report it.

/// The name of the variable.
pub const NAME: &str = "SNAPBOOT_ON_STALE";

/// The value of the variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnStale<'a> {
    /// `fallback`, empty or unset: run the original command.
    Fallback,
    /// `error`: report the reason and exit with a status of its own.
    Error,
    /// Any other value, which counts as `fallback`.
    Unknown(&'a [u8]),
}

impl<'a> OnStale<'a> {
    /// Parses the variable's value; None if it is unset.
    pub fn parse(value: Option<&'a [u8]>) -> Self {
        match value {
            None | Some(b"" | b"fallback") => OnStale::Fallback,
            Some(b"error") => OnStale::Error,
            Some(unknown) => OnStale::Unknown(unknown),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_values_are_told_apart() {
        assert_eq!(OnStale::parse(None), OnStale::Fallback);
        assert_eq!(OnStale::parse(Some(b"")), OnStale::Fallback);
        assert_eq!(OnStale::parse(Some(b"fallback")), OnStale::Fallback);
        assert_eq!(OnStale::parse(Some(b"error")), OnStale::Error);
        assert_eq!(OnStale::parse(Some(b"Error")), OnStale::Unknown(b"Error"));
    }
}
