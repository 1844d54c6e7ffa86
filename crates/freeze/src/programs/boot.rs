//! Starts the runtime with the freezer inside, and waits until the image is written or refused.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Write as _};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::time::Duration;

use command_fds::{CommandFdExt, FdMapping};
use failure::{Failure, Result};
use judge::entries::Entries;
use judge::environment::Environment;
use judge::findings::Finding;
use recorder::{Accesses, Changing, PathAccess, Recorder, State};
use runtime::deadline::{kill_group, timespec, Deadline};
use runtime::listener::Listener;
use runtime::terminal::Terminal;
use runtime::{python, Language, MainKind};
use rustix::event::{poll, PollFd, PollFlags};
use rustix::fs::{memfd_create, MemfdFlags};
use rustix::process::{kill_process_group, pidfd_open, Pid, PidfdFlags, Signal};

use super::report;
use super::watched::{not_watched, Start, SOCKET};
use super::Freeze;
use crate::boot::{Boot, Report};
use crate::boot_inputs::elsewhere::Otherwise;
use crate::boot_inputs::kernel_files;
use crate::control_dir::make_folder;
use crate::fault::{self, Point};
use crate::outcome::{self, Stop};
use crate::profile::Profile;
use crate::progress::{ProgramOutput, Step};
use crate::start_reports;

/// Programs that load more files take too long for several more boots: one of a large web framework loads some 2,000. The
/// front end does not look at the objects of such a program.
const MOST_FILES: usize = 1500;
/// How often the size of the growing image is reported.
const TICK: Duration = Duration::from_millis(100);
/// The first descriptor that callers pass to an image; the runtime's own must get higher numbers.
const FIRST_PASSED: i32 = 3;
const LAST_PASSED: i32 = 99;
/// Space in the argv area for new arguments, a larger environment and process titles (bytes).
const PAD: usize = 16 * 1024;
/// CRuby's main function keeps the argument count of the boot, so for it the space consists of this many arguments.
const PAD_ARGUMENTS: usize = 1024;

/// How often a program may begin until its memory lies as that of other machines' boots: of 2,980 machines one goes on with another layout,
/// since one start of 512 has that. Those take half a second.
const MOST_STARTS_FOR_LAYOUT: u32 = 4096;

/// What to boot, and in which conditions.
#[derive(Clone, Copy)]
pub struct BootRequest<'a> {
    pub freeze: Freeze<'a>,
    pub profile: &'a Profile,
    /// What the boot sees of the environment.
    pub environment: &'a Environment,
    /// Its terminal, if it has one.
    pub terminal: Option<Terminal>,
    /// The number of this boot, from 1.
    pub number: u32,
    /// The number of boots.
    pub count: u32,
    /// The facts of the image, for the front end of another start: names and values.
    pub facts: &'a [(OsString, OsString)],
    /// Whether another start has been made already.
    pub knows_other_start: bool,
    /// The hash seed of Python, so that sets have the same order in all boots that are compared.
    pub hash_seed: u32,
    /// The time limit, if any.
    pub limit: Option<Duration>,
}

/// A hash seed that no other freeze has. Never 0, with which Python would hash the same way in each freeze, and within the range of a C int,
/// which PyConfig_GetInt (CPython 3.14) returns.
pub fn new_hash_seed() -> u32 {
    valid_hash_seed(RandomState::new().build_hasher().finish() as u32)
}

/// The hash seed for the boots of a variant of this number: made from one that images share, or a new one.
pub fn hash_seed(shared: Option<u32>, number: u32) -> u32 {
    shared.map_or_else(new_hash_seed, |seed| valid_hash_seed(seed.wrapping_add(2 * number)))
}

fn valid_hash_seed(seed: u32) -> u32 {
    (seed & i32::MAX as u32) | 1
}

/// A boot that came to its end: its report, or why it cannot be frozen; and its accesses.
pub struct Ended {
    pub outcome: std::result::Result<Report, Vec<Finding>>,
    pub accesses: Accesses,
    begun: i64,
}

impl Ended {
    /// The boot, if it has written its memory.
    pub fn written(self) -> outcome::Result<Boot> {
        let Ended { outcome, accesses, begun } = self;
        outcome.map(|report| Boot { report, accesses, begun }).map_err(Stop::Refused)
    }
}

/// The purpose of a boot.
pub enum Watch {
    /// To make an image.
    Inputs,
    /// To make an image again; the user has seen the program's output before.
    InputsAgain,
    /// To find out where in the program descriptors are opened and names are created in these folders.
    Origins(BTreeSet<PathBuf>),
    /// To find out what the program makes of this directory and these facts. Keeps the image written before.
    OtherStart(PathBuf, Otherwise),
    /// To find out what the program makes of its secrets. Keeps the image written before.
    Secrets,
}

/// A boot in progress.
pub struct Running<'a> {
    boot: BootRequest<'a>,
    child: Child,
    /// None if the program ended before the watch began.
    recorder: Option<Recorder>,
    image: PathBuf,
    launcher_size: u64,
    at_terminal: Option<Listener>,
    finish: Box<dyn FnOnce() -> bool>,
    deadline: Option<Deadline>,
    /// When it began, by the clock of the control directory (ns since 1970).
    begun_at: i64,
}

impl<'a> BootRequest<'a> {
    /// Boots the program once, with DIR/request and the launcher's bytes in DIR/image.
    pub fn run(&self, watch: &Watch) -> outcome::Result<Ended> {
        self.begin(watch)?.wait_for_end()
    }

    /// Starts a boot without waiting for its end; call [`Running::wait_for_end`] for that.
    pub fn begin(&self, watch: &Watch) -> Result<Running<'a>> {
        let Freeze { program, dir, progress, .. } = self.freeze;
        let begun_at = dir.now()?;
        let writes_image = !matches!(watch, Watch::OtherStart(..) | Watch::Secrets);
        // A second boot starts from nothing; before the first one these files do not exist.
        for old in ["report", "findings", "importers", "noted", "attribute_origins"]
            .iter()
            .chain(writes_image.then_some(&"image"))
            .chain((!matches!(watch, Watch::OtherStart(..))).then_some(&"texts"))
        {
            let _ = fs::remove_file(dir.file(old));
        }
        dir.write("request", self.request(watch).to_bytes())?;
        if let Some(name) = fault::for_freezer() {
            dir.write("fault", name.as_encoded_bytes())?;
        }
        let image = dir.file("image");
        let launcher_size = if writes_image { self.place_launcher(&image)? } else { u64::MAX };
        Point::AfterRequest.reached();
        progress.step(&Step::Boot { runtime: &program.runtime.label, number: self.number, count: self.count });
        // A second boot repeats the program's output, or complains about leftovers of the first.
        let output = match watch {
            Watch::Inputs => progress.program_output(),
            _ => ProgramOutput::detecting(),
        };
        let ProgramOutput { stdout, stderr, finish } = output.map_err(|error| self.not_started(&error))?;
        let (socket, other_end) = UnixStream::pair().map_err(|error| self.not_started(&error))?;
        let changing = self.changing()?;
        let mut command = self.command(other_end, writes_image)?;
        let mut start = std::env::current_dir().ok();
        if let Watch::OtherStart(folder, _) = watch {
            command.current_dir(folder);
            start = Some(folder.clone());
        }
        command.stdout(stdout).stderr(stderr);
        let at_terminal = self.terminal.map(|terminal| terminal.attach_listening(&mut command)).transpose();
        let at_terminal = at_terminal.map_err(|error| self.not_started(&error))?;
        let child = command.spawn();
        // The command holds the writing end of the program's output, and the other end of the socket.
        drop(command);
        let mut child = child.map_err(|error| self.not_started(&error))?;
        // A server that does not come to its place would serve.
        let may_listen = self.freeze.places().is_empty();
        let recorder = Recorder::start(&socket, start, kernel_files::content, changing, may_listen);
        let recorder = recorder.map_err(|error| {
            kill_group(&mut child);
            not_watched(&error, &program.runtime.program)
        })?;
        let deadline = self.limit.map(|limit| Deadline::new(&child, limit));
        Ok(Running { boot: *self, child, recorder, image, launcher_size, at_terminal, finish, deadline, begun_at })
    }

    fn not_started(&self, error: &io::Error) -> Failure {
        Failure::io("start", &self.freeze.program.runtime.program, error)
    }

    /// The inputs left to each start. Trial imports learn from DIR/changing which of them they looked up.
    fn changing(&self) -> Result<Option<Changing>> {
        let mut own = self.freeze.own_files();
        let is_any = |places: &&Vec<PathBuf>| !places.is_empty() || own.is_some();
        let places = self.freeze.store().map(|store| &store.changing.places).filter(is_any);
        let Some(places) = places else { return Ok(None) };
        let file = self.freeze.dir.file("changing");
        let looked_up = File::create(&file).map_err(|error| Failure::io("write", &file, &error))?;
        let places: BTreeSet<PathBuf> = places.iter().cloned().collect();
        let mut is_own = move |path: &Path| own.as_mut().is_some_and(|own| own.contains(path));
        let mut own = self.freeze.own_files();
        let is_directory =
            move |path: &Path| own.as_mut().is_some_and(|own| own.checkout_with(path).is_some() && path.is_dir());
        Ok(Some(Changing {
            is_one: Box::new(move |path| places.contains(path) || is_own(path)),
            is_directory: Box::new(is_directory),
            looked_up,
        }))
    }

    /// The request to the front end.
    fn request(&self, watch: &Watch) -> Entries {
        let Freeze { request: asked, program, recipe, .. } = self.freeze;
        let language = program.runtime.language;
        let mut request = Entries::of_main(&program.main);
        self.freeze.preloads().iter().for_each(|name| request.push("preload", name));
        self.freeze.places().iter().for_each(|name| request.push("at", name));
        self.profile.add_to(&mut request, language);
        recipe.add_to(&mut request, language);
        self.environment.names_for_boot().for_each(|name| request.push("boot_only", name));
        let mut push_values = |key, values: &[(OsString, OsString)]| {
            values.iter().for_each(|(name, value)| request.push(key, [&**name, value].join(OsStr::new("="))));
        };
        let role = match watch {
            Watch::OtherStart(..) => Some("other"),
            Watch::Inputs | Watch::InputsAgain if self.knows_other_start => Some("again"),
            Watch::Inputs | Watch::InputsAgain => Some("first"),
            _ => None,
        };
        let role = role.filter(|_| !self.facts.is_empty());
        push_values("fact", if role.is_some() { self.facts } else { &[] });
        if let Watch::OtherStart(_, more) = watch {
            push_values("system", &more.system);
            let asked = [("more_variables", more.more_variables), ("watches_values", more.watches_values)];
            asked.iter().filter(|(_, is_asked)| *is_asked).for_each(|(key, _)| request.push(key, "1"));
            let numbers = [("shifts_addresses", more.shifts_addresses), ("form", more.form)];
            numbers
                .iter()
                .filter(|(_, number)| *number > 0)
                .for_each(|(key, number)| request.push(key, number.to_string()));
        }
        role.iter().for_each(|role| request.push("evidence", role));
        if role == Some("first") {
            request.push("most_files", MOST_FILES.to_string());
        }
        if let Watch::Origins(folders) = watch {
            request.push("origins", "1");
            folders.iter().for_each(|folder| request.push("origins_in", folder));
        }
        if let Watch::Secrets = watch {
            request.push("compares_secrets", "1");
        }
        self.environment.secrets.iter().for_each(|secret| request.push("secret", &secret.name));
        if program.leaves_script {
            request.push("leaves_script", "1");
        }
        self.freeze.checkouts().iter().for_each(|folder| request.push("checkout", folder));
        if let Some(store) = self.freeze.store() {
            request.push("profile", &store.profile);
            store.changing.variables.iter().for_each(|name| request.push("changed", name));
            start_reports::script_behind_links(&program.main).iter().for_each(|it| request.push("told_of", it));
            store.on_news.iter().for_each(|word| request.push("on_news", word));
            // An installation without the archive can still make images.
            let archive = match language {
                Language::Python => asked.installation.python_run(),
                Language::Ruby => asked.installation.ruby_run(),
            };
            archive.iter().for_each(|file| request.push("archive", file));
            request.push("binds_terminal", "1");
            let streams = self.terminal.map_or([false; 3], |terminal| terminal.streams);
            let at_terminal = ["0", "1", "2"].into_iter().zip(streams).filter(|(_, is_terminal)| *is_terminal);
            at_terminal.for_each(|(number, _)| request.push("terminal", number));
        }
        request
    }

    /// Creates the file that the freezer appends to; returns its size.
    fn place_launcher(&self, image: &Path) -> Result<u64> {
        let launcher = self.freeze.request.installation.launcher()?;
        let copy = || {
            let mut to = OpenOptions::new().write(true).create_new(true).mode(0o600).open(image)?;
            io::copy(&mut File::open(&launcher)?, &mut to)
        };
        copy().map_err(|error| Failure::io("write", image, &error))
    }

    /// The command line of the runtime: its options, the front end, and for Ruby a main script, which is the program's
    /// own or a stand-in for any arguments.
    fn command(&self, socket: UnixStream, writes_image: bool) -> Result<Command> {
        let Freeze { request, program, dir, .. } = self.freeze;
        let (installation, main) = (&request.installation, &program.main);
        let freezer = installation.freezer()?;
        let mut argv = vec![main.argv[0].clone()];
        let options = main.options().iter().cloned();
        let mut environment = self.environment.for_boot(freezer.as_os_str(), dir.path().as_os_str());
        match program.runtime.language {
            Language::Python => {
                argv.extend(options);
                argv.push(installation.python_front_end()?.into());
                if self.environment.value("PYTHONHASHSEED").is_none() {
                    // The front end removes both.
                    environment.push(("PYTHONHASHSEED".into(), self.hash_seed.to_string().into()));
                    environment.push(("SNAPBOOT_HASHSEED".into(), "1".into()));
                }
                // The front end removes the variable.
                environment.push(("SNAPBOOT_PAD".into(), "x".repeat(PAD).into()));
                if python::is_interactive(main.options()) {
                    let editor = dir.file("editor");
                    hide_line_editor(&mut environment, &editor)
                        .map_err(|error| Failure::io("write", &editor, &error))?;
                }
            }
            Language::Ruby => {
                // The front end sees what the libraries of the options do. The last one tells it that Ruby continues with
                // the main script.
                argv.extend(["-r".into(), installation.ruby_front_end()?.into()]);
                argv.extend(options);
                argv.extend(["-r".into(), installation.ruby_last_library()?.into()]);
                argv.extend(["-r".into(), "snapboot-main-script".into()]);
                match main.kind {
                    MainKind::Script => argv.extend(main.rest().iter().cloned()),
                    _ => argv.push(installation.ruby_main_script()?.into()),
                }
                // The front end removes them.
                argv.extend(vec!["x".repeat(PAD / PAD_ARGUMENTS - 1).into(); PAD_ARGUMENTS]);
            }
        }
        if writes_image && self.freeze.request.hash_seed.is_some() {
            // The freezer removes these.
            environment.push(("SNAPBOOT_LAYOUT".into(), MOST_STARTS_FOR_LAYOUT.to_string().into()));
            if program.runtime.language == Language::Ruby {
                environment.push(("SNAPBOOT_RUBY_HASHSEED".into(), self.hash_seed.to_string().into()));
            }
        }
        let mut command = Start { program: program.runtime.program.clone(), argv, environment }.command(dir)?;
        const { assert!(channel::STANDARD_INPUT == libc::O_DSYNC) };
        let nothing = File::options()
            .read(true)
            .custom_flags(channel::STANDARD_INPUT)
            .open("/dev/null")
            .map_err(|error| self.not_started(&error))?;
        command.stdin(nothing).process_group(0);
        let real = match program.runtime.language {
            Language::Ruby => real_secrets(self.environment).map_err(|error| self.not_started(&error))?,
            Language::Python => None,
        };
        fill_descriptors(&mut command, socket.into(), real).map_err(|error| self.not_started(&error))?;
        Ok(command)
    }
}

impl Running<'_> {
    /// Watches the boot until its end or a signal, and reads its report.
    pub fn wait_for_end(mut self) -> outcome::Result<Ended> {
        let Freeze { program, dir, progress, interrupt, .. } = self.boot.freeze;
        let runtime = &program.runtime;
        let ended = self.wait();
        if !matches!(ended, Ok(Some(_))) {
            kill_group(&mut self.child);
        }
        let accesses = self.recorder.take().map_or_else(|| Ok(Accesses::default()), Recorder::finish);
        let said = (self.finish)() | self.at_terminal.is_some_and(Listener::has_heard);
        let ended = ended.map_err(|error| Failure::failed(format!("cannot wait for {}: {error}.", runtime.label)))?;
        let Some(status) = ended else {
            interrupt.check()?;
            return Err(Failure::failed(format!("{} has not booted in time.", runtime.label)).into());
        };
        let accesses = accesses.map_err(|error| not_watched(&error, &runtime.program))?;
        if accesses.listened {
            return Err(listened(self.boot.freeze.places()).into());
        }
        let is_read = |(_, access): &(_, &PathAccess)| access.looked && matches!(access.state, State::File(_));
        accesses.places.iter().filter(is_read).for_each(|(file, _)| progress.has_read(file));
        let outcome = report::outcome(&self.boot.freeze, self.boot.environment, status, said);
        match report::judged(outcome, &accesses.set) {
            Ok(outcome) => Ok(Ended { outcome, accesses, begun: self.begun_at }),
            Err(failure) => {
                // A program that fails on a full disk often cannot write its report.
                dir.has_space()?;
                Err(failure.into())
            }
        }
    }

    /// Waits for the runtime and returns its status; None after a signal or at the time limit.
    fn wait(&mut self) -> io::Result<Option<ExitStatus>> {
        let Running { boot, child, image, launcher_size, deadline, .. } = self;
        let Freeze { interrupt, progress, .. } = boot.freeze;
        let ended = pidfd_open(Pid::from_child(child), PidfdFlags::empty())?;
        loop {
            let mut events = [PollFd::new(&ended, PollFlags::IN), PollFd::new(interrupt.wake(), PollFlags::IN)];
            match poll(&mut events, Some(&timespec(TICK))) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            if interrupt.signal().is_some() || deadline.as_ref().is_some_and(|deadline| deadline.left().is_zero()) {
                return Ok(None);
            }
            if !events[0].revents().is_empty() {
                // No recorder answers the processes that it left running when they open a file. The group's number
                // stays reserved until it is reaped.
                let _ = kill_process_group(Pid::from_child(child), Signal::KILL);
                return child.wait().map(Some);
            }
            let size = image.metadata().map_or(0, |metadata| metadata.len());
            if size > *launcher_size {
                progress.step(&Step::Dump(size));
            }
        }
    }
}

/// The failure of a boot that was about to listen for connections before it came to its place.
fn listened(places: &[String]) -> Failure {
    Failure::refusal(format!(
        "cannot freeze: the program was about to listen for connections before it called {}, so its boot was ended. Either this version \
         of it calls another function, or it has started another program that serves. Name a function that it calls earlier (--at), or \
         freeze it right before its main part (--no-recipe).",
        places.join(" or ")
    ))
}

/// Hides Python's line editor, which in interactive mode queries the terminal of this boot: the folder `editor`, first
/// in the path, has a module of that name that cannot be loaded. The front end removes the entry.
fn hide_line_editor(environment: &mut Vec<(OsString, OsString)>, editor: &Path) -> io::Result<()> {
    let mut path = editor.as_os_str().to_owned();
    if let Some(at) = environment.iter().position(|(name, _)| name == "PYTHONPATH") {
        let (_, own) = environment.swap_remove(at);
        path.push(":");
        path.push(&own);
        environment.push(("SNAPBOOT_PYTHONPATH".into(), own));
    }
    environment.push(("PYTHONPATH".into(), path));
    make_folder(editor)?;
    fs::write(editor.join("readline.py"), "raise ImportError\n")
}

/// An unnamed file with the secrets' real values, each with a final NUL (see real_secrets.rb); None without secrets.
fn real_secrets(environment: &Environment) -> io::Result<Option<OwnedFd>> {
    if environment.secrets.is_empty() {
        return Ok(None);
    }
    let mut file = File::from(memfd_create("snapboot:secrets", MemfdFlags::CLOEXEC)?);
    environment.secrets.iter().try_for_each(|secret| file.write_all(&[secret.entry(), vec![0]].concat()))?;
    Ok(Some(file.into()))
}

/// Puts /dev/null at the descriptors that callers of an image may pass, or `first` at the first of them, and `socket`
/// after them. All other descriptors of this process stay its own.
fn fill_descriptors(command: &mut Command, socket: OwnedFd, first: Option<OwnedFd>) -> io::Result<()> {
    close_fds::set_fds_cloexec(FIRST_PASSED, &[]);
    // The descriptor that reports a failed exec must lie above the range, or the fillers would take its place.
    let mut fillers: Vec<OwnedFd> = Vec::new();
    while fillers.last().is_none_or(|last| last.as_raw_fd() < SOCKET) {
        fillers.push(File::options().read(true).write(true).open("/dev/null")?.into());
    }
    let nothing = FIRST_PASSED + i32::from(first.is_some())..=LAST_PASSED;
    let first = first.map(|parent_fd| Ok(FdMapping { parent_fd, child_fd: FIRST_PASSED }));
    let mappings = nothing
        .map(|child_fd| Ok(FdMapping { parent_fd: fillers[0].try_clone()?, child_fd }))
        .chain(first)
        .chain([Ok(FdMapping { parent_fd: socket, child_fd: SOCKET })])
        .collect::<io::Result<_>>()?;
    command.fd_mappings(mappings).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(())
}
