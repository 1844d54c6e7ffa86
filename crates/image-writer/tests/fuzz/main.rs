//! Reads a great many damaged heads and tables: none may make the reader panic, hang, or accept what the format
//! forbids.
//!
//! This is the fuzz target of fuzz/ with a driver that needs no nightly toolchain. Every case follows from a seed and
//! its number. Variables set (as `make fuzz` does):
//!
//! - `FUZZ_SEED`: another seed
//! - `FUZZ_CASES`: the number of cases; `FUZZ_SECONDS`: the time instead
//! - `FUZZ_CASE`: one case, to replay a failure
//! - `FUZZ_CORPUS`: a directory for the seeds and some cases, from which cargo-fuzz starts

extern crate snapboot_image_writer as image_writer;

mod mutate;
#[path = "../../../../fuzz/read.rs"]
mod read;
mod seeds;

use std::panic;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use std::{env, fs, path, process, thread};

use fastrand::Rng;
use read::Reached;
use seeds::Seed;

/// Cases without FUZZ_CASES; `make fuzz` reads a million. Miri is slow.
const CASES: u64 = if cfg!(miri) { 10 } else { 20_000 };

/// No case takes a thousandth of this.
const HANGS_AFTER: Duration = Duration::from_secs(300);

fn number(name: &str) -> Option<u64> {
    let text = env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("expected a number in {name}, found {text:?}")))
}

fn case(seeds: &[Seed], seed: u64, number: u64) -> Vec<u8> {
    let start = image::checksum(&[seed.to_le_bytes(), number.to_le_bytes()].concat());
    mutate::spoiled(seeds, &mut Rng::with_seed(start)).bytes()
}

fn replay(seed: u64, number: u64) -> String {
    format!("case {number} of seed {seed}; again: FUZZ_SEED={seed} FUZZ_CASE={number} cargo test -p snapboot-image-writer --test fuzz")
}

#[test]
fn undamaged_seeds_are_accepted() {
    for seed in seeds::all() {
        assert_eq!(read::read(&seed.bytes()), Reached::End);
    }
    assert_eq!(read::read(b""), Reached::Head);
}

/// Writes the corpus from which cargo-fuzz starts.
#[test]
fn the_corpus_can_be_written() {
    let Some(directory) = env::var_os("FUZZ_CORPUS").map(path::PathBuf::from) else { return };
    fs::create_dir_all(&directory).unwrap();
    let seeds = seeds::all();
    for (index, seed) in seeds.iter().enumerate() {
        fs::write(directory.join(format!("seed-{index}")), seed.bytes()).unwrap();
    }
    for index in 0..500 {
        fs::write(directory.join(format!("case-{index}")), case(&seeds, 1, index)).unwrap();
    }
}

#[test]
fn damaged_heads_and_tables_do_no_harm() {
    let seeds = seeds::all();
    let seed = number("FUZZ_SEED").unwrap_or(1);
    if let Some(only) = number("FUZZ_CASE") {
        println!("reached {:?}", read::read(&case(&seeds, seed, only)));
        return;
    }
    let time = number("FUZZ_SECONDS").map(Duration::from_secs);
    let cases = number("FUZZ_CASES").unwrap_or(if time.is_some() { u64::MAX } else { CASES });
    let (began, now) = (Instant::now(), AtomicU64::new(0));
    let mut counts = [0u64; 4];
    thread::scope(|scope| {
        let watch = scope.spawn(|| watch(&now, seed));
        for number in 0..cases {
            if number % 256 == 0 && time.is_some_and(|time| began.elapsed() >= time) {
                break;
            }
            now.store(number, Ordering::Relaxed);
            let result = panic::catch_unwind(|| read::read(&case(&seeds, seed, number)));
            match result {
                Ok(reached) => counts[reached as usize] += 1,
                Err(cause) => {
                    eprintln!("{}", replay(seed, number));
                    now.store(u64::MAX, Ordering::Relaxed);
                    watch.thread().unpark();
                    panic::resume_unwind(cause);
                }
            }
        }
        now.store(u64::MAX, Ordering::Relaxed);
        watch.thread().unpark();
    });
    let total: u64 = counts.iter().sum();
    let [head, tables, rows, end] = counts;
    println!(
        "{total} cases of seed {seed} in {:.1} s: refused at head {head}, directory {tables}, rows {rows}; accepted {end}",
        began.elapsed().as_secs_f64()
    );
    // Damage that the first check always catches would test nothing else.
    assert!(total < 100 || counts.iter().all(|&count| count > total / 50), "{counts:?}");
}

/// Aborts the test when a case hangs.
fn watch(now: &AtomicU64, seed: u64) {
    let (mut last, mut since) = (u64::MAX, Instant::now());
    loop {
        thread::park_timeout(Duration::from_secs(1));
        match now.load(Ordering::Relaxed) {
            u64::MAX => return,
            number if number != last => (last, since) = (number, Instant::now()),
            number if since.elapsed() > HANGS_AFTER && !cfg!(miri) => {
                eprintln!("hangs: {}", replay(seed, number));
                process::abort();
            }
            _ => {}
        }
    }
}
