//! What this process knows besides its archive.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use archive::session::{Directories, Session};

use crate::code::Code;
use crate::cwd::Cwd;
use crate::search::Endings;

/// The boot of this process. Held only while its thread holds the interpreter's lock, and never while Python code runs: a child
/// of a fork so finds it free.
static BOOT: Mutex<Option<Boot>> = Mutex::new(None);

/// An archive that is open, and what was seen of directories.
pub struct Boot {
    pub session: Session,
    pub directories: Directories,
    pub cwd: Cwd,
    /// The number of the scope of code.
    pub code_scope: usize,
    pub code: Arc<Code>,
    pub endings: Endings,
}

/// The boot, from [`set`] on.
pub fn hold() -> MutexGuard<'static, Option<Boot>> {
    BOOT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The boot of this process from now on.
pub fn set(boot: Boot) {
    *hold() = Some(boot);
}
