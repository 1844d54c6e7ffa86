//! The boot as another start, which shows what in a program depends on facts about its start: its directory, HOME,
//! PATH, the names of the user and of the host, the kernel's release, and any other variable that it has read and whose
//! value is a path or such a name.
//!
//! The front end compares the objects of the boots (evidence.py). If anything differs that a thaw cannot renew, each
//! fact is changed alone, to find out on which it depends. Further boots answer what the first comparison leaves open:
//! which differences are noise, and which facts the program compares with texts of its own.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use inputs::environment::matches;
use inputs::facts::fact_kind;
use judge::environment::Environment;
use judge::evidence::{search_path, ALL, CWD, HOST, KERNEL, KERNEL_VERSION};
use judge::reads::Reads;
use judge::variables::always_compared;
use recorder::{Accesses, PathAccess};
use runtime::{python, Language};

use super::boot::{BootRequest, Ended, Running, Watch};
use super::site_reads::leave_on_demand;
use super::Freeze;
use crate::boot::{Boot, Report};
use crate::boot_inputs::elsewhere::{Elsewhere, Otherwise, PathVariable};
use crate::boot_inputs::everyday_forms::Form;
use crate::boot_inputs::other_start_inputs::OtherStart;
use crate::boot_inputs::search_path::may_be_another;
use crate::boot_inputs::start_facts::{is_of_system, more_variables, VARIABLES};
use crate::outcome::{Result, Stop};
use crate::progress::Step;

/// How much larger than the boot's the environment of a start may be (bytes), if its size makes a difference.
const FEW: u64 = 64 * 1024;

/// How many times as long as the first boot a boot as another start may take, before [`MORE_PATIENCE`] is added: it may wait for
/// an event that never comes.
const PATIENCE: u32 = 5;
const MORE_PATIENCE: Duration = Duration::from_secs(10);

/// Space for the placeholder of a variable, with `=` and a NUL (bytes).
const SIZE_OF_MARK: usize = 12;

/// Maximum number of further boots like the first one to decide whether an order is noise. A small set puts its items in
/// the order of their addresses modulo 8 words of 16 bytes: so many shifts lead through all of these.
const MOST_BOOTS_FOR_ORDER: u32 = 7;

/// Boots as another start, and again as before. Returns the results, and the last boot in the place of `first`; None if
/// the program read nothing of its start, or does not boot otherwise.
pub fn compare_starts(boot: &BootRequest<'_>, first: Boot) -> Result<(Boot, Option<OtherStart>)> {
    let took = Duration::from_nanos(boot.freeze.dir.now()?.saturating_sub(first.begun).max(0) as u64);
    let boot = BootRequest { limit: Some(took * PATIENCE + MORE_PATIENCE), ..*boot };
    let compared = if first.report.knows_start { compare(&boot, &first)? } else { None };
    Ok(compared.map_or((first, None), |(again, shown)| (again, Some(shown))))
}

/// Whether two boots may run at a time: a user waits, each has a processor, and they write nothing in conflict.
fn may_boot_two(freeze: &Freeze<'_>, accesses: &Accesses) -> bool {
    let is_device =
        |path: &Path| path.starts_with("/proc") || (path.starts_with("/dev") && !path.starts_with("/dev/shm"));
    let meets = |(path, access): (&PathBuf, &PathAccess)| {
        (access.written || access.made) && !path.starts_with(freeze.dir.path()) && !is_device(path)
    };
    freeze.store().is_none()
        && !python::is_interactive(freeze.program.main.options())
        && std::thread::available_parallelism().is_ok_and(|count| count.get() > 1)
        && !accesses.places.iter().any(meets)
}

fn compare(boot: &BootRequest<'_>, first: &Boot) -> Result<Option<(Boot, OtherStart)>> {
    let Freeze { program, dir, .. } = boot.freeze;
    let language = program.runtime.language;
    if program.is_named_from_here() {
        return Ok(None);
    }
    let Boot { report: first, accesses, .. } = first;
    let more = more_variables(language, boot.facts, boot.environment, &first.reads);
    let is_path = |(_, value): &&(OsString, OsString)| value.as_bytes().starts_with(b"/");
    let paths: Vec<PathVariable> = more
        .iter()
        .filter(is_path)
        .map(|(name, value)| PathVariable {
            name: name.to_string_lossy().into_owned(),
            is_directory: Path::new(value).is_dir(),
        })
        .collect();
    let search_path = search_path(language);
    let elsewhere = Elsewhere::create(dir, search_path, &paths)?;
    let facts: Vec<(OsString, OsString)> = boot.facts.iter().chain(&more).cloned().collect();
    let more: Vec<&str> = more.iter().filter_map(|(name, _)| name.to_str()).collect();
    let boot = &BootRequest { facts: &facts, ..*boot };
    let whole = first.reads.wholes.iter().any(|read| read.place().is_some());
    let whole = (whole && leave_more_variables(&boot.freeze, &first.reads)?).then_some(ALL);
    let mut all: Vec<&str> = boot.facts.iter().filter_map(|(name, _)| name.to_str()).chain(whole).collect();
    // RubyGems reads HOME in each start; relative look-ups already count relative to the start directory.
    let is_of_ruby = language == Language::Ruby;
    all.retain(|name| *name != CWD || !is_of_ruby || first.reads.facts.contains(&(fact_kind::CWD, 0)));
    all.retain(|name| !is_of_system(name) || first.reads.asks_for_system(name));
    if first.only_searches {
        all.clear();
    }
    all.extend(may_be_another(search_path, boot.environment, &first.reads, accesses).then_some(search_path));
    if all.is_empty() {
        return Ok(None);
    }
    let Some((other, all)) = boot_with_most(boot, &elsewhere, &more, all)? else { return Ok(None) };
    try_forms(boot, &elsewhere, &all, first, [accesses, &other.accesses])?;
    let again = BootRequest { knows_other_start: true, limit: None, ..*boot };
    let mut again = again.run(&Watch::InputsAgain)?.written()?;
    let mut shown = OtherStart {
        facts: facts.clone(),
        elsewhere,
        accesses: other.accesses,
        report: other.report,
        free: BTreeSet::new(),
        bound: Vec::new(),
        largest: None,
        noise: RefCell::default(),
        says: again.report.said,
        repeated: again.report.repeated.clone(),
        limit: boot.limit.unwrap_or(MORE_PATIENCE),
        two: may_boot_two(&boot.freeze, &again.accesses),
    };
    let outcome = &mut again.report;
    outcome.differs.extend(shown.other_differences(&shown.report).map(str::to_owned));
    shown.free = all.iter().map(|name| (*name).to_owned()).collect();
    if !outcome.differs.is_empty() {
        // A difference to a third boot like the first one is noise, and so is one that a single boot shows.
        find_noise(boot, &shown, 0)?;
        find_noise_of_order(boot, &shown, outcome.differs.iter().map(String::as_str))?;
        let differs: Vec<&str> =
            outcome.differs.iter().map(String::as_str).filter(|path| !shown.is_noise(path)).collect();
        let same = |names: &[&str]| -> Result<Option<String>> {
            let booted = boot_with(boot, &shown.elsewhere, names)?;
            let Some(booted) = booted else { return Ok(Some(String::new())) };
            let path = shown.differs(&booted.report).find(|path| differs.contains(path));
            Ok(path.map(str::to_owned))
        };
        let mut bound: Vec<(String, String)> = Vec::new();
        if let Some(path) = if differs.is_empty() { None } else { same(&all)? } {
            bound = bound_among(&all, path, &same)?;
            // Without a limit the size alone of many variables could make a difference.
            let is_whole = |(name, _): &(String, String)| name == ALL;
            if bound.iter().any(is_whole) && leave_few_variables(&boot.freeze)? && same(&[ALL])?.is_none() {
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
    let compared = find_compared(boot, &shown.elsewhere, &all, &shown.free)?;
    let held: Vec<(String, String)> = outcome.held.iter().chain(&shown.report.held).cloned().collect();
    for (name, holder) in held.into_iter().chain(used).chain(compared) {
        if shown.free.remove(&name) {
            shown.bound.push((name, holder));
        }
    }
    Ok(Some((again, shown)))
}

/// Boots with other values of all these facts, or else of as many as possible: a relative path works only from its
/// own directory, a host of another name has no address, and one of the variables (`more`) may lead to a file that
/// must exist. Also returns the facts.
fn boot_with_most<'n>(
    boot: &BootRequest<'_>,
    elsewhere: &Elsewhere,
    more: &[&str],
    all: Vec<&'n str>,
) -> Result<Option<(Boot, Vec<&'n str>)>> {
    let groups = [&[CWD][..], &[HOST], more];
    let groups: Vec<&[&str]> = groups.into_iter().filter(|group| group.iter().any(|name| all.contains(name))).collect();
    // A set of groups is a number with a bit for each.
    let mut sets: Vec<u32> = (0..1 << groups.len()).collect();
    sets.sort_by_key(|set| set.count_ones());
    for set in sets {
        let is_left_out =
            |name: &&str| groups.iter().enumerate().any(|(bit, group)| set & 1 << bit != 0 && group.contains(name));
        let names: Vec<&str> = all.iter().copied().filter(|name| !is_left_out(name)).collect();
        if let Some(booted) = boot_with(boot, elsewhere, &names)? {
            return Ok(Some((booted, names)));
        }
    }
    Ok(None)
}

/// Boots with values in the forms of everyday starts, of those facts among `all` that are only kept. Leaves the result to
/// the front end. `first` is the report of the first boot; `known` its accesses, and those of another start.
fn try_forms(
    boot: &BootRequest<'_>,
    elsewhere: &Elsewhere,
    all: &[&str],
    first: &Report,
    known: [&Accesses; 2],
) -> Result<()> {
    let used = elsewhere.used_otherwise(all.iter().copied(), known[1]);
    let is_kept = |name: &str| all.contains(&name) && !used.contains_key(name);
    let here = std::env::current_dir().unwrap_or_default();
    let home = boot.environment.value("HOME").map(Path::new).filter(|home| home.is_absolute() && is_kept("HOME"));
    let is_name =
        |user: &&OsStr| matches!(Path::new(user).components().collect::<Vec<_>>()[..], [Component::Normal(_)]);
    let user = boot.environment.value("USER").filter(is_name).unwrap_or(OsStr::new("Home"));
    for form in Form::all(elsewhere, &here, home, user, is_kept(CWD))? {
        let environment = boot.environment.with_values(&form.variables());
        let more = Otherwise { form: form.number, ..Otherwise::default() };
        let folder = form.folder.as_ref().unwrap_or(&here).clone();
        let booted = boot_otherwise(boot, &environment, folder, more)?;
        let is_same = |booted: &Boot| {
            let Report { said, repeated, .. } = &booted.report;
            (said, repeated) == (&first.said, &first.repeated)
                && form.looks_up_the_same(&booted.accesses, known, elsewhere)
        };
        if !booted.is_some_and(|booted| is_same(&booted)) {
            let _ = fs::remove_file(boot.freeze.dir.file(&format!("form_{}", form.number)));
        }
    }
    Ok(())
}

/// Removes inputs from the file `more`, the front end's list of further variables. Returns whether any are left.
fn leave_more_variables(freeze: &Freeze<'_>, reads: &Reads) -> Result<bool> {
    let file = freeze.dir.file("more");
    let Ok(names) = fs::read(&file) else { return Ok(false) };
    let counts_anyway = |name: &&[u8]| {
        always_compared(freeze.program.runtime.language).any(|pattern| matches(pattern.as_bytes(), name))
            || reads.patterns.iter().any(|pattern| matches(pattern.as_bytes(), name))
    };
    let others: Vec<&[u8]> = names.split(|&byte| byte == 0).filter(|name| !counts_anyway(name)).collect();
    freeze.dir.write("more", others.join(&0))?;
    Ok(true)
}

/// Shortens the list of names in the file `more` to less than [`FEW`] bytes. Returns whether any are left.
fn leave_few_variables(freeze: &Freeze<'_>) -> Result<bool> {
    let file = freeze.dir.file("more");
    let Ok(names) = fs::read(&file) else { return Ok(false) };
    let mut room = FEW as usize;
    let few: Vec<&[u8]> = names
        .split(|&byte| byte == 0)
        .take_while(|name| {
            room = room.saturating_sub(name.len() + SIZE_OF_MARK);
            room > 0
        })
        .collect();
    freeze.dir.write("more", few.join(&0))?;
    Ok(true)
}

/// Boots with other values of these facts. None if that fails.
fn boot_with(boot: &BootRequest<'_>, elsewhere: &Elsewhere, names: &[&str]) -> Result<Option<Boot>> {
    let (environment, folder, more) = values_of(boot, elsewhere, names);
    boot_otherwise(boot, &environment, folder, more)
}

/// Boots in another environment or folder, and with further differences, to compare the result. None if that fails.
fn boot_otherwise(
    boot: &BootRequest<'_>,
    environment: &Environment,
    folder: PathBuf,
    more: Otherwise,
) -> Result<Option<Boot>> {
    let other = BootRequest { environment, ..*boot };
    let ended = begin_otherwise(&other, &Watch::OtherStart(folder, more)).and_then(Running::wait_for_end);
    leave_on_demand(boot.environment, boot.freeze.dir)?;
    compared(ended, boot)
}

/// Begins a boot that is compared with the first one.
pub fn begin_otherwise<'a>(boot: &BootRequest<'a>, watch: &Watch) -> Result<Running<'a>> {
    boot.freeze.progress.step(&Step::BootAsOtherStart);
    leave_on_demand(boot.environment, boot.freeze.dir)?;
    Ok(boot.begin(watch)?)
}

/// The result of such a boot.
pub fn compared(ended: Result<Ended>, boot: &BootRequest<'_>) -> Result<Option<Boot>> {
    boot.freeze.interrupt.check()?;
    match ended.and_then(Ended::written) {
        Err(Stop::Interrupted(signal)) => Err(Stop::Interrupted(signal)),
        ended => Ok(ended.ok()),
    }
}

/// Boots as the first time, with addresses shifted by so much: any difference is noise.
fn find_noise(boot: &BootRequest<'_>, shown: &OtherStart, shifts_addresses: u32) -> Result<()> {
    let (environment, folder, more) = values_of(boot, &shown.elsewhere, &[]);
    if let Some(booted) = boot_otherwise(boot, &environment, folder, Otherwise { shifts_addresses, ..more })? {
        let found: Vec<String> = shown.differs(&booted.report).map(str::to_owned).collect();
        shown.noise.borrow_mut().extend(found);
    }
    Ok(())
}

/// Decides whether an order that differs in one of `paths` is noise: classes in a set have the order of their
/// addresses, and so may have the numbers of what was taken from a set. Boots in the same environment allocate alike, so
/// these boots shift the addresses.
pub fn find_noise_of_order<'p>(
    boot: &BootRequest<'_>,
    shown: &OtherStart,
    paths: impl Iterator<Item = &'p str> + Clone,
) -> Result<()> {
    for shift in 1..=MOST_BOOTS_FOR_ORDER {
        if paths.clone().all(|path| !OtherStart::may_be_order(path) || shown.is_noise(path)) {
            break;
        }
        find_noise(boot, shown, shift)?;
    }
    Ok(())
}

/// Boots with values that record the texts with which the program compares them. Returns the facts of `free` that
/// it compares, and where. `all` are the facts with whose other values it boots.
fn find_compared(
    boot: &BootRequest<'_>,
    elsewhere: &Elsewhere,
    all: &[&str],
    free: &BTreeSet<String>,
) -> Result<Vec<(String, String)>> {
    // The oldest kernel has been tried.
    let is_text =
        |name: &&String| ![CWD, ALL, KERNEL, KERNEL_VERSION, elsewhere.search_path()].contains(&name.as_str());
    let watched: Vec<&String> = free.iter().filter(is_text).collect();
    if watched.is_empty() {
        return Ok(Vec::new());
    }
    let (environment, folder, more) = values_of(boot, elsewhere, all);
    let more = Otherwise { watches_values: true, ..more };
    Ok(match boot_otherwise(boot, &environment, folder, more)? {
        Some(booted) => booted.report.values_compared.into_iter().filter(|(name, _)| watched.contains(&name)).collect(),
        // It does not accept such texts.
        None => watched
            .into_iter()
            .filter(|name| !VARIABLES.contains(&name.as_str()))
            .map(|name| (name.clone(), "nobody knows what".to_owned()))
            .collect(),
    })
}

/// Environment, folder and further differences of a boot with other values of these facts.
fn values_of(boot: &BootRequest<'_>, elsewhere: &Elsewhere, names: &[&str]) -> (Environment, PathBuf, Otherwise) {
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
