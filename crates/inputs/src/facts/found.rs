//! Where a name is first found in the directories of a variable, as a shell finds a command in PATH: `$PATH/git:
//! /usr/bin/git`.

use super::{Kernel, Value, EMPTY, MAX};

/// `of` of the user ([`crate::facts::fact_kind::USER`]) and of a file of the kernel ([`crate::facts::fact_kind::KERNEL_FILE`]) that
/// count only in starts without HOME.
pub const WITHOUT_HOME: u32 = 1;

/// Whether HOME is set and short enough to compare.
#[inline(never)]
pub(super) fn has_home(kernel: &impl Kernel) -> bool {
    kernel.variable(b"HOME", &mut [0; MAX]).is_some()
}

impl Value {
    /// A fact as it was recorded, for a start in which it does not count.
    pub(super) fn from_recorded(text: &[u8]) -> Value {
        let mut value = EMPTY;
        value.push(text);
        value
    }

    /// Looks for a name in the directories of a variable, such as `$PATH/git`. None if a directory has no absolute path
    /// or cannot be searched. If HOME is unset, the user's home directory in /etc/passwd takes its place. For
    /// `$HOME/.`, HOME itself, the result says only whether it exists.
    pub fn find(kernel: &impl Kernel, looked_for: &[u8]) -> Option<Value> {
        let slash = looked_for.iter().position(|&byte| byte == b'/')?;
        let (variable, name) = (looked_for[..slash].strip_prefix(b"$")?, &looked_for[slash..]);
        let mut directories = [0; MAX];
        let size = match kernel.variable(variable, &mut directories) {
            None if variable == b"HOME" => home_of_user(kernel, &mut directories)?,
            size => size?,
        };
        let mut value = EMPTY;
        value.push(looked_for);
        value.push(b": ");
        let start = value.length;
        for directory in directories[..size].split(|&byte| byte == b':') {
            if directory.first() != Some(&b'/') {
                return None;
            }
            value.length = start;
            [directory, name, b"\0"].into_iter().for_each(|part| value.push(part));
            if value.is_cut {
                return None;
            }
            if kernel.is_there(&value.bytes()[start..])? {
                value.length -= 1;
                if name == b"/." {
                    value.length = start;
                    value.push(b"there");
                }
                return Some(value);
            }
        }
        value.length = start;
        value.push(b"absent");
        Some(value)
    }
}

/// Copies the user's home directory from /etc/passwd (lines of `name:password:uid:gid:comment:directory:shell`,
/// passwd(5)) to the front of `buffer` and returns its size (bytes). None if the user is missing or the buffer is too
/// small.
#[inline(never)]
pub fn home_of_user(kernel: &impl Kernel, buffer: &mut [u8]) -> Option<usize> {
    let mut text = [0; PASSWD_MAX];
    let size = kernel.read(b"/etc/passwd\0", &mut text)?;
    let user = kernel.user()[0];
    let directory = text[..size].split(|&byte| byte == b'\n').find_map(|line| {
        let mut fields = line.split(|&byte| byte == b':').skip(2);
        let is_it = core::str::from_utf8(fields.next()?).ok()?.parse() == Ok(user);
        fields.nth(2).filter(|_| is_it)
    })?;
    buffer.get_mut(..directory.len())?.copy_from_slice(directory);
    Some(directory.len())
}

/// Bytes of /etc/passwd that are read: the launcher has a small stack.
const PASSWD_MAX: usize = 8 * 1024;

#[cfg(test)]
mod tests {
    extern crate std;

    use std::string::String;

    use image::HostFact;

    use super::super::{fact_kind, recorded_path, Content};
    use super::*;

    /// A machine with two gits, and the user of the process.
    struct Machine(u32);

    impl Kernel for Machine {
        fn variable(&self, name: &[u8], buffer: &mut [u8]) -> Option<usize> {
            let value: &[u8] = match name {
                b"PATH" => b"/none:/usr/bin:/bin",
                b"HOME" if self.0 == 0 => b"here",
                _ => return None,
            };
            buffer[..value.len()].copy_from_slice(value);
            Some(value.len())
        }
        fn with_variable(&self, _: &[u8], _: &mut dyn FnMut(&[u8])) {}
        fn is_there(&self, path: &[u8]) -> Option<bool> {
            match path {
                b"/none/secret\0" => None,
                path => Some(matches!(path, b"/usr/bin/git\0" | b"/bin/git\0" | b"/home/sam/x\0" | b"/home/sam/.\0")),
            }
        }
        fn uname(&self, _: &mut dyn FnMut([&[u8]; 4])) {}
        fn read(&self, path: &[u8], buffer: &mut [u8]) -> Option<usize> {
            const USERS: &[u8] = b"root:x:0:0::/root:/bin/sh\n\nsam:x:7:7:,,,:/home/sam:/bin/sh\n";
            buffer.get_mut(..USERS.len()).filter(|_| path == b"/etc/passwd\0")?.copy_from_slice(USERS);
            Some(USERS.len())
        }
        fn content(&self, _: &[u8]) -> Content {
            Content::Absent
        }
        fn user(&self) -> [u32; 4] {
            [self.0; 4]
        }
    }

    #[test]
    fn a_name_is_found_at_the_first_place_along_a_variable() {
        let found = |looked_for: &str| {
            let value = Value::find(&Machine(0), looked_for.as_bytes())?;
            Some(String::from_utf8(value.bytes().to_vec()).unwrap())
        };
        assert_eq!(found("$PATH/git").as_deref(), Some("$PATH/git: /usr/bin/git"));
        assert_eq!(found("$PATH/hg").as_deref(), Some("$PATH/hg: absent"));
        assert_eq!(found("$PATH/secret"), None, "nobody can tell");
        assert_eq!(found("$HOME/.config/x"), None, "no absolute path");
        assert_eq!(found("$XDG_DATA_HOME/x"), None, "not set");
        assert_eq!((found("PATH/git"), found("$PATH")), (None, None));
        let at_home = |user: u32| Value::find(&Machine(user), b"$HOME/x").map(|value| value.bytes().to_vec());
        assert_eq!(at_home(7).as_deref(), Some(&b"$HOME/x: /home/sam/x"[..]), "HOME is not set");
        assert_eq!(at_home(8), None, "nobody knows where");
        let itself = Value::find(&Machine(7), b"$HOME/.").unwrap();
        assert_eq!(itself.bytes(), b"$HOME/.: there");
        let user = HostFact { kind: fact_kind::USER, of: WITHOUT_HOME, value: Default::default() };
        assert_eq!(
            Value::read_again(&Machine(0), &user, b"1 1 1 1").unwrap().bytes(),
            b"1 1 1 1",
            "who has HOME is not asked"
        );
        assert_eq!(Value::read_again(&Machine(7), &user, b"1 1 1 1").unwrap().bytes(), b"7 7 7 7");
        let file = HostFact { kind: fact_kind::KERNEL_FILE, of: WITHOUT_HOME, value: Default::default() };
        let recorded = b"/proc/self/loginuid: unreadable";
        assert_eq!(
            Value::read_again(&Machine(0), &file, recorded).unwrap().bytes(),
            recorded,
            "who has HOME does not look"
        );
        assert_eq!(Value::read_again(&Machine(7), &file, recorded).unwrap().bytes(), b"/proc/self/loginuid: absent");
        let fact = HostFact { kind: fact_kind::FOUND, of: 0, value: Default::default() };
        let recorded = b"$PATH/git: /bin/git";
        assert_eq!(recorded_path(&fact, recorded), Some(&b"$PATH/git"[..]));
        assert_ne!(Value::read_again(&Machine(0), &fact, recorded).unwrap().bytes(), recorded);
    }
}
