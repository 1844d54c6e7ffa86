//! Types for the option tables of both interpreters: letters, combined or with a value.

/// What a one-letter option takes, and whether an image can honour it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Letter {
    /// Nothing. It applies to the boot.
    Flag,
    /// A value, in the same or the next argument.
    Value,
    /// The rest of its argument, which may be empty.
    Attached,
    /// It starts the main part.
    Main,
    /// An image cannot honour it, for this reason.
    Refused(&'static str),
}

/// Reasons why an image cannot honour an option, worded to continue the message about it.
pub mod refused {
    /// It prints something and ends, or prints at every start.
    pub const PRINTS: &str = "it prints before the program starts, and an image starts after that";
    /// It changes how the script is read.
    pub const READS: &str = "it changes how the script is read; leave it to the ordinary start";
    /// It changes the directory.
    pub const DIRECTORY: &str = "an image runs in the directory that it is started in; cd there instead";
}
