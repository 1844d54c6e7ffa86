//! The program's allocator: what is done to it before a freeze and after a thaw. glibc's malloc is the only one so far; another one
//! (that of another C library, or a preloaded one such as jemalloc) would be chosen here, behind the same three functions.

use crate::libc::malloc as chosen;

/// Called when the freezer is loaded, before the program allocates much: large blocks are to lie in the heap, where they can grow
/// after a thaw without growing into other bytes of the image.
pub fn prepare() {
    chosen::keep_off_mmap();
}

/// Called before the fork that is the freeze: gives free memory back, and leaves the rest so that a start writes to few pages.
pub fn before_freeze() {
    chosen::settle();
}

/// Called in a thawed process: undoes what [`prepare`] did.
pub fn after_thaw() {
    chosen::mmap_again();
}
