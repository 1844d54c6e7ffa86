//! Reads whatever the fuzzer makes up as head and tables of an image.
#![no_main]

#[path = "../read.rs"]
mod read;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    read::read(data);
});
