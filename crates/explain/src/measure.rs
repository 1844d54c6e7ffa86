//! Starts a command repeatedly, alternating between plain and recorded starts, so that both see the same machine.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::{fmt, fs, io};

use failure::{Failure, Result};
use installation::{set_up, Installation};
use nix::sys::resource::{getrusage, UsageWho};
use runtime::{language_of, locate, resolve, search_path, Language};
use rustix::time::{clock_gettime, ClockId};

use crate::count::{self, Counts, Watch};
use crate::events::{self, Event};
use crate::merge::{median_and_spread, merge, put_calls};
use crate::outside;
use crate::start_tree::{self, Run};
use crate::thaw::{self, Faults, Moments, NoCost};
use crate::tree::{Kind, Node, Start};

/// The variable that names the file to which a start writes its events.
pub const FILE: &str = "SNAPBOOT_EXPLAIN";
/// Set if system calls are counted from outside.
const COUNT: &str = "SNAPBOOT_EXPLAIN_COUNT";
/// The hidden subcommand of `snapboot` that stops itself, and then executes a program.
const TRACED: &str = "traced";
/// How often a start is repeated until it has the expected parts; nearly all have them at once.
const TRIES: usize = 8;
/// How much of a failed command's standard error is shown (bytes).
const SHOWN: usize = 2000;

/// The command to start, and how.
pub struct Subject {
    pub(crate) words: Vec<OsString>,
    pub(crate) program: PathBuf,
    pub(crate) title: String,
    /// The language of an ordinary start.
    pub(crate) language: Option<Language>,
    /// Variables of recorded starts.
    pub(crate) set_up: Vec<(&'static str, OsString)>,
    /// Variables of every start.
    pub(crate) variables: Vec<(&'static str, OsString)>,
    /// The command line to show.
    pub(crate) shown: String,
    /// Whether a status other than 0 is accepted.
    pub allow_failure: bool,
    pub(crate) folder: tempfile::TempDir,
}

/// The settings of a measurement.
pub struct Measurement<'a> {
    /// The number of starts.
    pub runs: u32,
    /// Receives the current action.
    pub report: &'a dyn Fn(&str),
}

impl Subject {
    /// An ordinary start of the command `words`; at least one.
    pub fn ordinary(words: &[OsString], installation: &Installation) -> Result<Subject> {
        let program = locate(&words[0], &search_path())?;
        let shown = Path::new(&words[0]).display();
        let language = language_of(words);
        let set_up = match language {
            Some(Language::Ruby) => vec![("RUBYOPT", set_up::ruby_option(&installation.ruby_explain()?, None)?)],
            Some(Language::Python) => {
                let path = set_up::python_path(&installation.python_explain()?, None).ok_or_else(|| {
                    Failure::refusal(
                        "a start is measured through PYTHONPATH, but that is set to the empty string here, or Snapboot's own directory \
                         has a colon in its path. Unset PYTHONPATH, or install Snapboot elsewhere.",
                    )
                })?;
                // An enabled environment would thaw an image.
                vec![("PYTHONPATH", path), ("SNAPBOOT", "off".into())]
            }
            None => {
                return Err(Failure::refusal(format!(
                    "{shown} should start Python or Ruby, but does not, or does so through a script that Snapboot cannot follow. Name \
                     the interpreter: snapboot explain -- python SCRIPT, snapboot explain -- ruby SCRIPT."
                )))
            }
        };
        Ok(Subject { language, set_up, ..Self::new(words, program, "ordinary")? })
    }

    /// A start of the image `words[0]`.
    pub fn thawed(words: &[OsString]) -> Result<Subject> {
        Self::new(words, locate(&words[0], OsStr::new(""))?, "thawed")
    }

    fn new(words: &[OsString], program: PathBuf, title: &str) -> Result<Subject> {
        let folder =
            tempfile::tempdir().map_err(|error| Failure::io("make a directory in", &std::env::temp_dir(), &error))?;
        Ok(Subject {
            words: words.to_vec(),
            program,
            title: title.to_owned(),
            language: None,
            set_up: Vec::new(),
            variables: Vec::new(),
            shown: words.join(OsStr::new(" ")).to_string_lossy().into_owned(),
            allow_failure: false,
            folder,
        })
    }

    /// Measures it.
    pub fn measure(&self, measurement: &Measurement<'_>) -> Result<Start> {
        (measurement.report)(&format!("{} start: warming up", self.title));
        self.start(self.command())?;
        let (mut plain, mut noted, mut traced) = (Vec::new(), Vec::new(), Vec::new());
        let mut all_events = Vec::new();
        for run in 1..=measurement.runs {
            (measurement.report)(&format!("{} start: {run} of {}", self.title, measurement.runs));
            let before = children_cpu();
            self.start(self.command())?;
            let between = children_cpu();
            let run = match self.traced() {
                // Without events of its own, an image may have started another program.
                Err(_) if self.language.is_some() && noted.is_empty() => return self.measure_from_outside(measurement),
                run => run?,
            };
            plain.push(between - before);
            noted.push(children_cpu() - between);
            traced.push(start_tree::tree(&run, &Counts::default()));
            all_events.push(run.events);
        }
        (measurement.report)(&format!("{} start: counting system calls", self.title));
        let (counted, faults) = match all_events.last() {
            Some(events) if self.is_thawed() => self.followed(events),
            _ => (self.counted(&mut ()).map(|(counted, _)| counted).ok(), None),
        };
        // Processor time: other load on the machine affects it least.
        let overhead = median_and_spread(&mut noted).0 / median_and_spread(&mut plain).0.max(f64::MIN_POSITIVE) - 1.0;
        let mut root = merge(traced);
        // If the process executes another program, the calls of that one are counted.
        let executes = |root: &Node| root.children.iter().any(|child| child.name.starts_with(start_tree::EXECUTED));
        if let Some(counted) = counted.filter(|counted| !executes(counted)) {
            put_calls(&mut root, &counted);
        }
        if self.is_thawed() {
            thaw::add_launcher(&mut root, &self.program, &all_events);
        }
        match faults {
            Some(Ok(faults)) => {
                let untimed = faults.add_to(&mut root);
                root.detail = untimed.map(|why| format!("What page faults cost is not known: {why}."));
            }
            Some(Err(why)) => root.detail = Some(format!("Page faults are not listed by what the pages hold: {why}.")),
            None => {}
        }
        add_rest(&mut root);
        Ok(Start { title: self.title.clone(), command: self.shown.clone(), runs: measurement.runs, overhead, root })
    }

    /// Measures a start that records nothing itself.
    fn measure_from_outside(&self, measurement: &Measurement<'_>) -> Result<Start> {
        let (mut plain, mut recorded, mut trees) = (Vec::new(), Vec::new(), Vec::new());
        let mut status = ExitStatus::default();
        for run in 1..=measurement.runs {
            (measurement.report)(&format!("{} start, from outside: {run} of {}", self.title, measurement.runs));
            let before = children_cpu();
            self.start(self.command())?;
            let between = children_cpu();
            let file = |error: std::io::Error| Failure::io("write into", self.folder.path(), &error);
            let mut command = self.command_that_tells()?;
            let (begun, child) = (now(), command.stderr(fs::File::create(self.file()).map_err(file)?).spawn());
            status = child
                .and_then(|mut child| child.wait())
                .map_err(|error| Failure::io("start", &self.program, &error))?;
            let seconds = now() - begun;
            trees.push(outside::tree(seconds, &fs::read(self.file()).map_err(file)?));
            plain.push(between - before);
            recorded.push(children_cpu() - between);
        }
        let _ = fs::remove_file(self.file());
        let overhead =
            median_and_spread(&mut recorded).0 / median_and_spread(&mut plain).0.max(f64::MIN_POSITIVE) - 1.0;
        let mut root = merge(trees);
        add_rest(&mut root);
        let why = match (status.signal(), self.language) {
            (Some(signal), _) => format!("it ends by signal {signal}"),
            (None, Some(Language::Python)) => {
                "its Python ignores its environment or site (-I, -E, -S), or native code ends it".to_owned()
            }
            (None, _) => "its Ruby ignores RUBYOPT, or native code ends it".to_owned(),
        };
        let shown = match self.language {
            Some(Language::Python) => "Only what -X importtime reports is shown.",
            _ => "Only the whole is shown.",
        };
        root.detail = Some(format!("The process could not record what it does: {why}. {shown}"));
        Ok(Start { title: self.title.clone(), command: self.shown.clone(), runs: measurement.runs, overhead, root })
    }

    /// A start that prints its imports on standard error, if it is of Python.
    fn command_that_tells(&self) -> Result<Command> {
        if self.language != Some(Language::Python) {
            return Ok(self.command());
        }
        let resolved = resolve(&self.words, &search_path())?;
        let mut command = Command::new(&resolved.program);
        command.arg0(&resolved.argv[0]).args(["-X", "importtime"]).args(&resolved.argv[1..]);
        Ok(silent(command))
    }

    /// Runs one recorded start.
    pub(crate) fn traced(&self) -> Result<Run> {
        let span = self.start(self.recording(self.command()))?;
        Ok(Run { span, events: self.read_events()? })
    }

    /// The tree of a start whose system calls were counted, and its events.
    fn counted(&self, watch: &mut dyn Watch) -> Result<(Node, Vec<Event>)> {
        let begun = now();
        let counts =
            self.count(watch).map_err(|error| Failure::failed(format!("a start cannot be traced: {error}")))?;
        let run = Run { span: (begun, now()), events: self.read_events()? };
        Ok((start_tree::tree(&run, &counts), run.events))
    }

    fn count(&self, watch: &mut dyn Watch) -> std::io::Result<Counts> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg(TRACED).arg(&self.program).args(&self.words[1..]);
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        let mut command = self.recording(silent(command));
        command.env(COUNT, "1");
        count::count(&mut command, watch)
    }

    /// The same for a thaw like one with these events, with its page faults.
    fn followed(&self, events: &[Event]) -> (Option<Node>, Option<std::result::Result<Faults, NoFaults>>) {
        let (mut like, mut counted) = (events.to_vec(), None);
        for _ in 0..TRIES {
            let mut moments = Moments::like(&like);
            let events = match self.counted(&mut moments) {
                Ok((tree, events)) => {
                    counted = Some(tree);
                    events
                }
                Err(failure) => return (counted, Some(Err(NoFaults::Failed(failure)))),
            };
            if let Some(error) = moments.failed.take() {
                return (counted, Some(Err(NoFaults::Io(error))));
            }
            if let Some(mut faults) = Faults::between(&self.program, &events, &moments) {
                self.replay(&mut faults);
                return (counted, Some(Ok(faults)));
            }
            like = events;
        }
        (counted, Some(Err(NoFaults::Varies)))
    }

    /// Measures the cost of page faults, several times: one run is short, and easily disturbed.
    fn replay(&self, faults: &mut Faults) {
        let mut costs = Vec::new();
        for _ in 0..faults.most_replays() {
            let mut replay = faults.replay();
            let outcome = self.count(&mut replay).map(|_| replay.outcome());
            // The events of a start that ended there are not needed.
            let _ = fs::remove_file(self.file());
            costs.push(outcome.unwrap_or_else(|error| Err(NoCost::Io(error))));
            if faults.are_enough(&costs) {
                break;
            }
        }
        faults.take_costs(costs);
    }

    /// Whether it starts an image.
    fn is_thawed(&self) -> bool {
        self.set_up.is_empty()
    }

    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.arg0(&self.words[0]).args(&self.words[1..]);
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        silent(command)
    }

    fn recording(&self, mut command: Command) -> Command {
        command.env(FILE, self.file()).envs(self.set_up.iter().map(|(name, value)| (name, value)));
        command
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("start")
    }

    /// Starts a command and waits for its end; returns the times of both.
    pub(crate) fn start(&self, mut command: Command) -> Result<(f64, f64)> {
        let failed = |error: std::io::Error| Failure::io("start", &self.program, &error);
        let begun = now();
        let status = command.spawn().and_then(|mut child| child.wait()).map_err(failed)?;
        let ended = now();
        if !status.success() && !self.allow_failure {
            return Err(Failure::failed(self.why_it_failed(status)));
        }
        Ok((begun, ended))
    }

    /// Reads the events of the last start.
    pub(crate) fn read_events(&self) -> Result<Vec<Event>> {
        let entries = fs::read(self.file()).ok();
        let _ = fs::remove_file(self.file());
        let events = entries.and_then(|entries| events::parse(&entries));
        // An image that was not used has only events of its launcher.
        let has_main =
            |events: &Vec<Event>| events.iter().any(|event| matches!(event, Event::Begin { kind: Kind::Main, .. }));
        events.filter(has_main).ok_or_else(|| {
            if self.is_thawed() {
                return Failure::failed(format!(
                    "{} should thaw and report at its end where its time went, but did not. Either the image is not used here and now \
                     (snapboot inspect --why {} says why); or another version of Snapboot made it, and you have to make it again; or the \
                     program ended without its exit handlers (by a signal, os._exit, exit!, exec).",
                    self.shown,
                    self.program.display()
                ));
            }
            Failure::failed(format!(
                "{} should report at its end where its time went, but did not. It may have ended without its exit handlers (by a signal, \
                 os._exit, exit!, exec), or have options that make an interpreter ignore its environment (python -I, -E, -S).",
                self.shown
            ))
        })
    }

    /// Starts it once more to see its messages, and puts them into words.
    fn why_it_failed(&self, status: ExitStatus) -> String {
        let output = self.command().stderr(Stdio::piped()).output();
        let said = output.map(|output| String::from_utf8_lossy(&output.stderr).trim().to_owned()).unwrap_or_default();
        let cut = said.char_indices().rev().nth(SHOWN).map_or(0, |(start, _)| start);
        let said = match said.is_empty() {
            true => "It wrote nothing to its standard error.".to_owned(),
            false => format!("It wrote:\n{}", &said[cut..]),
        };
        format!(
            "{} should end with exit status 0, but ended with {status}, so its time would mean little. Fix the command, or pass \
             --allow-failure. {said}",
            self.shown
        )
    }
}

/// Why the page faults of a start are not known.
enum NoFaults {
    Failed(Failure),
    Io(io::Error),
    /// Each start has other parts.
    Varies,
}

impl fmt::Display for NoFaults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoFaults::Failed(failure) => failure.fmt(f),
            NoFaults::Io(error) => error.fmt(f),
            NoFaults::Varies => f.write_str("its parts differ from start to start"),
        }
    }
}

/// Input and output are /dev/null.
fn silent(mut command: Command) -> Command {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// The monotonic clock (s).
fn now() -> f64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Processor time of all children that have ended (s).
fn children_cpu() -> f64 {
    let seconds = |time: nix::sys::time::TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    getrusage(UsageWho::RUSAGE_CHILDREN).map_or(0.0, |usage| seconds(usage.user_time()) + seconds(usage.system_time()))
}

/// Adds the time that no part accounts for as a part of its own.
fn add_rest(root: &mut Node) {
    let rest = root.seconds - root.children.iter().map(|child| child.seconds).sum::<f64>();
    if rest > 0.0 {
        let mut row = start_tree::part("not broken down", Kind::Other, root.seconds - rest);
        row.seconds = rest;
        root.children.push(row);
    }
}
