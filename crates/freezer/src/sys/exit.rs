//! The quick end of a thawed process.
//!
//! A front end ends a thawed process with `_exit`, since the ordinary `exit` runs the destructors of libraries that
//! still hold the frozen heap. But `_exit` discards buffered output of the C library's own streams (`printf`), such as
//! an extension's last lines. So this preloaded library interposes `_exit`.

use core::ffi::c_int;

use super::channel;

/// The C library's `_exit` (_exit(2)), see the module's description. It flushes streams only if the front end has
/// announced the end right before: the program's own `os._exit` and `exit!` lose that output in an ordinary start, too.
#[no_mangle]
pub extern "C" fn _exit(status: c_int) -> ! {
    // SAFETY: streams are usable until the process ends, which is here.
    unsafe {
        if let Some(stops) = channel::announced_end() {
            crate::libc::write_streams();
            // The end of a rehearsal: `snapboot freeze` inspects the process and ends it.
            if stops {
                libc::raise(libc::SIGSTOP);
            }
        }
        libc::syscall(libc::SYS_exit_group, status);
    }
    unreachable!("the process has ended")
}
