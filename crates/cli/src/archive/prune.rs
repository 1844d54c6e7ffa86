//! `snapboot archive prune`: an archive without what is of no use.

use super::{refusal, Named};
use crate::arguments::ArchivePrune;
use crate::failure::{Failure, Result};
use crate::human;
use crate::page;
use crate::progress::Progress;

/// Runs the subcommand.
pub fn main(arguments: &ArchivePrune) -> Result<u8> {
    let named = Named::find(&arguments.archive)?;
    let progress = Progress::start();
    progress.phase(format!("writing {} anew", named.path.display()));
    let bound = match arguments.max {
        Some(megabytes) => megabytes << 20,
        None => bound_of_environment()?,
    };
    let done = archive::prune(&named.path, named.root.as_deref(), bound).map_err(refusal)?;
    progress.stop();
    page::print(&format!(
        "{}: {} of {} entries kept, {} instead of {}\n",
        named.path.display(),
        done.after,
        done.before,
        human::size(done.size_after),
        human::size(done.size_before)
    ))?;
    Ok(0)
}

fn bound_of_environment() -> Result<u64> {
    let Some(value) = std::env::var_os("SNAPBOOT_ARCHIVE_MAX").filter(|value| !value.is_empty()) else {
        return Ok(archive::DEFAULT_BOUND);
    };
    let bytes =
        value.to_str().and_then(|value| value.parse::<u64>().ok()).and_then(|megabytes| megabytes.checked_mul(1 << 20));
    bytes.filter(|bytes| *bytes > 0).ok_or_else(|| {
        Failure::refusal(format!(
            "SNAPBOOT_ARCHIVE_MAX should be a whole number of MB, but it is {:?}. Correct or unset it, or say --max.",
            value.display().to_string()
        ))
    })
}
