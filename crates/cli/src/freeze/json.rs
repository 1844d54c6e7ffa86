//! The outcome of a freeze, as JSON.

use std::path::Path;

use failure::Result;
use freeze::{Finding, FreezeOutcome};
use serde::Serialize;
use store::PulledFile;

use crate::{render, starts};

/// The output of `snapboot freeze --json`. Times in seconds, sizes in bytes.
#[derive(Serialize)]
#[serde(tag = "outcome", rename_all = "lowercase")]
enum Report<'a> {
    Written {
        settings: Option<&'a Path>,
        image: &'a Path,
        size: u64,
        took: f64,
        thaws_in: f64,
        variants: u32,
        at_terminals: u32,
        in_other_locale: u32,
        on_higher_level: u32,
        preloaded: &'a [String],
        files: usize,
        learnt: usize,
        patterns: usize,
        left_out: Vec<Left<'a>>,
        depends: &'a [String],
        warnings: &'a [String],
        replaces: Option<String>,
    },
    Pulled {
        settings: Option<&'a Path>,
        image: &'a Path,
        size: u64,
        took: f64,
        warnings: &'a [String],
    },
    Refused {
        settings: Option<&'a Path>,
        findings: Vec<Found<'a>>,
    },
    Failed {
        settings: Option<&'a Path>,
        message: &'a str,
    },
}

/// A module that must be left to each start.
#[derive(Serialize)]
struct Left<'a> {
    name: &'a str,
    why: String,
}

/// A reason not to freeze.
#[derive(Serialize)]
struct Found<'a> {
    kind: &'a str,
    descriptor: Option<&'a str>,
    text: &'a str,
    opened_by: Option<&'a str>,
}

impl<'a> Found<'a> {
    fn new(finding: &'a Finding) -> Self {
        Found {
            kind: &finding.kind,
            descriptor: finding.descriptor.as_deref(),
            text: &finding.text,
            opened_by: finding.opened_by.as_deref(),
        }
    }
}

/// Prints that of an image which was taken from the remote store.
pub fn print_pulled(pulled: &PulledFile, warnings: &[String], settings: Option<&Path>) -> Result<()> {
    let PulledFile { path, size, took } = pulled;
    render::print_json(&Report::Pulled { settings, image: path, size: *size, took: took.as_secs_f64(), warnings })
}

/// Prints it; nothing if a freeze was interrupted. `settings`: the file of settings that were not on the command line.
pub fn print(outcome: &FreezeOutcome, settings: Option<&Path>) -> Result<()> {
    let report = match outcome {
        FreezeOutcome::Written(written) => Report::Written {
            settings,
            image: &written.path,
            size: written.size,
            took: written.took.as_secs_f64(),
            thaws_in: written.thaws_in.as_secs_f64(),
            variants: written.variants,
            at_terminals: written.at_terminals,
            in_other_locale: written.in_other_locale,
            on_higher_level: written.on_higher_level,
            preloaded: &written.preloaded,
            files: written.loaded,
            learnt: written.learnt,
            patterns: written.patterns,
            left_out: written
                .left_out
                .iter()
                .map(|left| Left { name: &left.name, why: left.why.to_string() })
                .collect(),
            depends: &written.depends,
            warnings: &written.warnings,
            replaces: written.replaced.as_ref().and_then(starts::retired_by).map(|retired| retired.to_string()),
        },
        FreezeOutcome::Refused(findings) => {
            Report::Refused { settings, findings: findings.iter().map(Found::new).collect() }
        }
        FreezeOutcome::Failed(failure) => Report::Failed { settings, message: &failure.message },
        FreezeOutcome::Interrupted(_) => return Ok(()),
    };
    render::print_json(&report)
}
