//! The folder for all temporary files, which is removed at the end, also if a signal ends `explain`.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::OnceLock;
use std::thread;

use failure::{Failure, Result};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use tempfile::TempDir;

static FOLDER: OnceLock<PathBuf> = OnceLock::new();
/// Whether a freeze is running, which handles a signal and cleans up by itself.
static FREEZING: AtomicBool = AtomicBool::new(false);
/// The signal that arrived during a freeze, or 0.
static CAME: AtomicI32 = AtomicI32::new(0);

/// Creates the folder, and all later temporary folders of this process in it. Call once.
pub fn make() -> Result<TempDir> {
    let failed = |error| Failure::io("make a directory in", &std::env::temp_dir(), &error);
    let folder = tempfile::tempdir().map_err(failed)?;
    let path = FOLDER.get_or_init(|| folder.path().to_owned());
    // Fails only if another folder was already set.
    let _ = tempfile::env::override_temp_dir(path);
    let ending = [SIGHUP, SIGINT, SIGTERM].into_iter().filter(|&signal| !freeze::is_ignored(signal));
    let mut signals = Signals::new(ending).map_err(failed)?;
    thread::spawn(move || {
        for signal in signals.forever() {
            CAME.store(signal, Ordering::SeqCst);
            if !FREEZING.load(Ordering::SeqCst) {
                end(signal);
            }
        }
    });
    Ok(folder)
}

/// Runs a freeze.
pub fn freezing<T>(freeze: impl FnOnce() -> T) -> T {
    FREEZING.store(true, Ordering::SeqCst);
    let made = freeze();
    FREEZING.store(false, Ordering::SeqCst);
    match CAME.load(Ordering::SeqCst) {
        0 => made,
        signal => end(signal),
    }
}

/// Ends the process as the signal would, after removing the folder.
pub fn end(signal: i32) -> ! {
    if let Some(folder) = FOLDER.get() {
        // A start that ends now writes little more.
        let _ = fs::remove_dir_all(folder);
    }
    std::process::exit(crate::freeze::die_of(signal).into())
}
