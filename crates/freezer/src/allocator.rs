//! Adjusts the program's allocator before a freeze and after a thaw. Only glibc's malloc is supported; another
//! allocator would be selected here, when the freezer is loaded, with the same three functions. sys/image_memory.rs
//! handles what any allocator does to memory of an image (madvise, mremap). So a preloaded jemalloc works as it is, but
//! a thaw writes to more of its pages than necessary.

use crate::libc::malloc as chosen;

/// Called when the freezer is loaded, before the program allocates much. Puts large blocks into the heap: there they
/// can grow after a thaw without growing into other bytes of the image.
pub fn prepare() {
    chosen::keep_off_mmap();
}

/// Called before the fork that is the freeze. Returns free memory to the kernel, and arranges the rest so that a start
/// writes to few pages.
pub fn before_freeze() {
    chosen::settle();
}

/// Called in a thawed process. Undoes [`prepare`].
pub fn after_thaw() {
    chosen::mmap_again();
}
