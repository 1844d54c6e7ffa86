//! Finds the code of Ruby itself, to tell its reads of the environment from those of other C code.
//!
//! A value that Ruby reads becomes an object, which its front end sees. What an extension or a library does with a
//! value cannot be observed.

use core::ffi::c_void;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The range of its mapping; zeros if this is not a Ruby.
static BEGIN: AtomicUsize = AtomicUsize::new(0);
static END: AtomicUsize = AtomicUsize::new(0);

/// Finds the range. Called by the constructor.
pub fn find() {
    // SAFETY: plain calls; `dladdr` fills in the structure if it returns nonzero. A loaded object begins with its
    // header, and the loader has mapped its program headers.
    unsafe {
        let function = libc::dlsym(libc::RTLD_DEFAULT, c"ruby_init_stack".as_ptr());
        let mut found: libc::Dl_info = core::mem::zeroed();
        if function.is_null() || libc::dladdr(function, &raw mut found) == 0 {
            return;
        }
        let base = found.dli_fbase;
        let header = &*base.cast::<libc::Elf64_Ehdr>();
        let rows = base.byte_add(header.e_phoff as usize).cast::<libc::Elf64_Phdr>();
        let loaded = || {
            let rows = (0..usize::from(header.e_phnum)).map(|number| &*rows.add(number));
            rows.filter(|row| row.p_type == libc::PT_LOAD)
        };
        let first = loaded().map(|row| row.p_vaddr).min().unwrap_or(0);
        let end = loaded().map(|row| row.p_vaddr + row.p_memsz).max().unwrap_or(0);
        BEGIN.store(base as usize, Relaxed);
        END.store(base as usize + (end - first) as usize, Relaxed);
    }
}

/// Whether this is a Ruby, and other code calls from this address.
pub fn is_foreign(caller: *const c_void) -> bool {
    let (begin, end) = (BEGIN.load(Relaxed), END.load(Relaxed));
    begin != 0 && !(begin..end).contains(&(caller as usize))
}
