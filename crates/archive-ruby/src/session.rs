//! The archive of this process.

use std::path::{Path, PathBuf};

use archive::session::{Absence, Session, Settings};
use archive::Application;

use crate::cell::GvlCell;

/// The session of this process.
pub static SESSION: GvlCell<Session> = GvlCell::empty();

/// Opens the archive of the program with this main script, started in that folder (`None`: the working directory), or prepares to create
/// it.
pub fn open(script: Option<&Path>, folder: Option<PathBuf>) -> Result<Session, Absence> {
    let settings = Settings::read()?;
    let cwd = folder.map_or_else(std::env::current_dir, Ok);
    let cwd = cwd.map_err(Absence::NoDirectory)?;
    let application = Application::find(std::env::var_os("BUNDLE_GEMFILE").as_deref(), script, &cwd);
    Session::open(settings, application, &cwd)
}
