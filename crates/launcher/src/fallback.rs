//! The fallback: run the original command the ordinary way.
//!
//! Nothing is said unless `SNAPBOOT_LOG` asks for it. When the fallback is impossible too, the message says why, and the exit
//! status is 125 (the launcher's own failure), 126 (the command cannot be executed) or 127 (it is not there).
#![allow(unsafe_code)]

use core::fmt::{self, Write};

use image::{Command, Head, Record};
use inputs::environment;
use inputs::on_stale::{self, OnStale};
use linux_raw_sys::errno::ENOENT;
use linux_raw_sys::general::{O_CLOEXEC, O_NONBLOCK, O_RDONLY};

use crate::argument_block::{Block, Rehearsal};
use crate::image_file::ImageFile;
use crate::reason::Reason;
use crate::start::without_nul;
use crate::starts;
use crate::sys::{self, Errno};
use crate::text::Text;

/// Exit status when the launcher itself fails.
pub const OWN_FAILURE: u32 = 125;

/// Executes the original command with the arguments and the environment that the image was given; of an image of a
/// store, the program that has it made again and does the same.
pub fn run(image: &ImageFile, block: &Block, reason: &Reason) -> ! {
    match block.rehearsal() {
        Some(Rehearsal::Check) => fail(format_args!("{reason}")),
        Some(Rehearsal::Thaw) => fail(format_args!("the rehearsal of a new image failed: {reason}")),
        None => {}
    }
    if !reason.is_intended {
        starts::count_fallback(Head::decode(image.area).image_id(), block, reason);
    }
    let on_stale = OnStale::parse(environment::value_of(on_stale::NAME.as_bytes(), block.environment()));
    if on_stale == OnStale::Error && !reason.is_intended {
        fail(format_args!("cannot use the image: {reason} (an error, since SNAPBOOT_ON_STALE=error)"));
    }
    let is_in_store = image.command.store_count() > 0 && reason.leaves_it_to_the_store();
    if block.asks_for(b"SNAPBOOT_LOG") {
        if let OnStale::Unknown(value) = on_stale {
            let value = core::str::from_utf8(value).unwrap_or("(no text)");
            log(format_args!("{}={value} should be fallback or error; taking it for fallback", on_stale::NAME));
        }
        // The same words for a fallback after the thaw: fall_back in context.py and context.rb of the front ends.
        match is_in_store {
            true => log(format_args!("{reason}; the store goes on with this start")),
            false => log(format_args!("{reason}; starting the ordinary way")),
        }
    }
    if is_in_store {
        run_store(&image.command, block, reason);
    }
    let program = image.command.program();
    // SAFETY: the block holds null-terminated lists of NUL-terminated strings; the program ends with a NUL.
    let errno = unsafe { sys::execute(program.as_ptr(), block.argv_pointers(), block.environment_pointers()) };
    let program = core::str::from_utf8(without_nul(program)).unwrap_or("the original command");
    log(format_args!("cannot use the image: {reason}; and cannot execute {program} instead ({errno})"));
    sys::exit(if errno == Errno(ENOENT) { 127 } else { 126 })
}

/// Executes the store's program; returns when it is not there any more, or not all of it.
fn run_store(command: &Command<'static>, block: &Block, reason: &Reason) {
    if command.store_words().next().is_some_and(is_cut_off) {
        return;
    }
    let mut text = Text::<1024>::new();
    let _ = write!(text, "{reason}");
    let mut words = [0; 1025];
    words[..text.bytes().len()].copy_from_slice(text.bytes());
    let program = command.store_words().next().unwrap_or(b"\0");
    let argv = block.store_argv(command, &words[..=text.bytes().len()]);
    // SAFETY: both lists end with a null pointer and hold C strings, which live until the call returns.
    let _ = unsafe { sys::execute(program.as_ptr(), argv, block.environment_pointers()) };
}

/// Whether a program was cut off, as by a full disk or half an upgrade. The kernel would execute it all the same, and this start would die of that.
/// What is no ELF file, or cannot be read, the kernel may judge.
fn is_cut_off(program: &[u8]) -> bool {
    let Ok(file) = sys::open(program, O_RDONLY | O_NONBLOCK | O_CLOEXEC) else { return false };
    let mut header = [0; 64];
    let read = sys::read_at(file, &mut header, 0);
    let size = sys::fstat(file).map_or(0, |status| status.size);
    sys::close(file);
    let number = |bytes: &[u8]| bytes.iter().rev().fold(0, |sum: u64, byte| sum << 8 | u64::from(*byte));
    // See elf(5): the section headers come last. Their offset, their size and their number.
    let end = number(&header[40..48]).saturating_add(number(&header[58..60]) * number(&header[60..62]));
    read.is_ok_and(|size| size > 4) && header.starts_with(b"\x7fELF") && (size < 64 || size < end)
}

/// Ends the process with a message: neither thaw nor fallback is possible.
pub fn fail(message: fmt::Arguments<'_>) -> ! {
    log(message);
    sys::exit(OWN_FAILURE)
}

fn log(message: fmt::Arguments<'_>) {
    let mut line = Text::<1024>::new();
    let _ = writeln!(line, "snapboot: {message}");
    line.make_harmless();
    sys::write_stderr(line.bytes());
}
