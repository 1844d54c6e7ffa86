//! The thread that the kernel notifies before a call that takes a file name goes on, and that notes the name.

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

use channel::Request;
use image::lookup_kind;
use inputs::attributes::Attribute;
use inputs::lookups::{LOCALE_ARCHIVE, TABLES};

use crate::accesses::{Accesses, Named, ReadKernelFile, Writer, LOADER_CACHE};
use crate::calls::{self, Access, Base, Use};
use crate::paths::Paths;
use crate::sys;

/// Memory is read up to such a border: behind it there may be none.
const PAGE: usize = 4096;
/// Longest name that the kernel takes (bytes).
const LONGEST: usize = 4096;

/// A boot that is being watched.
pub struct Recorder {
    /// Closed to end the thread.
    at_end: PipeWriter,
    thread: JoinHandle<io::Result<Accesses>>,
}

impl Recorder {
    /// Waits for a child to call [`crate::execute`] with the other end of `socket`, and watches it from then on. Nobody but that child
    /// may have the other end. None when the child has ended before: then it says why. `start`: the directory in which the child
    /// starts. `read` looks at files of the kernel. `changing`: places that are left to each start.
    pub fn start(
        socket: &UnixStream,
        start: Option<PathBuf>,
        read: ReadKernelFile,
        changing: Option<Changing>,
    ) -> io::Result<Option<Recorder>> {
        let Some(listener) = receive(socket)? else { return Ok(None) };
        let (ended, at_end) = io::pipe()?;
        let starts = Starts::at(start);
        let state = State {
            writer: Writer::new(read),
            paths: Paths::default(),
            starts,
            announced: HashMap::new(),
            trials: HashSet::new(),
            aside: HashSet::new(),
            changing,
            boot: None,
            failed: None,
        };
        let thread = thread::Builder::new().name("recorder".to_owned()).spawn(move || state.run(&listener, &ended))?;
        Ok(Some(Recorder { at_end, thread }))
    }

    /// Ends the watch, and gives the notes. Processes of the boot that still run cannot open files any more. Fails when none could be
    /// read.
    pub fn finish(self) -> io::Result<Accesses> {
        drop(self.at_end);
        self.thread.join().map_err(|_| io::Error::other("the recorder failed"))?
    }
}

/// The listening end from a child; None when the child went away.
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

/// Places that are left to each start, since what is there changes. Who looks for one in a trial is told: what has been loaded there may not be
/// loaded early.
pub struct Changing {
    /// The places.
    pub places: HashSet<PathBuf>,
    /// Where the path of each is appended that was looked up, with a NUL behind it.
    pub looked_up: File,
}

impl Changing {
    /// Whether that is one of them; the trial finds it in the file before its call goes on.
    fn tell(&mut self, path: &Path) -> bool {
        // Where it cannot be written down, it counts as an input.
        self.places.contains(path) && self.looked_up.write_all(&[path.as_os_str().as_bytes(), b"\0"].concat()).is_ok()
    }
}

/// The state of the thread.
struct State {
    writer: Writer,
    paths: Paths,
    starts: Starts,
    /// What threads look up at the moment in a table that others share: kind and text.
    announced: HashMap<i32, (u32, Vec<u8>)>,
    /// Processes that only try what may be loaded early.
    trials: HashSet<i32>,
    /// Processes whose accesses do not count.
    aside: HashSet<i32>,
    /// What trials are told of that they have looked up.
    changing: Option<Changing>,
    /// The process that boots.
    boot: Option<i32>,
    /// Why not even the first name could be read.
    failed: Option<io::Error>,
}

impl State {
    /// Answers until the boot has ended, or the watch.
    fn run(mut self, listener: &OwnedFd, ended: &PipeReader) -> io::Result<Accesses> {
        sys::wake_in_turn(listener);
        loop {
            let mut events = [PollFd::new(listener, PollFlags::IN), PollFd::new(ended, PollFlags::IN)];
            retry_on_intr(|| poll(&mut events, None))?;
            let is_asked = events[0].revents().contains(PollFlags::IN);
            if is_asked {
                let Some(call) = sys::next(listener)? else { continue };
                if let Err(error) = self.note(call.thread, &call.data) {
                    // Anything else is an error of the call itself, or of a process that was killed.
                    match error.kind() {
                        io::ErrorKind::PermissionDenied if self.writer.notes.places.is_empty() => {
                            self.failed = Some(error)
                        }
                        io::ErrorKind::PermissionDenied => self.writer.notes.hidden = true,
                        _ => {}
                    }
                }
                sys::go_on(listener, &call);
            } else if events.iter().any(|event| !event.revents().is_empty()) {
                return self.failed.map_or(Ok(self.writer.notes), Err);
            }
        }
    }

    /// Notes the accesses of a call.
    fn note(&mut self, process: i32, call: &libc::seccomp_data) -> io::Result<()> {
        if self.aside.contains(&process) {
            return Ok(());
        }
        // The first call executes the program.
        let boot = *self.boot.get_or_insert(process);
        // Whoever asks for the dumpable flag as it mostly is gives nothing up.
        let is_usual = |attribute| attribute == Attribute::Dumpable && call.args[1] == 1;
        if let Some(attribute) = calls::setting(call).filter(|attribute| !is_usual(*attribute)) {
            if is_thread_of(boot, process) {
                self.writer.notes.set.insert(attribute);
            }
        }
        let word = |address| {
            let mut bytes = [0; 8];
            (sys::read_memory(process, address, &mut bytes).ok()? == 8).then(|| u64::from_ne_bytes(bytes))
        };
        for access in calls::accesses(call, word).into_iter().flatten() {
            match access {
                // What is loaded early after a trial lists it again, by itself.
                Access::List(_) if self.trials.contains(&process) => {}
                Access::List(number) => self.writer.list(&open_file(process, number)?),
                Access::Name(base, address, used) => {
                    let mut buffer = [0; LONGEST];
                    let name = string(process, address, &mut buffer)?;
                    if let Some((request, argument)) = Request::parse(name) {
                        self.hear(process, request, argument);
                        continue;
                    }
                    let (directory, named) = match base {
                        _ if name.is_empty() => continue,
                        _ if name[0] == b'/' => (PathBuf::new(), Named::ABSOLUTELY),
                        Base::Cwd => {
                            let directory = fs::read_link(format!("/proc/{process}/cwd"))?;
                            let named = self.starts.named(&directory);
                            (directory, named)
                        }
                        Base::Descriptor(number) => {
                            let directory = open_file(process, number)?;
                            let named = self.writer.named(&directory);
                            (directory, named)
                        }
                    };
                    let path = self.paths.absolute(&directory, OsStr::from_bytes(name));
                    if c_long::from(call.nr) == libc::SYS_chdir {
                        self.starts.change(&path, named);
                        if named.from_start && is_thread_of(boot, process) {
                            self.writer.notes.set.insert(Attribute::Directory);
                        }
                    }
                    // What it finds in the directory of this start leads to no more than to leaving out what looks there.
                    if named == Named::FROM_START && self.trials.contains(&process) {
                        continue;
                    }
                    if self.trials.contains(&process) && self.changing.as_mut().is_some_and(|it| it.tell(&path)) {
                        continue;
                    }
                    if self.note_reader(&path, used, process, call) {
                        continue;
                    }
                    self.writer.add(&path, used, named);
                }
            }
        }
        Ok(())
    }

    /// Notes who reads a file that many share: somebody who looks a certain thing up, or anybody else. Returns whether that is all there
    /// is to it.
    fn note_reader(&mut self, path: &Path, used: Use, process: i32, call: &libc::seccomp_data) -> bool {
        if path == Path::new(LOADER_CACHE) {
            if used == Use::Read && !is_loader(process, call) {
                self.writer.read_whole(path);
            }
        } else if path == Path::new(LOCALE_ARCHIVE) {
            // The freezer looks into it by itself. It may not be there, and that is no answer to anybody.
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

    /// Takes down what a thread says of itself by the freezer.
    fn hear(&mut self, thread: i32, request: Request, argument: &[u8]) {
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
            _ => {}
        }
    }
}

/// The directories in which relative names start where the program was started: that one, and those into which it went from there by a
/// relative name.
struct Starts {
    directories: HashSet<PathBuf>,
    /// Whether the program went into one of them by its absolute path: from then on it cannot be told what it means.
    is_doubtful: bool,
}

impl Starts {
    fn at(directory: Option<PathBuf>) -> Starts {
        Starts { directories: directory.into_iter().collect(), is_doubtful: false }
    }

    /// In which way a relative name in this directory names a place.
    fn named(&self, directory: &Path) -> Named {
        let from_start = self.directories.contains(directory);
        Named { from_start, absolutely: !from_start || self.is_doubtful }
    }

    /// The program goes into a directory.
    fn change(&mut self, directory: &Path, named: Named) {
        // The kernel tells the place itself, also when the name leads through links.
        let Ok(real) = directory.canonicalize() else { return };
        if named.absolutely {
            self.is_doubtful |= self.directories.contains(&real);
        } else {
            self.directories.insert(real);
        }
    }
}

/// Whether it is the dynamic loader that makes a call, and not a program that reads the loader's files: the call comes from its code.
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

/// What is open under that number.
fn open_file(process: i32, number: i32) -> io::Result<PathBuf> {
    let path = fs::read_link(format!("/proc/{process}/fd/{number}"))?;
    let is_there = path.is_absolute() && Path::new(&path).exists();
    if is_there {
        Ok(path)
    } else {
        Err(io::ErrorKind::NotFound.into())
    }
}

/// A string of another process, without its NUL.
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
    // The kernel does not take it either.
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
        let mut starts = Starts::at(Some(top.clone()));
        assert_eq!(starts.named(&top), Named::FROM_START);
        assert_eq!(starts.named(Path::new("/")), Named::ABSOLUTELY);
        assert_eq!(starts.named(&top.join("below")), Named::ABSOLUTELY);
        starts.change(&top.join("below"), Named::FROM_START);
        assert_eq!(starts.named(&top.join("below")), Named::FROM_START);
        starts.change(Path::new("/"), Named::ABSOLUTELY);
        assert_eq!(starts.named(&top), Named::FROM_START);
        starts.change(&top, Named::ABSOLUTELY);
        assert_eq!(starts.named(&top), Named { from_start: true, absolutely: true });
    }
}
