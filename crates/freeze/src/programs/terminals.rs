//! A boot at a terminal if the others had none, or the other way round: a program that asks for its terminal and comes
//! to the same state needs no separate images for the two.

use judge::reads::Reads;
use runtime::terminal::Terminal;

use super::boot::BootRequest;
use super::everyday::{boot_alike, Values};
use crate::boot::Boot;
use crate::boot_inputs::other_start_inputs::OtherStart;
use crate::outcome::Result;

/// Unusual terminal sizes, one large and one small: a program may depend on a minimum or a maximum.
const LARGE: Terminal = Terminal { streams: [true; 3], columns: 211, rows: 53 };
const SMALL: Terminal = Terminal { streams: [true; 3], columns: 37, rows: 11 };

/// Removes from the reads of `made` whether a stream is a terminal, if the program asked and comes to the same state with
/// and without one, and the size, if it comes to the same state with another; both also in the other starts that the
/// image serves (`alike`). What C code keeps of it cannot be observed. `shown` and `first` are those of
/// [`super::everyday::try_values`].
pub fn try_others(
    boot: &BootRequest<'_>,
    shown: &OtherStart,
    first: &Reads,
    alike: &[Values],
    mut made: Boot,
) -> Result<Boot> {
    if !made.report.reads.asks_for_terminal() || !LARGE.is_available() {
        return Ok(made);
    }
    let starts: Vec<Values> = [Values::new()].into_iter().chain(alike.iter().cloned()).collect();
    // Whether boots at this terminal, or without one, come to the same state. If so, their reads count, too.
    let is_alike_at = |made: &mut Boot, terminal, starts: &[Values]| -> Result<bool> {
        let values: Vec<&Values> = starts.iter().collect();
        let booted = boot_alike(&BootRequest { terminal, ..*boot }, &values, shown, first)?;
        let Some(booted) = booted.into_iter().collect::<Option<Vec<_>>>() else { return Ok(false) };
        for Boot { report, accesses, .. } in booted {
            made.report.reads.add_those_of(&report.reads, first);
            made.accesses.add_those_of(accesses);
        }
        Ok(true)
    };
    let other = if boot.terminal.is_none() { Some(LARGE) } else { None };
    // Outside a store, there is a variant for terminals because it makes a difference.
    let is_split = boot.freeze.store().is_none() && boot.terminal.is_some();
    let mut is_served = !is_split && is_alike_at(&mut made, other, &starts)?;
    // The program may want one of them to be a terminal, and another one not; it asked in one of the boots.
    let asked = made.report.reads.streams_asked_for();
    let singles = (0..3).filter(|_| asked.iter().filter(|is_asked| **is_asked).count() > 1);
    for stream in singles.filter(|stream| asked[*stream]) {
        let single = Terminal { streams: [0, 1, 2].map(|it| it == stream), ..LARGE };
        is_served = is_served && is_alike_at(&mut made, Some(single), &starts[..1])?;
    }
    let mut are_sizes_served = made.report.reads.asks_for_size() && (is_served || boot.terminal.is_some());
    let streams = boot.terminal.map_or([true; 3], |own| own.streams);
    // The large size was tried above if the image is for starts without a terminal.
    for size in if boot.terminal.is_none() { &[SMALL][..] } else { &[LARGE, SMALL] } {
        are_sizes_served = are_sizes_served && is_alike_at(&mut made, Some(Terminal { streams, ..*size }), &starts)?;
    }
    if is_served {
        made.report.reads.serve_all_terminals();
    }
    if are_sizes_served {
        made.report.reads.serve_all_sizes();
    }
    Ok(made)
}
