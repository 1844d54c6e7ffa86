use core::cell::RefCell;

use image::Descriptor;
use linux_raw_sys::general::{O_CLOEXEC, O_NONBLOCK, S_IFIFO, S_IFREG, S_IFSOCK};

use super::*;

extern crate std;
use std::string::{String, ToString};
use std::vec::Vec;
use std::{format, vec};

/// A process whose sockets are new and unused, 71 and 72 a pair, and that has nothing to read.
#[derive(Default)]
struct Quiet {
    waiting: u32,
    is_socket_in_use: bool,
    has_options: bool,
}

impl Process for Quiet {
    fn bytes_waiting(&self, _: u32) -> Option<u32> {
        Some(self.waiting)
    }

    fn pipe_capacity(&self, _: u32) -> u64 {
        4096
    }

    fn is_watched(&self, _: u32, _: u32) -> bool {
        true
    }

    fn booted_pid(&self) -> u64 {
        40
    }

    fn socket_peer(&self, inode: u64) -> Option<u64> {
        [(71, 72), (72, 71)].into_iter().find_map(|(one, other)| (one == inode).then_some(other))
    }

    fn as_new_socket(&self, _: u32) -> Option<[u32; 3]> {
        (!self.has_options).then_some([1, 2, 0])
    }

    fn is_unused_socket(&self, _: u32) -> bool {
        !self.is_socket_in_use
    }
}

/// A kernel that records its calls, and answers with the numbers from 3 on.
#[derive(Default)]
struct Noting(RefCell<Vec<String>>);

impl Noting {
    fn answer(&self, call: String) -> Result<u32> {
        let mut calls = self.0.borrow_mut();
        calls.push(call);
        Ok(calls.len() as u32 + 2)
    }
}

impl Kernel for Noting {
    type Fd = u32;

    fn number(&self, descriptor: u32) -> u32 {
        descriptor
    }

    fn renumber(&self, _: u32, number: u32, _: u32) -> Result<()> {
        self.answer(format!("as {number}")).map(drop)
    }

    fn renumber_above(&self, _: u32, number: u32) -> Result<u32> {
        self.answer(format!("above {number}")).map(|_| number + 1)
    }

    fn set_status_flags(&self, number: u32, flags: u32) -> Result<()> {
        self.answer(format!("flags {number} {flags:o}")).map(drop)
    }

    fn open(&self, path: &[u8], flags: u32) -> Result<u32> {
        self.answer(format!("open {} {flags:o}", String::from_utf8_lossy(path).trim_end_matches('\0')))
    }

    fn seek(&self, _: u32, offset: u64) -> Result<()> {
        self.answer(format!("seek {offset}")).map(drop)
    }

    fn pipe(&self, _: u32) -> Result<[u32; 2]> {
        self.answer("pipe".to_string()).map(|number| [number, number + 1])
    }

    fn set_pipe_capacity(&self, number: u32, capacity: u64) {
        let _ = self.answer(format!("capacity {number} {capacity}"));
    }

    fn eventfd(&self, count: u32, flags: u32) -> Result<u32> {
        self.answer(format!("eventfd {count} {flags:o}"))
    }

    fn epoll(&self, _: u32) -> Result<u32> {
        self.answer("epoll".to_string())
    }

    fn watch(&self, epoll: u32, watched: u32, events: u32, data: u64) -> Result<()> {
        self.answer(format!("{epoll} watches {watched} {events:x} {data:x}")).map(drop)
    }

    fn timerfd(&self, clock: u32, flags: u32) -> Result<u32> {
        self.answer(format!("timerfd {clock} {flags:o}"))
    }

    fn signalfd(&self, mask: u64, flags: u32) -> Result<u32> {
        self.answer(format!("signalfd {mask:x} {flags:o}"))
    }

    fn own_pidfd(&self, flags: u32) -> Result<u32> {
        self.answer(format!("pidfd {flags:o}"))
    }

    fn inotify(&self, flags: u32) -> Result<u32> {
        self.answer(format!("inotify {flags:o}"))
    }

    fn socket(&self, kinds: [u32; 3], flags: u32) -> Result<u32> {
        self.answer(format!("socket {kinds:?} {flags:o}"))
    }

    fn socket_pair(&self, [_, kind, _]: [u32; 3], _: u32) -> Result<[u32; 2]> {
        self.answer(format!("socketpair {kind}")).map(|number| [number, number + 1])
    }
}

const ANONYMOUS: u32 = 0o600;

fn open<'a>(number: u32, name: &'a str, mode: u32, inode: u64, info: &'a str) -> Open<'a> {
    Open { number, name: name.as_bytes(), mode, links: 1, inode, info: info.as_bytes() }
}

/// The calls that make these descriptors again, or what is said of the first that cannot be made.
fn calls_of(all: &[Open<'_>], process: &Quiet) -> core::result::Result<Vec<String>, String> {
    let mut rows: Vec<(Descriptor, Vec<u8>)> = Vec::new();
    let mut refused = None;
    capture(all, process, &mut |row, path| rows.push((row, [path, b"\0"].concat())), &mut |open, obstacle| {
        refused.get_or_insert(format!("{}: {}", open.number, obstacle.unwrap_or("unknown")));
    });
    if let Some(refused) = refused {
        return Err(refused);
    }
    let kernel = Noting::default();
    for (number, (row, path)) in rows.iter().enumerate() {
        let next = || rows.get(number + 1).map(|(row, _)| *row);
        restore(row, path, next, false, &kernel).map_err(|failed| failed.text.to_string())?;
        assert_ne!(name(row.kind), "unknown");
    }
    Ok(kernel.0.into_inner())
}

#[test]
fn each_kind_is_made_again_as_it_was() {
    let flags = format!("flags:\t0{:o}\n", O_CLOEXEC | O_NONBLOCK | 2);
    let with = |rest: &str| format!("pos:\t0\n{flags}mnt_id:\t9\n{rest}");
    let both = format!("{:o}", O_CLOEXEC | O_NONBLOCK);
    let nonblock = format!("{O_NONBLOCK:o}");
    let cases = [
        ("anon_inode:[eventfd]", "eventfd-count:                 a\n", format!("eventfd 10 {both}")),
        (
            "anon_inode:[eventfd]",
            "eventfd-count: 0\neventfd-semaphore: 1\n",
            format!("eventfd 0 {:o}", O_CLOEXEC | O_NONBLOCK | 1),
        ),
        (
            "anon_inode:[timerfd]",
            "clockid: 7\nticks: 0\nit_value: (0, 0)\nit_interval: (0, 0)\n",
            format!("timerfd 7 {both}"),
        ),
        ("anon_inode:[signalfd]", "sigmask:\t0000000000004002\n", format!("signalfd 4002 {both}")),
        ("anon_inode:[pidfd]", "Pid:\t40\nNSpid:\t40\n", format!("pidfd {nonblock}")),
        ("anon_inode:inotify", "", format!("inotify {both}")),
        ("anon_inode:[eventpoll]", "", "epoll".to_string()),
    ];
    for (name, rest, expected) in cases {
        let info = with(rest);
        assert_eq!(
            calls_of(&[open(9, name, ANONYMOUS, 1, &info)], &Quiet::default()),
            Ok(vec![expected, "as 9".to_string()])
        );
    }
}

#[test]
fn files_are_opened_again_without_what_applies_once() {
    let info = "pos:\t12\nflags:\t01101\n";
    let calls = calls_of(&[open(9, "/tmp/log", S_IFREG, 1, info)], &Quiet::default());
    assert_eq!(calls, Ok(["open /tmp/log 1", "seek 12", "as 9"].map(String::from).to_vec()));
    let deleted = open(9, "/tmp/log (deleted)", S_IFREG, 1, info);
    assert_eq!(calls_of(&[deleted], &Quiet::default()), Err("9: unknown".to_string()));
}

#[test]
fn pairs_are_made_once_and_only_where_both_ends_are_here() {
    let ends =
        |last| [open(9, "pipe:[5]", S_IFIFO, 5, "flags:\t00\n"), open(last, "pipe:[5]", S_IFIFO, 5, "flags:\t01\n")];
    let expected = ["pipe", "as 9", "as 11", "flags 9 0", "flags 11 0", "capacity 9 4096"].map(String::from).to_vec();
    assert_eq!(calls_of(&ends(11), &Quiet::default()), Ok(expected));
    assert!(calls_of(&ends(11)[..1], &Quiet::default()).is_err_and(|text| text.contains("another process")));
    let waiting = Quiet { waiting: 3, ..Quiet::default() };
    assert!(calls_of(&ends(11), &waiting).is_err_and(|text| text.contains("unread bytes")));

    let sockets = [71, 72].map(|inode| open(inode as u32 - 60, "socket:[1]", S_IFSOCK, inode, "flags:\t02\n"));
    let expected = ["socketpair 2", "as 11", "as 12", "flags 11 0", "flags 12 0"].map(String::from).to_vec();
    assert_eq!(calls_of(&sockets, &Quiet::default()), Ok(expected));
    assert!(calls_of(&sockets[1..], &Quiet::default()).is_err_and(|text| text.contains("another process")));
    assert!(calls_of(&sockets, &waiting).is_err_and(|text| text.contains("unread bytes")));
    let with_options = Quiet { has_options: true, ..Quiet::default() };
    assert!(calls_of(&sockets, &with_options).is_err_and(|text| text.contains("options")));
}

#[test]
fn sockets_are_made_again_while_nothing_was_done_with_them() {
    let socket = || [open(9, "socket:[1]", S_IFSOCK, 1, "flags:\t02\n")];
    let expected = ["socket [1, 2, 0] 0", "as 9"].map(String::from).to_vec();
    assert_eq!(calls_of(&socket(), &Quiet::default()), Ok(expected));
    let in_use = Quiet { is_socket_in_use: true, ..Quiet::default() };
    assert_eq!(calls_of(&socket(), &in_use), Err("9: unknown".to_string()));
}

#[test]
fn what_runs_or_watches_is_refused() {
    let cases = [
        ("anon_inode:[timerfd]", "clockid: 1\nticks: 0\nit_value: (1, 0)\nit_interval: (0, 0)\n", "runs"),
        ("anon_inode:[timerfd]", "clockid: 1\nticks: 2\nit_value: (0, 0)\nit_interval: (0, 0)\n", "expired"),
        ("anon_inode:[pidfd]", "Pid:\t41\n", "another process"),
        ("anon_inode:inotify", "inotify wd:1 ino:2c sdev:2e mask:100\n", "watches files"),
        (
            "anon_inode:[eventpoll]",
            "tfd:        1 events:       19 data:                1  pos:0 ino:1 sdev:1\n",
            "standard streams",
        ),
        ("anon_inode:[io_uring]", "", "unknown"),
    ];
    for (name, info, expected) in cases {
        let calls = calls_of(&[open(9, name, ANONYMOUS, 1, info)], &Quiet::default());
        assert!(calls.as_ref().is_err_and(|text| text.contains(expected)), "{name}: {calls:?}");
    }
}

#[test]
fn an_epoll_instance_watches_again_what_is_there() {
    let watch = "flags:\t02\ntfd:       10 events:       19 data:         1000000a  pos:0 ino:1 sdev:1\n";
    let all = [
        open(9, "anon_inode:[eventpoll]", ANONYMOUS, 2, watch),
        open(10, "anon_inode:[eventfd]", ANONYMOUS, 1, "flags:\t02\neventfd-count: 0\n"),
    ];
    let expected = ["epoll", "as 9", "eventfd 0 0", "as 10", "9 watches 10 19 1000000a"].map(String::from).to_vec();
    assert_eq!(calls_of(&all, &Quiet::default()), Ok(expected));
}
