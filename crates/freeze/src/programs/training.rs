//! Training runs: ordinary starts of the program, from which a freeze learns what it loads after its beginning.
//!
//! The front end makes such a run (`train.py`, `train.rb`) and reports at its end what was loaded; see
//! docs/internals/protocol.md. The front end of the boot then loads the part that is always the same. Before the image
//! is renamed into place, the same runs are made from it: they must print the same and end the same way.

use std::ffi::OsString;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command};
use std::time::Duration;

use failure::{Failure, Result};
use image::Mapping;
use judge::entries::Entries;
use runtime::deadline::{self, ProcessOutput};
use runtime::{search_path, Language, Main};

use super::installed_tool::is_installed;
use super::rehearse::used_pages;
use super::{last_look, Freeze};
use crate::boot::{RunPages, UsedPages};
use crate::control_dir::make_folder;
use crate::outcome::{self, Difference, Disproof, Stop};
use crate::profile::{joined, FailedRun, Left, Profile, Run};
use crate::progress::Step;
use crate::request::Training;
use crate::start_reports::{script_behind_links, StartReports};

/// Time limit of a default run, and of one that the user asked for.
const LIMIT: Duration = Duration::from_secs(60);
const LONG_LIMIT: Duration = Duration::from_secs(3600);
/// How many ordinary runs must agree before a different result of the image counts as wrong.
const REPEATS: usize = 5;
/// How much of a line is shown (characters).
const MAX_SHOWN: usize = 100;

/// Makes all runs, one after the other, and reads the reports of thawed starts. A run that fails is reported to the
/// user if the user asked for it.
pub fn train(freeze: &Freeze<'_>) -> outcome::Result<Profile> {
    let Freeze { request, program, recipe, dir, interrupt, progress } = *freeze;
    // A recipe's training says more than that it has these options.
    let is_default = request.training == Training::Default;
    let is_tool = is_default && freeze.places().is_empty() && recipe.training.is_empty() && is_installed(&program.main);
    let (runs, limit) = match &request.training {
        Training::None => (Vec::new(), LIMIT),
        Training::Runs(runs) => (runs.clone(), LONG_LIMIT),
        Training::Default if is_tool => (["--version", "--help"].map(|option| vec![option.into()]).to_vec(), LIMIT),
        Training::Default => (recipe.training.clone(), LIMIT),
    };
    let is_of_recipe = request.training != Training::None && runs == recipe.training;
    let warm_up = if is_of_recipe { recipe.warm_up.clone() } else { Vec::new() };
    let (mut learnt, mut failed) = (Vec::new(), Vec::new());
    for (number, arguments) in runs.iter().enumerate() {
        progress.step(&Step::Train { number: number as u32 + 1, count: runs.len() as u32 });
        let ended = run(freeze, arguments, limit)?;
        interrupt.check()?;
        let file = dir.file("training/profile");
        let report = file.exists().then(|| Entries::read(&file).ok()).flatten();
        let _ = fs::remove_file(&file);
        let arguments = arguments.clone();
        match (ended, report) {
            (Some(output), Some(report)) => learnt.push((Run { arguments, output }, report)),
            (ended, _) => {
                let run = FailedRun { arguments, ended: ended.map(|output| output.status), limit };
                if !is_default {
                    progress.message(&run.to_string());
                } else if run.ended.is_none_or(|status| status.code().is_none()) {
                    // Another time it may end.
                    failed.push(run);
                }
            }
        }
    }
    let script = || script_behind_links(&program.main);
    let reports = freeze.store().map(|store| StartReports::read(&store.profile, script())).unwrap_or_default();
    let profile = Profile::new(learnt, failed, is_tool, warm_up, reports);
    let mut own = program.own_files.clone();
    let left = match &request.store {
        Some(_) if program.leaves_own_files => Left::OfAll,
        Some(_) if freeze.boots_application() => Left::OfReports,
        _ => return Ok(profile),
    };
    let profile = profile.without_files(program.runtime.language, left, |file| own.checkout(file).is_some());
    Ok(if program.leaves_script { profile.without_always() } else { profile })
}

/// Makes a run; None if it exceeded the time limit.
fn run(freeze: &Freeze<'_>, arguments: &[OsString], limit: Duration) -> Result<Option<ProcessOutput>> {
    let Freeze { request, program, dir, interrupt, .. } = *freeze;
    let (runtime, folder) = (&program.runtime, dir.file("training"));
    let argv: Vec<OsString> = program.main.argv.iter().chain(arguments).cloned().collect();
    let main = Main::split(runtime.language, argv, &search_path())?;
    make_folder(&folder).map_err(|error| Failure::io("make the directory", &folder, &error))?;
    dir.write("training/request", Entries::of_main(&main).to_bytes())?;
    let mut command = Command::new(&runtime.program);
    command.arg0(&main.argv[0]).args(main.options()).env("SNAPBOOT_FREEZE_DIR", &folder);
    match runtime.language {
        Language::Python => command.arg(request.installation.python_training()?),
        Language::Ruby => command.arg("-r").arg(request.installation.ruby_training()?).args(&main.argv[main.index..]),
    };
    deadline::run_watched(&mut command, limit, Some(interrupt.wake()), None, freeze.terminal().as_ref())
        .map_err(|error| Failure::io("start", &runtime.program, &error))
}

/// Makes the runs again from the image, and returns the pages that each used; `mappings` are those of the image.
/// Compares output and exit status, if anything was loaded early because of the runs.
///
/// Fails with the first difference to runs that are the same each time they are made the ordinary way.
pub fn run_from(
    freeze: &Freeze<'_>,
    profile: &Profile,
    image: &Path,
    mappings: &[Mapping],
) -> outcome::Result<Vec<RunPages>> {
    let mut all = Vec::new();
    for run in &profile.runs {
        freeze.progress.step(&Step::Compare);
        let (thawed, used) = thaw(freeze, run, image, mappings);
        if !profile.is_empty() && differs(freeze, run, thawed.as_ref()) {
            let how = difference(&run.output, thawed.as_ref());
            return Err(Stop::Disproved(Disproof::Run(joined(&run.arguments), how)));
        }
        let argument = run.arguments.first().cloned().unwrap_or_default();
        all.extend(used.map(|used| RunPages { argument, written: used.written }));
    }
    Ok(all)
}

/// Makes a run from the image. Returns its output, if it ended in time, and the pages that it used, if it thawed.
fn thaw(
    freeze: &Freeze<'_>,
    run: &Run,
    image: &Path,
    mappings: &[Mapping],
) -> (Option<ProcessOutput>, Option<UsedPages>) {
    let Ok(mut command) = last_look::command(image) else { return (None, None) };
    // It would only take time: the pages were written a moment ago.
    command.args(&run.arguments).env_remove("SNAPBOOT_VERIFY");
    let mut used = None;
    let mut look = last_look::at_end(|child: &Child| {
        let is_thawed = fs::read_link(format!("/proc/{}/exe", child.id())).is_ok_and(|path| path == image);
        used = used_pages(child, mappings).ok().filter(|_| is_thawed);
    });
    let (wake, terminal) = (Some(freeze.interrupt.wake()), freeze.terminal());
    let thawed = deadline::run_watched(&mut command, LONG_LIMIT, wake, Some(&mut look), terminal.as_ref());
    drop(look);
    (thawed.ok().flatten(), used)
}

fn differs(freeze: &Freeze<'_>, run: &Run, thawed: Option<&ProcessOutput>) -> bool {
    let Some(thawed) = thawed else { return freeze.interrupt.signal().is_none() };
    let is_same = |other: &ProcessOutput| (run.output.status, &run.output.stdout) == (other.status, &other.stdout);
    if is_same(thawed) {
        return false;
    }
    // Output whose order varies between ordinary runs proves nothing: a few of them may have the order of a set alike
    // by chance.
    (0..REPEATS).all(|_| matches!(self::run(freeze, &run.arguments, LONG_LIMIT), Ok(Some(again)) if is_same(&again)))
}

/// How a run from the image differed from the ordinary one.
fn difference(ordinary: &ProcessOutput, thawed: Option<&ProcessOutput>) -> Difference {
    let Some(thawed) = thawed else { return Difference::DidNotEnd };
    if thawed.status != ordinary.status {
        let last_line = last_line(&thawed.stderr).or_else(|| last_line(&thawed.stdout));
        return Difference::Ended { with: thawed.status, ordinarily: ordinary.status, last_line };
    }
    let [own, its] = [&ordinary.stdout, &thawed.stdout].map(|text| String::from_utf8_lossy(text));
    let number = own.lines().zip(its.lines()).take_while(|(own, its)| own == its).count();
    let [ordinarily, line] = [own, its].map(|text| text.lines().nth(number).map(cut));
    Difference::Printed { line, ordinarily }
}

/// The last line that is not blank.
fn last_line(output: &[u8]) -> Option<String> {
    String::from_utf8_lossy(output).lines().rfind(|line| !line.trim().is_empty()).map(cut)
}

/// As much of a line as fits into a message.
fn cut(line: &str) -> String {
    line.trim().chars().take(MAX_SHOWN).collect()
}
