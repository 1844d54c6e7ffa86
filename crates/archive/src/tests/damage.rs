//! Whatever happens to the bytes of an archive, a look-up finds what was stored last, or nothing. It never panics.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use fastrand::Rng;

use super::support::*;
use crate::*;

/// Damaged archives that are read.
const CASES: usize = 10_000;

/// A program with an archive of three segments, and its expected entries.
struct Sample {
    program: Program,
    bytes: Vec<u8>,
    newest: BTreeMap<PathBuf, Vec<u8>>,
    directory: Vec<u8>,
}

impl Sample {
    fn new() -> Self {
        let program = Program::new();
        let mut random = Rng::with_seed(7);
        let mut newest = BTreeMap::new();
        for round in 0..3 {
            let mut batch = Batch::default();
            for number in 0..24 {
                // Only a few change from one round to the next, so that nothing is rewritten.
                if round == 0 || number % 8 == round {
                    let path = program.write(&format!("app/c{number}.rb"), &format!("content {round}"));
                    let payload: Vec<u8> = (0..random.usize(0..200)).map(|_| random.u8(..)).collect();
                    batch.add(NewEntry { compress: number % 2 == 0, ..code(&path, &payload) });
                    newest.insert(path, payload);
                }
            }
            if round == 1 {
                let name = program.path("app");
                let list = list_directory(&name).unwrap();
                batch.add(entry(Kind::Directory, bytes(&name), Vec::new(), &list));
            }
            program.append(batch);
        }
        assert_eq!(program.open().segments(), 3);
        let directory = list_directory(&program.path("app")).unwrap();
        Sample { bytes: fs::read(program.archive_path()).unwrap(), program, newest, directory }
    }

    /// Opens the archive with these bytes and looks up everything. Returns how many entries were found.
    fn read(&self, spoiled: &[u8]) -> usize {
        fs::write(self.program.archive_path(), spoiled).unwrap();
        let Ok(archive) = Archive::open(&self.program.archive_path(), self.program.root()) else { return 0 };
        let (mut found, mut decoder) = (0, Decoder::default());
        for (path, payload) in &self.newest {
            let Some(entry) = archive.find(&scope(), &archive.name(bytes(path))) else { continue };
            // The policy `trust` does not return superseded entries, either.
            for policy in [Policy::Check, Policy::Trust] {
                if archive.check(&entry, policy, None) == Freshness::Fresh {
                    if let Some(decoded) = decoder.decode(&entry) {
                        assert_eq!(decoded, payload, "{}", path.display());
                        found += 1;
                    }
                }
            }
        }
        let name = self.program.path("app");
        let listed = archive.find(&Scope::new(Kind::Directory, &context()), &archive.name(bytes(&name)));
        if let Some(payload) = listed.and_then(|entry| entry.plain()) {
            assert_eq!(payload, self.directory);
            assert!(DirectoryList::parse(payload).unwrap().find(&[b"c7", b".rb"]).is_some());
        }
        assert!(archive.live().len() <= archive.entries().count());
        found
    }
}

#[test]
fn damaged_archives_give_what_was_stored_or_nothing() {
    let sample = Sample::new();
    let all = sample.newest.len() * 2;
    assert_eq!(sample.read(&sample.bytes), all);
    let segments = segment_ends(&sample.bytes);
    let mut random = Rng::with_seed(1);
    let (mut found, mut unscathed) = (0, 0);
    for _ in 0..CASES {
        let mut spoiled = sample.bytes.clone();
        let at = random.usize(..spoiled.len());
        match random.u8(..8) {
            // Cut off just where a segment ends, it is an older state of itself.
            0 if !segments.contains(&at) => spoiled.truncate(at),
            1 => spoiled[at..].iter_mut().take(random.usize(1..5000)).for_each(|byte| *byte = 0),
            2 => (0..20).for_each(|_| *random.choice(&mut spoiled).unwrap() = random.u8(..)),
            3 => spoiled.extend(std::iter::repeat_with(|| random.u8(..)).take(at)),
            4 => drop(spoiled.drain(at..(at + random.usize(1..100)).min(sample.bytes.len()))),
            _ => spoiled[at] ^= 1 << random.u8(..8),
        }
        let read = sample.read(&spoiled);
        found += read;
        unscathed += usize::from(read == all);
    }
    // Most damage must cost few entries, or nothing was tested behind the first check.
    assert!(found > CASES * all / 4, "{found} of {}", CASES * all);
    assert!(unscathed < CASES, "nothing was damaged");
}

fn segment_ends(file: &[u8]) -> Vec<usize> {
    let mut ends = vec![FIRST_SEGMENT as usize];
    let archive = crate::segment::segments(file);
    for segment in archive {
        ends.push(ends[ends.len() - 1] + segment.head.size as usize);
    }
    ends
}

#[test]
fn whoever_writes_next_mends_a_damaged_archive() {
    let sample = Sample::new();
    let mut random = Rng::with_seed(3);
    for case in 0..200 {
        let mut spoiled = sample.bytes.clone();
        let at = if case % 2 == 0 {
            random.usize(..spoiled.len())
        } else {
            random.usize(..48) + segment_ends(&spoiled)[case % 3]
        };
        spoiled[at] ^= 1 << random.u8(..8);
        fs::write(sample.program.archive_path(), &spoiled).unwrap();
        let mut batch = Batch::default();
        sample.newest.iter().for_each(|(path, payload)| batch.add(code(path, payload)));
        sample.program.append(batch);
        let bytes = fs::read(sample.program.archive_path()).unwrap();
        assert_eq!(sample.read(&bytes), sample.newest.len() * 2, "byte {at}");
        assert!(sample.program.open().is_whole(), "byte {at}");
    }
}
