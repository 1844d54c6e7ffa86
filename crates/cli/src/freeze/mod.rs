//! `snapboot freeze`: boots a program and writes its image.
//!
//! The rooms are the steps: [`mistakes`] (in the command line), [`output`] (where to), [`environment`] (what the boot sees), [`cpu`]
//! (for which CPUs), [`control_dir`] (where the image comes into being), [`boot`] (the runtime with the freezer inside), [`report`]
//! (what came of it), [`reads`] (what it read), [`inputs`], [`rehearse`], [`order`] and [`assemble`] (the finished image).

mod assemble;
mod boot;
mod confined;
mod control_dir;
mod cpu;
mod environment;
mod exceptions;
mod inputs;
mod interrupt;
mod kernel_files;
mod mistakes;
mod order;
mod output;
mod reads;
mod rehearse;
mod report;
mod watched;

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use crate::arguments::{Cpu, Freeze};
use crate::failure::{Failure, Result};
use crate::fault::Point;
use crate::human;
use crate::info::Info;
use crate::installation::Installation;
use crate::opened::Opened;
use crate::page;
use crate::progress::Progress;
use crate::rotation;
use crate::runtime::{probe, resolve, Main, Runtime, Shim};
use assemble::{Assembly, Parts};
use boot::{fallback_command, Boot, Ended};
use control_dir::ControlDir;
use environment::Environment;
use inputs::{Booted, Ignored};
use interrupt::{die_of, Interrupt};
use mistakes::{misplaced_options, preloads};
use recorder::Notes;
use report::{outcome, Outcome, Report};

pub use confined::main as confined;
pub use inputs::content_digest;
pub use watched::main as watched;

pub use environment::{help as environment_help, Environment as BootEnvironment};

/// PATH when there is none, as shells have it.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// The value of PATH.
pub fn search_path() -> OsString {
    std::env::var_os("PATH").unwrap_or_else(|| DEFAULT_PATH.into())
}

/// Runs the subcommand; returns the exit status.
pub fn main(arguments: &Freeze) -> Result<u8> {
    let begun = Instant::now();
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return Err(Failure::refusal(
            "images can be made on Linux x86-64 only: not yet elsewhere. Programs run as before.",
        ));
    }
    let search_path = search_path();
    if let Some(mistake) = environment::mistake(&arguments.environment, &arguments.withheld) {
        return Err(Failure::refusal(mistake));
    }
    let preloads = preloads(&arguments.preload)?;
    let words: Vec<OsString> = std::env::args_os().collect();
    if let Some(note) = misplaced_options(&arguments.command, &words) {
        eprintln!("snapboot: note: {note}");
    }
    let environment = Environment::pick(std::env::vars_os(), &arguments.environment, &arguments.withheld);
    let mut resolved = resolve(&arguments.command, &search_path)?;
    let progress = Progress::start();
    progress.phase(format!("asking {}", resolved.program.display()));
    let runtime = probe(&resolved.program, environment.seen())?;
    if runtime.program != resolved.program {
        let shim = Shim { script: resolved.program.clone(), program: runtime.program.clone() };
        resolved.argv[0] = shim.program.clone().into_os_string();
        resolved.shim = Some(shim);
    }
    let environment = match arguments.cpu {
        Cpu::Native => environment,
        Cpu::Baseline => cpu::for_baseline(environment, &runtime.program)?,
    };
    let main = Main::split(runtime.language, std::mem::take(&mut resolved.argv), &search_path)?;
    let named = main.script.as_deref().unwrap_or(&resolved.named);
    let output = output::path(arguments.output.as_deref(), named)?;
    let sources = resolved.followed.iter().chain(&main.script);
    output::check(&output, sources.map(|path| path.as_path()))?;
    if arguments.max_thaws.is_some() {
        rotation::check_counter(&output)?;
    }
    // Once is enough: who freezes the same again has read it.
    let notes: Vec<String> = resolved.shim.iter().map(shim_note).collect();
    let known = Opened::open(&output).map(|old| Info::of(&old.tables()).notes).unwrap_or_default();
    for note in notes.iter().filter(|note| !known.contains(note)) {
        progress.line(&format!("snapboot: note: {note}"));
    }
    let freeze = Session {
        arguments,
        preloads,
        notes,
        begun,
        environment: &environment,
        runtime: &runtime,
        main: &main,
        progress: &progress,
    };
    freeze.run(&output)
}

fn shim_note(shim: &Shim) -> String {
    format!(
        "{} is a shim; the image keeps to what that leads to now, {}",
        shim.script.display(),
        shim.program.display()
    )
}

/// Variants that are none.
const SHARED_LAYOUT: &str =
    "the variants have the same memory layout, since the kernel gives every process the same one: address \
    randomization is switched off here (kernel.randomize_va_space, setarch -R)";

/// What the recorder could not see.
const HIDDEN: &str =
    "a process that the program started while it booted keeps its memory from others, so the files that it asked for \
    are not known: the image does not become stale when they change";

/// One freeze, with all that was found out before it starts.
struct Session<'a> {
    arguments: &'a Freeze,
    preloads: Vec<String>,
    begun: Instant,
    environment: &'a Environment,
    /// What the user should know about what is frozen.
    notes: Vec<String>,
    runtime: &'a Runtime,
    main: &'a Main,
    progress: &'a Progress,
}

impl Session<'_> {
    /// Boots, assembles and reports.
    fn run(&self, output: &Path) -> Result<u8> {
        let installation = Installation::find()?;
        let interrupt =
            Interrupt::notice().map_err(|error| Failure::failed(format!("cannot watch for signals: {error}.")))?;
        let dir = ControlDir::create(output)?;
        Point::AfterControlDir.reached();
        let begun = dir.made_at()?;
        let command = fallback_command(self.runtime, self.main);
        let mut assembly = Assembly::new(&dir);
        let mut warnings: Vec<String> = Vec::new();
        let mut first = None;
        let count = self.arguments.variants;
        for number in 1..=count {
            let boot = Boot {
                installation: &installation,
                runtime: self.runtime,
                main: self.main,
                preloads: &self.preloads,
                environment: self.environment,
                interrupt: &interrupt,
                progress: self.progress,
                number: if count == 1 { String::new() } else { format!(" ({number} of {count})") },
            };
            let (report, notes) = match self.boot(&boot, &dir)? {
                Ok(booted) => booted,
                Err(signal) => {
                    self.progress.stop();
                    drop(dir);
                    return Ok(die_of(signal));
                }
            };
            Point::AfterDump.reached();
            self.progress.phase("checking the inputs, writing the tables");
            let guards: Vec<OsString> = self.arguments.guards.iter().chain(&report.guards).cloned().collect();
            let bytecode = self.environment.value("PYTHONPYCACHEPREFIX");
            let booted = Booted {
                notes: &notes,
                loaded: &report.loaded,
                importers: &report.importers,
                ignored: &Ignored::new(output, installation.own_files(), bytecode),
                begun,
            };
            assembly.add(&Parts {
                command: &command,
                name: Path::new(&self.arguments.command[0]).file_name().unwrap_or_default(),
                booted: &booted,
                language: self.runtime.language,
                environment: self.environment,
                reads: &report.reads,
                policy: self.arguments.policy.number(),
                check_pages: self.arguments.check_pages,
                cpu: self.arguments.cpu,
                most_age: self.arguments.max_age,
                most_thaws: self.arguments.max_thaws,
                guards: &guards,
                info: &self.info(&report, &notes),
            })?;
            warnings.extend(report.warnings.iter().filter(|it| !warnings.contains(it)).cloned().collect::<Vec<_>>());
            if notes.hidden && !warnings.iter().any(|warning| warning == HIDDEN) {
                warnings.push(HIDDEN.to_owned());
            }
            first.get_or_insert(report);
        }
        if assembly.shares_layout() {
            warnings.push(SHARED_LAYOUT.to_owned());
        }
        let size = assembly.finish(output, &command, self.arguments.max_thaws)?;
        self.progress.stop();
        for warning in &warnings {
            eprintln!("snapboot: warning: {warning}");
        }
        let report = first.unwrap_or_default();
        page::print(&(summary(output, size, self.begun.elapsed(), &report, count) + "\n"))?;
        Ok(0)
    }

    /// Boots once, and a second time to learn where descriptors come from when they are in the way. The inner error is the
    /// signal that ended it.
    fn boot(&self, boot: &Boot<'_>, dir: &ControlDir) -> Result<std::result::Result<(Report, Notes), i32>> {
        boot.ask_site(dir)?;
        let (status, notes) = match boot.run(dir, false)? {
            Ended::Exited(status, notes) => (status, notes),
            Ended::Interrupted(signal) => return Ok(Err(signal)),
        };
        let outcome = outcome(dir, status, self.runtime, self.environment);
        let findings = match outcome {
            Ok(Outcome::Written(report)) => return Ok(Ok((report, notes))),
            Ok(Outcome::Refused(findings)) => findings,
            Err(failure) => {
                self.progress.stop();
                // Whoever fails on a full disk often cannot write down why.
                dir.has_room()?;
                return Err(failure);
            }
        };
        let mut origins = Vec::new();
        if findings.iter().any(|finding| finding.kind == "descriptor") {
            self.progress.phase("booting again to see where descriptors are opened");
            match boot.run(dir, true) {
                Ok(Ended::Interrupted(signal)) => return Ok(Err(signal)),
                // Whatever came of the second boot, the findings of the first one stand.
                _ => origins = report::origins(dir),
            }
        }
        self.progress.stop();
        Err(report::refusal(&findings, &origins))
    }

    fn info(&self, report: &Report, notes: &Notes) -> Info {
        let text = |string: &OsStr| string.to_string_lossy().into_owned();
        let created = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Info {
            snapboot: env!("CARGO_PKG_VERSION").to_owned(),
            created: created.as_secs(),
            runtime: report.runtime.clone().unwrap_or_else(|| self.runtime.label.clone()),
            typed: self.arguments.command.iter().map(|word| text(word)).collect(),
            main: self.main.kind.word().to_owned(),
            preloads: self.preloads.clone(),
            loaded: report.loaded.len(),
            cpu: self.arguments.cpu.word().to_owned(),
            seconds: self.begun.elapsed().as_secs_f64(),
            variables: self.environment.compared_names(self.runtime.language, &report.reads).map(text).collect(),
            notes: self.notes.clone(),
            system: notes.system.iter().map(|path| text(path.as_os_str())).collect(),
            warnings: report.warnings.clone(),
        }
    }
}

/// `rails.img  113 MB  2.3 s  preloaded config/environment (1868 files)`.
fn summary(output: &Path, size: u64, took: Duration, report: &Report, variants: u32) -> String {
    let shown = std::env::current_dir().ok().and_then(|here| output.strip_prefix(here).ok().map(Path::to_owned));
    let names: Vec<&str> = report.preloaded.iter().map(|name| name.strip_prefix("./").unwrap_or(name)).collect();
    let preloaded = if names.is_empty() { "loaded".to_owned() } else { format!("preloaded {}", names.join(", ")) };
    let variants = if variants == 1 { String::new() } else { format!("{variants} variants, ") };
    format!(
        "{}  {}  {}  {variants}{preloaded} ({})",
        shown.as_deref().unwrap_or(output).display(),
        human::size(size),
        human::seconds(took),
        human::count(report.loaded.len(), "file")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_is_one_line() {
        let report = Report {
            loaded: vec!["/a".into(), "/b".into()],
            preloaded: vec!["./config/environment".into()],
            ..Report::default()
        };
        let line = summary(Path::new("/x/rails.img"), 113_000_000, Duration::from_millis(2300), &report, 1);
        assert_eq!(line, "/x/rails.img  113 MB  2.3 s  preloaded config/environment (2 files)");
    }
}
