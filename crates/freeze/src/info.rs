//! The description of an image, for the user.

use std::ffi::OsStr;
use std::time::{Instant, SystemTime};

use image_file::info::Info;
use judge::decisions;
use judge::environment::Environment;
use judge::environment_inputs::EnvironmentInputs;
use judge::reads::Reads;
use recorder::Accesses;

use crate::boot::Report;
use crate::program::Program;
use crate::programs::Freeze;

/// The description of an image of this boot. The freeze began at `begun`.
pub fn info(
    freeze: &Freeze<'_>,
    environment: &Environment,
    report: &Report,
    accesses: &Accesses,
    begun: Instant,
) -> Info {
    let Freeze { request, program, .. } = *freeze;
    let text = |string: &OsStr| string.to_string_lossy().into_owned();
    let created = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Info {
        snapboot: env!("CARGO_PKG_VERSION").to_owned(),
        created: created.as_secs(),
        runtime: report.runtime.clone().unwrap_or_else(|| program.runtime.label.clone()),
        typed: request.command.iter().map(|word| text(word)).collect(),
        origin: request.origin.clone(),
        main: program.main.kind.word().to_owned(),
        preloads: freeze.preloads().to_vec(),
        loaded: report.loaded.len(),
        learnt: report.learnt.clone(),
        patterns: report.patterns,
        left_out: report.left_out.clone(),
        cpu: program.cpu.word().to_owned(),
        seconds: begun.elapsed().as_secs_f64(),
        variables: EnvironmentInputs { environment, reads: &report.reads }
            .compared_names(program.runtime.language)
            .map(text)
            .collect(),
        notes: program.messages.clone(),
        system: accesses.system.keys().map(|path| text(path.as_os_str())).collect(),
        warnings: report.warnings.clone(),
        depends: depends(program, environment, &report.reads, report),
        decisions: decisions::all(environment, &report.reads, program.runtime.language),
    }
}

/// Dependencies of an image that the user may not expect. `reads`: what counts of those of the boot that this is the report of.
pub fn depends(program: &Program, environment: &Environment, reads: &Reads, report: &Report) -> Vec<String> {
    let found = judge::depends::all(environment, reads, &report.compared, !report.preloaded.is_empty());
    found.into_iter().chain(program.depends_on_cpu()).collect()
}
