//! The protocol between the parts of a freeze, defined once. [`Request`] lists what a front end asks the freezer in its
//! own process, and what the freezer reports to the recorder outside. [`Kind`] and [`Phase`] describe recorded events.
//! [`fields`] splits a record into its fields.
//!
//! Front ends are pure Python and pure Ruby, and load nothing that the program does not load. So a request is a call
//! that both languages have and that turns a text into a text: `readlink` of a name that no file has, [`NAME`] followed
//! by the word of the request, `=` and its argument. The freezer interposes the C library's `readlink` and answers.
//! Without the freezer the call fails, as for any missing file.
//!
//! python/snapboot/front_end/channel.py and ruby/lib/snapboot/front_end/channel.rb define the same words, and
//! docs/internals/protocol.md documents them; tests/repository/test_channel.py compares them.
#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

/// The prefix of a request.
pub const NAME: &[u8] = b"snapboot:";

macro_rules! words {
    ($(#[$about:meta])* $type:ident { $($(#[doc = $doc:literal])* $name:ident = $word:literal,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $type { $($(#[doc = $doc])* $name,)* }

        impl $type {
            /// Each word with its meaning.
            pub const MEANINGS: &'static [(&'static str, &'static str)] = &[$(($word, concat!($($doc),*)),)*];

            /// The word for it.
            pub const fn word(self) -> &'static str {
                match self { $($type::$name => $word,)* }
            }

            /// The value for a word.
            pub fn from_word(word: &[u8]) -> Option<$type> {
                match core::str::from_utf8(word).ok()? { $($word => Some($type::$name),)* _ => None }
            }
        }
    };
}

macro_rules! bits {
    ($($(#[$doc:meta])* $name:ident = $bit:literal,)*) => {
        $($(#[$doc])* pub const $name: i32 = $bit;)*

        /// Each bit with its name.
        pub const NAMES: &[(&str, i32)] = &[$((stringify!($name), $bit),)*];
    };
}

words! {
    /// A request. Each takes a text and is answered with a text, mostly an empty one.
    Request {
        /// The [`Phase`] of this thread's reads from now on. Reads of other threads count as the program's.
        Phase = "phase",
        /// Writes the C library's environment to a new file at this path.
        Environment = "environment",
        /// Makes the frozen Ruby string at this address mutable.
        Unfreeze = "unfreeze",
        /// The number of a thread that is started again after each thaw, so it is not reported.
        Restarts = "restarts",
        /// Makes the next fork of this thread the freeze. The argument is empty, or `ADDRESS,SIZE` of an object to
        /// which a thaw writes its arguments and its environment.
        Arm = "arm",
        /// Cancels `arm`.
        Disarm = "disarm",
        /// Answers 1 if the next fork is the freeze.
        IsArmed = "is_armed",
        /// Attributes of the process. `look` and `changed` answer the next one, prefixed with `+` if a thaw sets it
        /// again and with `-` otherwise; `repeat` sets them again, and answers the first that cannot be set.
        Attributes = "attributes",
        /// Reads or changes the locale and the flags of CPython. Answers a number.
        Renew = "renew",
        /// Has the end of the process flush the C library's streams. With `stop` the process then waits to be
        /// inspected.
        End = "end",
        /// To the recorder: this process only runs trial imports, then ends. The program itself repeats whatever they
        /// do and the program may have.
        Trial = "trial",
        /// To the recorder: this process only inspects the program, then ends. Nothing that it finds gets into an
        /// image.
        Aside = "aside",
        /// To the recorder: this thread begins a look-up in a table that the whole machine shares. The argument is the
        /// kind, a slash and the text.
        LookUp = "look_up",
        /// To the recorder: the look-up has ended.
        LookedUp = "looked_up",
        /// To the recorder: what this thread looks at tells it only what kind of file is there, if the argument is `1`;
        /// all that a status says, if it is empty.
        KindOnly = "kind_only",
    }
}

words! {
    /// What was read.
    Kind {
        /// One variable, by its name.
        Variable = "variable",
        /// All variables.
        AllVariables = "variables",
        /// All variables, passed to a program of this name.
        Executed = "executed",
        /// A fact about machine, user or process: a word of `inputs::facts`.
        Fact = "fact",
        /// A value that differs in each start, and cannot be compared.
        Early = "early",
        /// A variable, by C code outside Ruby.
        Foreign = "foreign",
    }
}

words! {
    /// Who reads.
    Phase {
        /// The runtime, while it starts.
        Runtime = "runtime",
        /// The front end.
        FrontEnd = "front end",
        /// The program.
        Program = "program",
        /// A trial import, which the program repeats.
        Trial = "trial",
    }
}

/// The fields of an event, the entry `event` in the files of sensors: what was read ([`Kind`]), who read it
/// ([`Phase`]), the subject (the name of a variable, a program or a fact), the file of the reader (empty for C code),
/// `FILE:LINE`, the detail (of a fact the number that it is about; of a variable that C code read the digest of its
/// value in hexadecimal), and 1 if the front end renews the result after a thaw. Trailing fields may be missing.
pub const EVENT: [&str; 7] = ["kind", "phase", "subject", "reader", "place", "detail", "renewed"];

impl Request {
    /// The request in the path of a `readlink` call, and its argument.
    pub fn parse(name: &[u8]) -> Option<(Request, &[u8])> {
        let text = name.strip_prefix(NAME)?;
        let end = text.iter().position(|&byte| byte == b'=')?;
        Some((Request::from_word(&text[..end])?, &text[end + 1..]))
    }

    /// Whether the request is for the recorder.
    pub fn is_for_recorder(self) -> bool {
        matches!(self, Request::Trial | Request::Aside | Request::LookUp | Request::LookedUp | Request::KindOnly)
    }
}

/// The open flag that marks the /dev/null that is the boot's standard input: O_DSYNC, which has no effect there. It is
/// the only mark that is not a request. The freezer must tell whether the program has put another /dev/null in its
/// place. No other attribute of a descriptor is shared by its duplicates and differs between two opens: `kcmp` is not
/// permitted everywhere, and a program can close and open without the C library.
pub const STANDARD_INPUT: i32 = 0o10000;

/// Bits of the answer to [`Request::Renew`] about the locale.
pub mod locale {
    bits! {
        /// LC_CTYPE is C, so Python is in UTF-8 mode.
        IS_C = 1,
        /// The name is one of those to which Python coerces C.
        IS_TARGET = 2,
        /// The encoding is UTF-8.
        IS_UTF8 = 4,
        /// A category other than LC_CTYPE is not C.
        HAS_OTHERS = 8,
        /// The program chose it, not the runtime.
        IS_CHOSEN = 16,
        /// Python coerced C to its first target; twice this is the second target, and so on.
        COERCED = 32,
    }
}

/// The fields of a record. Each is its length in decimal digits, a colon, and that many bytes. A truncated field is
/// left out.
pub fn fields(record: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = record;
    core::iter::from_fn(move || {
        let colon = rest.iter().position(|&byte| byte == b':')?;
        let size: usize = core::str::from_utf8(&rest[..colon]).ok()?.parse().ok()?;
        let field = rest[colon + 1..].get(..size)?;
        rest = &rest[colon + 1 + size..];
        Some(field)
    })
}

/// The head of a field of this size.
pub fn head(size: usize) -> ([u8; MAX_HEAD], usize) {
    let (mut head, mut start, mut rest) = ([0; MAX_HEAD], MAX_HEAD - 1, size);
    head[start] = b':';
    loop {
        start -= 1;
        head[start] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            head.copy_within(start.., 0);
            return (head, MAX_HEAD - start);
        }
    }
}

/// The longest head of a field (bytes).
pub const MAX_HEAD: usize = 21;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_read_as_it_is_written() {
        assert_eq!(Request::parse(b"snapboot:phase=front end"), Some((Request::Phase, &b"front end"[..])));
        assert_eq!(Request::parse(b"snapboot:environment=/a=b"), Some((Request::Environment, &b"/a=b"[..])));
        for other in [&b"snapboot:phase"[..], b"snapboot:none=", b"phase=program", b""] {
            assert_eq!(Request::parse(other), None);
        }
    }

    #[test]
    fn fields_hold_anything_and_what_is_cut_off_is_none() {
        let record = b"1:a0:3:2:b";
        assert!(fields(record).eq([&b"a"[..], b"", b"2:b"]));
        assert!(fields(&record[..9]).eq([&b"a"[..], b""]));
        assert!(fields(b"").next().is_none() && fields(b"x:1").next().is_none());
        for size in [0, 7, 10, 1234, usize::MAX] {
            let (head, length) = head(size);
            let text = core::str::from_utf8(&head[..length]).unwrap();
            assert_eq!(text.strip_suffix(':').and_then(|digits| digits.parse().ok()), Some(size));
        }
    }
}
