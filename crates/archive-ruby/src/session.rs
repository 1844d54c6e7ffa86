//! The archive of this process.

use std::path::Path;

use archive::session::{Session, Settings};
use archive::Application;

use crate::cell::GvlCell;

/// The session of this process.
pub static SESSION: GvlCell<Session> = GvlCell::empty();

/// Opens the archive of the program whose main script this is, or prepares to make it. `Err` says why there is none.
pub fn open(script: Option<&Path>) -> Result<Session, String> {
    let settings = Settings::read()?;
    let cwd = std::env::current_dir().map_err(|error| format!("there is no working directory: {error}"))?;
    let application = Application::find(std::env::var_os("BUNDLE_GEMFILE").as_deref(), script, &cwd);
    Session::open(settings, application, &cwd)
}
