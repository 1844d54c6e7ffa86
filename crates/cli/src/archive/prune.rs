//! `snapboot archive prune`: removes useless entries from an archive.

use failure::{Failure, Result};

use super::{refusal, Named};
use crate::arguments::ArchivePrune;
use crate::human;
use crate::render;
use crate::spinner::Spinner;

/// Runs the subcommand.
pub fn main(arguments: &ArchivePrune) -> Result<u8> {
    let named = Named::find(&arguments.archive)?;
    let spinner = Spinner::start(arguments.verbosity.quiet);
    spinner.phase(format!("writing {} again", named.path.display()));
    let bound = match arguments.max {
        Some(megabytes) => megabytes << 20,
        None => archive::bound(std::env::var_os("SNAPBOOT_ARCHIVE_MAX").as_deref())
            .map_err(|reason| Failure::refusal(format!("{reason}. Correct or unset it, or say --max.")))?,
    };
    let done = archive::prune(&named.path, named.root.as_deref(), bound).map_err(refusal)?;
    spinner.stop();
    if arguments.verbosity.quiet {
        return Ok(0);
    }
    render::print(&format!(
        "{}: {} of {} entries kept, {} instead of {}\n",
        named.path.display(),
        done.after,
        done.before,
        human::size(done.size_after),
        human::size(done.size_before)
    ))?;
    Ok(0)
}
