//! One freeze as a pipeline. Each step takes the values of those before it and changes none of them:
//!
//! 1. [`FreezeRequest`] and [`Program`]: what is frozen
//! 2. [`Profile`]: what was learnt about the program
//! 3. [`Boot`]: a boot that has written its memory
//! 4. [`Inputs`]: what the image depends on
//! 5. [`Draft`]: the assembled image, not yet in place
//! 6. `Verified`: its first start was tried
//! 7. `Published`: the image
//!
//! If a step fails, the driver repeats the pipeline with less: without the reports of starts, without training, without
//! the recipe.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Instant;

use failure::Failure;
use image::MAX_VARIANTS;
use image_file::{rotation, starts};
use inputs::cpu::Level;
use inputs::environment::LocaleText;
use inputs::facts::fact_kind;
use judge::environment::Environment;
use judge::environment_inputs::EnvironmentInputs;
use runtime::terminal::Terminal;
use runtime::Language;

use crate::application::{self, Applied};
use crate::boot::{Boot, Report, StartKind};
use crate::boot_inputs::kernel_files::KernelFiles;
use crate::boot_inputs::{self, attributes, home, start_facts, Booted, Ignored, Inputs};
use crate::control_dir::ControlDir;
use crate::fault::Point;
use crate::info::{self, info};
use crate::interrupt::Interrupt;
use crate::lacks::{Lack, Lacks};
use crate::late_plugins;
use crate::outcome::{Disproof, Result, Stop, Written};
use crate::output;
use crate::profile::Profile;
use crate::program::Program;
use crate::programs::{self, BootRequest, Freeze};
use crate::progress::{Progress, Step};
use crate::request::{Cpu, FreezeRequest, Training};
use crate::warnings::{HIDDEN, OUTPUT, SHARED_LAYOUT};
use crate::writing::{self, Contents, Draft, Dump, Rehearsable};

/// The UTF-8 locale that every C library has.
const UTF8_LOCALE: &str = "C.UTF-8";

/// Resolves what to freeze, and freezes it.
pub fn freeze(request: &FreezeRequest, progress: &dyn Progress) -> Result<Written> {
    let begun = Instant::now();
    let mut program = programs::resolve(request, progress)?;
    starts::create_folder();
    let interrupt =
        Interrupt::notice().map_err(|error| Failure::failed(format!("cannot watch for signals: {error}.")))?;
    let language = program.runtime.language;
    let recipe = (request.recipes && request.preloads.is_empty())
        .then(|| application::for_program(language, &program.main, !matches!(request.training, Training::Runs(_))))
        .flatten()
        .unwrap_or_default();
    program.decide_about_own_files(request.store.as_ref().map(|store| store.content), recipe.boots_application());
    let recipe = recipe.fitted(&mut program.leaves_script);
    let image =
        |program: &Program| Pipeline { request, program, progress, interrupt: &interrupt, begun }.with_recipe(&recipe);
    let made = match image(&program) {
        Err(Stop::BeyondLevel(why)) => {
            interrupt.check()?;
            program.keep_to_native(why);
            image(&program)
        }
        made => made,
    };
    // A signal takes precedence over any result: everything is cleaned up.
    interrupt.check()?;
    made
}

/// What is known before the first step.
struct Pipeline<'a> {
    request: &'a FreezeRequest,
    program: &'a Program,
    progress: &'a dyn Progress,
    interrupt: &'a Interrupt,
    begun: Instant,
}

/// What the boots of an image share.
struct Attempt<'a> {
    freeze: Freeze<'a>,
    profile: &'a Profile,
    lacks: &'a Lacks,
}

/// A variant of the image: a boot with the results of other boots.
///
/// If a terminal makes a difference to a program, it has variants for starts at a terminal and for all others. If it is
/// bound to the encoding of its locale, it has variants for C and for UTF-8. In a store each kind has its own image
/// instead, made when such a start comes.
struct Variant {
    kind: StartKind,
    report: Report,
    /// Whether a library of the process has picked instructions for good.
    has_picked: bool,
    /// Whether it compares the form of secrets.
    compares_forms: bool,
    written: writing::Variant,
}

/// The variants that were made so far, and the messages about them.
#[derive(Default)]
struct Made {
    variants: Vec<Variant>,
    warnings: Vec<String>,
}

impl Pipeline<'_> {
    /// Makes the image with what a recipe says; if that fails, without.
    fn with_recipe(&self, recipe: &Applied) -> Result<Written> {
        let made = self.image(recipe, Lacks::default());
        // A Ruby without its application starts faster the ordinary way, with its boot archive. A later start tries again
        // if the cause may pass.
        let waits = made.as_ref().is_err_and(Stop::is_passing) && !self.makes_do();
        let is_python = self.program.runtime.language == Language::Python;
        let may_leave = self.request.store.is_none() || (is_python && !waits);
        match made {
            Err(why @ (Stop::Refused(_) | Stop::Failed(_))) if may_leave && !recipe.name.is_empty() => {
                self.interrupt.check()?;
                self.image(&Applied::default(), Lacks::default().with(Lack::Application(recipe.name.clone(), why)))
            }
            made => made,
        }
    }

    /// Trains, boots and assembles. If a failure may come from starts' reports or from training, tries again without
    /// the former, then without the latter; and once more after a failure that may pass.
    fn image(&self, recipe: &Applied, mut lacks: Lacks) -> Result<Written> {
        let Pipeline { request, program, progress, interrupt, .. } = *self;
        let dir = ControlDir::create(&program.output)?;
        Point::AfterControlDir.reached();
        let freeze = Freeze { request, program, recipe, dir: &dir, interrupt, progress };
        let environment = program.environment.clone().with_more_for_boot(&recipe.environment);
        let environment = programs::early_reads(&freeze, environment)?;
        let mut profile = programs::train(&freeze)?;
        lacks.0.extend(profile.failed.iter().cloned().map(Lack::Run));
        let mut has_failed = false;
        loop {
            let attempt = Attempt { freeze, profile: &profile, lacks: &lacks };
            match self.attempt(&attempt, &environment) {
                Ok(written) => {
                    if lacks.stay() {
                        profile.give_up_reports();
                    }
                    return Ok(written);
                }
                Err(stop) if stop.is_passing() && !std::mem::replace(&mut has_failed, true) => {
                    interrupt.check()?;
                }
                Err(stop) if stop.is_passing() && !self.makes_do() => return Err(stop),
                Err(stop @ (Stop::Interrupted(_) | Stop::BeyondLevel(_))) => return Err(stop),
                Err(stop @ (Stop::Refused(_) | Stop::Failed(_))) if profile.is_empty() => return Err(stop),
                Err(why) => {
                    let (rest, part) = profile.without_part();
                    profile = rest;
                    lacks = lacks.with(Lack::Part(part, why));
                }
            }
        }
    }

    /// Whether an image is acceptable that lacks something for a reason that may pass: a store may otherwise have none
    /// until a later start.
    fn makes_do(&self) -> bool {
        self.request.store.as_ref().is_none_or(|store| store.makes_do)
    }

    /// Goes through the steps from the boot on. `environment` includes what the runtime reads before the front end runs.
    fn attempt(&self, attempt: &Attempt<'_>, environment: &Environment) -> Result<Written> {
        let Pipeline { request, program, interrupt, .. } = *self;
        let dir = attempt.freeze.dir;
        self.check_places()?;
        let mut made = Made::default();
        let kind = StartKind { terminal: attempt.freeze.terminal(), variables: Vec::new(), level: None };
        for _ in 0..request.variants {
            self.add_variant(attempt, &kind, environment, &mut made)?;
        }
        self.add_other_terminal(attempt, environment, &mut made)?;
        self.add_other_locale(attempt, environment, &kind, &mut made)?;
        self.add_higher_level(attempt, environment, &kind, &mut made)?;
        let Made { variants, mut warnings } = made;
        let written: Vec<&writing::Variant> = variants.iter().map(|variant| &variant.written).collect();
        let kinds: Vec<StartKind> = variants.iter().map(|variant| variant.kind.clone()).collect();
        let restriction = written.last().and_then(|last| writing::restriction(last, program));
        warnings.extend(restriction.map(|restriction| restriction.to_string()));
        if request.variants > 1 && writing::share_layout(&written) {
            warnings.push(SHARED_LAYOUT.to_owned());
        }
        self.check_places()?;
        let draft = Draft::complete(dir, request, program, &written, &kinds)?;
        let said = dir.file("said");
        let firsts = kinds.chunk_by(|one, next| one == next).map(|of_kind| &of_kind[0]);
        let took = firsts.map(|kind| programs::first_start(draft.path(), &said, kind));
        let took = took.collect::<failure::Result<Vec<_>>>()?;
        self.check_places()?;
        let published = draft.verified(took.first().copied().unwrap_or_default()).publish(interrupt)?;
        starts::begin_counting(published.image_id, program.replaced.as_ref().map(|(sum, _)| *sum));
        let count = variants.len() as u32;
        let report = variants.into_iter().next().map(|first| first.report).unwrap_or_default();
        let differing = |is: &dyn Fn(&StartKind) -> bool| kinds.iter().filter(|kind| is(kind)).count() as u32;
        let at_terminals = differing(&|kind| kind.terminal != kinds[0].terminal);
        let on_higher_level = differing(&|kind| kind.level.is_some());
        let in_other_locale = differing(&|kind| kind.variables != kinds[0].variables);
        let mut reads = report.reads.clone();
        if at_terminals > 0 {
            reads.split_by_terminal();
        }
        if in_other_locale > 0 {
            reads.renewals.split_by_locale();
        }
        Ok(Written {
            path: program.output.clone(),
            default_path: output::path(None, &program.named)?,
            size: published.size,
            took: self.begun.elapsed(),
            thaws_in: published.thaws_in,
            variants: count,
            at_terminals,
            in_other_locale,
            on_higher_level,
            only_native: program.only_native.clone(),
            loaded: report.loaded.len(),
            depends: info::depends(program, environment, &reads, &report),
            preloaded: report.preloaded,
            left: report.left,
            warnings,
            language: program.runtime.language,
            learnt_in: attempt.profile.folders_of(&report.learnt),
            lacks: attempt.lacks.clone().compared(report.learnt.len(), request.store.as_ref()).may_pass(),
            learnt: report.learnt.len(),
            patterns: report.patterns,
            prints_version: attempt.profile.prints_version,
            left_out: report.left_out,
            replaced: program.replaced.as_ref().and_then(|(_, starts)| starts.clone()),
        })
    }

    /// Adds as many variants for starts at a terminal, if that makes a difference and the image is in no store.
    /// Training runs, which have no terminal, say nothing about them.
    fn add_other_terminal(&self, attempt: &Attempt<'_>, environment: &Environment, made: &mut Made) -> Result<()> {
        let makes_difference = made.variants.first().is_some_and(|first| first.report.reads.depends_on_terminal());
        if !makes_difference || !self.may_have_another_kind(made) {
            return Ok(());
        }
        let Some(terminal) = Terminal::for_programs() else { return Ok(()) };
        let kind = StartKind { terminal: Some(terminal), variables: Vec::new(), level: None };
        self.add_kind(attempt, &kind, environment, made, "at a terminal")
    }

    /// Adds as many variants for starts without a terminal in the locale C if the image is only for UTF-8, or the other
    /// way round, and is in no store. Training runs, which have the locale of the freeze, say nothing about them.
    fn add_other_locale(
        &self,
        attempt: &Attempt<'_>,
        environment: &Environment,
        kind: &StartKind,
        made: &mut Made,
    ) -> Result<()> {
        let Some(first) = made.variants.first().filter(|_| self.may_have_another_kind(made)) else { return Ok(()) };
        let other = match (EnvironmentInputs { environment, reads: &first.report.reads }).one_text() {
            Some(LocaleText::Utf8) => None,
            Some(LocaleText::C) => Some(UTF8_LOCALE),
            Some(LocaleText::Other) | None => return Ok(()),
        };
        if !["LC_ALL", "LC_CTYPE", "LANG"].iter().all(|name| environment.may_change(OsStr::new(name))) {
            return Ok(());
        }
        let variables = [("LC_ALL", None), ("LC_CTYPE", None), ("LANG", other)]
            .map(|(name, value)| (name.into(), value.map(OsString::from)))
            .to_vec();
        let environment = environment.with_values(&variables);
        let which = if other.is_some() { "in a locale of UTF-8" } else { "in the locale C" };
        self.add_kind(attempt, &StartKind { variables, ..kind.clone() }, &environment, made, which)
    }

    /// Adds as many variants for the highest level of this CPU, if the image is for a lower one, and a library has picked
    /// instructions for good; in a store as well, as its starts are on one machine. Only for starts like the freeze itself: others keep to the lower level.
    fn add_higher_level(
        &self,
        attempt: &Attempt<'_>,
        environment: &Environment,
        kind: &StartKind,
        made: &mut Made,
    ) -> Result<()> {
        let Cpu::Level(lower) = self.program.cpu else { return Ok(()) };
        let has_picked = made.variants.first().is_some_and(|first| first.has_picked);
        let Some(level) = Level::highest().filter(|&level| level > lower && has_picked) else { return Ok(()) };
        if !self.has_room(made) {
            return Ok(());
        }
        let Ok(environment) = programs::for_level(environment.clone(), &self.program.runtime.program, level) else {
            return Ok(());
        };
        let kind = StartKind { level: Some(level), ..kind.clone() };
        self.add_kind(attempt, &kind, &environment, made, &format!("on a CPU of level {}", Cpu::Level(level).word()))
    }

    /// Whether the image may have variants for one more kind of starts. A store has separate images for these.
    fn may_have_another_kind(&self, made: &Made) -> bool {
        self.request.store.is_none() && self.has_room(made)
    }

    /// Whether as many variants as were asked for are possible once more.
    fn has_room(&self, made: &Made) -> bool {
        made.variants.len() as u32 + self.request.variants <= MAX_VARIANTS
    }

    /// Adds variants for one more kind of starts. `which` describes the kind for the warning if that fails.
    fn add_kind(
        &self,
        attempt: &Attempt<'_>,
        kind: &StartKind,
        environment: &Environment,
        made: &mut Made,
        which: &str,
    ) -> Result<()> {
        for _ in 0..self.request.variants {
            match self.add_variant(attempt, kind, environment, made) {
                Ok(()) => {}
                Err(stop @ (Stop::Interrupted(_) | Stop::BeyondLevel(_))) => return Err(stop),
                Err(why) => {
                    self.interrupt.check()?;
                    made.warnings.push(match kind.level {
                        None => format!("a start {which} is an ordinary one: {why}"),
                        Some(_) => format!("a start {which} keeps to the level of the image: {why}"),
                    });
                    break;
                }
            }
        }
        Ok(())
    }

    /// Makes one more variant, and adds it.
    fn add_variant(
        &self,
        attempt: &Attempt<'_>,
        kind: &StartKind,
        environment: &Environment,
        made: &mut Made,
    ) -> Result<()> {
        let (variant, is_hidden) = self.variant(attempt, kind, environment, &made.variants)?;
        let hidden = is_hidden.then(|| HIDDEN.to_owned());
        for warning in variant.report.warnings.iter().cloned().chain(hidden) {
            if !made.warnings.contains(&warning) {
                made.warnings.push(warning);
            }
        }
        made.variants.push(variant);
        Ok(())
    }

    /// Boots, learns from other boots what counts, and appends the result to those `before`. Also returns whether a
    /// process could not be watched.
    fn variant(
        &self,
        attempt: &Attempt<'_>,
        kind: &StartKind,
        environment: &Environment,
        before: &[Variant],
    ) -> Result<(Variant, bool)> {
        let Pipeline { request, program, interrupt, .. } = *self;
        let Attempt { freeze, profile, lacks } = *attempt;
        let language = program.runtime.language;
        let start = std::env::current_dir().unwrap_or_default(); // where there is none, relative names are not followed
        let number = before.len() as u32 + 1;
        let facts = start_facts::facts_of_start(language, environment);
        let asked = BootRequest {
            freeze,
            profile,
            environment,
            terminal: kind.terminal,
            number,
            count: number.next_multiple_of(request.variants),
            facts: &facts,
            knows_other_start: false,
            hash_seed: programs::hash_seed(request.hash_seed, number),
            limit: None,
        };
        let (boot, was_seen) = programs::boot(&asked)?;
        Point::AfterDump.reached();
        interrupt.check()?;
        if before.first().is_some_and(|first| boot.report.said && !first.report.said) {
            return Err(Stop::Disproved(Disproof::Prints));
        }
        programs::check_quiet(&freeze, was_seen)?;
        let (mut boot, shown) = programs::compare_starts(&asked, boot)?;
        let asked = BootRequest { facts: shown.as_ref().map_or(&facts, |shown| &shown.facts), ..asked };
        self.progress.step(&Step::Inputs);
        let known = boot.report.reads.guards.iter().map(OsString::from);
        let guards = request.guards.iter().chain(&boot.report.guards).chain(&freeze.recipe.guards).cloned();
        // What a function finds on its first call, the arguments decide; so an image that begins there has those of its command alone.
        let any = (!freeze.places().is_empty()).then(|| OsString::from("*"));
        let guards: Vec<OsString> = guards.chain(known).chain(any).collect();
        let bytecode = environment.value("PYTHONPYCACHEPREFIX");
        let ignored = Ignored::new(&program.output, request.installation.own_files(), bytecode);
        let ignored = ignored.with_script(program.main.script.as_deref().filter(|_| program.leaves_script));
        boot.report.reads.facts.extend(attributes::bound_to(&boot.report.repeated, &boot.accesses.set));
        if let Some(shown) = &shown {
            boot = programs::drop_reads(&asked, shown, boot, &start, &ignored)?;
        }
        let Boot { mut report, mut accesses, begun } = boot;
        if language == Language::Python {
            home::follow_user_site(&mut report.reads, &mut accesses, environment);
        }
        let compares_forms = match before.first() {
            Some(first) => first.compares_forms,
            None => report.has_read_secrets && programs::follows_form_of_secrets(&asked, &report)?,
        };
        let mut environment = environment.clone();
        environment.compares_forms = compares_forms;
        let environment = &environment;
        if let Some(file) = &freeze.recipe.file {
            report.loaded.push(file.clone());
            report.reads.facts.push((fact_kind::CWD, 0));
            report.reads.places.entry((fact_kind::CWD, 0)).or_insert_with(|| file.display().to_string());
        }
        let learnt = before.first().map_or(&report, |first| &first.report).learnt.len();
        let lacks = lacks.clone().compared(learnt, freeze.store());
        report.warnings.splice(0..0, lacks.in_words());
        report.warnings.extend(was_seen.then(|| OUTPUT.to_owned()));
        let is_temporary = programs::temporary(environment);
        let listed = boot_inputs::listed_temporary(&accesses, &report.importers, is_temporary);
        report.warnings.extend(listed.map(|listed| listed.to_string()));
        // Nobody has asked for an image of the store, so nobody would make it again.
        let of_recipes = freeze.store().into_iter().flat_map(|_| recipes::own_files(language));
        let loaded: Vec<PathBuf> = report.loaded.iter().cloned().chain(of_recipes).collect();
        let booted = Booted {
            accesses: &accesses,
            loaded: &loaded,
            importers: &report.importers,
            ignored: &ignored,
            begun,
            script: program.main.script.as_deref(),
            start: &start,
        };
        let dump = Dump::read(freeze.dir.file("image"))?;
        let written: Vec<&writing::Variant> = before.iter().map(|variant| &variant.written).collect();
        let has_picked = writing::has_picked_once(&dump)?;
        let readers = writing::readers(&dump, &accesses, &ignored, &written)?;
        let inputs = Inputs::record(&booted, dump.mapped_files()?)?;
        let kernel_files = KernelFiles::classify(&accesses);
        let contents = Contents {
            request,
            program,
            environment,
            reads: &report.reads,
            inputs: &inputs,
            cpu: kind.level.map_or(program.cpu, Cpu::Level),
            terminal: kind.terminal,
            max_age: lacks.max_age(request),
            guards: &guards,
            info: &info(&freeze, environment, &report, &accesses, self.begun),
        };
        let mut image = Rehearsable::complete(&dump, &contents, &kernel_files, readers)?;
        let used = programs::rehearse(image.path(), &image.mappings, environment, kind.terminal.as_ref());
        let (kernel_files, dropped) = kernel_files.without_measured();
        if !dropped.is_empty() {
            image = image.with_kernel_files(&contents, &kernel_files)?;
        }
        let mut runs = Vec::new();
        if before.first().is_none_or(|first| first.kind.is_like(kind)) && !profile.runs.is_empty() {
            image.make_usable(&contents)?;
            let made = programs::run_from(&freeze, profile, image.path(), &image.mappings);
            rotation::remove_counter(image.path());
            runs = made?;
        }
        let written = image.append(freeze.dir, written.last().copied(), &used, &runs, inputs)?;
        interrupt.check()?;
        report.warnings.extend(late_plugins::warnings(&report.loaded).collect::<Vec<_>>());
        Ok((Variant { kind: kind.clone(), report, has_picked, compares_forms, written }, accesses.hidden))
    }

    /// Fails if the folder of a store's image was removed meanwhile: then nobody wants the image. Also if the directory
    /// of the start was removed: a boot there differs from one in any other directory, and no start could use the
    /// image.
    fn check_places(&self) -> Result<()> {
        let Some(store) = &self.request.store else { return Ok(()) };
        if store.is_removed() {
            let folder = self.program.output.parent().unwrap_or(Path::new("/")).display();
            return Err(Stop::Failed(Failure::passing(format!("{folder} was removed while an image was made in it."))));
        }
        std::env::current_dir().map(drop).map_err(|error| {
            Stop::Failed(Failure::passing(format!(
                "the directory of the start that has asked for the image cannot be found any more: {error}."
            )))
        })
    }
}
