//! Learns from the reports of thawed starts: the next image has the modules that this one lacked.

use std::ffi::OsString;
use std::path::Path;
use std::time::SystemTime;

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
    let attempts = Attempts::load(&folder);
    let environment = background::environment_number();
    if background::in_the_way(&folder).is_some()
        || folder.is_building()
        || !has_news(&folder, image)
        || attempts.why_none(&environment).is_some()
        || attempts.age() < wait(attempts.learnt)
    {
        return;
    }
    let terminal = background::parse_terminal(terminal);
    background::start(&folder, &Asked::ForNews(image), &environment, terminal, eviction::size_limit());
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
