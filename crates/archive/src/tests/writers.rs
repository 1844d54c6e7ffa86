//! Many processes on one archive: writers, readers, writers that are killed, and disks that are full.
//!
//! The processes are this test program itself; a variable tells it what to do.

use std::env;
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use super::support::*;
use crate::*;

const ROLE: &str = "SNAPBOOT_TEST_ROLE";
const PLACE: &str = "SNAPBOOT_TEST_PLACE";

/// The payload for a file, made from its name, so that any process can check it.
fn payload(name: &str) -> Vec<u8> {
    let length = name.bytes().map(usize::from).sum::<usize>() * 7;
    name.bytes().cycle().take(length).collect()
}

fn new_entry(root: &Path, name: &str) -> NewEntry {
    let path = root.join(name);
    fs::write(&path, name).unwrap();
    NewEntry { compress: name.len().is_multiple_of(2), ..code(&path, &payload(name)) }
}

/// On the small disk, if there is one.
fn archive_in(root: &Path) -> PathBuf {
    let disk = root.join("disk");
    if disk.is_dir() { disk } else { root.to_owned() }.join("snapboot.archive")
}

/// Stores files, and retries as long as others are writing.
fn store(root: &Path, names: &[String]) -> Result<(), Error> {
    loop {
        let mut batch = Batch::default();
        names.iter().for_each(|name| batch.add(new_entry(root, name)));
        match append(&archive_in(root), root, batch, DEFAULT_BOUND) {
            Err(Error::Busy(_)) => {}
            done => return done.map(|_| ()),
        }
    }
}

/// The names that are found, each with the right payload. Panics if a payload is wrong.
fn found(root: &Path) -> Vec<String> {
    let Ok(archive) = Archive::open(&archive_in(root), root) else { return Vec::new() };
    let mut decoder = archive.decoder();
    let live = archive.live();
    let code = live.iter().filter(|entry| entry.kind() == Kind::Code);
    let names = code.map(|entry| {
        let name = std::str::from_utf8(&entry.key().name[2..]).unwrap().to_owned();
        assert_eq!(decoder.decode(entry).unwrap(), payload(&name), "{name}");
        name
    });
    names.collect()
}

fn start(role: &str, root: &Path) -> Child {
    let mut command = Command::new(env::current_exe().unwrap());
    command
        .args(["--exact", "tests::writers::a_process_of_these_tests", "--nocapture"])
        .env(ROLE, role)
        .env(PLACE, root);
    command.stdout(Stdio::null()).spawn().unwrap()
}

/// The part that the other processes run. By itself it does nothing.
#[test]
fn a_process_of_these_tests() {
    let (Ok(role), Some(root)) = (env::var(ROLE), env::var_os(PLACE)) else { return };
    let root = Path::new(&root);
    match role.split_once(' ') {
        Some(("write", number)) => {
            for round in 0..6 {
                let names: Vec<String> = (0..3).map(|at| format!("w{number}-{round}-{at}")).collect();
                store(root, &names).unwrap();
                assert!(names.iter().all(|name| found(root).contains(name)), "{names:?}");
            }
        }
        Some(("read", _)) => (0..60).for_each(|_| drop(found(root))),
        Some(("open", _)) => (0..20_000).for_each(|_| drop(Archive::open(&archive_in(root), root).unwrap())),
        Some(("write-on", number)) => {
            for round in 0.. {
                store(root, &[format!("k{number}-{round}")]).unwrap();
            }
        }
        Some(("fill", _)) => fill(root),
        Some(("full", _)) => full(root),
        Some(("limit", _)) => limit(root),
        _ => panic!("no role {role}"),
    }
}

#[test]
fn nothing_is_lost_when_many_write_and_read_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    let roles = (0..6).map(|number| format!("write {number}")).chain((0..2).map(|number| format!("read {number}")));
    let children: Vec<Child> = roles.map(|role| start(&role, root)).collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    assert_eq!(found(root).len(), 6 * 6 * 3);
    assert!(Archive::open(&archive_in(root), root).unwrap().is_whole());
    assert!(!root.join("snapboot.archive.new").exists());
}

#[test]
fn a_killed_writer_takes_nothing_with_it() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    let mut kept: Vec<String> = Vec::new();
    for number in 0..25 {
        let mut writer = start(&format!("write-on {number}"), root);
        while !found(root).iter().any(|name| name.starts_with(&format!("k{number}-"))) {
            sleep(Duration::from_millis(1));
        }
        sleep(Duration::from_millis(fastrand::u64(0..20)));
        writer.kill().unwrap();
        writer.wait().unwrap();
        let there = found(root);
        assert!(kept.iter().all(|name| there.contains(name)), "after writer {number}");
        kept = there;
        let own = format!("own-{number}");
        store(root, std::slice::from_ref(&own)).unwrap();
        kept.push(own);
        let there = found(root);
        assert!(kept.iter().all(|name| there.contains(name)), "after writer {number} and one more");
        assert!(Archive::open(&archive_in(root), root).unwrap().is_whole());
    }
}

/// Stores until the disk is full.
fn fill(root: &Path) {
    let mut kept = 0;
    let error = loop {
        match store(root, &[format!("f{kept}-{}", "long".repeat(6))]) {
            Ok(()) => kept += 1,
            Err(error) => break error,
        }
    };
    assert!(error.to_string().contains("The disk (or the quota) is full"), "{error}");
    assert!(kept > 3 && found(root).len() == kept, "{kept} stored");
    assert!(Archive::open(&archive_in(root), root).unwrap().is_whole());
    // It works as well read-only.
    let remount = Command::new("mount").args(["-o", "remount,ro"]).arg(root.join("disk")).status();
    assert!(remount.unwrap().success());
    assert_eq!(found(root).len(), kept);
    let error = append(&archive_in(root), root, Batch::default(), DEFAULT_BOUND).unwrap_err();
    assert!(error.to_string().contains("read-only"), "{error}");
}

/// Stores on a disk that is full from the start, and on one where another process runs out of space while others read.
fn full(root: &Path) {
    let disk = root.join("disk");
    let filled = disk.join("fill");
    let fill_up = || {
        let file = fs::File::create(&filled).unwrap();
        while file.write_at(&[1; 4096], file.metadata().unwrap().len()).is_ok() {}
    };
    fill_up();
    let batch = |name: &str, payload: &[u8]| {
        let path = root.join(name);
        fs::write(&path, name).unwrap();
        let mut batch = Batch::default();
        batch.add(code(&path, payload));
        batch
    };
    for place in ["other.archive", "folder/other.archive"] {
        assert!(append(&disk.join(place), root, batch("first", b"code"), DEFAULT_BOUND).is_err());
        assert!(!disk.join(place).exists(), "{place}");
    }
    fs::remove_file(&filled).unwrap();
    store(root, &["kept".to_owned()]).unwrap();
    fill_up();
    let mut readers: Vec<Child> = (0..2).map(|number| start(&format!("open {number}"), root)).collect();
    let size = fs::metadata(archive_in(root)).unwrap().len();
    while readers.iter_mut().any(|reader| reader.try_wait().unwrap().is_none()) {
        let error = append(&archive_in(root), root, batch("large", &[1; 100_000]), DEFAULT_BOUND).unwrap_err();
        assert!(error.to_string().contains("The disk (or the quota) is full"), "{error}");
        assert!(fs::metadata(archive_in(root)).unwrap().len() == size, "something was left behind the end");
    }
    assert!(readers.iter_mut().all(|reader| reader.wait().unwrap().success()));
    assert_eq!(found(root), ["kept"]);
    assert!(Archive::open(&archive_in(root), root).unwrap().is_whole());
}

#[test]
fn a_full_disk_leaves_what_was_there_before() {
    on_a_small_disk("fill 1");
}

#[test]
fn a_full_disk_gets_no_empty_archive_and_ends_no_reader() {
    on_a_small_disk("full 1");
}

fn on_a_small_disk(role: &str) {
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir(directory.path().join("disk")).unwrap();
    // Only a user who may mount can make a small disk.
    let script = "mount -t tmpfs -o size=200k none \"$SNAPBOOT_TEST_PLACE/disk\" && exec \"$0\" --exact \
                  tests::writers::a_process_of_these_tests --nocapture";
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", script]).arg(env::current_exe().unwrap()).env(ROLE, role);
    let output = command.env(PLACE, directory.path()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    if said.contains("unshare") || said.contains("mount:") {
        eprintln!("not tried: cannot mount here: {said}");
        return;
    }
    assert!(output.status.success(), "{said}");
}

/// Stores under a limit on file sizes.
fn limit(root: &Path) {
    use rustix::process::{setrlimit, Resource, Rlimit};
    store(root, &["before".to_owned()]).unwrap();
    let size = Archive::open(&archive_in(root), root).unwrap().size();
    setrlimit(Resource::Fsize, Rlimit { current: Some(size + 100), maximum: Some(size + 100) }).unwrap();
    let error = store(root, &["behind".to_owned()]).unwrap_err();
    assert!(matches!(error, Error::Limit { .. }), "{error}");
    setrlimit(Resource::Fsize, Rlimit { current: Some(100), maximum: Some(100) }).unwrap();
    let mut batch = Batch::default();
    batch.add(code(&root.join("before"), b"code"));
    let error = append(&root.join("other.archive"), root, batch, DEFAULT_BOUND).unwrap_err();
    assert!(matches!(error, Error::Limit { .. }) && !root.join("other.archive").exists(), "{error}");
    assert_eq!(found(root), ["before"]);
}

/// Bytes behind the last segment may be cut off while a process opens the archive, for example by a writer of an older release.
#[test]
fn an_end_that_comes_and_goes_ends_no_reader() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    let path = root.join("a.rb");
    fs::write(&path, "a").unwrap();
    let store_so_many = |bytes: u64| {
        let mut batch = Batch::default();
        batch.add(code(&path, &vec![1; bytes as usize]));
        let _ = fs::remove_file(archive_in(root));
        append(&archive_in(root), root, batch, DEFAULT_BOUND).unwrap().size
    };
    // The end of a page, so that cutting off the rest leaves none of it.
    let size = store_so_many(4096 - (store_so_many(4096) % 4096) + 4096);
    assert_eq!(size % 4096, 0);
    let file = fs::File::options().write(true).open(archive_in(root)).unwrap();
    let mut readers: Vec<Child> = (0..2).map(|number| start(&format!("open {number}"), root)).collect();
    while readers.iter_mut().any(|reader| reader.try_wait().unwrap().is_none()) {
        for _ in 0..100 {
            file.set_len(size + 40_000).unwrap();
            file.set_len(size).unwrap();
        }
    }
    assert!(readers.iter_mut().all(|reader| reader.wait().unwrap().success()));
}

#[test]
fn a_limit_of_file_sizes_kills_nobody() {
    let directory = tempfile::tempdir().unwrap();
    assert!(start("limit 1", directory.path()).wait().unwrap().success());
}
