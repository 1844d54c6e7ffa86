//! A boot at a terminal if the others had none, or the other way round: a program that asks for its terminal and comes
//! to the same state needs no separate images for the two.

use judge::reads::Reads;
use recorder::Accesses;
use runtime::terminal::Terminal;

use super::everyday::Values;
use super::other_start::OtherStart;
use super::Session;
use crate::boot::Boot;
use crate::control_dir::ControlDir;
use crate::outcome::Result;

/// Unusual terminal sizes, one large and one small: a program may depend on a minimum or a maximum.
const LARGE: Terminal = Terminal { streams: [true; 3], columns: 211, rows: 53 };
const SMALL: Terminal = Terminal { streams: [true; 3], columns: 37, rows: 11 };

impl Session<'_> {
    /// Removes from `reads` whether a stream is a terminal, if the program asked and comes to the same state with and
    /// without one, and the size, if it comes to the same state with another; both also in the other starts that the
    /// image serves (`alike`). What C code keeps of it cannot be observed. The other arguments are those of
    /// `try_everyday_values`.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn try_other_terminal(
        &self,
        boot: &Boot<'_>,
        dir: &ControlDir,
        shown: &OtherStart,
        first: &Reads,
        alike: &[Values],
        reads: &mut Reads,
        accesses: &mut Accesses,
    ) -> Result<()> {
        if !reads.asks_for_terminal() || !LARGE.is_available() {
            return Ok(());
        }
        let starts: Vec<Values> = [Values::new()].into_iter().chain(alike.iter().cloned()).collect();
        let other = if boot.terminal.is_none() { Some(LARGE) } else { None };
        // Outside a store, there is a variant for terminals because it makes a difference.
        let is_split = self.request.store.is_none() && boot.terminal.is_some();
        let mut is_served = !is_split && self.is_alike_at(other, boot, dir, &starts, shown, first, reads, accesses)?;
        // The program may want one of them to be a terminal, and another one not; it asked in one of the boots.
        let asked = reads.streams_asked_for();
        let singles = (0..3).filter(|_| asked.iter().filter(|is_asked| **is_asked).count() > 1);
        for stream in singles.filter(|stream| asked[*stream]) {
            let single = Terminal { streams: [0, 1, 2].map(|it| it == stream), ..LARGE };
            is_served =
                is_served && self.is_alike_at(Some(single), boot, dir, &starts[..1], shown, first, reads, accesses)?;
        }
        let mut are_sizes_served = reads.asks_for_size() && (is_served || boot.terminal.is_some());
        let streams = boot.terminal.map_or([true; 3], |own| own.streams);
        // The large size was tried above if the image is for starts without a terminal.
        for size in if boot.terminal.is_none() { &[SMALL][..] } else { &[LARGE, SMALL] } {
            let terminal = Some(Terminal { streams, ..*size });
            are_sizes_served =
                are_sizes_served && self.is_alike_at(terminal, boot, dir, &starts, shown, first, reads, accesses)?;
        }
        if is_served {
            reads.serve_all_terminals();
        }
        if are_sizes_served {
            reads.serve_all_sizes();
        }
        Ok(())
    }

    /// Whether boots at this terminal, or without one, come to the same state. If so, their reads count, too.
    #[allow(clippy::too_many_arguments)]
    fn is_alike_at(
        &self,
        terminal: Option<Terminal>,
        boot: &Boot<'_>,
        dir: &ControlDir,
        starts: &[Values],
        shown: &OtherStart,
        first: &Reads,
        reads: &mut Reads,
        accesses: &mut Accesses,
    ) -> Result<bool> {
        let boot = Boot { terminal, ..*boot };
        let values: Vec<&Values> = starts.iter().collect();
        let booted = self.boot_alike(&boot, dir, &values, shown, first)?;
        let Some(booted) = booted.into_iter().collect::<Option<Vec<_>>>() else { return Ok(false) };
        for (more, others) in booted {
            reads.add_those_of(&more, first);
            accesses.add_those_of(others);
        }
        Ok(true)
    }
}
