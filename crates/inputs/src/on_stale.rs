//! `SNAPBOOT_ON_STALE`: what the user wants of an image that is not used.
//!
//! An unknown value is no error, since the ordinary start would not have had one: it is taken for the default, and said where
//! somebody wants to know (SNAPBOOT_LOG, `snapboot check`, `snapboot inspect --why`).

/// Name of the variable.
pub const NAME: &str = "SNAPBOOT_ON_STALE";

/// What the variable says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnStale<'a> {
    /// `fallback`, empty or not set: run the original command.
    Fallback,
    /// `error`: say why, and end with a status that tells.
    Error,
    /// Anything else, which counts as `fallback`.
    Unknown(&'a [u8]),
}

impl<'a> OnStale<'a> {
    /// Reads the variable's value; None when it is not set.
    pub fn of(value: Option<&'a [u8]>) -> Self {
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
        assert_eq!(OnStale::of(None), OnStale::Fallback);
        assert_eq!(OnStale::of(Some(b"")), OnStale::Fallback);
        assert_eq!(OnStale::of(Some(b"fallback")), OnStale::Fallback);
        assert_eq!(OnStale::of(Some(b"error")), OnStale::Error);
        assert_eq!(OnStale::of(Some(b"Error")), OnStale::Unknown(b"Error"));
    }
}
