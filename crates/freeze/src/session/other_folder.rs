//! The boot in another folder, which shows whether a program only keeps the current directory.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::Session;
use crate::boot::{Boot, Watch};
use crate::control_dir::ControlDir;
use crate::elsewhere::Elsewhere;
use crate::outcome::Result;
use crate::progress::Step;
use crate::report::Outcome;

impl Session<'_> {
    /// Whether the runtime is named from here, so that it is not found from another folder.
    pub(super) fn is_named_from_here(&self) -> bool {
        Path::new(&self.main.argv[0]).is_relative() && self.main.argv[0].as_bytes().contains(&b'/')
    }

    /// Boots once more, in a folder that shows what is made of the current directory. Returns what was looked for below it; None when the
    /// program does more with it than to keep it, as in the first boot, or does not boot there.
    pub(super) fn boot_elsewhere(
        &self,
        boot: &Boot<'_>,
        dir: &ControlDir,
        kept: &[OsString],
    ) -> Result<Option<BTreeSet<PathBuf>>> {
        if self.is_named_from_here() {
            return Ok(None);
        }
        self.progress.step(&Step::BootElsewhere);
        let elsewhere = Elsewhere::create(dir)?;
        let ended = self.boot_once(boot, dir, &Watch::Elsewhere(elsewhere.folder().to_owned()));
        boot.interrupt.check()?;
        Ok(match ended {
            Ok((Outcome::Written(report), notes)) if !report.keeps_folder.is_empty() && report.kept == kept => {
                elsewhere.looked_up(&notes, &report.importers)
            }
            _ => None,
        })
    }
}
