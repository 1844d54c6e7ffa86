//! How facts are recorded and compared.

extern crate std;

use std::string::String;
use std::vec::Vec;

use image::{Error, Section, Tables};
use image_writer::TablesWriter;

use super::*;

/// A machine with the answers that a test needs.
struct Machine {
    cpus: Vec<u8>,
    groups: u32,
    directory: Option<&'static str>,
}

const MACHINE: Machine = Machine { cpus: Vec::new(), groups: 2, directory: Some("/srv") };

impl Kernel for Machine {
    fn with_variable(&self, _: &[u8], _: &mut dyn FnMut(&[u8])) {}
    fn uname(&self, write: &mut dyn FnMut([&[u8]; 4])) {
        write([b"web1", b"6.18", b"#1 SMP", b"x86_64"]);
    }
    fn read(&self, path: &[u8], buffer: &mut [u8]) -> Option<usize> {
        let text: &[u8] = match path {
            b"/proc/self/stat\0" => b"7 (a ) b) S 1 7 7 0 -1 4194560 96 0 0 0 0 0 0 0 20 -5 1 0",
            path if path.ends_with(b"online\0") => b"0-1\n",
            _ => return None,
        };
        buffer[..text.len()].copy_from_slice(text);
        Some(text.len())
    }
    fn content(&self, path: &[u8]) -> Content {
        match path {
            b"/proc/sys/vm/overcommit_memory\0" => Content::Digest([0xa5; 16]),
            b"/sys/kernel\0" => Content::Directory,
            b"/proc/kcore\0" => Content::Unreadable,
            _ => Content::Absent,
        }
    }
    fn affinity(&self, mask: &mut [u8]) -> Option<usize> {
        mask[..self.cpus.len()].copy_from_slice(&self.cpus);
        Some(self.cpus.len())
    }
    fn limit(&self, number: u32) -> Option<(u64, u64)> {
        (number < 16).then_some((1024, u64::MAX))
    }
    fn user(&self) -> [u32; 4] {
        [0, 1, 2, 3]
    }
    fn groups(&self, write: &mut dyn FnMut(u32)) -> Option<()> {
        (0..self.groups).for_each(write);
        Some(())
    }
    fn window(&self, descriptor: u32) -> Option<(u16, u16)> {
        (descriptor == 1).then_some((80, 24))
    }
    fn cwd(&self, buffer: &mut [u8]) -> Option<usize> {
        let directory = self.directory?;
        buffer[..directory.len()].copy_from_slice(directory.as_bytes());
        Some(directory.len())
    }
    fn umask(&self) -> Option<u32> {
        Some(0o22)
    }
}

fn said(machine: &Machine, word: &str, of: u32) -> Option<String> {
    let value = Value::read(machine, kind_from_word(word.as_bytes()).unwrap(), of)?;
    Some(String::from_utf8(value.bytes().to_vec()).unwrap())
}

#[test]
fn facts_are_written_as_the_document_says() {
    let facts = [
        ("hostname", 0, "web1"),
        ("kernel", 0, "6.18 #1 SMP x86_64"),
        ("cpus", 0, " online 0-1"),
        ("limit", 7, "1024/unlimited"),
        ("user", 0, "0 1 2 3"),
        ("groups", 0, "0 1"),
        ("window", 1, "80x24"),
        ("window", 0, "no terminal"),
        ("cwd", 0, "/srv"),
        ("umask", 0, "0022"),
        ("nice", 0, "-5"),
    ];
    for (word, of, text) in facts {
        assert_eq!(said(&MACHINE, word, of).as_deref(), Some(text), "{word}");
    }
    assert_eq!(said(&Machine { directory: None, ..MACHINE }, "cwd", 0).as_deref(), Some("gone"));
}

#[test]
fn files_of_the_kernel_are_written_as_the_document_says() {
    let said = |path: &str| {
        let value = Value::read_kernel_file(&MACHINE, path.as_bytes())?;
        Some(String::from_utf8(value.bytes().to_vec()).unwrap())
    };
    let digest = "a5".repeat(16);
    assert_eq!(said("/proc/sys/vm/overcommit_memory").unwrap(), ["/proc/sys/vm/overcommit_memory: ", &digest].concat());
    assert_eq!(said("/sys/kernel").unwrap(), "/sys/kernel: directory");
    assert_eq!(said("/proc/kcore").unwrap(), "/proc/kcore: unreadable");
    assert_eq!(said("/sys/a: b").unwrap(), "/sys/a: b: absent");
    assert_eq!(said(&"x".repeat(MAX)), None);
    let fact = HostFact { kind: fact_kind::KERNEL_FILE, ..HostFact::default() };
    let again = Value::read_again(&MACHINE, &fact, b"/sys/a: b: directory").unwrap();
    assert_eq!(again.bytes(), b"/sys/a: b: absent");
    assert!(Value::read_again(&MACHINE, &fact, b"damaged").is_none());
}

#[test]
fn cpus_are_written_as_ranges() {
    let said = |cpus: &[u8]| said(&Machine { cpus: cpus.to_vec(), ..MACHINE }, "affinity", 0).unwrap();
    assert_eq!(said(&[0b1111]), "0-3");
    assert_eq!(said(&[0b1000_0001, 0b1]), "0,7-8");
    assert_eq!(said(&[0, 0b1000_0000]), "15");
    assert_eq!(said(&[]), "");
}

#[test]
fn what_cannot_be_told_is_no_value() {
    assert_eq!(said(&MACHINE, "memory", 0), None);
    assert_eq!(said(&MACHINE, "limit", 16), None);
    assert_eq!(said(&Machine { groups: 70_000, ..MACHINE }, "groups", 0), None, "too long");
    assert!(Value::read(&MACHINE, 99, 0).is_none());
}

#[test]
fn the_first_fact_that_differs_is_told() {
    let with = |facts: &[(&str, u32, &str)]| {
        let mut writer = TablesWriter::new();
        for (word, of, value) in facts {
            let value = writer.text(value.as_bytes());
            let kind = kind_from_word(word.as_bytes()).unwrap();
            writer.push(Section::Facts, &HostFact { kind, of: *of, value });
        }
        let bytes = writer.finish();
        let mut first = None;
        let found = pass_differences(&Tables::parse_unchecked_sum(&bytes).unwrap(), &MACHINE, |it| {
            first = first.or(Some(name(it.fact.kind, it.fact.of)));
            Ok::<_, Error>(())
        });
        found.map(|()| first).unwrap()
    };
    assert_eq!(with(&[]), None);
    assert_eq!(with(&[("hostname", 0, "web1"), ("limit", 7, "1024/unlimited")]), None);
    assert_eq!(with(&[("hostname", 0, "web1"), ("limit", 7, "1025/unlimited")]), Some("limit of open files"));
    assert_eq!(with(&[("hostname", 0, "web"), ("user", 0, "")]), Some("hostname"));
    assert_eq!(with(&[("memory", 0, "")]), Some("size of the memory (bytes)"), "it can no longer be told");
}
