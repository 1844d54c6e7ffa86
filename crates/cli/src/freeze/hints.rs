//! What a user can do where an image holds little of the program: a freeze that gains little says so.

use super::report::Report;

/// A line for the summary, if there is something to say.
pub fn line(report: &Report) -> Option<String> {
    match report.left.as_deref()? {
        "" => Some(
            "holds Ruby and RubyGems only: what the script requires it still loads at each start; name that with --preload"
                .to_owned(),
        ),
        module => Some(format!(
            "leaves the import of {module} and what follows to each start, since it fails, prints, or asks for what may be another one at \
             each start; --preload {module} takes it into the image, if that can be"
        )),
    }
}
