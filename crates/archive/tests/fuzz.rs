//! Reads many damaged archives with corrected checksums, so that the checks behind these are reached.
//!
//! This is the fuzz target of fuzz/ with a driver that needs no nightly toolchain. Variables control it (`make fuzz` sets them):
//! `FUZZ_SEED`, another seed; `FUZZ_CASES`, how many cases; `FUZZ_CASE`, only this one; `FUZZ_CORPUS`, a directory to which seeds are
//! written, for cargo-fuzz to start from.

#[path = "../../../fuzz/read_archive.rs"]
mod read_archive;

use std::path::Path;
use std::{env, fs, panic};

use archive::{append, Batch, Context, Identity, Kind, NewEntry, NewInput, DEFAULT_BOUND};
use fastrand::Rng;

/// The number of cases without FUZZ_CASES.
const CASES: u64 = 3000;

fn number(name: &str) -> Option<u64> {
    let text = env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("expected a number in {name}, found {text:?}")))
}

/// An archive with every kind of record, in two segments.
fn sample(directory: &Path) -> Vec<u8> {
    let (path, mut random) = (directory.join("sample"), Rng::with_seed(5));
    let file = directory.join("file");
    fs::write(&file, "content").unwrap();
    let name = file.as_os_str().as_encoded_bytes().to_vec();
    let identity = Identity { is_settled: true, ..Identity::stat(&*name).unwrap() };
    for round in 0..2 {
        let mut batch = Batch::default();
        for (at, kind) in [Kind::Code, Kind::Data, Kind::Directory, Kind::Memo, Kind::Code].into_iter().enumerate() {
            let payload = match kind {
                Kind::Directory => archive::list_directory(directory).unwrap(),
                _ => (0..random.u32(..60)).flat_map(|number| (number * 20).to_le_bytes()).collect(),
            };
            let inputs = vec![
                NewInput::File(name.clone(), identity),
                NewInput::Absent(b"/nothing/there".to_vec()),
                NewInput::Variable(b"HOME".to_vec(), Some(b"/root".to_vec())),
            ];
            let name = if at == 0 { name.clone() } else { format!("{round} {at}").into_bytes() };
            let (context, compress) = (Context::new("fuzz"), kind != Kind::Directory);
            batch.add(NewEntry { kind, context, name, inputs, payload, compress });
        }
        append(&path, directory, batch, DEFAULT_BOUND).unwrap();
    }
    fs::read(path).unwrap()
}

fn spoiled(sample: &[u8], random: &mut Rng) -> Vec<u8> {
    let mut bytes = sample.to_vec();
    for _ in 0..random.usize(1..6) {
        // Mostly after the first page, half of which is zero.
        let at = if random.u8(..20) == 0 { random.usize(..16) } else { random.usize(4096..bytes.len()) };
        match random.u8(..6) {
            0 => bytes[at] = random.u8(..),
            1 => bytes[at] ^= 1 << random.u8(..8),
            2 => bytes[at & !3..][..4].copy_from_slice(&random.u32(..64).to_le_bytes()),
            3 => bytes[at & !3..][..4].copy_from_slice(&(u32::MAX - random.u32(..64)).to_le_bytes()),
            4 => bytes[at] = bytes[at].wrapping_add(1),
            _ => bytes[at] = 0,
        }
    }
    if random.u8(..30) == 0 {
        bytes.truncate(random.usize(..bytes.len()));
    }
    bytes
}

#[test]
fn damaged_archives_do_no_harm() {
    let directory = tempfile::tempdir_in(if Path::new("/dev/shm").is_dir() { "/dev/shm" } else { "/tmp" }).unwrap();
    let sample = sample(directory.path());
    if let Some(corpus) = env::var_os("FUZZ_CORPUS") {
        fs::create_dir_all(&corpus).unwrap();
        fs::write(Path::new(&corpus).join("seed-0"), &sample).unwrap();
    }
    assert_eq!(read_archive::read(&sample, directory.path()), 2 * 11);
    let seed = number("FUZZ_SEED").unwrap_or(1);
    let cases = number("FUZZ_CASE").map_or(0..number("FUZZ_CASES").unwrap_or(CASES), |only| only..only + 1);
    let (count, mut found) = (cases.end - cases.start, 0);
    for case in cases {
        let bytes = spoiled(&sample, &mut Rng::with_seed(seed ^ case.rotate_left(32)));
        let read = panic::catch_unwind(|| read_archive::read(&bytes, directory.path()));
        found += read.unwrap_or_else(|cause| {
            eprintln!("again: FUZZ_SEED={seed} FUZZ_CASE={case} cargo test -p snapboot-archive --test fuzz");
            panic::resume_unwind(cause)
        });
    }
    println!("{count} cases of seed {seed}: {found} payloads let through");
    // If a first check found all damage, the others would be untested.
    assert!(found as u64 > count * 8 || count < 100, "{found} of {count} cases");
}
