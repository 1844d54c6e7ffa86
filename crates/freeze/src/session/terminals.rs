//! A boot at a terminal where the others had none, or the other way round: a program that has asked, and comes to the same state, needs no
//! images of its own for the two.

use judge::reads::Reads;
use recorder::Accesses;
use runtime::terminal::Terminal;

use super::everyday::Values;
use super::other_start::OtherStart;
use super::Session;
use crate::boot::Boot;
use crate::control_dir::ControlDir;
use crate::outcome::Result;

/// A terminal of a size that hardly anything else has.
const OTHER: Terminal = Terminal { streams: [true; 3], columns: 211, rows: 53 };

impl Session<'_> {
    /// Takes out of `reads` what a terminal is, where the program has asked for it and comes to the same with and without one; also in the starts
    /// that the image serves as well, `alike`. What C code keeps of it, nobody can see. The rest as for `try_everyday_values`.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn try_other_terminal(
        &self,
        boot: &Boot<'_>,
        dir: &ControlDir,
        shown: &OtherStart,
        first: &Reads,
        alike: &[Values],
        reads: &mut Reads,
        notes: &mut Accesses,
    ) -> Result<()> {
        if !reads.asks_for_terminal() || !OTHER.is_available() {
            return Ok(());
        }
        let boot = Boot { terminal: boot.terminal.is_none().then_some(OTHER), ..*boot };
        let mut booted = Vec::new();
        for values in [Values::new()].iter().chain(alike) {
            match self.boot_alike(&boot, dir, values, shown, first)? {
                Some(one) => booted.push(one),
                None => return Ok(()),
            }
        }
        for (more, accesses) in booted {
            reads.add_those_of(&more, first);
            notes.add_those_of(accesses);
        }
        reads.serve_both_terminals();
        Ok(())
    }
}
