//! The session of a boot: the next start finds the entries of the previous one.

use std::fs;
use std::path::{Path, PathBuf};

use super::support::{bytes, context, Program};
use crate::session::{flush, Absence, Directories, Event, LookUp, NoRealPath, Parts, Session, Settings, Share};
use crate::{Application, FileKind, Kind, NewInput, Policy, DEFAULT_BOUND};

/// A directory that has not changed recently: this crate's.
const SETTLED: &str = env!("CARGO_MANIFEST_DIR");

fn settings() -> Settings {
    let place = Some(PathBuf::from("tmp/cache/snapboot.archive"));
    Settings { place, policy: Policy::Check, is_read_only: false, bound: DEFAULT_BOUND }
}

fn open(program: &Program, settings: Settings) -> Result<Session, Absence> {
    Session::open(settings, Application::in_directory(program.root()), program.root())
}

/// The result of a look-up of a memo, with its payload.
fn find(session: &mut Session, name: &[u8]) -> (Event, Option<Vec<u8>>) {
    let scope = session.scope(Kind::Memo, &context().description);
    let (event, entry) = session.find(scope, name, None);
    (event, entry.and_then(|entry| session.decode(&entry).map(<[u8]>::to_vec)))
}

/// Adds a memo that holds as long as nothing exists at a path.
fn add(session: &mut Session, name: &[u8], absent: &Path, payload: &[u8]) {
    let scope = session.scope(Kind::Memo, &context().description);
    session.add(scope, name.to_vec(), vec![NewInput::Absent(bytes(absent).to_vec())], payload.to_vec(), true);
}

#[test]
fn what_one_start_adds_the_next_one_finds() {
    let program = Program::new();
    let absent = program.path("absent");
    let mut first = open(&program, settings()).unwrap();
    assert!(first.is_written());
    assert_eq!(find(&mut first, b"name"), (Event::Miss, None));
    add(&mut first, b"name", &absent, b"payload");
    flush().unwrap();
    // It keeps the state of its beginning.
    assert_eq!(find(&mut first, b"name"), (Event::Miss, None));
    assert_eq!((first.counters.hits, first.counters.misses), (0, 2));

    let mut second = open(&program, settings()).unwrap();
    assert_eq!(find(&mut second, b"name"), (Event::Hit, Some(b"payload".to_vec())));
    fs::write(&absent, "").unwrap();
    assert_eq!(find(&mut second, b"name"), (Event::Stale, None));
    assert_eq!((second.counters.hits, second.counters.stale), (1, 1));
}

#[test]
fn two_sessions_write_to_their_own_archives() {
    let programs = [Program::new(), Program::new()];
    for (program, payload) in programs.iter().zip([b"one", b"two"]) {
        let mut session = open(program, settings()).unwrap();
        add(&mut session, b"name", &program.path("absent"), payload);
    }
    flush().unwrap();
    for (program, payload) in programs.iter().zip([b"one", b"two"]) {
        let mut session = open(program, settings()).unwrap();
        assert_eq!(find(&mut session, b"name"), (Event::Hit, Some(payload.to_vec())));
    }
}

#[test]
fn nothing_is_written_read_only() {
    let program = Program::new();
    let read_only = Settings { is_read_only: true, ..settings() };
    assert!(open(&program, read_only.clone()).err().unwrap().to_string().contains("SNAPBOOT_ARCHIVE_READONLY"));
    add(&mut open(&program, settings()).unwrap(), b"old", &program.path("absent"), b"payload");
    flush().unwrap();
    let mut session = open(&program, read_only).unwrap();
    assert!(!session.is_written());
    assert_eq!(find(&mut session, b"old").0, Event::Hit);
    add(&mut session, b"new", &program.path("absent"), b"payload");
    flush().unwrap();
    assert_eq!(find(&mut open(&program, settings()).unwrap(), b"new").0, Event::Miss);
}

#[test]
fn there_is_no_session_where_archives_are_off() {
    let off = Settings { place: Some("off".into()), ..settings() };
    assert_eq!(open(&Program::new(), off).err().unwrap().to_string(), "SNAPBOOT_ARCHIVE is off");
}

#[test]
fn a_part_that_is_off_is_neither_read_nor_written() {
    let program = Program::new();
    let mut session = open(&program, settings()).unwrap();
    session.parts = Parts { code: false, lookups: true };
    let scope = session.scope(Kind::Code, "code");
    session.add(scope, b"name".to_vec(), Vec::new(), b"payload".to_vec(), false);
    flush().unwrap();
    assert!(!program.archive_path().exists());
    assert_eq!(session.find(scope, b"name", None).0, Event::Miss);
    assert_eq!(session.counters.misses, 0);
}

#[test]
fn a_directory_that_was_listed_is_not_listed_again() {
    let program = Program::new();
    for expected in [Event::Miss, Event::Hit] {
        let mut session = open(&program, settings()).unwrap();
        let mut directories = Directories::new(&mut session, Share::Unheard);
        let top = directories.id(SETTLED.as_bytes());
        assert_eq!(directories.find(top, &[b"Cargo", b".toml"], &mut session), LookUp::Found(FileKind::File));
        assert_eq!(directories.find(top, &[b"src"], &mut session), LookUp::Found(FileKind::Directory));
        assert_eq!(directories.find(top, &[b"absent"], &mut session), LookUp::NotFound);
        let counted = (session.counters.hits, session.counters.misses);
        assert_eq!(counted, if expected == Event::Hit { (1, 0) } else { (0, 1) });
        flush().unwrap();
    }
}

#[test]
fn a_search_takes_the_first_root_that_has_the_file() {
    let program = Program::new();
    program.write("one/deep/other.rb", "");
    program.write("two/deep/name.rb", "");
    program.write("three/deep/name.rb", "");
    // A directory, though it has the name.
    fs::create_dir(program.path("one/deep/name.rb")).unwrap();
    let mut session = open(&program, settings()).unwrap();
    let mut directories = Directories::new(&mut session, Share::Unheard);
    let roots = ["absent", "one", "two", "three"].map(|root| directories.id(bytes(&program.path(root))));
    let mut search = |name: &[u8], session: &mut Session| {
        let found = directories.search(&roots, &[b"deep"], &[name, b".rb"], session);
        match found {
            LookUp::Found(id) => LookUp::Found(directories.path_in(id, b"")),
            LookUp::NotFound => LookUp::NotFound,
            LookUp::Unknown => LookUp::Unknown,
        }
    };
    assert_eq!(search(b"name", &mut session), LookUp::Found(bytes(&program.path("two/deep/")).to_vec()));
    assert_eq!(search(b"other", &mut session), LookUp::Found(bytes(&program.path("one/deep/")).to_vec()));
    assert_eq!(search(b"neither", &mut session), LookUp::NotFound);
    // A file made a moment ago is found: the times of a directory that has just changed prove nothing.
    program.write("three/deep/neither.rb", "");
    assert_eq!(search(b"neither", &mut session), LookUp::Found(bytes(&program.path("three/deep/")).to_vec()));
}

#[test]
fn the_real_path_of_a_file_is_told_where_it_differs() {
    let program = Program::new();
    program.write("real/file.rb", "");
    std::os::unix::fs::symlink("real", program.path("link")).unwrap();
    let root = program.root().canonicalize().unwrap();
    let mut session = open(&program, settings()).unwrap();
    let mut directories = Directories::new(&mut session, Share::Unheard);
    let (real, link) = (directories.id(bytes(&root.join("real"))), directories.id(bytes(&root.join("link"))));
    assert_eq!(directories.real_path_in(real, b"file.rb", &mut session), Ok(None));
    let expected = bytes(&root.join("real/file.rb")).to_vec();
    assert_eq!(directories.real_path_in(link, b"file.rb", &mut session), Ok(Some(expected)));
    assert_eq!(directories.real_path_in(link, b"absent.rb", &mut session), Err(NoRealPath));
}
