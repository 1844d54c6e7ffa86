//! Finds the code of Ruby itself, to tell its reads of the environment from those of other C code.
//!
//! A value that Ruby reads becomes an object, which its front end sees. What an extension or a library does with a
//! value cannot be observed, so an image is bound to it. The caller's address says who reads. Where the range of
//! Ruby's code is not surely known, all readers are foreign: that costs starts with other values an image.

use core::ffi::{c_void, CStr};
use core::ops::Range;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The range of its mapping; zeros if this is not a Ruby, and empty if the range is unknown.
static BEGIN: AtomicUsize = AtomicUsize::new(0);
static END: AtomicUsize = AtomicUsize::new(0);
const UNKNOWN: Range<usize> = 1..1;

/// Functions that Ruby exports. Other files of the interpreter define the later ones: of strings, and of ENV.
const FUNCTIONS: [&CStr; 3] = [c"ruby_init_stack", c"rb_str_new", c"ruby_setenv"];

/// Finds the range. Called by the constructor.
pub fn find() {
    // SAFETY: a plain call.
    let [first, others @ ..] = FUNCTIONS.map(|name| unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) });
    if first.is_null() {
        return;
    }
    // Another library may stand before Ruby's, and have a function of that name.
    let is_whole = |range: &Range<usize>| others.iter().all(|function| range.contains(&function.addr()));
    let range = object_with(first).filter(is_whole).unwrap_or(UNKNOWN);
    BEGIN.store(range.start, Relaxed);
    END.store(range.end, Relaxed);
}

/// The addresses of the loaded object that contains this one.
fn object_with(address: *const c_void) -> Option<Range<usize>> {
    // SAFETY: `dladdr` fills in the structure if it returns nonzero. A loaded object begins with its header, and the
    // loader has mapped its program headers.
    unsafe {
        let mut found: libc::Dl_info = core::mem::zeroed();
        if libc::dladdr(address, &raw mut found) == 0 {
            return None;
        }
        let base = found.dli_fbase;
        let header = &*base.cast::<libc::Elf64_Ehdr>();
        if !header.e_ident.starts_with(b"\x7fELF") {
            return None;
        }
        let rows = base.byte_add(header.e_phoff as usize).cast::<libc::Elf64_Phdr>();
        let loaded = || {
            let rows = (0..usize::from(header.e_phnum)).map(|number| &*rows.add(number));
            rows.filter(|row| row.p_type == libc::PT_LOAD)
        };
        let first = loaded().map(|row| row.p_vaddr).min()?;
        let end = loaded().map(|row| row.p_vaddr + row.p_memsz).max()?;
        Some(base.addr()..base.addr() + (end - first) as usize)
    }
}

/// Whether this is a Ruby, and other code calls from this address.
pub fn is_foreign(caller: *const c_void) -> bool {
    BEGIN.load(Relaxed) != 0 && !is_own(caller)
}

/// Whether this is a Ruby, and its own code calls from this address.
pub fn is_own(caller: *const c_void) -> bool {
    (BEGIN.load(Relaxed)..END.load(Relaxed)).contains(&caller.addr())
}
