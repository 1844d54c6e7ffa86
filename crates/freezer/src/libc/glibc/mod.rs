//! glibc: adjusts its malloc, and knows its thread area, locales and streams.

use core::ffi::{c_int, c_void, CStr};

pub mod malloc;

/// The rseq area that the C library registered: address and length, (0, 0) if there is none.
pub fn rseq_area(thread_pointer: u64) -> (u64, u32) {
    // SAFETY: when the C library has these symbols they are a ptrdiff_t and an unsigned int (sys/rseq.h).
    unsafe {
        let offset = libc::dlsym(libc::RTLD_DEFAULT, c"__rseq_offset".as_ptr()).cast::<isize>();
        let size = libc::dlsym(libc::RTLD_DEFAULT, c"__rseq_size".as_ptr()).cast::<u32>();
        if offset.is_null() || size.is_null() || *size == 0 {
            return (0, 0);
        }
        // Areas are registered with at least 32 bytes, even if fewer are used.
        (thread_pointer.wrapping_add_signed(*offset as i64), (*size).max(32))
    }
}

/// Whether this C library has its locales in the usual directories.
pub fn has_usual_locale_folders() -> bool {
    // SAFETY: a plain call; what glibc has by that name is a string.
    unsafe {
        let texts: *mut c_void = libc::dlsym(libc::RTLD_DEFAULT, c"_nl_default_dirname".as_ptr());
        !texts.is_null() && CStr::from_ptr(texts.cast()).to_bytes() == b"/usr/share/locale"
    }
}

/// Flushes all streams as `exit` does: without waiting for the lock of a stream that another thread reads.
pub fn write_streams() {
    extern "C" {
        fn fcloseall() -> c_int;
    }
    // SAFETY: streams are usable until the process ends.
    unsafe { fcloseall() };
}

/// Makes the C library's standard streams buffer output as they do by default, or write it at once.
pub fn buffer_standard_streams(is_buffered: bool) {
    extern "C" {
        static stdin: *mut libc::FILE;
        static stdout: *mut libc::FILE;
        static stderr: *mut libc::FILE;
    }
    // SAFETY: plain calls; the C library never frees a buffer that it was given.
    unsafe {
        for (number, stream) in [stdin, stdout, stderr].into_iter().enumerate() {
            if !is_buffered || number == 2 {
                libc::setvbuf(stream, core::ptr::null_mut(), libc::_IONBF, 0);
                continue;
            }
            // The C library chooses size and line buffering when it first needs the buffer.
            let number = number as c_int;
            let mut status = core::mem::MaybeUninit::<libc::stat>::zeroed();
            // Not by `fstat`, which is a symbol of glibc only since 2.33.
            let is_known = libc::syscall(libc::SYS_fstat, number, status.as_mut_ptr()) == 0;
            let size = if is_known { status.assume_init().st_blksize } else { 0 };
            let size = if size > 0 { size as usize } else { libc::BUFSIZ as usize };
            let by_line = number == 1 && libc::isatty(number) == 1;
            let mode = if by_line { libc::_IOLBF } else { libc::_IOFBF };
            let buffer = libc::malloc(size);
            libc::setvbuf(stream, buffer.cast(), mode, if buffer.is_null() { 0 } else { size });
        }
    }
}
