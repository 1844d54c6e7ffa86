//! Kernel#exec and #exit! end a process, or replace its program, without exit handlers: the queue is written first.

use crate::boot;
use crate::ruby::{Method, Protected, Ruby, Value};

/// The name under which the original method remains.
const EXIT_BEFORE: &str = "snapboot_exit_before";

/// Makes both write the queue from now on, unless other code has redefined them.
pub fn watch(ruby: Ruby<'_>) -> Protected<()> {
    ruby.without_warnings(|| define(ruby))
}

fn define(ruby: Ruby<'_>) -> Protected<()> {
    let kernel = ruby.kernel();
    let process = ruby.module(c"Process")?;
    if ruby.source_of(kernel, "exec")?.is_none() {
        ruby.define_private(kernel, c"exec", Method::any(exec))?;
        ruby.define_singleton(kernel, c"exec", Method::any(exec))?;
        ruby.define_singleton(process, c"exec", Method::any(exec))?;
    }
    if ruby.source_of(kernel, "exit!")?.is_none() {
        ruby.alias(kernel, EXIT_BEFORE, "exit!")?;
        ruby.define_private(kernel, c"exit!", Method::any(exit))?;
        ruby.define_singleton(kernel, c"exit!", Method::any(exit))?;
        ruby.define_singleton(process, c"exit!", Method::any(exit))?;
    }
    Ok(())
}

fn write(ruby: Ruby<'_>) {
    if let Some(ruby) = ruby.main() {
        boot::record_heap(ruby);
    }
    let _ = archive::session::flush();
}

/// exec(...)
fn exec<'r>(ruby: Ruby<'r>, _: Value<'r>, arguments: &[Value<'r>]) -> Protected<Value<'r>> {
    write(ruby);
    ruby.exec(arguments)
}

/// exit!(status = false)
fn exit<'r>(ruby: Ruby<'r>, receiver: Value<'r>, arguments: &[Value<'r>]) -> Protected<Value<'r>> {
    write(ruby);
    ruby.send(receiver, EXIT_BEFORE, arguments)
}
