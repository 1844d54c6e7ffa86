//! Boots that answer what the first comparison of two starts leaves open: which differences are noise, and which facts
//! the program compares with texts of its own.

use std::collections::BTreeSet;

use judge::evidence::{ALL, CWD, KERNEL, KERNEL_VERSION};

use super::other_start::{values_of, OtherStart, ORDER};
use super::start_facts::VARIABLES;
use super::Session;
use crate::boot::Boot;
use crate::control_dir::ControlDir;
use crate::elsewhere::{Elsewhere, Otherwise};
use crate::outcome::Result;

/// Maximum number of further boots like the first one to decide whether an order is noise: two objects agree in half of
/// them.
const MOST_BOOTS_FOR_ORDER: u32 = 3;

impl Session<'_> {
    /// Boots as the first time: any difference is noise.
    pub(super) fn find_noise(&self, boot: &Boot<'_>, dir: &ControlDir, shown: &OtherStart) -> Result<()> {
        if let Some((report, _)) = self.boot_with(boot, dir, &shown.elsewhere, &[])? {
            let found: Vec<String> = shown.differs(&report).map(str::to_owned).collect();
            shown.noise.borrow_mut().extend(found);
        }
        Ok(())
    }

    /// Decides whether an order that differs in one of `paths` is noise: classes in a set have the order of their
    /// addresses, which two boots may share by chance.
    pub(super) fn find_noise_of_order<'p>(
        &self,
        boot: &Boot<'_>,
        dir: &ControlDir,
        shown: &OtherStart,
        paths: impl Iterator<Item = &'p str> + Clone,
    ) -> Result<()> {
        for _ in 0..MOST_BOOTS_FOR_ORDER {
            if paths.clone().all(|path| !path.ends_with(ORDER) || shown.is_noise(path)) {
                break;
            }
            self.find_noise(boot, dir, shown)?;
        }
        Ok(())
    }

    /// Boots with values that record the texts with which the program compares them. Returns the facts of `free` that
    /// it compares, and where. `all` are the facts with whose other values it boots.
    pub(super) fn find_compared(
        &self,
        boot: &Boot<'_>,
        dir: &ControlDir,
        elsewhere: &Elsewhere,
        all: &[&str],
        free: &BTreeSet<String>,
    ) -> Result<Vec<(String, String)>> {
        // The oldest kernel has been tried.
        let is_text =
            |name: &&String| ![CWD, ALL, KERNEL, KERNEL_VERSION, elsewhere.search_path()].contains(&name.as_str());
        let watched: Vec<&String> = free.iter().filter(is_text).collect();
        if watched.is_empty() {
            return Ok(Vec::new());
        }
        let (environment, folder, more) = values_of(boot, elsewhere, all);
        let more = Otherwise { watches_values: true, ..more };
        Ok(match self.boot_otherwise(boot, dir, &environment, &folder, more)? {
            Some((report, _)) => {
                report.values_compared.into_iter().filter(|(name, _)| watched.contains(&name)).collect()
            }
            // It does not accept such texts.
            None => watched
                .into_iter()
                .filter(|name| !VARIABLES.contains(&name.as_str()))
                .map(|name| (name.clone(), "nobody knows what".to_owned()))
                .collect(),
        })
    }
}
