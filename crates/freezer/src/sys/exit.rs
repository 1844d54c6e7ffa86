//! The quick end of a thawed process.
//!
//! A front end ends a thawed process with `_exit`, since the ordinary `exit` runs the destructors of libraries that still
//! hold the frozen heap. What libraries wrote with the C library's own streams (`printf`) would be lost with that: an
//! extension's last lines of output. So this library, being preloaded, defines `_exit` in front of the C library's.

use core::ffi::c_int;

use super::channel;

/// The C library's `_exit` (_exit(2)), see the module's description. Only a process in which the front end has
/// announced its end right before writes anything out: the program's own `os._exit` and `exit!` lose it in an ordinary start too.
#[no_mangle]
pub extern "C" fn _exit(status: c_int) -> ! {
    // SAFETY: streams are usable until the process ends, and it ends here.
    unsafe {
        if let Some(stops) = channel::end() {
            crate::libc::write_streams();
            // The end of a rehearsal: `snapboot freeze` looks at the process, and ends it.
            if stops {
                libc::raise(libc::SIGSTOP);
            }
        }
        libc::syscall(libc::SYS_exit_group, status);
    }
    unreachable!("the process has ended")
}
