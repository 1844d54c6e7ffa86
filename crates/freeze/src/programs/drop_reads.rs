//! What counts of a boot, once other starts have shown what makes no difference.

use std::path::Path;

use super::boot::BootRequest;
use super::{everyday, terminals};
use crate::boot::Boot;
use crate::boot_inputs::other_start_inputs::OtherStart;
use crate::boot_inputs::Ignored;
use crate::outcome::Result;

/// Removes from the boot's reads and accesses what the other start has shown not to count, and what further boots show:
/// with everyday values of variables, and with or without a terminal. `start` is the current directory of this command.
pub fn drop_reads(
    boot: &BootRequest<'_>,
    shown: &OtherStart,
    made: Boot,
    start: &Path,
    ignored: &Ignored,
) -> Result<Boot> {
    let first = made.report.reads.clone();
    let made = shown.apply(made, boot.environment, start, ignored);
    let (made, alike) = everyday::try_values(boot, shown, &first, made)?;
    let mut made = terminals::try_others(boot, shown, &first, &alike, made)?;
    shown.forget_places_at_home(&made.report.reads, &mut made.accesses, boot.environment);
    Ok(made)
}
