//! The thread that the kernel notifies before a call that takes a file name continues. It records the access.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, IoSliceMut, PipeReader, PipeWriter, Write};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};

use libc::c_long;
use rustix::event::{poll, PollFd, PollFlags};
use rustix::io::retry_on_intr;
use rustix::net::{recvmsg, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags};
use rustix::process::{kill_process, kill_process_group, Pid, Signal};

use channel::Request;
use image::lookup_kind;
use inputs::attributes::Attribute;
use inputs::lookups::{LOCALE_ARCHIVE, TABLES};

use crate::accesses::{Accesses, Named, ReadKernelFile, Writer, LOADER_CACHE};
use crate::calls::{self, Access, Base, Use};
use crate::paths::Paths;
use crate::sys;

/// Memory is read up to a multiple of this: the next page may not be mapped.
const PAGE: usize = 4096;
/// Longest path that the kernel takes (bytes).
const LONGEST: usize = 4096;

/// A boot under watch.
pub struct Recorder {
    /// Closed to end the thread.
    at_end: PipeWriter,
    thread: JoinHandle<io::Result<Accesses>>,
}

impl Recorder {
    /// Waits for a child to call [`crate::execute`] with the other end of `socket`, and watches it from then on. Only
    /// that child may hold the other end. None if the child ended before; then it reports the reason. `start` is the
    /// child's start directory, `read` reads files of the kernel, and `changing` are paths that each start looks up
    /// anew. If the boot may not listen for connections, it is killed when it does.
    pub fn start(
        socket: &UnixStream,
        start: Option<PathBuf>,
        read: ReadKernelFile,
        changing: Option<Changing>,
        may_listen: bool,
    ) -> io::Result<Option<Recorder>> {
        let Some(listener) = receive(socket)? else { return Ok(None) };
        let (ended, at_end) = io::pipe()?;
        let starts = Starts::new(start);
        let state = State {
            writer: Writer::new(read),
            paths: Paths::default(),
            starts,
            announced: HashMap::new(),
            trials: HashSet::new(),
            aside: HashSet::new(),
            kind_only: HashSet::new(),
            changing,
            may_listen,
            boot: None,
            failed: None,
        };
        let thread = thread::Builder::new().name("recorder".to_owned()).spawn(move || state.run(&listener, &ended))?;
        Ok(Some(Recorder { at_end, thread }))
    }

    /// Ends the watch and returns the accesses. Processes of the boot that still run can no longer open files. Fails
    /// when no access could be read.
    pub fn finish(self) -> io::Result<Accesses> {
        drop(self.at_end);
        self.thread.join().map_err(|_| io::Error::other("the recorder failed"))?
    }
}

/// Receives the listener from a child; None if the child ended.
fn receive(socket: &UnixStream) -> io::Result<Option<OwnedFd>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut messages = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0; 1];
    retry_on_intr(|| {
        recvmsg(socket, &mut [IoSliceMut::new(&mut byte)], &mut messages, RecvFlags::CMSG_CLOEXEC).map(drop)
    })?;
    let listener = messages.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    Ok(listener)
}

/// Paths that each start looks up anew, since what is there changes. A trial import that looks one up learns of it: a
/// module found there may not be loaded early.
pub struct Changing {
    /// Whether a path is one of them.
    pub is_one: Box<dyn FnMut(&Path) -> bool + Send>,
    /// Whether what is in a directory changes. When it is opened, its path is reported with a slash at its end.
    pub is_directory: Box<dyn FnMut(&Path) -> bool + Send>,
    /// Receives each of these paths when it is looked up, followed by a NUL.
    pub looked_up: File,
}

impl Changing {
    /// Reports a path to the trial import, if it is one of these. The report is in the file before the call continues.
    fn report(&mut self, path: &Path, used: Use) -> bool {
        if used == Use::OpenDirectory && (self.is_directory)(path) {
            let _ = self.looked_up.write_all(&[path.as_os_str().as_bytes(), b"/\0"].concat());
        }
        // A path that cannot be reported counts as an input.
        (self.is_one)(path) && self.looked_up.write_all(&[path.as_os_str().as_bytes(), b"\0"].concat()).is_ok()
    }
}

/// The state of the thread.
struct State {
    writer: Writer,
    paths: Paths,
    starts: Starts,
    /// The look-ups that threads have announced and not finished: kind and text.
    announced: HashMap<i32, (u32, Vec<u8>)>,
    /// Processes that run trial imports.
    trials: HashSet<i32>,
    /// Processes whose accesses do not count.
    aside: HashSet<i32>,
    /// Threads that learn of a file only of what kind it is.
    kind_only: HashSet<i32>,
    /// The paths that are reported to trial imports.
    changing: Option<Changing>,
    /// Whether the boot may listen for connections.
    may_listen: bool,
    /// The process that boots.
    boot: Option<i32>,
    /// Why no name could be read, not even the first.
    failed: Option<io::Error>,
}

impl State {
    /// Answers calls until the boot or the watch ends.
    fn run(mut self, listener: &OwnedFd, ended: &PipeReader) -> io::Result<Accesses> {
        sys::wake_in_turn(listener);
        loop {
            let mut events = [PollFd::new(listener, PollFlags::IN), PollFd::new(ended, PollFlags::IN)];
            retry_on_intr(|| poll(&mut events, None))?;
            let is_asked = events[0].revents().contains(PollFlags::IN);
            if is_asked {
                let Some(call) = sys::next(listener)? else { continue };
                if c_long::from(call.data.nr) == calls::LISTEN && !self.may_listen {
                    self.writer.accesses.listened = true;
                    self.kill_boot(call.thread);
                    continue;
                }
                if let Err(error) = self.record(call.thread, &call.data) {
                    // Any other error belongs to the call, or the process was killed.
                    match error.kind() {
                        io::ErrorKind::PermissionDenied if self.writer.accesses.places.is_empty() => {
                            self.failed = Some(error)
                        }
                        io::ErrorKind::PermissionDenied => self.writer.accesses.hidden = true,
                        _ => {}
                    }
                }
                sys::go_on(listener, &call);
            } else if events.iter().any(|event| !event.revents().is_empty()) {
                return self.failed.map_or(Ok(self.writer.accesses), Err);
            }
        }
    }

    /// Kills the processes of the boot, and the one of a thread, which may be in another group.
    fn kill_boot(&self, thread: i32) {
        // Both fail only if no process is left.
        let _ = self.boot.and_then(Pid::from_raw).map(|boot| kill_process_group(boot, Signal::KILL));
        let _ = Pid::from_raw(thread).map(|thread| kill_process(thread, Signal::KILL));
    }

    /// Records the accesses of a call.
    fn record(&mut self, process: i32, call: &libc::seccomp_data) -> io::Result<()> {
        if self.aside.contains(&process) {
            return Ok(());
        }
        // The first call executes the program.
        let boot = *self.boot.get_or_insert(process);
        // Setting the dumpable flag to its usual value hides nothing.
        let is_usual = |attribute| attribute == Attribute::Dumpable && call.args[1] == 1;
        if let Some(attribute) = calls::setting(call).filter(|attribute| !is_usual(*attribute)) {
            if is_thread_of(boot, process) {
                self.writer.accesses.set.insert(attribute);
            }
        }
        let word = |address| {
            let mut bytes = [0; 8];
            (sys::read_memory(process, address, &mut bytes).ok()? == 8).then(|| u64::from_ne_bytes(bytes))
        };
        for access in calls::accesses(call, word).into_iter().flatten() {
            match access {
                // A module loaded early after a trial import lists the directory again.
                Access::List(_) if self.trials.contains(&process) => {}
                Access::List(number) => self.writer.list(&open_file(process, number)?),
                Access::Name(base, address, used) => {
                    let mut buffer = [0; LONGEST];
                    let name = string(process, address, &mut buffer)?;
                    if let Some((request, argument)) = Request::parse(name) {
                        self.handle_request(process, request, argument);
                        continue;
                    }
                    let (directory, named) = match base {
                        _ if name.is_empty() => continue,
                        _ if name[0] == b'/' => (PathBuf::new(), Named::ABSOLUTELY),
                        Base::Cwd => {
                            let directory = fs::read_link(format!("/proc/{process}/cwd"))?;
                            let named = self.starts.how_named(&directory);
                            (directory, named)
                        }
                        Base::Descriptor(number) => {
                            let directory = open_file(process, number)?;
                            let named = self.writer.how_named(&directory);
                            (directory, named)
                        }
                    };
                    let path = self.paths.absolute(&directory, OsStr::from_bytes(name));
                    if c_long::from(call.nr) == libc::SYS_chdir {
                        self.starts.change(&path, named);
                        if named.from_start && is_thread_of(boot, process) {
                            self.writer.accesses.set.insert(Attribute::Directory);
                        }
                    }
                    // What a trial import finds in the start directory only excludes modules from early loading.
                    if named == Named::FROM_START && self.trials.contains(&process) {
                        continue;
                    }
                    if self.trials.contains(&process) && self.changing.as_mut().is_some_and(|it| it.report(&path, used))
                    {
                        continue;
                    }
                    if self.record_reader(&path, used, process, call) {
                        continue;
                    }
                    let used = match used {
                        Use::Look if self.kind_only.contains(&process) => Use::LookAtKind,
                        Use::LookAtLink if self.kind_only.contains(&process) => Use::LookAtKindOfLink,
                        used => used,
                    };
                    self.writer.add(&path, used, named);
                }
            }
        }
        Ok(())
    }

    /// Records who reads a shared table: code that announced a look-up, or other code. Returns whether nothing else is
    /// to be recorded.
    fn record_reader(&mut self, path: &Path, used: Use, process: i32, call: &libc::seccomp_data) -> bool {
        if path == Path::new(LOADER_CACHE) {
            if used == Use::Read && !is_loader(process, call) {
                self.writer.read_whole(path);
            }
        } else if path == Path::new(LOCALE_ARCHIVE) {
            // The freezer itself reads the file here. That it may be missing is an answer to nobody.
            if self.announced.get(&process).is_some_and(|(kind, _)| *kind == lookup_kind::LOCALE) {
                return true;
            }
            self.writer.read_whole(path);
        } else if TABLES.iter().any(|table| path == Path::new(table)) {
            match self.announced.get(&process).filter(|_| used == Use::Read) {
                Some(lookup) => self.writer.look_up(path, lookup.clone()),
                None => self.writer.read_whole(path),
            }
        }
        false
    }

    /// Handles a request that a thread makes through the freezer.
    fn handle_request(&mut self, thread: i32, request: Request, argument: &[u8]) {
        match (request, argument) {
            (Request::LookUp, [kind @ b'0'..=b'9', b'/', text @ ..]) => {
                let lookup = (u32::from(kind - b'0'), text.to_vec());
                if lookup.0 == lookup_kind::LOCALE {
                    self.writer.look_up(Path::new(LOCALE_ARCHIVE), lookup.clone());
                }
                self.announced.insert(thread, lookup);
            }
            (Request::LookedUp, _) => drop(self.announced.remove(&thread)),
            (Request::Trial, _) => drop(self.trials.insert(thread)),
            (Request::Aside, _) => drop(self.aside.insert(thread)),
            (Request::KindOnly, b"1") => drop(self.kind_only.insert(thread)),
            (Request::KindOnly, _) => drop(self.kind_only.remove(&thread)),
            _ => {}
        }
    }
}

/// The directories in which relative names start at the start directory: the start directory itself, and those entered
/// from there by relative names.
struct Starts {
    directories: HashSet<PathBuf>,
    /// The program entered one of them by its absolute path, so what it means by it is unknown.
    is_doubtful: bool,
}

impl Starts {
    fn new(directory: Option<PathBuf>) -> Starts {
        Starts { directories: directory.into_iter().collect(), is_doubtful: false }
    }

    /// How a relative name in this directory names a path.
    fn how_named(&self, directory: &Path) -> Named {
        let from_start = self.directories.contains(directory);
        Named { from_start, absolutely: !from_start || self.is_doubtful }
    }

    /// The program enters a directory.
    fn change(&mut self, directory: &Path, named: Named) {
        // The name may lead through links; the kernel resolves it.
        let Ok(real) = directory.canonicalize() else { return };
        if named.absolutely {
            self.is_doubtful |= self.directories.contains(&real);
        } else {
            self.directories.insert(real);
        }
    }
}

/// Whether the dynamic loader makes the call, rather than a program that reads the loader's files. Tells by the address
/// of the caller's code.
fn is_loader(process: i32, call: &libc::seccomp_data) -> bool {
    let Ok(maps) = fs::read_to_string(format!("/proc/{process}/maps")) else { return false };
    let address = |text: &str| u64::from_str_radix(text, 16).unwrap_or(0);
    let own = maps.lines().find(|line| {
        let range = line.split(' ').next().and_then(|range| range.split_once('-'));
        range.is_some_and(|(start, end)| (address(start)..address(end)).contains(&call.instruction_pointer))
    });
    // ld-linux-x86-64.so.2, ld-2.31.so
    own.and_then(|line| line.rsplit('/').next()).is_some_and(|name| name.starts_with("ld-") && name.contains(".so"))
}

fn is_thread_of(process: i32, thread: i32) -> bool {
    process == thread || Path::new(&format!("/proc/{process}/task/{thread}")).exists()
}

/// The path of the file open under this number.
fn open_file(process: i32, number: i32) -> io::Result<PathBuf> {
    let path = fs::read_link(format!("/proc/{process}/fd/{number}"))?;
    let is_there = path.is_absolute() && Path::new(&path).exists();
    if is_there {
        Ok(path)
    } else {
        Err(io::ErrorKind::NotFound.into())
    }
}

/// Reads a string of another process, without its NUL.
fn string(process: i32, address: u64, buffer: &mut [u8; LONGEST]) -> io::Result<&[u8]> {
    let mut length = 0;
    while length < LONGEST {
        let place = address.wrapping_add(length as u64);
        let size = (PAGE - place as usize % PAGE).min(256).min(LONGEST - length);
        let size = sys::read_memory(process, place, &mut buffer[length..length + size])?;
        if let Some(end) = buffer[length..length + size].iter().position(|&byte| byte == 0) {
            return Ok(&buffer[..length + end]);
        }
        if size == 0 {
            break;
        }
        length += size;
    }
    // The kernel refuses a longer one, too.
    Err(io::ErrorKind::InvalidInput.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_starts_where_the_program_did_until_it_goes_elsewhere() {
        let top = tempfile::tempdir().unwrap();
        let top = top.path().canonicalize().unwrap();
        fs::create_dir_all(top.join("below")).unwrap();
        let mut starts = Starts::new(Some(top.clone()));
        assert_eq!(starts.how_named(&top), Named::FROM_START);
        assert_eq!(starts.how_named(Path::new("/")), Named::ABSOLUTELY);
        assert_eq!(starts.how_named(&top.join("below")), Named::ABSOLUTELY);
        starts.change(&top.join("below"), Named::FROM_START);
        assert_eq!(starts.how_named(&top.join("below")), Named::FROM_START);
        starts.change(Path::new("/"), Named::ABSOLUTELY);
        assert_eq!(starts.how_named(&top), Named::FROM_START);
        starts.change(&top, Named::ABSOLUTELY);
        assert_eq!(starts.how_named(&top), Named { from_start: true, absolutely: true });
    }
}
