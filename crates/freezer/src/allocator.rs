//! The program's allocator: what is done to it before a freeze and after a thaw. glibc's malloc is the only one so far; another one
//! would be chosen here, when the freezer is loaded, behind the same three functions. What every allocator may do to the memory of an
//! image (madvise, mremap) is the business of sys/image_memory.rs: with that, a preloaded jemalloc works as it is, but a thaw writes to
//! more of its pages than it has to.

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
