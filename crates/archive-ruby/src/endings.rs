//! Kernel#exec and #exit!, which end a process, or the program in it, without its exit handlers: what waits is written before.
#![allow(unsafe_code)]

use std::ffi::c_int;

use crate::ruby::{self, method::Function, Protected, Value};
use crate::{methods, queue};

/// What the method was before.
const EXIT_BEFORE: &str = "snapboot_exit_before";

/// Has both write what waits, from now on. Where somebody else has defined them they are left alone.
pub fn watch() -> Protected<()> {
    ruby::without_warnings(define)
}

fn define() -> Protected<()> {
    let kernel = ruby::kernel();
    let process = ruby::module(c"Process")?;
    if ruby::source_of(kernel, "exec")?.is_none() {
        Function::Any(exec).define_private(kernel, c"exec")?;
        Function::Any(exec).define_singleton(kernel, c"exec")?;
        Function::Any(exec).define_singleton(process, c"exec")?;
    }
    if ruby::source_of(kernel, "exit!")?.is_none() {
        ruby::alias(kernel, EXIT_BEFORE, "exit!")?;
        Function::Any(exit).define_private(kernel, c"exit!")?;
        Function::Any(exit).define_singleton(kernel, c"exit!")?;
        Function::Any(exit).define_singleton(process, c"exit!")?;
    }
    Ok(())
}

fn write() {
    if ruby::is_main_ractor() {
        methods::note_heap();
    }
    let _ = queue::flush();
}

/// exec(...)
unsafe extern "C-unwind" fn exec(count: c_int, arguments: *const Value, _: Value) -> Value {
    write();
    // SAFETY: as Ruby gave them.
    let arguments = unsafe { ruby::method::arguments(count, arguments) };
    ruby::entry(|| ruby::exec(arguments))
}

/// exit!(status = false)
unsafe extern "C-unwind" fn exit(count: c_int, arguments: *const Value, receiver: Value) -> Value {
    write();
    // SAFETY: as Ruby gave them.
    let arguments = unsafe { ruby::method::arguments(count, arguments) };
    ruby::entry(|| ruby::send(receiver, EXIT_BEFORE, arguments))
}
