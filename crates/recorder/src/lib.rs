//! Watches a boot from outside: every file name that it and its children hand to the kernel, and what was there at that moment.
//!
//! Nothing inside the process could tell: the loader, the C library, extension modules and child processes all look for files in
//! ways of their own. So the boot runs under a seccomp filter that makes system calls which take file names ([`calls`]) ask first. A
//! thread of the command ([`recorder`]) notes the name and looks at the file *before* the call is let through ([`accesses`]). Whatever
//! changes later is a change during the boot. All other system calls run at full speed, and nothing of this is in the memory of the
//! process, so nothing of it gets into an image. (ptrace could do the same, at three times the cost, and would hide the boot from
//! debuggers.)
#![deny(unsafe_code)]
#![deny(missing_docs)]

mod accesses;
mod arch;
mod boot;
mod calls;
mod file_systems;
mod paths;
mod recorder;
mod sys;

pub use accesses::{names_in, Accesses, Identity, Named, PathAccess, ReadKernelFile, State, LOADER_CACHE};
pub use boot::execute;
pub use paths::Paths;
pub use recorder::{Changing, Recorder};
