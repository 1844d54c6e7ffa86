//! Reads whatever the fuzzer makes up as a boot archive.
#![no_main]

use std::sync::OnceLock;

#[path = "../read_archive.rs"]
mod read_archive;

static DIRECTORY: OnceLock<tempfile::TempDir> = OnceLock::new();

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let directory = DIRECTORY.get_or_init(|| tempfile::tempdir_in("/dev/shm").unwrap());
    read_archive::read(data, directory.path());
});
