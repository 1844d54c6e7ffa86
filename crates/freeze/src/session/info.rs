//! The description of an image, for the user.

use std::ffi::OsStr;
use std::time::SystemTime;

use image_file::info::Info;
use judge::environment::Environment;
use judge::environment_inputs::EnvironmentInputs;
use judge::{decisions, depends};
use recorder::Accesses;

use super::Session;
use crate::report::Report;

impl Session<'_> {
    pub(super) fn info(&self, environment: &Environment, report: &Report, accesses: &Accesses) -> Info {
        let text = |string: &OsStr| string.to_string_lossy().into_owned();
        let created = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Info {
            snapboot: env!("CARGO_PKG_VERSION").to_owned(),
            created: created.as_secs(),
            runtime: report.runtime.clone().unwrap_or_else(|| self.runtime.label.clone()),
            typed: self.request.command.iter().map(|word| text(word)).collect(),
            origin: self.request.origin.clone(),
            main: self.main.kind.word().to_owned(),
            preloads: self.preloads().to_vec(),
            loaded: report.loaded.len(),
            learnt: report.learnt.clone(),
            patterns: report.patterns,
            left_out: report.left_out.clone(),
            cpu: self.request.cpu.word().to_owned(),
            seconds: self.begun.elapsed().as_secs_f64(),
            variables: EnvironmentInputs { environment, reads: &report.reads }
                .compared_names(self.runtime.language)
                .map(text)
                .collect(),
            notes: self.messages.clone(),
            system: accesses.system.keys().map(|path| text(path.as_os_str())).collect(),
            warnings: report.warnings.clone(),
            depends: depends::all(environment, &report.reads, &report.compared, !report.preloaded.is_empty()),
            decisions: decisions::all(environment, &report.reads, self.runtime.language),
        }
    }
}
