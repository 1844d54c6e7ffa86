//! `snapboot archive verify`: checks every byte of an archive that is ever used.

use archive::Decoder;
use failure::{Failure, Result};

use super::Named;
use crate::arguments::ArchiveVerify;
use crate::human;
use crate::render;
use crate::spinner::Spinner;

/// Runs the subcommand; fails with exit status 1 if something is wrong.
pub fn main(arguments: &ArchiveVerify) -> Result<u8> {
    let named = Named::find(&arguments.archive)?;
    let archive = named.open()?;
    let spinner = Spinner::start(arguments.verbosity.quiet);
    let (all, mut whole, mut damaged) = (archive.entries().count(), 0, Vec::new());
    let mut decoder = Decoder::default();
    for (number, entry) in archive.entries().enumerate() {
        if number % 256 == 0 {
            spinner.phase(format!("checking entry {} of {all}", number + 1));
        }
        match entry {
            Some(entry) if decoder.decode(&entry).is_some() => whole += 1,
            Some(entry) => {
                damaged.push(format!("{} {}", entry.kind().name(), String::from_utf8_lossy(entry.key().name)))
            }
            None => damaged.push("an entry whose name is damaged, too".to_owned()),
        }
    }
    spinner.stop();
    let mut wrong = Vec::new();
    if archive.damaged_segments() > 0 {
        wrong.push(format!("the index of {} is damaged", human::count(archive.damaged_segments(), "segment")));
    }
    if archive.left_over() > 0 {
        wrong.push(format!("{} at its end belong to no segment", human::size(archive.left_over())));
    }
    if let Some(first) = damaged.first() {
        wrong.push(format!("{} of {} damaged, the first: {first}", damaged.len(), human::count(all, "entry")));
    }
    if !wrong.is_empty() {
        return Err(Failure::failed(format!(
            "{}: {}. A writer was killed, or the file was damaged on its way. Boots use the entries that are whole, and the next boot \
             that stores something repairs the file; snapboot archive prune repairs it now.",
            named.path.display(),
            wrong.join("; ")
        )));
    }
    if arguments.verbosity.quiet {
        return Ok(0);
    }
    render::print(&format!(
        "{}: whole ({whole} entries in {}, {})\n",
        named.path.display(),
        human::count(archive.segments(), "segment"),
        human::size(archive.size())
    ))?;
    Ok(0)
}
