//! The variants of one image: each is a boot with the results of other boots. If a terminal makes a difference to a
//! program, it has variants for starts at a terminal and for all others. If it is bound to the encoding of its locale,
//! it has variants for C and for UTF-8. In a store each kind has its own image instead, made when such a start comes.

use std::cell::Cell;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use failure::Failure;
use image::{fact_kind, MAX_VARIANTS};
use image_file::starts::{self, Starts};
use inputs::environment::LocaleText;
use judge::depends;
use judge::environment::Environment;
use judge::environment_inputs::EnvironmentInputs;
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
use crate::first_start::StartKind;
use crate::lacks::Lacks;
use crate::late_plugins;
use crate::leftovers::Temporary;
use crate::outcome::{Result, Stop, Written};
use crate::output;
use crate::progress::Step;
use crate::report::Report;
use crate::training::{Profile, Trainer};

const SHARED_LAYOUT: &str =
    "the variants have the same memory layout, since the kernel gives every process the same one: address \
    randomization is switched off here (kernel.randomize_va_space, setarch -R)";

/// The UTF-8 locale that every C library has.
const UTF8_LOCALE: &str = "C.UTF-8";

/// A warning about a process that the recorder could not watch.
const HIDDEN: &str =
    "a process that the program started while it booted keeps its memory from others, so the files that it read \
    are not known: the image does not become stale when they change";

/// The result of assembling an image.
pub(super) enum Made {
    /// The image was renamed into place.
    Image(Box<Written>),
    /// The image does not do what a training run did, and was dropped; with the difference in words.
    Disproved(String),
}

/// An image under construction, with its messages.
struct Making<'a> {
    assembly: Assembly<'a>,
    /// The kind of starts that each variant serves.
    kinds: Vec<StartKind>,
    lacks: Lacks,
    warnings: Vec<String>,
    /// The environment, with the results about its secrets.
    checked: Environment,
    /// The report of the first boot.
    first: Option<Report>,
}

/// The common inputs of all variants.
#[derive(Clone, Copy)]
struct Parts<'a> {
    output: &'a Path,
    dir: &'a ControlDir,
    /// Includes what the runtime reads before the front end runs.
    environment: &'a Environment,
    trainer: &'a Trainer<'a>,
    profile: &'a Profile,
    /// The variables in which this kind of starts differs: see [`StartKind`].
    variables: &'a [(OsString, Option<OsString>)],
}

impl Session<'_> {
    /// Boots and assembles. `environment` includes what the runtime reads before the front end runs; `lacks` is what
    /// the image cannot have.
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
            kinds: Vec::new(),
            lacks: lacks.clone(),
            warnings: Vec::new(),
            checked: environment.clone(),
            first: None,
        };
        let parts = Parts { output, dir, environment, trainer, profile, variables: &[] };
        for _ in 0..self.request.variants {
            if let Some(how) = self.add_variant(&parts, &mut making)? {
                return Ok(Made::Disproved(how));
            }
        }
        self.add_variants_for_other_terminal(&parts, &mut making)?;
        self.add_variants_for_other_locale(&parts, &mut making)?;
        let Making { mut assembly, kinds, lacks, mut warnings, checked, first } = making;
        warnings.extend(assembly.restriction_message(output, self.executed));
        if self.request.variants > 1 && assembly.shares_layout() {
            warnings.push(SHARED_LAYOUT.to_owned());
        }
        self.check_directory()?;
        let command = fallback_command(self.runtime, self.main);
        let assembled = assembly.finish(
            output,
            &command,
            self.store_words(),
            &kinds,
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
            variants: kinds.len() as u32,
            at_terminals: kinds.iter().filter(|kind| kind.terminal != kinds[0].terminal).count() as u32,
            in_other_locale: kinds.iter().filter(|kind| kind.variables != kinds[0].variables).count() as u32,
            loaded: report.loaded.len(),
            depends: depends::all(environment, &report.reads, &report.compared, !report.preloaded.is_empty()),
            preloaded: report.preloaded,
            left: report.left,
            warnings,
            language: self.runtime.language,
            learnt: report.learnt.len(),
            learnt_in: profile.folders_of(&report.learnt),
            patterns: report.patterns,
            prints_version: profile.prints_version,
            lacks: lacks.is_any(),
            left_out: report.left_out,
            replaced: replaced.and_then(|(_, starts)| starts.clone()),
        })))
    }

    /// Adds as many variants for starts at a terminal, if that makes a difference and the image is in no store.
    /// Training runs, which have no terminal, say nothing about them.
    fn add_variants_for_other_terminal(&self, parts: &Parts<'_>, making: &mut Making<'_>) -> Result<()> {
        let makes_difference = making.first.as_ref().is_some_and(|report| report.reads.depends_on_terminal());
        if !makes_difference || !self.may_have_another_kind(making) {
            return Ok(());
        }
        let Some(terminal) = Terminal::for_programs() else { return Ok(()) };
        let trainer = Trainer { terminal: Some(&terminal), ..*parts.trainer };
        let parts = Parts { trainer: &trainer, ..*parts };
        if self.add_kind(&parts, making, "at a terminal")? {
            if let Some(first) = &mut making.first {
                first.reads.split_by_terminal();
            }
        }
        Ok(())
    }

    /// Adds as many variants for starts without a terminal in the locale C if the image is only for UTF-8, or the other
    /// way round, and is in no store. Training runs, which have the locale of the freeze, say nothing about them.
    fn add_variants_for_other_locale(&self, parts: &Parts<'_>, making: &mut Making<'_>) -> Result<()> {
        let Some(first) = making.first.as_ref().filter(|_| self.may_have_another_kind(making)) else { return Ok(()) };
        let other = match (EnvironmentInputs { environment: &making.checked, reads: &first.reads }).one_text() {
            Some(LocaleText::Utf8) => None,
            Some(LocaleText::C) => Some(UTF8_LOCALE),
            Some(LocaleText::Other) | None => return Ok(()),
        };
        if !["LC_ALL", "LC_CTYPE", "LANG"].iter().all(|name| making.checked.may_change(OsStr::new(name))) {
            return Ok(());
        }
        let variables = [("LC_ALL", None), ("LC_CTYPE", None), ("LANG", other)]
            .map(|(name, value)| (name.into(), value.map(OsString::from)));
        let environment = parts.environment.with_values(&variables);
        let parts = Parts { environment: &environment, variables: &variables, ..*parts };
        let which = if other.is_some() { "in a locale of UTF-8" } else { "in the locale C" };
        if self.add_kind(&parts, making, which)? {
            if let Some(first) = &mut making.first {
                first.reads.renewals.split_by_locale();
            }
        }
        Ok(())
    }

    /// Whether the image may have variants for one more kind of starts. A store has separate images for these.
    fn may_have_another_kind(&self, making: &Making<'_>) -> bool {
        self.request.store.is_none() && making.kinds.len() as u32 + self.request.variants <= MAX_VARIANTS
    }

    /// Adds variants for one more kind of starts. `which` describes the kind for the warning if that fails. Returns
    /// whether it succeeded.
    fn add_kind(&self, parts: &Parts<'_>, making: &mut Making<'_>, which: &str) -> Result<bool> {
        for _ in 0..self.request.variants {
            let why = match self.add_variant(parts, making) {
                Ok(None) => continue,
                Ok(Some(why)) => why,
                Err(Stop::Interrupted(signal)) => return Err(Stop::Interrupted(signal)),
                Err(Stop::Refused(findings)) => findings.first().map(Finding::to_string).unwrap_or_default(),
                Err(Stop::Failed(failure)) => failure.message,
            };
            self.interrupt.check()?;
            making.warnings.push(format!("a start {which} is an ordinary one: {why}"));
            return Ok(false);
        }
        Ok(true)
    }

    /// Boots, learns from other boots what counts, and adds the result as a variant. Returns why it is no variant of
    /// the image: a training run from it came out differently, or it prints something during the boot that the first
    /// one does not.
    fn add_variant(&self, parts: &Parts<'_>, making: &mut Making<'_>) -> Result<Option<String>> {
        let Parts { output, dir, environment, trainer, profile, variables } = *parts;
        let command = fallback_command(self.runtime, self.main);
        let start = std::env::current_dir().unwrap_or_default(); // where there is none, relative names are not followed
        let terminal = trainer.terminal.copied();
        let kind = StartKind { terminal, variables: variables.to_vec() };
        let number = making.kinds.len() as u32 + 1;
        let is_of_trained = making.kinds.first().is_none_or(|first| *first == kind);
        let count = number.next_multiple_of(self.request.variants);
        let facts = self.facts_of_start(environment);
        let said = Cell::default();
        let boot = Boot {
            installation: &self.request.installation,
            runtime: self.runtime,
            main: self.main,
            preloads: self.preloads(),
            recipe: &self.recipe,
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
        let (mut report, mut accesses, mut begun) = self.boot(&boot, dir)?;
        Point::AfterDump.reached();
        self.interrupt.check()?;
        if making.first.as_ref().is_some_and(|first| report.said && !first.said) {
            return Ok(Some("the program prints something while it boots".to_owned()));
        }
        let other_start = self.start_otherwise(&boot, dir, &mut report, &mut accesses, &mut begun)?;
        let boot = Boot { facts: other_start.as_ref().map_or(&facts, |shown| &shown.facts), ..boot };
        self.progress.step(&Step::Inputs);
        let known = report.reads.guards.iter().map(OsString::from);
        let guards: Vec<OsString> =
            self.request.guards.iter().chain(&report.guards).chain(&self.recipe.guards).cloned().chain(known).collect();
        let bytecode = environment.value("PYTHONPYCACHEPREFIX");
        let ignored = Ignored::new(output, self.request.installation.own_files(), bytecode);
        report.reads.facts.extend(attributes::bound_to(&report.repeated, &accesses.set));
        if let Some(shown) = &other_start {
            let first = report.reads.clone();
            shown.apply(&mut report.reads, &mut accesses, environment, &start, &ignored, &report.searched);
            let alike = self.try_everyday_values(&boot, dir, shown, &first, &mut report.reads, &mut accesses)?;
            self.try_other_terminal(&boot, dir, shown, &first, &alike, &mut report.reads, &mut accesses)?;
            shown.forget_places_at_home(&report.reads, &mut accesses, environment);
        }
        if self.runtime.language == Language::Python {
            home::follow_user_site(&mut report.reads, &mut accesses, environment);
        }
        if report.secrets.were_read && number == 1 {
            making.checked.compares_forms = self.check_secrets(&boot, dir, &report)?;
        }
        let environment = &making.checked.with_values(variables);
        if let Some(file) = &self.recipe.file {
            report.loaded.push(file.clone());
            report.reads.facts.push((fact_kind::CWD, 0));
            report.reads.places.entry((fact_kind::CWD, 0)).or_insert_with(|| file.display().to_string());
        }
        report.warnings.extend(boot.warning());
        report.warnings.extend(boot_inputs::warning(&accesses, &report.importers, &Temporary::new(environment)));
        if number == 1 {
            making.lacks.compare(report.learnt.len(), self.request.store.as_ref());
        }
        report.warnings.splice(0..0, making.lacks.all());
        // Nobody has asked for an image of the store, so nobody would make it again.
        let of_recipes = self.request.store.iter().flat_map(|_| recipes::own_files(self.runtime.language));
        let loaded: Vec<PathBuf> = report.loaded.iter().cloned().chain(of_recipes).collect();
        let booted = Booted {
            accesses: &accesses,
            loaded: &loaded,
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
            info: &self.info(environment, &report, &accesses),
        })?;
        self.interrupt.check()?;
        if let Some(how) = disproved {
            return Ok(Some(how));
        }
        report.warnings.extend(late_plugins::warnings(&report.loaded));
        let warnings = &mut making.warnings;
        warnings.extend(report.warnings.iter().filter(|it| !warnings.contains(it)).cloned().collect::<Vec<_>>());
        if accesses.hidden && !warnings.iter().any(|warning| warning == HIDDEN) {
            warnings.push(HIDDEN.to_owned());
        }
        making.first.get_or_insert(report);
        making.kinds.push(kind);
        Ok(None)
    }

    /// Fails if the directory of a store's image was removed meanwhile: a boot there differs from one in any other
    /// directory, and no start could use the image.
    fn check_directory(&self) -> Result<()> {
        match std::env::current_dir() {
            Err(error) if self.request.store.is_some() => Err(Stop::Failed(Failure::passing(format!(
                "the directory of the start that has asked for the image cannot be found any more: {error}."
            )))),
            _ => Ok(()),
        }
    }
}
