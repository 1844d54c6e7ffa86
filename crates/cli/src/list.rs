//! `snapboot list`: what is in the store, how it fares, and what it has saved.

use std::path::PathBuf;

use failure::Result;
use image_file::info::Info;
use image_file::starts::Starts;
use image_file::this_process::ThisProcess;
use image_file::{differences, ImageFile};
use serde::Serialize;
use store::attempt::{Attempt, Outcome};
use store::tools::{Installed, OnPath};
use store::{limits, Folder, StartTimes, Store};

use crate::arguments::List;
use crate::progress::Progress;
use crate::{human, render};

/// Characters of a reason in the table; `--json` has all of it.
const SHOWN: usize = 72;

/// One image, or one command that has none.
#[derive(Serialize)]
struct Row {
    name: String,
    /// The image; where there is none, the folder of its command.
    path: PathBuf,
    /// The words that it was made from.
    command: Vec<String>,
    /// The link of an installed command.
    installed: Option<PathBuf>,
    state: State,
    /// Why it is in that state; of a fresh image, what its freeze warned of.
    why: Vec<String>,
    /// What it takes on disk (bytes).
    size: u64,
    /// Starts that have thawed, and that have fallen back.
    thawed: u64,
    fallen_back: u64,
    /// What the thawed ones have saved (seconds); None where that is not known.
    saved: Option<f64>,
    /// Why a shell starts another program by its name. Mostly the same for all, and so told once below the table.
    #[serde(skip)]
    hidden: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum State {
    /// A start here and now would thaw.
    Fresh,
    /// It would fall back.
    Stale,
    /// An image is being made.
    Building,
    /// The program cannot be frozen.
    Refused,
    /// An image gained nothing.
    Vain,
    /// The last attempt went wrong.
    Failed,
    /// There is none yet.
    None,
}

impl State {
    fn word(self) -> &'static str {
        match self {
            State::Fresh => "fresh",
            State::Stale => "stale",
            State::Building => "building",
            State::Refused => "refused",
            State::Vain => "in vain",
            State::Failed => "failed",
            State::None => "none yet",
        }
    }
}

/// Runs the subcommand; returns the exit status.
pub fn main(arguments: &List) -> Result<u8> {
    let store = Store::open()?;
    let progress = Progress::start(false);
    progress.phase("comparing images with what they were made of");
    let rows: Vec<Row> = store.folders().iter().flat_map(rows).collect();
    progress.stop();
    if arguments.json {
        render::print_json(&rows)?;
    } else if rows.is_empty() {
        render::print("The store is empty. snapboot install COMMAND puts an image in front of a command; snapboot run -- COMMAND makes one by itself.\n")?;
    } else {
        render::print(&page(&rows))?;
    }
    Ok(0)
}

fn rows(folder: &Folder) -> Vec<Row> {
    let Some(command) = folder.command() else { return Vec::new() };
    let attempt = Attempt::of(folder);
    let installed = Installed::of(folder);
    let times = match &attempt.outcome {
        Outcome::Made { times, .. } => *times,
        _ => None,
    };
    let row = |path: PathBuf, state, why| Row {
        name: command.name.clone(),
        path,
        command: command.words.clone(),
        installed: installed.as_ref().map(|installed| installed.link.clone()),
        state,
        why,
        size: 0,
        thawed: 0,
        fallen_back: 0,
        saved: None,
        hidden: None,
    };
    let images = folder.images();
    if images.is_empty() {
        let (state, why) = unusable(folder, &attempt, State::None, Vec::new());
        return vec![row(folder.path().to_owned(), state, why)];
    }
    let replaced = replaced(folder, installed.as_ref());
    let hidden = installed.as_ref().and_then(hidden);
    images
        .iter()
        .map(|image| {
            let opened = ImageFile::open(image);
            let starts = opened.as_ref().ok().and_then(Starts::of);
            // There may be another one for this terminal.
            let boot = store::fit::terminal(image).map_or([None; 3], |terminal| terminal.windows());
            let of_start = ThisProcess { boot: Some(boot) };
            let warnings = opened.as_ref().map(|image| Info::of(&image.tables()).warnings).unwrap_or_default();
            let why = opened
                .and_then(|image| differences::stale_for(&image, &of_start))
                .unwrap_or_else(|failure| vec![failure.message]);
            let (state, why) = match why.is_empty() {
                // Nobody has seen them, where it was made in the background.
                true => (State::Fresh, [&replaced[..], &warnings].concat()),
                false => unusable(folder, &attempt, State::Stale, [&replaced[..], &why, &warnings].concat()),
            };
            let why = why.into_iter().chain(hidden.clone()).collect();
            let thawed = starts.as_ref().map_or(0, |starts| starts.thaws);
            Row {
                size: limits::size(image),
                thawed,
                fallen_back: starts.as_ref().map_or(0, |starts| starts.fallbacks),
                saved: times.as_ref().map(|times: &StartTimes| times.saved() * thawed as f64),
                hidden: hidden.clone(),
                ..row(image.clone(), state, why)
            }
        })
        .collect()
}

/// The state where no image can be used, and why: `state` and `why`, unless the last attempt to make one says more.
fn unusable(folder: &Folder, attempt: &Attempt, state: State, why: Vec<String>) -> (State, Vec<String>) {
    match &attempt.outcome {
        _ if folder.is_building() => (State::Building, why),
        Outcome::Refused { why, .. } => (State::Refused, why.clone()),
        Outcome::Vain { .. } => (State::Vain, attempt.in_vain_because().into_iter().collect()),
        Outcome::Failed { why, .. } => (State::Failed, vec![why.clone()]),
        _ => (state, why),
    }
}

/// Why an image in place is not what its name leads to.
fn replaced(folder: &Folder, installed: Option<&Installed>) -> Vec<String> {
    let replaced = installed.filter(|installed| installed.in_place && !installed.is_in_front(folder));
    let text = |it: &Installed| format!("{} was replaced, as by an upgrade: install it again", it.link.display());
    replaced.map(text).into_iter().collect()
}

/// Why the name of an installed command leads to another program.
fn hidden(installed: &Installed) -> Option<String> {
    match installed.on_path() {
        _ if installed.in_place => None,
        OnPath::Image => None,
        OnPath::Other(Some(other)) => Some(format!("{} comes first on PATH: see snapboot shellenv", other.display())),
        OnPath::Other(None) => Some("its directory is not on PATH: see snapboot shellenv".to_owned()),
    }
}

fn page(rows: &[Row]) -> String {
    let saved = |seconds: f64| match seconds {
        seconds if seconds >= 3600.0 => format!("{:.1} h", seconds / 3600.0),
        seconds if seconds >= 60.0 => format!("{:.1} min", seconds / 60.0),
        seconds => format!("{seconds:.1} s"),
    };
    let cells = rows.iter().map(|row| {
        let own = row.why.first().filter(|why| Some(*why) != row.hidden.as_ref());
        let why: String = own.map(|why| human::harmless(why)).unwrap_or_default();
        vec![
            row.name.clone(),
            human::size(row.size),
            row.thawed.to_string(),
            row.fallen_back.to_string(),
            row.saved.map_or_else(String::new, saved),
            row.state.word().to_owned(),
            human::command(row.command.iter().map(String::as_str)),
            human::shortened(&why, SHOWN),
        ]
    });
    let table = render::numbers(&["name", "size", "thawed", "fell back", "saved", "state", "command", "why"], 4, cells);
    table + &hidden_ones(rows)
}

/// What is to be said of installed commands whose images a shell does not start.
fn hidden_ones(rows: &[Row]) -> String {
    let mut names: Vec<&str> = rows.iter().filter(|row| row.hidden.is_some()).map(|row| row.name.as_str()).collect();
    names.dedup();
    let bin = rows.iter().filter(|row| row.hidden.is_some()).find_map(|row| row.installed.as_ref()?.parent());
    let Some(bin) = bin else { return String::new() };
    format!(
        "\nA shell starts other programs by the name of {}: {} must come first on PATH. See snapboot shellenv.\n",
        names.join(", "),
        bin.display()
    )
}
