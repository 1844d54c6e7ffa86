//! Everything in a freeze that runs programs: the boots, the training runs, and the first starts of the image.
//!
//! [`resolve`] runs probes of the interpreter, [`training`] makes ordinary starts. [`boot`] starts the runtime with the
//! freezer inside, under the recorder ([`watched`]), and reads the [`report`]; [`image_boot`] makes the boot that goes
//! into the image. [`other_start`], [`everyday`], [`terminals`] and [`derived`] boot once more to compare.
//! [`rehearse`], [`training`] and [`first_start`] start the image itself.

mod boot;
mod confined;
mod cpu_level;
mod derived;
mod drop_reads;
mod everyday;
mod first_start;
mod image_boot;
mod installed_tool;
mod last_look;
mod leftovers;
mod other_start;
mod rehearse;
mod report;
mod resolve;
mod site_reads;
mod terminals;
mod training;
mod watched;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use judge::environment::Environment;
use runtime::terminal::Terminal;

use crate::application::Applied;
use crate::control_dir::ControlDir;
use crate::interrupt::Interrupt;
use crate::own_files::OwnFiles;
use crate::program::Program;
use crate::progress::Progress;
use crate::request::{FreezeRequest, InStore};

pub use boot::{hash_seed, new_hash_seed, BootRequest};
pub use confined::{run as run_confined, SUBCOMMAND as CONFINED};
pub use cpu_level::for_level;
pub use derived::follows_form_of_secrets;
pub use drop_reads::drop_reads;
pub use first_start::first_start;
pub use image_boot::{boot, check_quiet};
pub use last_look::{run as run_traced, SUBCOMMAND as TRACED};
pub use other_start::compare_starts;
pub use rehearse::rehearse;
pub use resolve::resolve;
pub use site_reads::early_reads;
pub use training::{run_from, train};
pub use watched::{run as run_watched, trial as watch_trial, SUBCOMMAND as WATCHED};

/// Tells whether a folder is for temporary files of this boot.
pub fn temporary(environment: &Environment) -> impl Fn(&Path) -> bool {
    let temporary = leftovers::Temporary::new(environment);
    move |folder| temporary.contains(folder)
}

/// One freeze: what is frozen, where, and who hears of it.
#[derive(Clone, Copy)]
pub struct Freeze<'a> {
    pub request: &'a FreezeRequest,
    pub program: &'a Program,
    /// The additions of a framework's recipe; one without a name where there is none.
    pub recipe: &'a Applied,
    pub dir: &'a ControlDir,
    pub interrupt: &'a Interrupt,
    pub progress: &'a dyn Progress,
}

impl<'a> Freeze<'a> {
    /// The image's store, if it is in one.
    pub fn store(&self) -> Option<&'a InStore> {
        self.request.store.as_ref()
    }

    /// The user's own files, if the image leaves them to each start.
    pub fn own_files(&self) -> Option<OwnFiles> {
        self.program.leaves_own_files.then(|| self.program.own_files.clone())
    }

    /// Whether an image of a store holds an application that a recipe boots. What starts load of the user's own files
    /// afterwards, such as views and models, is edited most, and takes little time: the image does not learn it.
    pub fn boots_application(&self) -> bool {
        self.store().is_some() && !self.program.leaves_own_files && !self.recipe.name.is_empty()
    }

    /// The terminal of the starts that the image serves first.
    pub fn terminal(&self) -> Option<Terminal> {
        self.store().and_then(|store| store.terminal)
    }

    /// The checkouts of the script and the current directory, if they are the user's own.
    pub fn checkouts(&self) -> BTreeSet<PathBuf> {
        if !self.program.leaves_own_files && !self.boots_application() {
            return BTreeSet::new();
        }
        let mut own = self.program.own_files.clone();
        let script = self.program.main.script.as_ref().and_then(|script| own.checkout(script));
        let here = std::env::current_dir().ok().and_then(|here| own.checkout_with(&here));
        script.into_iter().chain(here).collect()
    }

    /// The functions at which the program is frozen, at whichever it calls first: the user's, or else the recipe's. None: right before its
    /// main part.
    pub fn places(&self) -> &'a [String] {
        match &self.request.at {
            None => &self.recipe.at,
            Some(named) => std::slice::from_ref(named),
        }
    }

    /// The preloads: the user's, or else the recipe's.
    pub fn preloads(&self) -> &'a [String] {
        match self.request.preloads.as_slice() {
            [] => &self.recipe.preloads,
            named => named,
        }
    }
}
