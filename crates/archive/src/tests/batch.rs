//! An entry queued repeatedly takes the space of one, and a rewrite keeps blocks that are still good.

use super::support::*;
use crate::*;

/// Numbers that hardly compress, and are the same in every run.
fn noise(seed: u64, size: usize) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(seed);
    std::iter::repeat_with(|| random.u8(..)).take(size).collect()
}

fn packed(path: &std::path::Path, payload: &[u8]) -> NewEntry {
    NewEntry { compress: true, ..code(path, payload) }
}

#[test]
fn of_each_key_the_newest_is_queued() {
    let program = Program::new();
    let (file, other) = (program.write("a.rb", "a"), program.write("b.rb", "b"));
    let mut batch = Batch::default();
    for number in 0..100 {
        batch.add(packed(&file, &noise(number, 50_000)));
        batch.add(code(&other, &noise(number, 1000)));
    }
    assert_eq!(batch.len(), 2);
    let size = program.append(batch).size;
    assert!(size < 70_000, "{size}");
    let archive = program.open();
    let entry = archive.find(&scope(), &[b"./a.rb"]).unwrap();
    assert_eq!(archive.decoder().decode(&entry).unwrap(), noise(99, 50_000));
    assert_eq!(archive.find(&scope(), &[b"./b.rb"]).unwrap().plain().unwrap(), noise(99, 1000));
}

#[test]
fn blocks_of_what_was_superseded_go() {
    let program = Program::new();
    let files: Vec<_> = (0..20).map(|number| program.write(&format!("c{number}.rb"), "c")).collect();
    let mut batch = Batch::default();
    for round in 0..20 {
        let seeds = files.iter().zip(round * 100..);
        seeds.for_each(|(file, seed)| batch.add(packed(file, &noise(seed, 50_000))));
    }
    let size = program.append(batch).size;
    // Two blocks may hold some of the round before.
    assert!(size < 20 * 50_000 + 2 * 450_000, "{size}");
    let archive = program.open();
    for (file, seed) in files.iter().zip(1900..) {
        let entry = archive.find(&scope(), &archive.name(bytes(file))).unwrap();
        assert_eq!(archive.decoder().decode(&entry).unwrap(), noise(seed, 50_000));
    }
}

#[test]
fn what_was_queued_before_is_not_queued_again_even_when_it_has_been_taken() {
    let program = Program::new();
    let file = program.write("a.rb", "a");
    let mut batch = Batch::default();
    let new = packed(&file, b"code");
    assert!(!batch.has(&scope(), &new.name, &new.inputs));
    batch.add(new.clone());
    assert!(batch.has(&scope(), &new.name, &new.inputs));
    assert_eq!(program.append(batch.take()).entries, 3);
    batch.add(new.clone());
    assert!(batch.is_empty() && batch.has(&scope(), &new.name, &new.inputs));
    let archive = program.open();
    let entry = archive.find(&scope(), &[b"./a.rb"]).unwrap();
    for _ in 0..2 {
        batch.again(&entry);
        assert_eq!(batch.len(), 1);
    }
    batch.take();
    batch.again(&entry);
    assert!(batch.is_empty());
    // Another payload for the same inputs is another entry.
    batch.add(packed(&file, b"other"));
    assert_eq!(batch.len(), 1);
    touch(&file);
    assert!(!batch.has(&scope(), &new.name, &[NewInput::File(new.name.clone(), settled(&file))]));
}

#[test]
fn a_new_file_takes_full_blocks_over_as_they_are() {
    let program = Program::new();
    let files: Vec<_> = (0..40).map(|number| program.write(&format!("c{number}.rb"), "c")).collect();
    let mut batch = Batch::default();
    for (file, seed) in files.iter().zip(0..) {
        batch.add(packed(file, &noise(seed, 25_000)));
    }
    let size = program.append(batch).size;
    let blocks = |archive: &Archive| -> Vec<Vec<u8>> {
        let all: Vec<_> = archive.live().iter().filter_map(|entry| Some(entry.packed()?.0.to_vec())).collect();
        all.chunk_by(|one, other| one == other).map(|same| same[0].clone()).collect()
    };
    let before = blocks(&program.open());
    assert_eq!(before.len(), 3);
    // Half of the second block is another one's now.
    for (file, seed) in files[20..28].iter().zip(100..) {
        let mut batch = Batch::default();
        batch.add(packed(file, &noise(seed, 25_000)));
        program.append(batch);
    }
    let done = prune(&program.archive_path(), None, DEFAULT_BOUND).unwrap();
    assert!(done.size_after < size + 5000, "{done:?}");
    let archive = program.open();
    let after = blocks(&archive);
    assert!(after.contains(&before[0]) && !after.contains(&before[1]), "{} blocks", after.len());
    let seeds = (0..20).chain(100..108).chain(28..40);
    for (file, seed) in files.iter().zip(seeds) {
        let entry = archive.find(&scope(), &archive.name(bytes(file))).unwrap();
        assert_eq!(archive.decoder().decode(&entry).unwrap(), noise(seed, 25_000), "{seed}");
    }
}
