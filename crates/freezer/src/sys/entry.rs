//! The library's entry points: its constructor and the fork handlers.

use core::ffi::{c_char, c_int, c_void, CStr};

use super::{
    account_hooks, attributes, events, hash_seed, layout, libc_hooks, locale_hooks, ruby_code, setter_hooks, sockets,
};

extern "C" {
    /// What `pthread_atfork` of glibc calls, which some architectures have only in a static part of it (pthread/pthread_atfork.c).
    fn __register_atfork(prepare: Handler, parent: Handler, child: Handler, library: *const c_void) -> c_int;
}

type Handler = extern "C" fn();

/// What the loader of glibc gives each constructor: the number of arguments, these, and the variables (elf/dl-init.c).
type Constructor = extern "C" fn(c_int, *const *const c_char, *const *const c_char);

/// The loader calls this before the program starts.
#[used]
#[link_section = ".init_array"]
static CONSTRUCTOR: Constructor = constructor;

extern "C" fn constructor(_count: c_int, arguments: *const *const c_char, variables: *const *const c_char) {
    // SAFETY: this is the constructor, and nothing was done before.
    unsafe { layout::settle(arguments, variables) };
    crate::arch::leave_addresses_unsigned();
    take_out_of_preload();
    take_out_bind_now();
    hash_seed::take();
    crate::allocator::prepare();
    libc_hooks::bind();
    account_hooks::bind();
    locale_hooks::bind();
    setter_hooks::bind();
    sockets::bind();
    events::start();
    if events::is_on() {
        attributes::remember();
        ruby_code::find();
    }
    crate::standard_streams::remember();
    // SAFETY: the handlers are functions of this library, which is never unloaded: it needs no name by which they are taken out again.
    unsafe { __register_atfork(prepare, parent, child, core::ptr::null()) };
}

extern "C" fn prepare() {
    crate::before_fork();
}

extern "C" fn parent() {
    crate::after_fork_in_parent();
}

extern "C" fn child() {
    crate::after_fork_in_child();
}

/// Removes this library, which comes first, from LD_PRELOAD, so that child processes do not get it.
fn take_out_of_preload() {
    let name = c"LD_PRELOAD";
    // SAFETY: the loader runs constructors in one thread, before any code holds pointers into the environment.
    unsafe {
        let value = libc::getenv(name.as_ptr());
        if value.is_null() {
            return;
        }
        let separator = |byte: &u8| *byte == b':' || *byte == b' ';
        let rest = CStr::from_ptr(value).to_bytes().iter().position(separator);
        match rest {
            Some(position) => {
                let rest: *const c_char = value.add(position + 1);
                // setenv copies the string before it replaces the old one.
                libc::setenv(name.as_ptr(), rest, 1);
            }
            None => {
                libc::unsetenv(name.as_ptr());
            }
        }
    }
}

/// `snapboot freeze` sets this value so that the loader resolves all symbols during the boot.
fn take_out_bind_now() {
    let name = c"LD_BIND_NOW";
    // SAFETY: as above.
    unsafe {
        let value = libc::getenv(name.as_ptr());
        if !value.is_null() && CStr::from_ptr(value) == c"snapboot" {
            libc::unsetenv(name.as_ptr());
        }
    }
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    // Only the child of a freeze gets here; its parent reports the status.
    super::exit(EXIT_INTERNAL)
}

/// Exit status of the child when the freezer failed (see docs/internals/protocol.md).
const EXIT_INTERNAL: c_int = 4;
