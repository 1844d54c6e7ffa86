//! The boot as another start, which shows what in a program depends on facts about its start: its directory, HOME,
//! PATH, the names of the user and of the host, the kernel's release, and any other variable that it has read and whose
//! value is a path or such a name.
//!
//! The front end compares the objects of the boots (evidence.py). If a program only keeps a fact, a thaw renews it and
//! it is not an input; what it looked up below HOME or along PATH counts by its answers. If anything else differs, each
//! fact is changed alone, to find out on which it depends.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use failure::Failure;
use image::fact_kind;
use inputs::attributes::Attribute;
use inputs::environment::matches;
use judge::environment::Environment;
use judge::evidence::{search_path, ALL, CWD, HOST, KERNEL, KERNEL_VERSION};
use judge::reads::Reads;
use judge::variables::always_compared;
use recorder::{Accesses, PathAccess, State};
use runtime::{python, Language};

use super::search_path::{count_names, may_be_another};
use super::start_facts::is_of_system;
use super::Session;
use crate::boot::{leave_on_demand, Boot, Running, Watch};
use crate::boot_inputs::Ignored;
use crate::control_dir::ControlDir;
use crate::elsewhere::{self, Elsewhere, Otherwise, PathVariable};
use crate::outcome::{Result, Stop};
use crate::progress::Step;
use crate::report::{Outcome, Report, Searched};

/// Reported instead of an object if only one of the starts prints something during the boot: its thaws print nothing.
const OUTPUT: &str = "whether it prints something while it boots";

/// Reported instead of an object if the starts set different attributes of their process, such as limits.
const ATTRIBUTES: &str = "what it changes of its process";

/// The end of an order's path, as front ends write it.
pub(super) const ORDER: &str = " (order)";

/// Programs that load more files take too long for several more boots: one of a large web framework loads some 2,000.
const MOST_FILES: usize = 1500;

/// How much larger than the boot's the environment of a start may be (bytes), if its size makes a difference.
const FEW: u64 = 64 * 1024;

/// The limit of a boot as another start, which may wait for an event in vain: the first boot's time by this factor, and more.
const PATIENCE: u32 = 5;
const MORE_PATIENCE: Duration = Duration::from_secs(10);

/// Space for the placeholder of a variable, with `=` and a NUL (bytes).
const SIZE_OF_MARK: usize = 12;

/// A boot that has written its memory: its report, its accesses, and when it began (ns since 1970).
type Booted = (Report, Accesses, i64);

/// The results of another start.
pub struct OtherStart {
    /// The facts that later boots compare, with their values in the image.
    pub facts: Vec<(OsString, OsString)>,
    pub(super) elsewhere: Elsewhere,
    /// Its accesses.
    pub(super) accesses: Accesses,
    /// Its report, with the names that Python looked up.
    report: Report,
    /// Facts that the program only keeps, as far as the boots show.
    free: BTreeSet<String>,
    /// Facts that make another difference, with the object that differs.
    bound: Vec<(String, String)>,
    /// The size of an environment up to which all variables together are free (bytes), where a larger one makes a difference.
    largest: Option<u64>,
    /// Paths that differ between boots in the same conditions.
    pub(super) noise: RefCell<BTreeSet<String>>,
    /// Whether a boot like the first one prints something.
    says: bool,
    /// The attributes of its process that such a boot changes.
    repeated: Vec<Attribute>,
    /// Time limit of a boot as another start.
    pub limit: Duration,
    /// Whether two boots may run at a time.
    pub two: bool,
}

/// The hash seed for the boots of one freeze. Never 0, with which Python would hash the same way in each freeze.
pub(super) fn hash_seed() -> u32 {
    RandomState::new().build_hasher().finish() as u32 | 1
}

impl Session<'_> {
    /// Whether the runtime is named by a relative path, so that it is not found from another folder.
    fn is_named_from_here(&self) -> bool {
        Path::new(&self.main.argv[0]).is_relative() && self.main.argv[0].as_bytes().contains(&b'/')
    }

    /// Boots as another start, and again as before; `first`, `accesses` and `begun` then describe the last boot.
    /// Returns the results; None if the program read nothing of its start, or does not boot otherwise.
    pub(super) fn start_otherwise(
        &self,
        boot: &Boot<'_>,
        dir: &ControlDir,
        first: &mut Report,
        accesses: &mut Accesses,
        begun: &mut i64,
    ) -> Result<Option<OtherStart>> {
        let is_small = first.loaded.len() <= MOST_FILES;
        let took = Duration::from_nanos(dir.now()?.saturating_sub(*begun).max(0) as u64);
        let boot = Boot { limit: Some(took * PATIENCE + MORE_PATIENCE), ..*boot };
        let compared =
            if first.knows_start && is_small { self.compare_starts(&boot, dir, first, accesses)? } else { None };
        Ok(compared.map(|(shown, again)| {
            (*first, *accesses, *begun) = again;
            shown
        }))
    }

    /// Whether two boots may run at a time: a user waits, each has a processor, and they write nothing in conflict.
    fn may_boot_two(&self, accesses: &Accesses, dir: &ControlDir) -> bool {
        let is_device =
            |path: &Path| path.starts_with("/proc") || (path.starts_with("/dev") && !path.starts_with("/dev/shm"));
        let meets = |(path, access): (&PathBuf, &PathAccess)| {
            (access.written || access.made) && !path.starts_with(dir.path()) && !is_device(path)
        };
        self.request.store.is_none()
            && !python::is_interactive(self.main.options())
            && std::thread::available_parallelism().is_ok_and(|count| count.get() > 1)
            && !accesses.places.iter().any(meets)
    }

    fn compare_starts(
        &self,
        boot: &Boot<'_>,
        dir: &ControlDir,
        first: &Report,
        accesses: &Accesses,
    ) -> Result<Option<(OtherStart, Booted)>> {
        if self.is_named_from_here() {
            return Ok(None);
        }
        let more = self.more_variables(boot, first);
        let is_path = |(_, value): &&(OsString, OsString)| value.as_bytes().starts_with(b"/");
        let paths: Vec<PathVariable> = more
            .iter()
            .filter(is_path)
            .map(|(name, value)| PathVariable {
                name: name.to_string_lossy().into_owned(),
                is_directory: Path::new(value).is_dir(),
            })
            .collect();
        let search_path = search_path(self.runtime.language);
        let elsewhere = Elsewhere::create(dir, search_path, &paths)?;
        let facts: Vec<(OsString, OsString)> = boot.facts.iter().chain(&more).cloned().collect();
        let more: Vec<&str> = more.iter().filter_map(|(name, _)| name.to_str()).collect();
        let boot = &Boot { facts: &facts, ..*boot };
        let whole = first.reads.wholes.iter().any(|read| read.place().is_some());
        let whole = (whole && self.leave_more_variables(dir, &first.reads)?).then_some(ALL);
        let mut all: Vec<&str> = boot.facts.iter().filter_map(|(name, _)| name.to_str()).chain(whole).collect();
        // RubyGems reads HOME in each start; relative look-ups already count relative to the start directory.
        let is_of_ruby = self.runtime.language == Language::Ruby;
        all.retain(|name| *name != CWD || !is_of_ruby || first.reads.facts.contains(&(fact_kind::CWD, 0)));
        all.retain(|name| !is_of_system(name) || first.reads.asks_for_system(name));
        if first.only_searches {
            all.clear();
        }
        all.extend(may_be_another(search_path, boot.environment, &first.reads, accesses).then_some(search_path));
        if all.is_empty() {
            return Ok(None);
        }
        let Some((other, accesses)) = self.boot_with_most(boot, dir, &elsewhere, &more, &mut all)? else {
            return Ok(None);
        };
        let begun = dir.now()?;
        let again = Boot { knows_other_start: true, limit: None, ..*boot };
        let (mut outcome, again) = match self.boot_once(&again, dir, &Watch::InputsAgain)? {
            (Outcome::Written(report), accesses) => (report, accesses),
            (Outcome::Refused(findings), _) => return Err(Stop::Refused(findings)),
        };
        let mut shown = OtherStart {
            facts: facts.clone(),
            elsewhere,
            accesses,
            report: other,
            free: BTreeSet::new(),
            bound: Vec::new(),
            largest: None,
            noise: RefCell::default(),
            says: outcome.said,
            repeated: outcome.repeated.clone(),
            limit: boot.limit.unwrap_or(MORE_PATIENCE),
            two: self.may_boot_two(&again, dir),
        };
        outcome.differs.extend(shown.other_differences(&shown.report).map(str::to_owned));
        shown.free = all.iter().map(|name| (*name).to_owned()).collect();
        if !outcome.differs.is_empty() {
            // A difference to a third boot like the first one is noise, and so is one that a single boot shows.
            self.find_noise(boot, dir, &shown)?;
            self.find_noise_of_order(boot, dir, &shown, outcome.differs.iter().map(String::as_str))?;
            let differs: Vec<&str> =
                outcome.differs.iter().map(String::as_str).filter(|path| !shown.is_noise(path)).collect();
            let same = |names: &[&str]| -> Result<Option<String>> {
                let booted = self.boot_with(boot, dir, &shown.elsewhere, names)?;
                let Some((report, _)) = booted else { return Ok(Some(String::new())) };
                let path = shown.differs(&report).find(|path| differs.contains(path));
                Ok(path.map(str::to_owned))
            };
            let mut bound: Vec<(String, String)> = Vec::new();
            if let Some(path) = if differs.is_empty() { None } else { same(&all)? } {
                bound = bound_among(&all, path, &same)?;
                // Without a limit the size alone of many variables could make a difference.
                let is_whole = |(name, _): &(String, String)| name == ALL;
                if bound.iter().any(is_whole) && self.leave_few_variables(dir)? && same(&[ALL])?.is_none() {
                    bound.retain(|it| !is_whole(it));
                    shown.largest = Some(size_of(boot.environment) + FEW);
                }
            }
            shown.free.retain(|name| bound.iter().all(|(it, _)| it != name));
            shown.bound = bound;
        }
        let named = all.iter().copied().filter(|name| *name != ALL);
        let used = shown.elsewhere.used_otherwise(named, &shown.accesses);
        let used = used.into_iter().map(|(name, what)| (name.to_owned(), format!("{what}, which it uses,")));
        let compared = self.find_compared(boot, dir, &shown.elsewhere, &all, &shown.free)?;
        let held: Vec<(String, String)> = outcome.held.iter().chain(&shown.report.held).cloned().collect();
        for (name, holder) in held.into_iter().chain(used).chain(compared) {
            if shown.free.remove(&name) {
                shown.bound.push((name, holder));
            }
        }
        Ok(Some((shown, (*outcome, again, begun))))
    }

    /// Boots with other values of all these facts, or else of as many as possible: a relative path works only from its
    /// own directory, a host of another name has no address, and one of the variables (`more`) may lead to a file that
    /// must exist. Removes the others from `all`.
    fn boot_with_most(
        &self,
        boot: &Boot<'_>,
        dir: &ControlDir,
        elsewhere: &Elsewhere,
        more: &[&str],
        all: &mut Vec<&str>,
    ) -> Result<Option<(Report, Accesses)>> {
        let groups = [&[CWD][..], &[HOST], more];
        let groups: Vec<&[&str]> =
            groups.into_iter().filter(|group| group.iter().any(|name| all.contains(name))).collect();
        // A set of groups is a number with a bit for each.
        let mut sets: Vec<u32> = (0..1 << groups.len()).collect();
        sets.sort_by_key(|set| set.count_ones());
        for set in sets {
            let is_left_out =
                |name: &&str| groups.iter().enumerate().any(|(bit, group)| set & 1 << bit != 0 && group.contains(name));
            let names: Vec<&str> = all.iter().copied().filter(|name| !is_left_out(name)).collect();
            if let Some(booted) = self.boot_with(boot, dir, elsewhere, &names)? {
                *all = names;
                return Ok(Some(booted));
            }
        }
        Ok(None)
    }

    /// Removes inputs from the file `more`, the front end's list of further variables. Returns whether any are left.
    fn leave_more_variables(&self, dir: &ControlDir, reads: &Reads) -> Result<bool> {
        let file = dir.file("more");
        let Ok(names) = fs::read(&file) else { return Ok(false) };
        let counts_anyway = |name: &&[u8]| {
            always_compared(self.runtime.language).any(|pattern| matches(pattern.as_bytes(), name))
                || reads.patterns.iter().any(|pattern| matches(pattern.as_bytes(), name))
        };
        let others: Vec<&[u8]> = names.split(|&byte| byte == 0).filter(|name| !counts_anyway(name)).collect();
        fs::write(&file, others.join(&0)).map_err(|error| Failure::io("write", &file, &error))?;
        Ok(true)
    }

    /// Shortens the list of names in the file `more` to less than [`FEW`] bytes. Returns whether any are left.
    fn leave_few_variables(&self, dir: &ControlDir) -> Result<bool> {
        let file = dir.file("more");
        let Ok(names) = fs::read(&file) else { return Ok(false) };
        let mut room = FEW as usize;
        let few: Vec<&[u8]> = names
            .split(|&byte| byte == 0)
            .take_while(|name| {
                room = room.saturating_sub(name.len() + SIZE_OF_MARK);
                room > 0
            })
            .collect();
        fs::write(&file, few.join(&0)).map_err(|error| Failure::io("write", &file, &error))?;
        Ok(true)
    }

    /// Boots with other values of these facts. None if that fails.
    pub(super) fn boot_with(
        &self,
        boot: &Boot<'_>,
        dir: &ControlDir,
        elsewhere: &Elsewhere,
        names: &[&str],
    ) -> Result<Option<(Report, Accesses)>> {
        let (environment, folder, more) = values_of(boot, elsewhere, names);
        self.boot_otherwise(boot, dir, &environment, &folder, more)
    }

    /// Boots in another environment or folder, and with further differences, to compare the result. None if that fails.
    pub(super) fn boot_otherwise(
        &self,
        boot: &Boot<'_>,
        dir: &ControlDir,
        environment: &Environment,
        folder: &Path,
        more: Otherwise,
    ) -> Result<Option<(Report, Accesses)>> {
        let watch = Watch::OtherStart(folder.to_owned(), more);
        let other = Boot { environment, ..*boot };
        let ended =
            self.begin_otherwise(&other, dir, &watch).and_then(|running| self.wait_for_end(running, &other, dir));
        leave_on_demand(boot.environment, dir)?;
        self.end_otherwise(ended, boot)
    }

    /// Begins a boot that is compared with the first one.
    pub(super) fn begin_otherwise<'a>(&self, boot: &Boot<'a>, dir: &ControlDir, watch: &Watch) -> Result<Running<'a>> {
        self.progress.step(&Step::BootAsOtherStart);
        leave_on_demand(boot.environment, dir)?;
        Ok(boot.begin(dir, watch)?)
    }

    /// The result of such a boot.
    pub(super) fn end_otherwise(
        &self,
        ended: Result<(Outcome, Accesses)>,
        boot: &Boot<'_>,
    ) -> Result<Option<(Report, Accesses)>> {
        boot.interrupt.check()?;
        Ok(match ended {
            Ok((Outcome::Written(report), accesses)) => Some((*report, accesses)),
            Err(Stop::Interrupted(signal)) => return Err(Stop::Interrupted(signal)),
            _ => None,
        })
    }
}

impl OtherStart {
    /// Whether another boot differs only in noise.
    pub fn is_same(&self, other: &Report) -> bool {
        self.differs(other).all(|path| self.is_noise(path))
    }

    pub(super) fn is_noise(&self, path: &str) -> bool {
        self.noise.borrow().contains(path)
    }

    /// The orders in which another boot differs; empty if it also differs otherwise, except in noise.
    pub fn orders_only<'a>(&self, other: &'a Report) -> Vec<&'a str> {
        let differs: Vec<&str> = self.differs(other).filter(|path| !self.is_noise(path)).collect();
        if differs.iter().all(|path| path.ends_with(ORDER)) {
            differs
        } else {
            Vec::new()
        }
    }

    /// The paths in which another boot differs.
    pub(super) fn differs<'a>(&self, other: &'a Report) -> impl Iterator<Item = &'a str> {
        other.differs.iter().map(String::as_str).chain(self.other_differences(other))
    }

    /// Differences of another boot besides its objects.
    fn other_differences<'a>(&self, other: &'a Report) -> impl Iterator<Item = &'a str> + use<'a> {
        let output = (other.said && !self.says).then_some(OUTPUT);
        let attributes = (other.repeated != self.repeated).then_some(ATTRIBUTES);
        output.into_iter().chain(attributes)
    }

    /// Removes what need not count, and adds what counts instead. `environment` and `start` are those of the boot.
    pub fn apply(
        &self,
        reads: &mut Reads,
        accesses: &mut Accesses,
        environment: &Environment,
        start: &Path,
        ignored: &Ignored,
        searched: &Searched,
    ) {
        for (name, what) in &self.bound {
            reads.bind(name, what);
        }
        for name in &self.free {
            match name.as_str() {
                CWD if reads.asks_for_folder() && self.follow_start(accesses, start, ignored) => reads.renew_folder(),
                CWD => {}
                KERNEL if self.free.contains(KERNEL_VERSION) => reads.renew_system(KERNEL),
                KERNEL | KERNEL_VERSION => {}
                HOST => reads.renew_system(HOST),
                ALL => reads.pick(&self.report.picked, self.largest, environment),
                name if self.elsewhere.is_folder(name) => {
                    self.found_below(name, accesses, environment)
                        .into_iter()
                        .for_each(|found| reads.renew(name, found));
                }
                "PATH" => self.along_path(accesses, environment).into_iter().for_each(|found| reads.renew(name, found)),
                "PYTHONPATH" | "RUBYLIB" => {
                    count_names(&self.elsewhere, (&self.accesses, &self.report), reads, accesses, searched)
                }
                name => reads.renew(name, Vec::new()),
            }
        }
    }

    fn follow_start(&self, accesses: &mut Accesses, start: &Path, ignored: &Ignored) -> bool {
        let names = self.elsewhere.looked_up(&self.accesses, &self.report.importers);
        names.is_some_and(|names| {
            // A path that both boots look up by the same name does not depend on the start directory.
            let by_itself = |path: &Path| self.accesses.places.contains_key(path);
            elsewhere::make_relative(&names, start, accesses, ignored, by_itself)
        })
    }

    /// The names looked up along PATH, and where they are. None if the boot did not look in the same places.
    fn along_path(&self, accesses: &Accesses, environment: &Environment) -> Option<Vec<Vec<u8>>> {
        let path = environment.value("PATH")?;
        let directories: Vec<PathBuf> = std::env::split_paths(path).collect();
        let mut rows = Vec::new();
        for name in self.elsewhere.looked_up_below("PATH", &self.accesses)? {
            // The boot tried each up to the one that it used. If it continued, a file that it found was not suitable.
            let places = directories.iter().map(|directory| directory.join(&name));
            let looked_at: Vec<_> = places.map_while(|place| Some((accesses.places.get(&place)?, place))).collect();
            let there = |(access, _): &&(&PathAccess, PathBuf)| *access.target_state() != State::Absent;
            let found = match looked_at.split_last()? {
                (_, before) if before.iter().any(|place| there(&place)) => return None,
                (last, _) if there(&last) => Some(last.1.clone()),
                _ if looked_at.len() < directories.len() => return None,
                _ => None,
            };
            rows.push(row("PATH", &name, found.as_deref()));
        }
        Some(rows)
    }
}

/// Environment, folder and further differences of a boot with other values of these facts.
pub(super) fn values_of(boot: &Boot<'_>, elsewhere: &Elsewhere, names: &[&str]) -> (Environment, PathBuf, Otherwise) {
    let (of_system, variables): (Vec<_>, Vec<_>) = boot
        .facts
        .iter()
        .filter(|(name, _)| name != CWD && names.iter().any(|wanted| name == wanted))
        .partition(|(name, _)| name.to_str().is_some_and(is_of_system));
    let mut values: Vec<_> = variables
        .into_iter()
        .filter_map(|(name, value)| Some((name.clone(), Some(elsewhere.value(name.to_str()?, value)))))
        .collect();
    let search_path = elsewhere.search_path();
    let searched = names.contains(&search_path);
    values.extend(searched.then(|| (search_path.into(), Some(elsewhere.value(search_path, OsStr::new(""))))));
    let here = std::env::current_dir().unwrap_or_default();
    let folder = if names.contains(&CWD) { elsewhere.folder().to_owned() } else { here };
    let system =
        of_system.iter().filter_map(|(name, value)| Some((name.clone(), elsewhere.value(name.to_str()?, value))));
    let more = Otherwise { more_variables: names.contains(&ALL), system: system.collect(), ..Otherwise::default() };
    (boot.environment.with_values(&values), folder, more)
}

/// The facts among these that make boots differ, with an object: `differs` returns the object that differs if only
/// these are changed. All facts, if no part makes a difference alone. `path` is the object that differs with all.
fn bound_among(
    names: &[&str],
    path: String,
    differs: &impl Fn(&[&str]) -> Result<Option<String>>,
) -> Result<Vec<(String, String)>> {
    if let [name] = names {
        return Ok(vec![((*name).to_owned(), path)]);
    }
    let (first, second) = names.split_at(names.len() / 2);
    let mut bound = Vec::new();
    for half in [first, second] {
        if let Some(path) = differs(half)? {
            bound.extend(bound_among(half, path, differs)?);
        }
    }
    if bound.is_empty() {
        bound = names.iter().map(|name| ((*name).to_owned(), path.clone())).collect();
    }
    Ok(bound)
}

/// The size of an environment (bytes), as inputs/environment.rs counts it.
fn size_of(environment: &Environment) -> u64 {
    environment.visible().map(|(name, value)| name.len() + value.len() + 2).sum::<usize>() as u64
}

/// A row of [`fact_kind::FOUND`].
pub(super) fn row(variable: &str, name: &Path, place: Option<&Path>) -> Vec<u8> {
    let place = place.map_or(OsStr::new("absent"), Path::as_os_str);
    [b"$", variable.as_bytes(), b"/", name.as_os_str().as_bytes(), b": ", place.as_bytes()].concat()
}
