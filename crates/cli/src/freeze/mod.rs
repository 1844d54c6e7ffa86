//! `snapboot freeze`: boots a program and writes its image.
//!
//! The rooms are the steps: [`mistakes`] (in the command line), [`output`] (where to), [`variables`] and [`environment`] (what the boot
//! sees), [`cpu`] (for which CPUs), [`control_dir`] (where the image comes into being), [`boot`] (the runtime with the freezer inside),
//! [`report`] (what came of it), [`remedies`] (what helps), [`reads`] (what it read), [`depends`] (what of that to tell), [`inputs`],
//! [`rehearse`], [`order`], [`assemble`] (the finished image) and [`first_start`].

mod assemble;
mod boot;
mod confined;
mod control_dir;
mod cpu;
mod depends;
mod elsewhere;
mod environment;
mod exceptions;
mod first_start;
mod hints;
mod inputs;
mod interrupt;
mod kernel_files;
mod leftovers;
mod mistakes;
mod order;
mod output;
mod plugins;
mod reads;
mod rehearse;
mod remedies;
mod report;
mod variables;
mod watched;

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use image::fact_kind;

use crate::arguments::{Cpu, Freeze};
use crate::failure::{Failure, Result};
use crate::fault::Point;
use crate::human;
use crate::info::{Info, Origin};
use crate::installation::Installation;
use crate::opened::Opened;
use crate::page;
use crate::progress::Progress;
use crate::rotation;
use crate::runtime::{probe, resolve, Main, Runtime, Shim};
use crate::starts::{self, Starts};
use assemble::{Assembly, Finished, Parts};
use boot::{early_reads, fallback_command, Boot, Ended, Watch};
use control_dir::ControlDir;
use elsewhere::Elsewhere;
use environment::Environment;
use inputs::{Booted, Ignored};
use interrupt::{die_of, interrupted, Interrupt};
use leftovers::Temporary;
use mistakes::{misplaced_options, preloads};
use recorder::Notes;
use report::{outcome, Outcome, Report};

pub use confined::main as confined;
pub use inputs::content_digest;
pub use watched::{main as watched, trial as watch_trial};

pub use environment::Environment as BootEnvironment;
pub use variables::help as environment_help;

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
    if let Some(mistake) = variables::mistake(&arguments.environment, &arguments.withheld) {
        return Err(Failure::refusal(mistake));
    }
    let preloads = preloads(&arguments.preload)?;
    let words: Vec<OsString> = std::env::args_os().collect();
    if let Some(note) = misplaced_options(&arguments.command, &words) {
        page::tell(&format!("snapboot: note: {note}"));
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
    let module = main.module().map(PathBuf::from);
    let named = main.script.as_deref().or(module.as_deref()).unwrap_or(&resolved.named);
    let output = output::path(arguments.output.as_deref(), named)?;
    let sources = resolved.followed.iter().chain(&main.script);
    output::check(&output, sources.map(|path| path.as_path()))?;
    if arguments.max_thaws.is_some() {
        rotation::check_counter(&output)?;
    }
    // Once is enough: who freezes the same again has read it.
    let notes: Vec<String> = resolved.shim.iter().map(shim_note).collect();
    let replaced = Opened::open(&output).ok();
    let known = replaced.as_ref().map(|old| Info::of(&old.tables()).notes).unwrap_or_default();
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
        replaced: replaced.as_ref().map(|old| (old.head().tables_sum, Starts::of(old))),
    };
    starts::prepare();
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
    /// The image that is to be replaced, if any: by which files outside of it know it, and how its starts have gone.
    replaced: Option<(u64, Option<Starts>)>,
}

/// What a freeze has to say when the image is there.
struct Made {
    warnings: Vec<String>,
    summary: String,
}

impl Session<'_> {
    /// Makes the image and reports; a signal that came meanwhile ends the process once everything is cleaned up.
    fn run(&self, output: &Path) -> Result<u8> {
        let interrupt =
            Interrupt::notice().map_err(|error| Failure::failed(format!("cannot watch for signals: {error}.")))?;
        let made = self.make(output, &interrupt);
        self.progress.stop();
        let reported = made.and_then(|made| {
            for warning in &made.warnings {
                page::tell(&format!("snapboot: warning: {warning}"));
            }
            page::print(&made.summary)
        });
        match interrupt.signal() {
            Some(signal) => Ok(die_of(signal)),
            None => reported.map(|()| 0),
        }
    }

    /// Boots and assembles.
    fn make(&self, output: &Path, interrupt: &Interrupt) -> Result<Made> {
        let installation = Installation::find()?;
        let dir = ControlDir::create(output)?;
        Point::AfterControlDir.reached();
        let environment = &early_reads(&installation, self.runtime, self.main, self.environment, &dir)?;
        let command = fallback_command(self.runtime, self.main);
        // Relative names that cannot be followed are followed from nowhere.
        let start = std::env::current_dir().unwrap_or_default();
        let mut assembly = Assembly::new(&dir);
        let mut warnings: Vec<String> = Vec::new();
        let mut first = None;
        let mut asked = None;
        let count = self.arguments.variants;
        for number in 1..=count {
            let boot = Boot {
                installation: &installation,
                runtime: self.runtime,
                main: self.main,
                preloads: &self.preloads,
                environment,
                interrupt,
                progress: self.progress,
                number: if count == 1 { String::new() } else { format!(" ({number} of {count})") },
            };
            let (mut report, mut notes, begun) = self.boot(&boot, &dir)?;
            Point::AfterDump.reached();
            interrupt.check()?;
            self.progress.phase("checking the inputs, writing the tables");
            let known = report.reads.guards.iter().map(OsString::from);
            let guards: Vec<OsString> =
                self.arguments.guards.iter().chain(&report.guards).cloned().chain(known).collect();
            let bytecode = environment.value("PYTHONPYCACHEPREFIX");
            let ignored = Ignored::new(output, installation.own_files(), bytecode);
            if let Some(place) = report.keeps_folder.first().cloned() {
                if number == 1 {
                    asked = self.boot_elsewhere(&boot, &dir, &report.kept)?;
                }
                if !asked.as_ref().is_some_and(|asked| elsewhere::follow(asked, &start, &mut notes, &ignored)) {
                    report.reads.facts.push((fact_kind::CWD, 0));
                    report.reads.places.entry((fact_kind::CWD, 0)).or_insert(place);
                }
            }
            let booted = Booted {
                notes: &notes,
                loaded: &report.loaded,
                importers: &report.importers,
                ignored: &ignored,
                begun,
                script: self.main.script.as_deref(),
                start: &start,
            };
            assembly.add(&Parts {
                command: &command,
                name: Path::new(&self.arguments.command[0]).file_name().unwrap_or_default(),
                booted: &booted,
                language: self.runtime.language,
                environment,
                reads: &report.reads,
                policy: self.arguments.policy.number(),
                check_pages: self.arguments.check_pages,
                cpu: self.arguments.cpu,
                most_age: self.arguments.max_age,
                most_thaws: self.arguments.max_thaws,
                guards: &guards,
                info: &self.info(environment, &report, &notes),
            })?;
            report.warnings.extend(plugins::warning(&report.loaded));
            warnings.extend(report.warnings.iter().filter(|it| !warnings.contains(it)).cloned().collect::<Vec<_>>());
            if notes.hidden && !warnings.iter().any(|warning| warning == HIDDEN) {
                warnings.push(HIDDEN.to_owned());
            }
            first.get_or_insert(report);
        }
        if assembly.shares_layout() {
            warnings.push(SHARED_LAYOUT.to_owned());
        }
        let finished = assembly.finish(output, &command, self.arguments.max_thaws, interrupt)?;
        starts::begin(finished.image_sum, self.replaced.as_ref().map(|(sum, _)| *sum));
        let report = first.unwrap_or_default();
        let summary = summary(output, &finished, self.begun.elapsed(), &report, count);
        let depends = depends::lines(&depends::all(environment, &report));
        let hint = hints::line(&report);
        let summary = [summary]
            .iter()
            .chain(&depends)
            .chain(&hint)
            .chain(&self.epitaph())
            .map(|line| format!("{line}\n"))
            .collect();
        Ok(Made { warnings, summary })
    }

    /// Boots once, and once more where something was left behind, to learn whether every start makes its own; then to learn where in
    /// the program comes from what is in the way. Also returns when the boot began (ns since 1970).
    fn boot(&self, boot: &Boot<'_>, dir: &ControlDir) -> Result<(Report, Notes, i64)> {
        let begun = dir.now()?;
        let (outcome, notes) = self.boot_once(boot, dir, &Watch::Inputs)?;
        let temporary = Temporary::new(boot.environment);
        let mut left = leftovers::left(&notes, dir);
        let mut findings = match outcome {
            Outcome::Written(report) if left.is_empty() => return Ok((*report, notes, begun)),
            Outcome::Written(_) if left.iter().any(|it| temporary.holds(it)) => Vec::new(),
            Outcome::Written(_) => {
                self.progress.phase("booting again to see whether every start makes files of its own");
                let begun = dir.now()?;
                let again = self.boot_once(boot, dir, &Watch::InputsAgain);
                boot.interrupt.check()?;
                match again {
                    Ok((outcome, notes)) => {
                        left = leftovers::left(&notes, dir);
                        match outcome {
                            Outcome::Written(report) if left.is_empty() => return Ok((*report, notes, begun)),
                            Outcome::Written(_) => Vec::new(),
                            Outcome::Refused(findings) => findings,
                        }
                    }
                    // It does not start where the first one's is still there.
                    Err(_) => Vec::new(),
                }
            }
            Outcome::Refused(findings) => {
                left.retain(|it| temporary.holds(it));
                findings
            }
        };
        let mut origins = Vec::new();
        if !left.is_empty() || findings.iter().any(|finding| finding.kind == "descriptor") {
            self.progress.phase("booting again to see where that comes from");
            let folders = left.iter().filter_map(|it| it.path.parent()).map(Path::to_owned).collect();
            leftovers::clean_up(&left, &temporary);
            // Whatever came of this boot, the findings stand.
            let last = boot.run(dir, &Watch::Origins(folders));
            boot.interrupt.check()?;
            origins = report::origins(dir);
            let others = match last {
                Ok(Ended::Exited(_, notes)) => leftovers::left(&notes, dir),
                _ => Vec::new(),
            };
            findings.extend(leftovers::findings(&left, &others, dir));
            leftovers::clean_up(&others, &temporary);
        }
        self.progress.stop();
        Err(report::refusal(&findings, &origins))
    }

    /// Boots once more, in a folder that shows what is made of the current directory. Returns what was looked for below it; None when the
    /// program does more with it than to keep it, as in the first boot, or does not boot there.
    fn boot_elsewhere(
        &self,
        boot: &Boot<'_>,
        dir: &ControlDir,
        kept: &[OsString],
    ) -> Result<Option<BTreeSet<PathBuf>>> {
        // A runtime that is named from here is not found from there.
        if Path::new(&self.main.argv[0]).is_relative() && self.main.argv[0].as_bytes().contains(&b'/') {
            return Ok(None);
        }
        self.progress.phase("booting again in another folder to see what comes of it");
        let elsewhere = Elsewhere::create(dir)?;
        let ended = self.boot_once(boot, dir, &Watch::Elsewhere(elsewhere.folder().to_owned()));
        boot.interrupt.check()?;
        Ok(match ended {
            Ok((Outcome::Written(report), notes)) if !report.keeps_folder.is_empty() && report.kept == kept => {
                elsewhere.asked(&notes, &report.importers)
            }
            _ => None,
        })
    }

    fn boot_once(&self, boot: &Boot<'_>, dir: &ControlDir, watch: &Watch) -> Result<(Outcome, Notes)> {
        let (status, notes) = match boot.run(dir, watch)? {
            Ended::Exited(status, notes) => (status, notes),
            Ended::Interrupted(signal) => return Err(interrupted(signal)),
        };
        match outcome(dir, status, self.runtime, boot.environment) {
            Ok(outcome) => Ok((outcome, notes)),
            Err(failure) => {
                self.progress.stop();
                // Whoever fails on a full disk often cannot write down why.
                dir.has_room()?;
                Err(failure)
            }
        }
    }

    /// What has retired the image that was replaced.
    fn epitaph(&self) -> Option<String> {
        self.replaced.as_ref()?.1.as_ref()?.epitaph()
    }

    fn info(&self, environment: &Environment, report: &Report, notes: &Notes) -> Info {
        let text = |string: &OsStr| string.to_string_lossy().into_owned();
        let created = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Info {
            snapboot: env!("CARGO_PKG_VERSION").to_owned(),
            created: created.as_secs(),
            runtime: report.runtime.clone().unwrap_or_else(|| self.runtime.label.clone()),
            typed: self.arguments.command.iter().map(|word| text(word)).collect(),
            origin: Origin::of(&self.arguments.command),
            main: self.main.kind.word().to_owned(),
            preloads: self.preloads.clone(),
            loaded: report.loaded.len(),
            cpu: self.arguments.cpu.word().to_owned(),
            seconds: self.begun.elapsed().as_secs_f64(),
            variables: environment.compared_names(self.runtime.language, &report.reads).map(text).collect(),
            notes: self.notes.clone(),
            system: notes.system.keys().map(|path| text(path.as_os_str())).collect(),
            warnings: report.warnings.clone(),
            depends: depends::all(environment, report),
        }
    }
}

/// `rails.img  113 MB  2.3 s  preloaded config/environment (1868 files)  thaws in 15 ms`.
fn summary(output: &Path, finished: &Finished, took: Duration, report: &Report, variants: u32) -> String {
    let shown = std::env::current_dir().ok().and_then(|here| output.strip_prefix(here).ok().map(Path::to_owned));
    let names: Vec<&str> = report.preloaded.iter().map(|name| name.strip_prefix("./").unwrap_or(name)).collect();
    let preloaded = if names.is_empty() { "loaded".to_owned() } else { format!("preloaded {}", names.join(", ")) };
    let variants = if variants == 1 { String::new() } else { format!("{variants} variants, ") };
    format!(
        "{}  {}  {}  {variants}{preloaded} ({})  thaws in {}",
        shown.as_deref().unwrap_or(output).display(),
        human::size(finished.size),
        human::seconds(took),
        human::count(report.loaded.len(), "file"),
        human::whole_milliseconds(finished.thaws_in)
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
        let finished = Finished { size: 113_000_000, thaws_in: Duration::from_micros(14_700), image_sum: 0 };
        let line = summary(Path::new("/x/rails.img"), &finished, Duration::from_millis(2300), &report, 1);
        assert_eq!(line, "/x/rails.img  113 MB  2.3 s  preloaded config/environment (2 files)  thaws in 15 ms");
    }
}
