//! Watches a boot from outside: records every file name that the boot and its children pass to the kernel, and what was
//! there at that moment.
//!
//! Nothing inside the process could: the loader, the C library, extension modules and child processes all look files up
//! in their own ways. So the boot runs under a seccomp filter that stops system calls that take file names ([`calls`]).
//! A thread of the command ([`recorder`]) reads the name and looks at the file *before* it lets the call continue
//! ([`accesses`]). Any later change is a change during the boot. All other system calls run at full speed. No part of
//! the recorder is in the process, so none gets into an image. (ptrace could do the same at three times the cost, and
//! would keep debuggers from attaching to the boot.)
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
