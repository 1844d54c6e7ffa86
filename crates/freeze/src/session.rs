//! One freeze from its request to its image: which boots it takes, and how their results combine.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Instant;

use failure::Failure;
use image_file::info::Info;
use image_file::starts::{self, Starts};
use image_file::{rotation, ImageFile};
use judge::environment::Environment;
use judge::findings::{add_origins, Finding};
use judge::variables;
use recorder::{Accesses, State};
use runtime::{probe, resolve, search_path, Language, Main, Runtime, Shim};

use crate::application::{self, Applied};
use crate::boot::{early_reads, Boot, Ended, Exited, Running, Watch};
use crate::control_dir::ControlDir;
use crate::cpu;
use crate::fault::Point;
use crate::interrupt::Interrupt;
use crate::lacks::Lacks;
use crate::leftovers::{self, Temporary};
use crate::outcome::{Result, Stop, Written};
use crate::output;
use crate::progress::{Progress, Step};

use crate::report::{self, outcome, Outcome, Report};
use crate::request::{Cpu, FreezeRequest};
use crate::training::Trainer;

mod derived;
mod everyday;
mod home;
mod info;
mod more_boots;
mod other_start;
mod search_path;
mod start_facts;
mod terminals;
mod variants;

use variants::Made;

/// Resolves what to freeze, and freezes it.
pub fn freeze(request: &FreezeRequest, progress: &dyn Progress) -> Result<Written> {
    let begun = Instant::now();
    if !cfg!(target_os = "linux") || !inputs::cpu::IS_SUPPORTED {
        let message = "images can be made on Linux x86-64 only: not yet elsewhere. Programs run as before.";
        return Err(Failure::refusal(message).into());
    }
    recipes::load_own()?;
    if let Some(mistake) = variables::mistake(&request.environment, &request.withheld) {
        return Err(Failure::refusal(mistake).into());
    }
    let search_path = search_path();
    let environment = Environment::pick(std::env::vars_os(), &request.environment, &request.withheld);
    let mut resolved = resolve(&request.command, &search_path)?;
    progress.step(&Step::Probe(&resolved.program));
    let runtime = probe(&resolved.program, environment.seen())?;
    if runtime.program != resolved.program {
        let shim = Shim { script: resolved.program.clone(), program: runtime.program.clone() };
        resolved.argv[0] = shim.program.clone().into_os_string();
        resolved.executed.clone_from(&shim.program);
        resolved.shim = Some(shim);
    }
    let environment = match request.cpu {
        Cpu::Native => environment,
        Cpu::Level(level) => cpu::for_level(environment, &runtime.program, level)?,
    };
    let main = Main::split(runtime.language, std::mem::take(&mut resolved.argv), &search_path)?;
    let module = main.module().map(PathBuf::from);
    let named = main.script.as_deref().or(module.as_deref()).unwrap_or(&resolved.named);
    let output = output::path(request.output.as_deref(), named)?;
    let sources = resolved.followed.iter().chain(&main.script);
    output::check(&output, sources.map(|path| path.as_path()))?;
    if request.max_thaws.is_some() {
        rotation::check_counter(&output)?;
    }
    // Only once: a user who freezes the same again has read it.
    let messages: Vec<String> = resolved.shim.iter().map(Shim::message).collect();
    let replaced = ImageFile::open(&output).ok();
    let known = replaced.as_ref().map(|old| Info::of(&old.tables()).notes).unwrap_or_default();
    messages.iter().filter(|message| !known.contains(message)).for_each(|message| progress.message(message));
    starts::prepare();
    let interrupt =
        Interrupt::notice().map_err(|error| Failure::failed(format!("cannot watch for signals: {error}.")))?;
    let recipe = (request.recipes && request.preloads.is_empty())
        .then(|| application::for_program(runtime.language, &main))
        .flatten();
    let mut session = Session {
        request,
        begun,
        recipe: recipe.unwrap_or_default(),
        without_recipe: None,
        environment: &environment,
        messages,
        runtime: &runtime,
        main: &main,
        executed: &resolved.executed,
        named,
        progress,
        interrupt: &interrupt,
    };
    let replaced = replaced.as_ref().map(|old| (old.head().image_id(), Starts::of(old)));
    let mut made = session.make(&output, replaced.clone());
    // A Ruby without its application starts faster the ordinary way, with its boot archive. A later start tries again
    // if the cause may pass.
    let waits = made.as_ref().is_err_and(Stop::is_passing) && !session.makes_do();
    let may_leave = request.store.is_none() || (runtime.language == Language::Python && !waits);
    let left = if may_leave && made.is_err() { session.leave_recipe() } else { None };
    if let (Err(Stop::Refused(_) | Stop::Failed(_)), Some(name)) = (&made, left) {
        interrupt.check()?;
        let why = match made {
            Err(Stop::Refused(findings)) => findings.first().map(|finding| finding.to_string()).unwrap_or_default(),
            Err(Stop::Failed(failure)) => failure.message,
            _ => String::new(),
        };
        let warning = format!("the application is not in the image, as the recipe for {name} has it, because {why}");
        session.without_recipe = Some(warning);
        made = session.make(&output, replaced);
    }
    // A signal takes precedence over any result: everything is cleaned up.
    interrupt.check()?;
    made
}

/// One freeze, with everything that is known before it starts.
struct Session<'a> {
    request: &'a FreezeRequest,
    begun: Instant,
    /// The additions of a framework's recipe.
    recipe: Applied,
    /// Why the recipe adds nothing, if it failed.
    without_recipe: Option<String>,
    environment: &'a Environment,
    /// Messages to the user about what is frozen.
    messages: Vec<String>,
    runtime: &'a Runtime,
    main: &'a Main,
    /// The file that the kernel executes last for the command.
    executed: &'a Path,
    /// The file that gives an image its name.
    named: &'a Path,
    progress: &'a dyn Progress,
    interrupt: &'a Interrupt,
}

impl Session<'_> {
    /// Trains, boots and assembles. If a failure may come from starts' reports or from training, tries again without
    /// the former, then without the latter; and once more after a failure that may pass. `replaced` identifies the
    /// image that is replaced, with how its starts went.
    fn make(&self, output: &Path, replaced: Option<(u64, Option<Starts>)>) -> Result<Written> {
        let dir = ControlDir::create(output)?;
        Point::AfterControlDir.reached();
        let trainer = Trainer {
            installation: &self.request.installation,
            runtime: self.runtime,
            main: self.main,
            dir: dir.path(),
            interrupt: self.interrupt,
            progress: self.progress,
            terminal: self.request.store.as_ref().and_then(|store| store.terminal.as_ref()),
        };
        let environment = &self.environment.clone().with_more_for_boot(&self.recipe.environment);
        let environment = &early_reads(&self.request.installation, self.runtime, self.main, environment, &dir)?;
        let mut profile = trainer.train(
            &self.request.training,
            &self.recipe,
            self.request.store.as_ref().map(|store| store.profile.as_path()),
        )?;
        let mut lacks = Lacks::new(self.without_recipe.iter().chain(&profile.failed).cloned());
        let mut has_failed = false;
        loop {
            let made = self.assemble(output, &dir, environment, &trainer, &profile, replaced.as_ref(), &lacks);
            let is_passing = made.as_ref().is_err_and(Stop::is_passing);
            // Nothing more can be left out; the caller may try again.
            if is_passing && !profile.is_empty() && !std::mem::replace(&mut has_failed, true) {
                self.interrupt.check()?;
                continue;
            }
            let why = match made {
                Ok(Made::Image(written)) => {
                    if lacks.lacks_only_reports() {
                        profile.give_up_reports();
                    }
                    return Ok(*written);
                }
                Ok(Made::Disproved(how)) => how,
                Err(stop) if is_passing && !self.makes_do() => return Err(stop),
                Err(Stop::Refused(findings)) if !profile.is_empty() => {
                    format!("with it the program cannot be frozen: {}", findings[0])
                }
                Err(Stop::Failed(failure)) if !profile.is_empty() => {
                    // The rest of the message is for a user who has no image at all.
                    let first = failure.message.split(". ").next().unwrap_or_default();
                    format!("with it the freeze failed: {first}")
                }
                Err(stop) => return Err(stop),
            };
            lacks.add(profile.take_out(), &why, is_passing);
        }
    }

    /// Whether an image is acceptable that lacks something for a reason that may pass: a store may otherwise have none
    /// until a later start.
    fn makes_do(&self) -> bool {
        self.request.store.as_ref().is_none_or(|store| store.makes_do)
    }

    /// The preloads: the user's, or else the recipe's.
    fn preloads(&self) -> &[String] {
        match self.request.preloads.as_slice() {
            [] => &self.recipe.preloads,
            named => named,
        }
    }

    /// Drops the recipe. Returns its name, if there is one.
    fn leave_recipe(&mut self) -> Option<String> {
        let recipe = std::mem::take(&mut self.recipe);
        (!recipe.name.is_empty()).then_some(recipe.name)
    }

    /// See [`image::Command::store_words`].
    fn store_words(&self) -> &[OsString] {
        self.request.store.as_ref().map_or(&[], |store| &store.on_fallback)
    }

    /// Boots once, and once more if something was left behind, to find out whether every start creates its own; then to
    /// find out where in the program the findings come from. Also returns when the boot began (ns since 1970).
    fn boot(&self, boot: &Boot<'_>, dir: &ControlDir) -> Result<(Report, Accesses, i64)> {
        let begun = dir.now()?;
        let (outcome, accesses) = self.boot_once(boot, dir, &Watch::Inputs)?;
        let temporary = Temporary::new(boot.environment);
        let mut left = leftovers::find(&accesses, dir);
        let mut made = left.clone();
        let mut findings = match outcome {
            Outcome::Written(report) if left.is_empty() => return Ok((*report, accesses, begun)),
            Outcome::Written(_) if left.iter().any(|it| temporary.is_for_one_start(it)) => Vec::new(),
            Outcome::Written(_) => {
                self.progress.step(&Step::BootForFiles);
                let begun = dir.now()?;
                let again = self.boot_once(boot, dir, &Watch::InputsAgain);
                boot.interrupt.check()?;
                match again {
                    Ok((outcome, accesses)) => {
                        left = leftovers::find(&accesses, dir);
                        made.extend_from_slice(&left);
                        match outcome {
                            Outcome::Written(report) if left.is_empty() => return Ok((*report, accesses, begun)),
                            Outcome::Written(_) => Vec::new(),
                            Outcome::Refused(findings) => findings,
                        }
                    }
                    // It does not start while the first one's still exists.
                    Err(_) => Vec::new(),
                }
            }
            Outcome::Refused(findings) => {
                left.retain(|it| temporary.is_for_one_start(it));
                findings
            }
        };
        if !left.is_empty() || findings.iter().any(Finding::has_origin) {
            self.progress.step(&Step::BootForOrigins);
            let folders = left.iter().filter_map(|it| it.path.parent()).map(Path::to_owned).collect();
            leftovers::clean_up(&left, &temporary);
            // Whatever the result of this boot is, the findings stand.
            let last = boot.run(dir, &Watch::Origins(folders));
            boot.interrupt.check()?;
            add_origins(&mut findings, &report::origins(dir));
            let others = match last {
                Ok(Ended::Exited(exited)) => leftovers::find(&exited.accesses, dir),
                _ => Vec::new(),
            };
            findings.extend(leftovers::findings(&left, &others, dir));
            leftovers::clean_up(&others, &temporary);
            made.extend(others);
        }
        if let Some(message) = leftovers::still_there(made, &findings) {
            self.progress.message(&message);
        }
        Err(Stop::Refused(findings))
    }

    fn boot_once(&self, boot: &Boot<'_>, dir: &ControlDir, watch: &Watch) -> Result<(Outcome, Accesses)> {
        self.wait_for_end(boot.begin(dir, watch)?, boot, dir)
    }

    /// Waits for the end of a boot.
    fn wait_for_end(&self, running: Running<'_>, boot: &Boot<'_>, dir: &ControlDir) -> Result<(Outcome, Accesses)> {
        let Exited { status, accesses, said } = match running.wait_for_end()? {
            Ended::Exited(exited) => exited,
            Ended::Interrupted(signal) => return Err(Stop::Interrupted(signal)),
        };
        let files =
            accesses.places.iter().filter(|(_, access)| access.looked && matches!(access.state, State::File(_)));
        files.for_each(|(file, _)| self.progress.has_read(file));
        let outcome = outcome(dir, status, self.runtime, boot.environment, boot.store.is_some());
        match report::judged(outcome, &accesses.set) {
            Ok(Outcome::Written(report)) => Ok((Outcome::Written(Box::new(Report { said, ..*report })), accesses)),
            Ok(outcome) => Ok((outcome, accesses)),
            Err(failure) => {
                // A program that fails on a full disk often cannot write its report.
                dir.has_space()?;
                Err(failure.into())
            }
        }
    }
}
