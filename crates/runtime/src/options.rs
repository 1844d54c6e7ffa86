//! How both interpreters' option tables are read: letters, combined or with a value.

/// What a one-letter option takes and what freezing makes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Letter {
    /// Nothing; it holds for the boot.
    Flag,
    /// A value, attached or in the next argument.
    Value,
    /// The rest of its own argument, which may be empty.
    Attached,
    /// It starts the main part.
    Main,
    /// It cannot be honoured by an image; why.
    Refused(&'static str),
}

/// What an image cannot do, as the message about an option continues.
pub mod refused {
    /// It prints something and ends, or prints at every start.
    pub const PRINTS: &str = "it prints before the program starts, which an image has behind it";
    /// It changes how the script is read.
    pub const READS: &str = "it changes how the script is read; leave it to the ordinary start";
    /// It changes the directory.
    pub const DIRECTORY: &str = "an image runs in the directory that it is started in; cd there instead";
}
