//! The launcher: turns an image back into the process that was frozen.
//!
//! It is the program at the front of every image, and runs where nothing may be taken for granted: no libc, no heap,
//! its own stack in its own range of addresses, because everything else is about to be replaced. In order:
//!
//! 1. [`start`]: find arguments, environment and the head; open the image ([`image_file`]).
//! 2. [`argument_block`]: copy arguments and environment to where they stay.
//! 3. [`check`]: machine, process, environment and arguments, which decide whether the image may be used.
//! 4. [`memory`]: drop the old address space and lay out the frozen one; meanwhile [`files`] looks at all inputs, mostly in a second process ([`helper_process`]).
//! 5. [`restore`]: kernel state, then the jump, which is the point of no return.
//!
//! Until the jump anything unexpected ends in [`fallback`]: the original command is executed as if there were no image.
//! No panic can happen on purpose here; if one does it traps.
#![no_std]
#![no_main]
#![deny(unsafe_code)]

mod arch;
mod argument_block;
mod capabilities;
mod check;
mod content;
mod facts;
mod fallback;
mod files;
mod frozen;
mod helper_process;
mod image_file;
mod laps;
mod link;
mod memory;
mod objects;
mod page_digest;
mod reason;
mod restore;
mod rotation;
mod seen;
mod sidecar;
mod start;
mod starts;
mod steps;
mod sys;
mod system;
mod text;
mod vdso;

use core::convert::Infallible;

use argument_block::Block;
use files::Files;
use helper_process::HelperProcess;
use image_file::ImageFile;
use reason::Reason;
use start::Start;
use steps::Steps;

/// Called by the entry code on the launcher's own stack, with what the kernel left on the stack of the new process.
fn launch(start: &Start) -> ! {
    if start.secure {
        fallback::fail(format_args!(
            "refusing to run with raised privileges (set-uid or file capabilities): an image is code of its owner"
        ));
    }
    let image = match ImageFile::open(start) {
        Ok(image) => image,
        Err(reason) => fallback::fail(format_args!("{reason}; and there is no original command to fall back to")),
    };
    let mut block = match Block::build(start, &image) {
        Ok(block) => block,
        Err(errno) => fallback::fail(format_args!("no memory for arguments and environment ({errno})")),
    };
    let reason = match thaw(start, &image, &mut block) {
        Ok(never) => match never {},
        Err(reason) => reason,
    };
    fallback::run(&image, &block, &reason)
}

/// Becomes the frozen process; returns only when that has failed, with the reason.
fn thaw(start: &Start, image: &ImageFile, block: &mut Block) -> Result<Infallible, Reason> {
    if let Some(refusal) = arch::refusal() {
        return Err(Reason::new(refusal));
    }
    let mut steps = Steps::new(block);
    steps.next("launcher checking machine, process and environment");
    let frozen = check::first(start, image, block)?;
    steps.next("launcher checking inputs");
    let mut files = Files::new(&frozen, steps.directories(&frozen)?)?;
    let pays = helper_process::pays(files.count());
    let mut files = HelperProcess::start(&mut files, pays);
    if let Some(files) = files.done() {
        files.outcome()?;
    }
    let laid_out = memory::lay_out(&frozen, &mut files, block.arguments().next().unwrap_or_default(), &mut steps);
    steps.next("launcher waiting for the check of inputs");
    let is_beside = files.done().is_none();
    let files = files.finish();
    files.outcome()?;
    let vdso = laid_out?;
    steps.have_checked(core::mem::take(&mut files.laps), is_beside);
    check::last(&frozen, block)?;
    files.seen.remember();
    capabilities::renew(&frozen)?;
    steps.next("launcher restoring the kernel's state");
    restore::go_on(&frozen, &vdso, block, &mut steps)
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    arch::trap()
}
