//! What can be wrong with an image, with the likely cause and the remedy.

use core::fmt;

/// Why an image cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// The file has no head, or an unfinished one.
    NotAnImage,
    /// The image was written by another version of the format.
    Version {
        /// The version found in the file.
        found: u32,
    },
    /// The file ends before a part that it should contain.
    Truncated {
        /// The missing part.
        what: &'static str,
        /// Bytes that the file should have.
        expected: u64,
        /// Bytes that it has.
        found: u64,
    },
    /// A checksum does not match its bytes.
    Damaged {
        /// Which part is damaged.
        what: &'static str,
    },
    /// An offset, a length, an index or a number is out of range.
    OutOfRange {
        /// The value that is out of range.
        what: &'static str,
        /// Its value.
        value: u64,
    },
    /// A required section is missing.
    Missing {
        /// The section's name.
        what: &'static str,
    },
    /// The original command is too long for the head.
    CommandTooLong {
        /// Its length in bytes.
        length: usize,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Error::NotAnImage => f.write_str(
                "expected an image head, found something else: \
                 the file is not an image, or its writing was interrupted; freeze again",
            ),
            Error::Version { found } => write!(
                f,
                "expected image format version {}, found {found}: \
                 the image was made by another release; freeze again with this one",
                crate::VERSION
            ),
            Error::Truncated { what, expected, found } => write!(
                f,
                "{what} should take the file to {expected} bytes, but it ends at {found}: \
                 the image was cut off while it was copied or stored; copy it again or freeze again"
            ),
            Error::Damaged { what } => {
                write!(f, "the checksum of the {what} does not match: the image was damaged or edited; freeze again")
            }
            Error::OutOfRange { what, value } => write!(
                f,
                "{what} is {value:#x}, which is outside of what an image may hold: \
                 the image was damaged or edited; freeze again"
            ),
            Error::Missing { what } => {
                write!(f, "the image has no {what} section: it was damaged or edited; freeze again")
            }
            Error::CommandTooLong { length } => write!(
                f,
                "the command has {length} bytes, and an image keeps at most {}: \
                 shorten its fixed arguments, or pass them when the image is run",
                crate::VARIANTS_OFFSET - crate::COMMAND_OFFSET
            ),
        }
    }
}

impl core::error::Error for Error {}
