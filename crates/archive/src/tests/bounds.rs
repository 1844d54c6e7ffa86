//! Archives stay small, and drop useless entries in the right order.

use std::ffi::OsStr;
use std::fs;

use super::support::*;
use crate::*;

fn names(archive: &Archive) -> Vec<String> {
    let live = archive.live();
    let code = live.iter().filter(|entry| entry.kind() == Kind::Code);
    code.map(|entry| String::from_utf8(entry.key().name.to_vec()).unwrap()).collect()
}

/// Noise, which does not compress.
fn noise(size: usize) -> Vec<u8> {
    std::iter::repeat_with(|| fastrand::u8(..)).take(size).collect()
}

fn store(program: &Program, name: &str, size: usize, bound: u64) -> Appended {
    let path = program.write(name, name);
    let mut batch = Batch::default();
    batch.add(NewEntry { compress: name.ends_with("z.rb"), ..code(&path, &noise(size)) });
    append(&program.archive_path(), program.root(), batch, bound).unwrap()
}

#[test]
fn a_bound_is_a_number_of_megabytes() {
    let of = |value: &str| bound(Some(OsStr::new(value)));
    assert_eq!((bound(None), of(""), of("3")), (Ok(DEFAULT_BOUND), Ok(DEFAULT_BOUND), Ok(3 << 20)));
    for value in ["0", "-1", "1.5", "many", "99999999999999"] {
        assert!(of(value).unwrap_err().to_string().contains(value));
    }
}

#[test]
fn there_are_never_more_segments_than_that() {
    let program = Program::new();
    for number in 0..30 {
        let done = store(&program, &format!("c{number}.rb"), 2000, DEFAULT_BOUND);
        assert_eq!(done.entries, if number == 0 { 3 } else { 1 });
        assert!(program.open().segments() <= MAX_SEGMENTS);
    }
    assert_eq!(names(&program.open()), (0..30).map(|number| format!("./c{number}.rb")).collect::<Vec<_>>());
}

#[test]
fn superseded_entries_go_when_they_are_a_third() {
    let program = Program::new();
    let sizes: Vec<u64> = (0..20).map(|_| store(&program, "a.rb", 50_000, DEFAULT_BOUND).size).collect();
    assert!(sizes.iter().all(|size| *size < 2 * 50_000 + 10_000), "{sizes:?}");
    assert_eq!(names(&program.open()), ["./a.rb"]);
}

#[test]
fn beyond_the_bound_the_oldest_go_and_the_newest_stay() {
    for suffix in [".rb", "z.rb"] {
        let (program, bound) = (Program::new(), 200_000);
        for number in 0..20 {
            let name = format!("c{number}{suffix}");
            let done = store(&program, &name, 30_000, bound);
            assert!(done.size <= bound, "{}", done.size);
            let archive = program.open();
            let names = names(&archive);
            assert_eq!(*names.last().unwrap(), format!("./{name}"));
            assert!(names.len() >= 4 || number < 4, "{names:?}");
            // The entries that are left have no gaps.
            let first = number + 1 - names.len();
            assert_eq!(names[0], format!("./c{first}{suffix}"));
            assert!(archive
                .live()
                .iter()
                .any(|entry| entry.kind() == Kind::Context && entry.plain() == Some(b"test 1.0")));
        }
    }
}

#[test]
fn beyond_the_bound_what_is_gone_goes_first() {
    let (program, bound) = (Program::new(), 150_000);
    for number in 0..4 {
        store(&program, &format!("c{number}.rb"), 30_000, bound);
    }
    fs::remove_file(program.path("c2.rb")).unwrap();
    store(&program, "c4.rb", 30_000, bound);
    let names = names(&program.open());
    assert!(!names.contains(&"./c2.rb".to_owned()) && names.contains(&"./c1.rb".to_owned()), "{names:?}");
}

#[test]
fn what_is_larger_than_the_bound_is_not_stored() {
    let program = Program::new();
    assert!(store(&program, "a.rb", 100_000, 50_000).size <= 50_000);
    assert!(names(&program.open()).is_empty());
}

#[test]
fn pruning_leaves_what_is_live() {
    let (program, elsewhere) = (Program::new(), Program::new());
    store(&program, "old.rb", 30_000, DEFAULT_BOUND);
    store(&program, "gone.rb", 3000, DEFAULT_BOUND);
    store(&program, "a.rb", 300, DEFAULT_BOUND);
    store(&program, "a.rb", 300, DEFAULT_BOUND);
    store(&program, "z.rb", 300, DEFAULT_BOUND);
    fs::remove_file(program.path("gone.rb")).unwrap();
    // If the application's path is unknown, no source is taken to be gone.
    let done = prune(&program.archive_path(), None, DEFAULT_BOUND).unwrap();
    assert_eq!((done.before, done.after), (7, 6));
    assert_eq!(names(&program.open()).len(), 4);
    let done = prune(&program.archive_path(), Some(program.root()), DEFAULT_BOUND).unwrap();
    assert_eq!((done.before, done.after), (6, 5));
    assert_eq!(names(&program.open()), ["./old.rb", "./a.rb", "./z.rb"]);
    assert!(done.size_after < done.size_before && program.open().segments() == 1);
    prune(&program.archive_path(), Some(program.root()), 20_000).unwrap();
    assert_eq!(names(&program.open()), ["./a.rb", "./z.rb"]);
    prune(&program.archive_path(), Some(elsewhere.root()), DEFAULT_BOUND).unwrap();
    assert!(names(&program.open()).is_empty());
    let error = prune(&elsewhere.path("none"), None, DEFAULT_BOUND).unwrap_err();
    assert!(error.is_absence(), "{error}");
}
