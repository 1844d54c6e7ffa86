//! The archive of this process.

use std::path::{Path, PathBuf};

use archive::session::{Session, Settings};
use archive::Application;

use crate::cell::GvlCell;

/// The session of this process.
pub static SESSION: GvlCell<Session> = GvlCell::empty();

/// Opens the archive of the program with this main script, started in that folder (`None`: the working directory), or prepares to create
/// it. `Err`: why there is none.
pub fn open(script: Option<&Path>, folder: Option<PathBuf>) -> Result<Session, String> {
    let settings = Settings::read()?;
    let cwd = folder.map_or_else(std::env::current_dir, Ok);
    let cwd = cwd.map_err(|error| format!("there is no working directory: {error}"))?;
    let application = Application::find(std::env::var_os("BUNDLE_GEMFILE").as_deref(), script, &cwd);
    Session::open(settings, application, &cwd)
}
