//! Where a name is found first along the directories of a variable, as a program looks for a command along PATH: `$PATH/git: /usr/bin/git`.

use super::{Kernel, Value, MAX};

impl Value {
    /// Looks for a name along the directories of a variable: `$PATH/git`. None where one of them is no absolute path, or cannot be looked into.
    pub fn found(kernel: &impl Kernel, looked_for: &[u8]) -> Option<Value> {
        let slash = looked_for.iter().position(|&byte| byte == b'/')?;
        let (variable, name) = (looked_for[..slash].strip_prefix(b"$")?, &looked_for[slash..]);
        let mut directories = [0; MAX];
        let size = kernel.variable(variable, &mut directories)?;
        let mut value = Value { bytes: [0; MAX], length: 0, is_cut: false };
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
                return Some(value);
            }
        }
        value.length = start;
        value.push(b"absent");
        Some(value)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::string::String;

    use image::{fact_kind, HostFact};

    use super::super::{path, Content};
    use super::*;

    /// A machine with two gits.
    struct Machine;

    impl Kernel for Machine {
        fn variable(&self, name: &[u8], buffer: &mut [u8]) -> Option<usize> {
            let value: &[u8] = match name {
                b"PATH" => b"/none:/usr/bin:/bin",
                b"HOME" => b"here",
                _ => return None,
            };
            buffer[..value.len()].copy_from_slice(value);
            Some(value.len())
        }
        fn is_there(&self, path: &[u8]) -> Option<bool> {
            match path {
                b"/none/secret\0" => None,
                path => Some(matches!(path, b"/usr/bin/git\0" | b"/bin/git\0")),
            }
        }
        fn uname(&self, _: &mut dyn FnMut([&[u8]; 4])) {}
        fn read(&self, _: &[u8], _: &mut [u8]) -> Option<usize> {
            None
        }
        fn content(&self, _: &[u8]) -> Content {
            Content::Absent
        }
        fn affinity(&self, _: &mut [u8]) -> Option<usize> {
            None
        }
        fn memory(&self) -> Option<u64> {
            None
        }
        fn limit(&self, _: u32) -> Option<(u64, u64)> {
            None
        }
        fn user(&self) -> [u32; 4] {
            [0; 4]
        }
        fn groups(&self, _: &mut dyn FnMut(u32)) -> Option<()> {
            None
        }
        fn window(&self, _: u32) -> Option<(u16, u16)> {
            None
        }
        fn cwd(&self, _: &mut [u8]) -> Option<usize> {
            None
        }
        fn umask(&self) -> u32 {
            0
        }
    }

    #[test]
    fn a_name_is_found_at_the_first_place_along_a_variable() {
        let found = |looked_for: &str| {
            let value = Value::found(&Machine, looked_for.as_bytes())?;
            Some(String::from_utf8(value.bytes().to_vec()).unwrap())
        };
        assert_eq!(found("$PATH/git").as_deref(), Some("$PATH/git: /usr/bin/git"));
        assert_eq!(found("$PATH/hg").as_deref(), Some("$PATH/hg: absent"));
        assert_eq!(found("$PATH/secret"), None, "nobody can tell");
        assert_eq!(found("$HOME/.config/x"), None, "no absolute path");
        assert_eq!(found("$XDG_DATA_HOME/x"), None, "not set");
        assert_eq!((found("PATH/git"), found("$PATH")), (None, None));
        let fact = HostFact { kind: fact_kind::FOUND, of: 0, value: Default::default() };
        let recorded = b"$PATH/git: /bin/git";
        assert_eq!(path(&fact, recorded), Some(&b"$PATH/git"[..]));
        assert_ne!(Value::now(&Machine, &fact, recorded).unwrap().bytes(), recorded);
    }
}
