//! The folder of all that is written meanwhile: it is gone afterwards, also where a signal ends `explain`.

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
/// Whether a freeze is going on, which ends by itself when a signal comes, and cleans up first.
static FREEZING: AtomicBool = AtomicBool::new(false);
/// The signal that came meanwhile, or 0.
static CAME: AtomicI32 = AtomicI32::new(0);

/// Makes the folder, in which all other temporary folders of this process are made from now on. To be called once.
pub fn make() -> Result<TempDir> {
    let failed = |error| Failure::io("make a folder in", &std::env::temp_dir(), &error);
    let folder = tempfile::tempdir().map_err(failed)?;
    let path = FOLDER.get_or_init(|| folder.path().to_owned());
    // Another one only where somebody else has asked for that.
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

/// Does what is a freeze.
pub fn freezing<T>(freeze: impl FnOnce() -> T) -> T {
    FREEZING.store(true, Ordering::SeqCst);
    let made = freeze();
    FREEZING.store(false, Ordering::SeqCst);
    match CAME.load(Ordering::SeqCst) {
        0 => made,
        signal => end(signal),
    }
}

/// Ends the process as the signal does, without the folder.
pub fn end(signal: i32) -> ! {
    if let Some(folder) = FOLDER.get() {
        // What is still written by a start that ends now is little.
        let _ = fs::remove_dir_all(folder);
    }
    std::process::exit(crate::freeze::die_of(signal).into())
}
