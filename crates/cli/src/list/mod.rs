//! `snapboot list`: the images of the store, their state, and the time that they have saved.

mod metrics;

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use failure::Result;
use freeze::{Changing, Content};
use image_file::differences::{self, Seen};
use image_file::info::Info;
use image_file::starts::Starts;
use image_file::this_process::ThisProcess;
use image_file::ImageFile;
use runtime::search_path;
use serde::Serialize;
use store::attempt::{Attempts, Outcome};
use store::changes::Changes;
use store::tools::{Installed, OnPath};
use store::{eviction, Effort, Folder, PutOff, RemoteMetrics, StartTimes, Store};

use crate::arguments::List;
use crate::spinner::Spinner;
use crate::{human, openmetrics, render};

/// How many reasons are shown for one command; `--json` has all.
const SHOWN: usize = 3;

/// One image, or one command that has none.
#[derive(Clone, Serialize)]
struct Row {
    name: String,
    /// The image, or the folder of a command without one.
    path: PathBuf,
    /// The words that it was made from.
    command: Vec<String>,
    /// The link of an installed command.
    installed: Option<PathBuf>,
    state: State,
    /// Why it is in that state; empty for a fresh image.
    why: Vec<String>,
    /// Other remarks: warnings of a freeze in the background, which nobody has seen; why a shell starts another program under its name.
    notes: Vec<String>,
    /// Its size on disk (bytes).
    size: u64,
    /// Starts that have thawed, and that have fallen back.
    thawed: u64,
    fallen_back: u64,
    /// The time that the thawed ones have saved (seconds); None if unknown.
    saved: Option<f64>,
    /// What the remote store was good for, of all images of the command; None if it was never asked.
    remote: Option<RemoteMetrics>,
    /// Why a shell starts another program under its name. Mostly the same for all, so it is shown once below the table.
    #[serde(skip)]
    hidden: Option<Hidden>,
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
    /// An image was no faster.
    Vain,
    /// The last attempt failed.
    Failed,
    /// The installed command is gone, and its image waits for it to come back.
    Dormant,
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
            State::Vain => "vain",
            State::Failed => "failed",
            State::Dormant => "dormant",
            State::None => "none yet",
        }
    }
}

/// Runs the subcommand; returns the exit status.
pub fn main(arguments: &List) -> Result<u8> {
    let store = Store::open()?;
    let spinner = Spinner::start(false);
    spinner.phase("comparing images with what they were made of");
    let seen = Seen::default();
    let commands: Vec<Vec<Row>> =
        store.folders().iter().map(|folder| rows(folder, &seen)).filter(|rows| !rows.is_empty()).collect();
    spinner.stop();
    if arguments.json {
        render::print_json(&commands.concat())?;
    } else if arguments.openmetrics {
        render::print(&openmetrics::text(&metrics::families(&commands.concat(), &RemoteMetrics::of_store(&store))))?;
    } else if commands.is_empty() {
        render::print("The store is empty. snapboot install COMMAND puts an image in front of a command; snapboot run -- COMMAND makes one by itself.\n")?;
    } else {
        render::print(&page(&commands))?;
    }
    Ok(0)
}

/// One row for each image of a command; one for a command without any. `seen`: results that other rows have looked up.
fn rows(folder: &Folder, seen: &Seen) -> Vec<Row> {
    let Some(command) = folder.command() else { return Vec::new() };
    let installed = Installed::load(folder);
    let hidden = installed.as_ref().and_then(hidden);
    let row = |path: PathBuf, state, why| Row {
        name: command.name.clone(),
        path,
        command: command.words.clone(),
        installed: installed.as_ref().map(|installed| installed.link.clone()),
        state,
        why,
        notes: Vec::new(),
        size: 0,
        thawed: 0,
        fallen_back: 0,
        saved: None,
        remote: RemoteMetrics::of_folder(folder),
        hidden: hidden.clone(),
    };
    if folder.all_images().is_empty() {
        let (state, why) = without_image(folder, &Attempts::load(folder));
        return vec![row(folder.path().to_owned(), state, why)];
    }
    let kinds = [Content::Program, Content::Libraries].map(|content| folder.with(content));
    kinds.iter().flat_map(|folder| rows_of_kind(folder, installed.as_ref(), seen, &row)).collect()
}

/// One row for each image of a folder that is of its kind. `row`: makes one for an image, with a state and why.
fn rows_of_kind(
    folder: &Folder,
    installed: Option<&Installed>,
    seen: &Seen,
    row: &dyn Fn(PathBuf, State, Vec<String>) -> Row,
) -> Vec<Row> {
    let attempts = Attempts::load(folder);
    let images = folder.images();
    let of_libraries = match folder.content() {
        Content::Program => None,
        Content::Libraries => {
            Some("for starts after an edit: it leaves the files of the checkout to each start".to_owned())
        }
    };
    let left = left_to_starts(&Changes::load(folder).changing());
    let mut several = BTreeSet::new();
    let replaced = replaced(folder, installed);
    let dormant = installed.filter(|it| it.is_dormant()).map(|it| {
        let (program, name) = (it.program.display(), &it.name);
        format!("{program} is gone; the image is used again when it is back, and snapboot uninstall {name} removes it")
    });
    let mut rows: Vec<Row> = images
        .iter()
        .map(|image| {
            let opened = ImageFile::open(image);
            let starts = opened.as_ref().ok().and_then(Starts::read);
            // There may be another image for this terminal.
            let boot = store::fit::terminal(image).map_or([None; 3], |terminal| terminal.windows());
            let of_start = ThisProcess { boot: Some(boot) };
            let warnings = opened.as_ref().map(|image| Info::read(&image.tables()).warnings).unwrap_or_default();
            let why = opened.and_then(|image| differences::lines_for_start(&image, &of_start, seen));
            several.extend(why.iter().flatten().filter_map(|line| line.subject.name()));
            let why = why.map(|lines| lines.into_iter().map(|line| line.text).collect());
            let why: Vec<String> = why.unwrap_or_else(|failure| vec![failure.message]);
            let (state, why) = match why.is_empty() {
                _ if dormant.is_some() => (State::Dormant, dormant.iter().cloned().collect()),
                true => (State::Fresh, why),
                false if folder.is_building() => (State::Building, why),
                false => (State::Stale, [in_the_way(folder), why, since(&attempts, image)].concat()),
            };
            let thawed = starts.as_ref().map_or(0, |starts| starts.thaws);
            let row = row(image.clone(), state, why);
            Row {
                notes: [&replaced[..], &warnings, &left]
                    .concat()
                    .into_iter()
                    .chain(of_libraries.clone())
                    .chain(row.hidden.as_ref().map(Hidden::to_string))
                    .collect(),
                size: eviction::size(image),
                thawed,
                fallen_back: starts.as_ref().map_or(0, |starts| starts.fallbacks),
                saved: attempts.times.as_ref().map(|times: &StartTimes| times.saved() * thawed as f64),
                ..row
            }
        })
        .collect();
    if rows.len() > 1 && !several.is_empty() {
        let names = several.into_iter().collect::<Vec<_>>().join(", ");
        let note = format!("{} images, because the program boots differently depending on {names}", rows.len());
        rows.iter_mut().for_each(|row| row.notes.insert(0, note.clone()));
    }
    rows
}

/// The inputs that are in no image because they change, in words.
fn left_to_starts(changing: &Changing) -> Vec<String> {
    let places = changing.places.iter().map(|place| place.display().to_string());
    let names = changing.variables.iter().map(|name| name.to_string_lossy().into_owned());
    let names: Vec<String> = places.chain(names).collect();
    match names.is_empty() {
        true => Vec::new(),
        false => {
            vec![format!("left to each start, with the modules that load it, because it changes: {}", names.join(", "))]
        }
    }
}

/// The state of a command that has no image, and why.
fn without_image(folder: &Folder, attempts: &Attempts) -> (State, Vec<String>) {
    match attempts.last().map(|last| &last.outcome) {
        _ if folder.is_building() => (State::Building, Vec::new()),
        _ if attempts.is_unfinished() => (
            State::None,
            vec!["the last builder ended before its image was complete; probably something killed it".to_owned()],
        ),
        Some(Outcome::Refused { why }) => (State::Refused, why.clone()),
        Some(Outcome::Vain { effort }) => (State::Vain, vec![gains_nothing(effort)]),
        Some(Outcome::Failed { why, .. }) => (State::Failed, vec![why.clone()]),
        Some(Outcome::Made { .. }) | None => (State::None, in_the_way(folder)),
    }
}

/// Why no builder starts now, whatever the program.
fn in_the_way(folder: &Folder) -> Vec<String> {
    let put_off = PutOff::load(folder).map(|put_off| format!("an image was put off, because {}", put_off.why));
    folder.cannot_write().map(|obstacle| obstacle.to_string()).into_iter().chain(put_off).collect()
}

/// Why an image was removed.
fn gains_nothing(effort: &Effort) -> String {
    let [archived, thawed] = [effort.archived, effort.thawed].map(|seconds| seconds * 1000.0);
    format!("an image gains nothing: a start from it takes {thawed:.0} ms of a processor, and {archived:.0} ms with the boot archive alone")
}

/// The outcome of an attempt after an image was made.
fn since(attempts: &Attempts, image: &Path) -> Vec<String> {
    let made = image.metadata().and_then(|status| status.modified()).ok();
    let made = made.and_then(|made| made.duration_since(SystemTime::UNIX_EPOCH).ok()).unwrap_or_default();
    match attempts.last().filter(|last| last.at > made.as_secs()).map(|last| &last.outcome) {
        Some(Outcome::Refused { why }) => vec![format!("another image was refused: {}", why.join(" "))],
        Some(Outcome::Vain { effort }) => vec![gains_nothing(effort)],
        Some(Outcome::Failed { why, .. }) => vec![format!("another image could not be made: {why}")],
        _ => Vec::new(),
    }
}

/// Why the name of an image in place does not lead to it.
fn replaced(folder: &Folder, installed: Option<&Installed>) -> Vec<String> {
    let replaced = installed.filter(|installed| installed.in_place && !installed.is_in_front(folder));
    let text = |it: &Installed| format!("{} was replaced, as by an upgrade: install it again", it.link.display());
    replaced.map(text).into_iter().collect()
}

/// Why the name of an installed command leads to another program.
#[derive(Clone)]
enum Hidden {
    /// This one comes first.
    Behind(PathBuf),
    /// Its directory is not on PATH.
    NotOnPath,
}

impl fmt::Display for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Hidden::Behind(other) => write!(f, "{} comes first on PATH: see snapboot shellenv", other.display()),
            Hidden::NotOnPath => f.write_str("its directory is not on PATH: see snapboot shellenv"),
        }
    }
}

fn hidden(installed: &Installed) -> Option<Hidden> {
    match installed.on_path(&search_path()) {
        _ if installed.in_place || installed.is_dormant() => None,
        OnPath::Image => None,
        OnPath::Other(Some(other)) => Some(Hidden::Behind(other)),
        OnPath::Other(None) => Some(Hidden::NotOnPath),
    }
}

/// One line for each command, with details below.
fn page(commands: &[Vec<Row>]) -> String {
    let saved = |seconds: f64| match seconds {
        seconds if seconds >= 3600.0 => format!("{:.1} h", seconds / 3600.0),
        seconds if seconds >= 60.0 => format!("{:.1} min", seconds / 60.0),
        seconds => format!("{seconds:.1} s"),
    };
    let cells = commands.iter().map(|rows| {
        let first = best(rows);
        let sum = |number: fn(&Row) -> u64| rows.iter().map(number).sum::<u64>();
        vec![
            human::harmless(&first.name),
            rows.iter().filter(|row| row.size > 0).count().to_string(),
            human::size(sum(|row| row.size)),
            sum(|row| row.thawed).to_string(),
            sum(|row| row.fallen_back).to_string(),
            rows.iter().filter_map(|row| row.saved).reduce(|one, other| one + other).map_or_else(String::new, saved),
            first.state.word().to_owned(),
            human::harmless(&human::command(first.command.iter().map(String::as_str))),
        ]
    });
    let header = ["name", "images", "size", "thawed", "fell back", "saved", "state", "command"];
    let table = render::numbers(&header, 5, cells);
    let more: String = commands.iter().map(|rows| remarks(best(rows))).collect();
    let space = if more.is_empty() { "" } else { "\n" };
    table + space + &more + &hidden_ones(commands)
}

/// The image that represents a command: if one is fresh, its starts thaw.
fn best(rows: &[Row]) -> &Row {
    let by_state = |state| rows.iter().find(|row| row.state == state);
    by_state(State::Fresh).or_else(|| by_state(State::Building)).unwrap_or(&rows[0])
}

/// All remarks about one command, in lines.
fn remarks(row: &Row) -> String {
    let line = |what: &str, text: &str| {
        let text = format!("{}{what}: {}", human::harmless(&row.name), human::harmless(text));
        render::wrapped(&text, "").join("\n") + "\n"
    };
    let state = format!(" ({})", row.state.word());
    let mut lines: String = row.why.iter().take(SHOWN).map(|why| line(&state, why)).collect();
    if row.why.len() > SHOWN {
        lines += &line(&state, &format!("and {} more: see snapboot list --json", row.why.len() - SHOWN));
    }
    let hidden = row.hidden.as_ref().map(Hidden::to_string);
    let notes = row.notes.iter().filter(|note| Some(*note) != hidden.as_ref());
    notes.fold(lines, |lines, note| lines + &line("", note))
}

/// Remarks about installed commands whose images a shell does not start.
fn hidden_ones(commands: &[Vec<Row>]) -> String {
    let hidden: Vec<&Row> = commands.iter().map(|rows| best(rows)).filter(|row| row.hidden.is_some()).collect();
    let Some(bin) = hidden.iter().find_map(|row| row.installed.as_ref()?.parent()) else { return String::new() };
    let names: Vec<&str> = hidden.iter().map(|row| row.name.as_str()).collect();
    format!(
        "\nA shell starts other programs by the name of {}: {} must come first on PATH. See snapboot shellenv.\n",
        names.join(", "),
        bin.display()
    )
}
