//! The decision about each read of a boot, and its reason: shown where an image lists what it depends on.

use std::ffi::OsStr;

use image_file::differences::LOCALE_OF_TEXT;
use image_file::info::{Decision, Verdict};
use runtime::Language;

use crate::depends::of_facts;
use crate::environment::Environment;
use crate::environment_inputs::EnvironmentInputs;
use crate::reads::{FullEnvironmentRead, Reads};
use crate::renewals::LOCALE;
use crate::source_locations::reader;

/// All decisions. `environment` is that of the boot.
pub fn all(environment: &Environment, reads: &Reads, language: Language) -> Vec<Decision> {
    let read_by = |place: Option<&str>| format!("read by {}", reader(place));
    let inputs = EnvironmentInputs { environment, reads };
    let counts = |name: &OsStr| {
        inputs.compares(language, name) || environment.value(name.to_str().unwrap_or_default()).is_none()
    };
    let variables = reads.variables.iter().filter(|(name, _)| counts(name));
    let variables = variables
        .map(|(name, place)| Decision::new(&name.to_string_lossy(), Verdict::Input, read_by(place.as_deref())));
    let wholes = reads.wholes.iter().map(|whole| {
        let why = match whole {
            FullEnvironmentRead::Read(place) => read_by(Some(place)),
            FullEnvironmentRead::Passed(program) => format!("passed to {program}"),
        };
        Decision::new("every variable", Verdict::Input, why)
    });
    let bound = reads.renewals.bound.iter();
    let bound = bound.map(|(setting, place)| {
        let what = if setting == LOCALE { LOCALE_OF_TEXT } else { setting };
        Decision::new(what, Verdict::Input, format!("its effect is {}", read_by(Some(place))))
    });
    let facts = of_facts(reads).map(|(name, place)| Decision::new(&name, Verdict::Input, read_by(place)));
    variables.chain(wholes).chain(bound).chain(facts).chain(reads.decided.iter().cloned()).collect()
}
