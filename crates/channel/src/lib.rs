//! How the parts of a freeze speak with each other, defined once: [`Request`] is what a front end asks of the freezer, in the same process, and what
//! the freezer tells the recorder, outside of it; [`Kind`] and [`Phase`] say what sensors report; [`record`](fields) is the form of an entry with
//! several fields.
//!
//! Front ends are pure Python and pure Ruby, and load nothing that the program does not load. So a request is the one call that both
//! languages have for a text that leads to a text: `readlink` of a name that no file has, [`NAME`] with the word of the request, `=` and its argument. The freezer
//! stands in front of the C library's `readlink` and answers. Where there is no freezer the call fails, as for any file that is not there.
//!
//! python/snapboot/front_end/channel.py and ruby/lib/snapboot/front_end/channel.rb say the same, and so does docs/internals/protocol.md;
//! tests/repository/test_channel.py compares them.
#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

/// What a request begins with.
pub const NAME: &[u8] = b"snapboot:";

macro_rules! words {
    ($(#[$about:meta])* $type:ident { $($(#[$doc:meta])* $name:ident = $word:literal,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $type { $($(#[$doc])* $name,)* }

        impl $type {
            /// The word that stands for it.
            pub const fn word(self) -> &'static str {
                match self { $($type::$name => $word,)* }
            }

            /// What this word stands for.
            pub fn of(word: &[u8]) -> Option<$type> {
                match core::str::from_utf8(word).ok()? { $($word => Some($type::$name),)* _ => None }
            }
        }
    };
}

words! {
    /// What is asked. Each takes a text and is answered with one, most of them with an empty one.
    Request {
        /// Who reads from now on: a [`Phase`]. Other threads are the program, whatever this one is.
        Phase = "phase",
        /// The C library's environment, written into a new file of this path.
        Environment = "environment",
        /// Lets a Ruby string be changed that is frozen: its address.
        Unfreeze = "unfreeze",
        /// A thread that is started again after each thaw, by its number: nothing is reported of it.
        Restarts = "restarts",
        /// The next fork of this thread is the freeze. `ADDRESS,SIZE` of an object in which a thawed process finds its arguments and its environment, or nothing.
        Arm = "arm",
        /// It is not.
        Disarm = "disarm",
        /// Answers 1 where the next fork is the freeze.
        IsArmed = "is_armed",
        /// Attributes of the process: `look` or `changed` answers the next one, with `+` in front where a thaw sets it again, or `-`; `repeat` sets them again, and answers the first that cannot be.
        Attributes = "attributes",
        /// The locale and the flags of CPython: a question about them, or a change. Answers a number.
        Renew = "renew",
        /// The end of the process writes out the C library's streams; with `stop` it waits there for whoever looks at it.
        End = "end",
        /// To the recorder: this process only tries what may be loaded early, and ends then. Whatever it tries and the program may have, the program itself does again.
        Trial = "trial",
        /// To the recorder: this process only looks at what the program holds, and ends then. Nothing of what it finds gets into an image.
        Aside = "aside",
        /// To the recorder: what this thread looks up in a file that the whole machine shares: the kind, a slash, and the text.
        LookUp = "look_up",
        /// To the recorder: that has ended.
        LookedUp = "looked_up",
    }
}

words! {
    /// What was read.
    Kind {
        /// A variable, by its name.
        Variable = "variable",
        /// All variables.
        AllVariables = "variables",
        /// All variables, by a program of this name that was started with them.
        Executed = "executed",
        /// Something about machine, user or process: a word of `inputs::facts`.
        Fact = "fact",
        /// Something that is another one in each start, and cannot be compared.
        Early = "early",
        /// A variable, by C code that is no part of Ruby.
        Foreign = "foreign",
    }
}

words! {
    /// Who reads.
    #[derive(Default)]
    Phase {
        /// The runtime, which starts.
        #[default]
        Runtime = "runtime",
        /// The front end.
        FrontEnd = "front end",
        /// The program.
        Program = "program",
        /// A trial import, which the program does again.
        Trial = "trial",
    }
}

/// The fields of an event, the entry `event` of what sensors report: what was read ([`Kind`]), who has read it ([`Phase`]), of what (the name of a variable,
/// of a program, of a fact), the file that reads (nothing: C code), `FILE:LINE`; of a fact the number that it is of, and of a variable that C code has read
/// the digest of its value, in hexadecimal digits; 1 where the front end renews after a thaw what came of it. The last ones may be missing.
pub const EVENT: [&str; 7] = ["kind", "phase", "subject", "reader", "place", "detail", "renewed"];

impl Request {
    /// The request that `readlink` is called with, and its argument.
    pub fn parse(name: &[u8]) -> Option<(Request, &[u8])> {
        let text = name.strip_prefix(NAME)?;
        let end = text.iter().position(|&byte| byte == b'=')?;
        Some((Request::of(&text[..end])?, &text[end + 1..]))
    }

    /// Whether the recorder is to hear it.
    pub fn is_for_recorder(self) -> bool {
        matches!(self, Request::Trial | Request::Aside | Request::LookUp | Request::LookedUp)
    }
}

/// The flag (O_DSYNC, which does nothing there) with which the /dev/null is opened that is the boot's standard input. It is the one mark that is no request:
/// the freezer has to tell whether the program has put another /dev/null in its place, and of what is open a kernel shows nothing else that is the same for
/// copies of one descriptor and another one for each call that opens: not everywhere may `kcmp` be called, and a program can close and open without a
/// function of the C library.
pub const STANDARD_INPUT: i32 = 0o10000;

/// Bits of an answer to [`Request::Renew`] about the locale.
pub mod locale {
    /// That of text is C (so Python is in its UTF-8 mode).
    pub const IS_C: i32 = 1;
    /// Its name is one of those that Python puts in the place of C.
    pub const IS_TARGET: i32 = 2;
    /// Its text is UTF-8.
    pub const IS_UTF8: i32 = 4;
    /// Another category than that of text is not C.
    pub const HAS_OTHERS: i32 = 8;
    /// The program has chosen it, not the runtime.
    pub const IS_CHOSEN: i32 = 16;
    /// Python has put the first of its targets in the place of C; twice this, the second one, and so on.
    pub const COERCED: i32 = 32;
}

/// The fields of a record: each is its length in decimal digits, a colon, and so many bytes. What is cut off is left out.
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

/// What stands in front of a field of a record that has this size.
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
