//! Learns from the reports of thawed starts: the next image has the modules that this one lacked. A start asks for it at its end. One that a
//! signal has ended could not, and the next start does.

use std::ffi::OsString;
use std::path::Path;
use std::time::SystemTime;

use runtime::terminal::Terminal;

use crate::attempt::Attempts;
use crate::background::Asked;
use crate::{background, eviction, sys, Folder};

/// The subcommand that a start executes after it has reported something new.
pub const SUBCOMMAND: &str = "learn";
/// How many images in a row may be made for reports before the next one has to wait.
const FREE: u32 = 2;
/// The wait then, at first and at most (seconds).
const WAIT: u64 = 60;
const LONGEST_WAIT: u64 = 24 * 3600;

/// Makes an image again if something was reported after it was made. `words`: the image, and the terminal that it is for; what stands behind
/// the subcommand.
pub fn from(words: &[OsString]) {
    // The start that executes this may have left any descriptor open.
    sys::close_all();
    let [image, terminal] = words else { return };
    let image = Path::new(image);
    let Some(folder) = Folder::containing(image).filter(Folder::is_own) else { return };
    if has_news(&folder, image) {
        ask(&folder, image, background::parse_terminal(terminal), eviction::size_limit());
    }
}

/// Does the same before a start executes that image. `limit`: of the store (bytes).
pub fn before_start(folder: &Folder, image: &Path, limit: u64) {
    if has_news(folder, image) && folder.is_own() {
        ask(folder, image, Terminal::of_this_process(), limit);
    }
}

/// Asks for an image with what was reported, unless there is a reason not to.
fn ask(folder: &Folder, image: &Path, terminal: Option<Terminal>, limit: u64) {
    let attempts = Attempts::load(folder);
    let environment = background::environment_number();
    let is_in_vain = || attempts.why_none(&environment).is_some() || attempts.age() < wait(attempts.learnt);
    if background::in_the_way(folder).is_none() && !folder.is_building() && !is_in_vain() {
        background::start(folder, &Asked::ForNews(image), &environment, terminal, limit);
    }
}

/// Whether starts have reported something since an image was made.
pub(crate) fn has_news(folder: &Folder, image: &Path) -> bool {
    let changed = |path: &Path| path.metadata().and_then(|status| status.modified());
    // After the clock was set back, times do not show which was first.
    matches!((changed(&folder.profile()), changed(image)), (Ok(told), Ok(made)) if told >= made || made > SystemTime::now())
}

fn wait(learnt: u32) -> u64 {
    learnt.checked_sub(FREE).map_or(0, |more| (WAIT << more.min(20)).min(LONGEST_WAIT))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_more_was_learnt_the_longer_it_takes() {
        assert_eq!([0, 1, 2, 3, 4, 60].map(wait), [0, 0, 60, 120, 240, LONGEST_WAIT]);
    }
}
