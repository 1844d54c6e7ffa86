//! The variants of one image: each is a boot with what other boots have shown of it. A program to which a terminal makes a difference has
//! variants for starts at one and for all others; in a store each kind has images of its own, made when such a start comes.

use std::cell::Cell;
use std::ffi::OsString;
use std::path::Path;

use failure::Failure;
use image::{fact_kind, MAX_VARIANTS};
use image_file::starts::{self, Starts};
use judge::depends;
use judge::environment::Environment;
use judge::findings::Finding;
use runtime::terminal::Terminal;
use runtime::Language;

use super::{home, other_start, Session};
use crate::assemble::{Added, Assembled, Assembly};
use crate::attributes;
use crate::boot::{fallback_command, Boot};
use crate::boot_inputs::{self, Booted, Ignored};
use crate::control_dir::ControlDir;
use crate::fault::Point;
use crate::lacks::Lacks;
use crate::leftovers::Temporary;
use crate::outcome::{Result, Stop, Written};
use crate::output;
use crate::plugins;
use crate::progress::Step;
use crate::report::Report;
use crate::training::{Profile, Trainer};

const SHARED_LAYOUT: &str =
    "the variants have the same memory layout, since the kernel gives every process the same one: address \
    randomization is switched off here (kernel.randomize_va_space, setarch -R)";

/// What the recorder could not see.
const HIDDEN: &str =
    "a process that the program started while it booted keeps its memory from others, so the files that it read \
    are not known: the image does not become stale when they change";

/// What came of assembling an image.
pub(super) enum Made {
    /// It has its name.
    Image(Box<Written>),
    /// It does not do what a training run has done, and was not kept. What it does, in words.
    Disproved(String),
}

/// An image in the making, and what is to be said of it.
struct Making<'a> {
    assembly: Assembly<'a>,
    /// The terminal that the starts of each variant have.
    terminals: Vec<Option<Terminal>>,
    lacks: Lacks,
    warnings: Vec<String>,
    /// The environment, with what is known of the secrets in it.
    checked: Environment,
    /// What the first boot has told.
    first: Option<Report>,
}

/// What all variants of an image are made of.
#[derive(Clone, Copy)]
struct Parts<'a> {
    output: &'a Path,
    dir: &'a ControlDir,
    /// With what the runtime reads before the front end runs.
    environment: &'a Environment,
    trainer: &'a Trainer<'a>,
    profile: &'a Profile,
}

impl Session<'_> {
    /// Boots and assembles. `environment`: with what the runtime reads before the front end runs; `lacks`: what the image cannot have.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn assemble(
        &self,
        output: &Path,
        dir: &ControlDir,
        environment: &Environment,
        trainer: &Trainer<'_>,
        profile: &Profile,
        replaced: Option<&(u64, Option<Starts>)>,
        lacks: &Lacks,
    ) -> Result<Made> {
        self.check_directory()?;
        let mut making = Making {
            assembly: Assembly::new(dir),
            terminals: Vec::new(),
            lacks: lacks.clone(),
            warnings: Vec::new(),
            checked: environment.clone(),
            first: None,
        };
        let parts = Parts { output, dir, environment, trainer, profile };
        for _ in 0..self.request.variants {
            if let Some(how) = self.add_variant(&parts, &mut making)? {
                return Ok(Made::Disproved(how));
            }
        }
        self.add_variants_for_other_terminal(&parts, &mut making)?;
        let Making { mut assembly, terminals, lacks, mut warnings, checked, first } = making;
        warnings.extend(assembly.closed(output, self.executed));
        if assembly.shares_layout() {
            warnings.push(SHARED_LAYOUT.to_owned());
        }
        self.check_directory()?;
        let command = fallback_command(self.runtime, self.main);
        let assembled = assembly.finish(
            output,
            &command,
            self.store_words(),
            &terminals,
            self.request.max_thaws,
            self.interrupt,
            &checked,
        )?;
        starts::begin(assembled.image_id, replaced.map(|(sum, _)| *sum));
        let report = first.unwrap_or_default();
        let Assembled { size, thaws_in, .. } = assembled;
        Ok(Made::Image(Box::new(Written {
            path: output.to_owned(),
            default_path: output::path(None, self.named)?,
            size,
            took: self.begun.elapsed(),
            thaws_in,
            variants: terminals.len() as u32,
            at_terminals: terminals.iter().filter(|terminal| **terminal != terminals[0]).count() as u32,
            loaded: report.loaded.len(),
            depends: depends::all(environment, &report.reads, &report.compared, !report.preloaded.is_empty()),
            preloaded: report.preloaded,
            left: report.left,
            warnings,
            language: self.runtime.language,
            learnt: report.learnt.len(),
            learnt_in: profile.folders_of(&report.learnt),
            patterns: report.patterns,
            tells_version: profile.tells_version,
            lacks: lacks.is_any(),
            left_out: report.left_out,
            replaced: replaced.and_then(|(_, starts)| starts.clone()),
        })))
    }

    /// Adds as many variants for starts at a terminal, where that makes a difference, and the image is in no store. Training runs, which are made
    /// without one, say nothing about them.
    fn add_variants_for_other_terminal(&self, parts: &Parts<'_>, making: &mut Making<'_>) -> Result<()> {
        let makes_difference = making.first.as_ref().is_some_and(|report| report.reads.depends_on_terminal());
        let has_room = 2 * self.request.variants <= MAX_VARIANTS;
        if self.request.store.is_some() || !makes_difference || !has_room {
            return Ok(());
        }
        let Some(terminal) = Terminal::for_programs() else { return Ok(()) };
        let trainer = Trainer { terminal: Some(&terminal), ..*parts.trainer };
        let parts = Parts { trainer: &trainer, ..*parts };
        for _ in 0..self.request.variants {
            let why = match self.add_variant(&parts, making) {
                Ok(None) => continue,
                Ok(Some(why)) => why,
                Err(Stop::Interrupted(signal)) => return Err(Stop::Interrupted(signal)),
                Err(Stop::Refused(findings)) => findings.first().map(Finding::to_string).unwrap_or_default(),
                Err(Stop::Failed(failure)) => failure.message,
            };
            self.interrupt.check()?;
            making.warnings.push(format!("a start at a terminal is an ordinary one: {why}"));
            return Ok(());
        }
        if let Some(first) = &mut making.first {
            first.reads.split_by_terminal();
        }
        Ok(())
    }

    /// Boots, learns from other boots what counts, and adds what that comes to. Returns why that is no variant of the image: what a training run from it
    /// did that came out differently, or that it prints while it boots what the first one does not.
    fn add_variant(&self, parts: &Parts<'_>, making: &mut Making<'_>) -> Result<Option<String>> {
        let Parts { output, dir, environment, trainer, profile } = *parts;
        let command = fallback_command(self.runtime, self.main);
        let start = std::env::current_dir().unwrap_or_default(); // where there is none, relative names are not followed
        let terminal = trainer.terminal.copied();
        let number = making.terminals.len() as u32 + 1;
        let is_of_trained = making.terminals.first().is_none_or(|first| *first == terminal);
        let count = if is_of_trained { self.request.variants } else { 2 * self.request.variants };
        let facts = self.facts_of_start(environment);
        let said = Cell::default();
        let boot = Boot {
            installation: &self.request.installation,
            runtime: self.runtime,
            main: self.main,
            preloads: self.preloads(),
            recipe: &self.recipe.name,
            profile,
            store: self.request.store.as_ref(),
            environment,
            interrupt: self.interrupt,
            progress: self.progress,
            number,
            count,
            said: &said,
            facts: &facts,
            knows_other_start: false,
            hash_seed: other_start::hash_seed(),
            limit: None,
            terminal,
        };
        let (mut report, mut notes, mut begun) = self.boot(&boot, dir)?;
        Point::AfterDump.reached();
        self.interrupt.check()?;
        if making.first.as_ref().is_some_and(|first| report.said && !first.said) {
            return Ok(Some("the program prints something while it boots".to_owned()));
        }
        let other_start = self.start_otherwise(&boot, dir, &mut report, &mut notes, &mut begun)?;
        self.progress.step(&Step::Inputs);
        let known = report.reads.guards.iter().map(OsString::from);
        let guards: Vec<OsString> =
            self.request.guards.iter().chain(&report.guards).chain(&self.recipe.guards).cloned().chain(known).collect();
        let bytecode = environment.value("PYTHONPYCACHEPREFIX");
        let ignored = Ignored::new(output, self.request.installation.own_files(), bytecode);
        report.reads.facts.extend(attributes::bound_to(&report.repeated, &notes.set));
        if let Some(shown) = &other_start {
            let first = report.reads.clone();
            shown.apply(&mut report.reads, &mut notes, environment, &start, &ignored);
            let alike = self.try_everyday_values(&boot, dir, shown, &first, &mut report.reads, &mut notes)?;
            self.try_other_terminal(&boot, dir, shown, &first, &alike, &mut report.reads, &mut notes)?;
            shown.forget_places_at_home(&report.reads, &mut notes, environment);
        }
        if self.runtime.language == Language::Python {
            home::follow_user_site(&mut report.reads, &mut notes, environment);
        }
        if report.secrets.were_read && number == 1 {
            making.checked.compares_forms = self.check_secrets(&boot, dir, &report)?;
        }
        let environment = &making.checked;
        if let Some(file) = &self.recipe.file {
            report.loaded.push(file.clone());
            report.reads.facts.push((fact_kind::CWD, 0));
            report.reads.places.entry((fact_kind::CWD, 0)).or_insert_with(|| file.display().to_string());
        }
        report.warnings.extend(boot.warning());
        report.warnings.extend(boot_inputs::warning(&notes, &report.importers, &Temporary::new(environment)));
        if number == 1 {
            making.lacks.compare(report.learnt.len(), self.request.store.as_ref());
        }
        report.warnings.splice(0..0, making.lacks.all());
        let booted = Booted {
            notes: &notes,
            loaded: &report.loaded,
            importers: &report.importers,
            ignored: &ignored,
            begun,
            script: self.main.script.as_deref(),
            start: &start,
        };
        let disproved = making.assembly.add(&Added {
            command: &command,
            store_words: self.store_words(),
            name: self.executed.file_name().unwrap_or_default(),
            booted: &booted,
            language: self.runtime.language,
            profile,
            trainer,
            makes_runs: is_of_trained && profile.has_runs(),
            environment,
            reads: &report.reads,
            policy: self.request.policy,
            check_pages: self.request.check_pages,
            cpu: self.request.cpu,
            max_age: making.lacks.max_age(self.request),
            max_thaws: self.request.max_thaws,
            guards: &guards,
            info: &self.info(environment, &report, &notes),
        })?;
        self.interrupt.check()?;
        if let Some(how) = disproved {
            return Ok(Some(how));
        }
        report.warnings.extend(plugins::warning(&report.loaded));
        let warnings = &mut making.warnings;
        warnings.extend(report.warnings.iter().filter(|it| !warnings.contains(it)).cloned().collect::<Vec<_>>());
        if notes.hidden && !warnings.iter().any(|warning| warning == HIDDEN) {
            warnings.push(HIDDEN.to_owned());
        }
        making.first.get_or_insert(report);
        making.terminals.push(terminal);
        Ok(None)
    }

    /// Fails where an image of the store would be made in a directory that somebody has removed meanwhile: a boot there is not like one in any
    /// other, and no start would find the image useful.
    fn check_directory(&self) -> Result<()> {
        match std::env::current_dir() {
            Err(error) if self.request.store.is_some() => Err(Stop::Failed(Failure::passing(format!(
                "the directory of the start that has asked for the image cannot be found any more: {error}."
            )))),
            _ => Ok(()),
        }
    }
}
