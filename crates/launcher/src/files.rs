//! Whether the files and directories that the boot depended on are what they were: [`inputs::differences::compare_files`], perhaps in a second process.

use image::{Input, Section};
use inputs::differences::{self, Difference};
use inputs::system::{Check, Status};

use crate::frozen::Frozen;
use crate::helper_process::Work;
use crate::laps::Laps;
use crate::reason::Reason;
use crate::seen::SeenFiles;
use crate::system::Machine;

/// The comparison of all inputs, and what came of it.
pub struct Files<'a> {
    frozen: &'a Frozen,
    outcome: Option<Result<(), Reason>>,
    /// What is known of files whose times have changed.
    pub seen: SeenFiles,
    /// How long each directory took, with its inputs.
    pub laps: Laps,
}

impl<'a> Files<'a> {
    /// The inputs of a frozen process, not looked at yet. `laps`: room for the time that each directory takes.
    pub fn new(frozen: &'a Frozen, laps: Laps) -> Result<Self, Reason> {
        let seen = SeenFiles::new(frozen.file, &frozen.tables, frozen.image_id)?;
        Ok(Files { frozen, outcome: None, seen, laps })
    }

    /// The number of inputs that it will look at.
    pub fn count(&self) -> usize {
        let is_trusted = self.frozen.settings.policy == image::policy::TRUST;
        if is_trusted {
            0
        } else {
            self.frozen.rows::<Input>(Section::Inputs).map_or(0, |rows| rows.len())
        }
    }

    /// Whether all inputs are what they were, after the work was done.
    pub fn outcome(&self) -> Result<(), Reason> {
        self.outcome.unwrap_or(Err(Reason::new("the process that looked at the inputs was killed")))
    }
}

impl Work for Files<'_> {
    fn run(&mut self) {
        let Frozen { tables, settings, .. } = self.frozen;
        self.laps.begin();
        self.outcome = Some(differences::compare_files(tables, settings.policy, &Machine::new(self.frozen), self));
    }
}

/// The first difference is the reason for the fallback.
impl Check<'static> for Files<'_> {
    type Stop = Reason;

    fn differs(&mut self, difference: Difference<'static, '_>) -> Result<(), Reason> {
        Err(Reason::from_difference(&difference))
    }

    fn knows(&mut self, path: &[u8], now: &Status) -> bool {
        self.seen.knows(path, now)
    }

    fn remember(&mut self, path: &[u8], now: &Status, is_new: bool) {
        self.seen.add(path, now, is_new);
    }

    fn has_done(&mut self, directory: usize) {
        self.laps.end(directory);
    }
}
