//! The state of this process besides its archive.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use archive::session::{Directories, Session};

use crate::code::Code;
use crate::cwd::Cwd;
use crate::search::Endings;

/// The boot of this process. Held only while its thread holds the interpreter's lock, and never while Python code runs, so a forked child
/// finds it free.
static BOOT: Mutex<Option<Boot>> = Mutex::new(None);

/// An open archive, and the directories seen so far.
pub struct Boot {
    pub session: Session,
    pub directories: Directories,
    pub cwd: Cwd,
    /// The number of the scope of code.
    pub code_scope: usize,
    pub code: Arc<Code>,
    pub endings: Endings,
}

/// The boot, after a call of [`set`].
pub fn hold() -> MutexGuard<'static, Option<Boot>> {
    BOOT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sets the boot of this process.
pub fn set(boot: Boot) {
    *hold() = Some(boot);
}
