//! `snapboot explain`: where the time of a start goes, and what to do about it.

mod rows;
mod show;

use std::path::Path;

use explain::{Measurement, Report, Subject};
use failure::{Failure, Result};
use image_file::kind::Kind;
use installation::Installation;

use crate::arguments::Explain;
use crate::progress::Progress;
use crate::render;

/// Runs the subcommand; returns the exit status.
pub fn main(arguments: &Explain) -> Result<u8> {
    let installation = Installation::find()?;
    let progress = Progress::still(arguments.telling.quiet);
    let tell = |text: &str| progress.phase(text);
    let measurement = Measurement { runs: arguments.runs, tell: &tell };
    let is_image = Kind::is_image(Path::new(&arguments.words[0]));
    let mut subject = match is_image {
        true => Subject::thawed(&arguments.words)?,
        false => Subject::ordinary(&arguments.words, &installation)?,
    };
    subject.allow_failure = arguments.allow_failure;
    let starts = vec![subject.measure(&measurement)?];
    progress.stop();
    let report = Report {
        starts,
        advice: Vec::new(),
        snapboot: env!("CARGO_PKG_VERSION").to_owned(),
        machine: machine(),
        when: jiff::Timestamp::now().strftime("%Y-%m-%d %H:%M:%S UTC").to_string(),
    };
    render::print(&match arguments.json {
        true => explain::trace(&report) + "\n",
        false => show::page(&report, &show::Look::of_terminal(arguments.all)),
    })?;
    if let Some(file) = &arguments.html {
        std::fs::write(file, explain::page(&report)).map_err(|error| Failure::io("write", file, &error))?;
    }
    Ok(0)
}

/// CPU and kernel.
fn machine() -> String {
    let cpus = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpus.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": ")).map(|(_, model)| model);
    let kernel = rustix::system::uname();
    format!("{}, Linux {}", model.unwrap_or("unknown CPU"), kernel.release().to_string_lossy())
}
