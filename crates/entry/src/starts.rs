//! The files in the store's cache that say whether a start is to be handed to `snapboot run`. What they say are hints: that checks all.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{fstat, openat, Mode, OFlags, CWD};

/// The folder of these files in the store's cache.
const FOLDER: &str = ".starts";
/// Ends the names of images.
const IMAGE: &[u8] = b".img";
/// Of a list of processes that were handed over (bytes): hundreds of them.
const MOST: usize = 8192;
/// FNV-1a of 64 bits (RFC 9923).
const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x100_0000_01b3;

/// The files of one program.
pub struct Starts {
    /// The path of the first; the others have more at the end.
    path: PathBuf,
    /// Their folder.
    folder: File,
}

impl Starts {
    /// Those of a program. `executable`: what the interpreter names itself; `variable`: the value of one. None where the store has no
    /// folder of them that is this user's alone: nothing of anybody else is followed.
    pub fn find(
        executable: &OsStr,
        program: &OsStr,
        variable: &dyn Fn(&str) -> Option<&'static OsStr>,
    ) -> Option<Starts> {
        let place = cache(variable)?.join(FOLDER);
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder = openat(CWD, &place, flags, Mode::empty()).ok()?;
        let status = fstat(&folder).ok()?;
        let is_own = status.st_uid == rustix::process::geteuid().as_raw() && status.st_mode & 0o022 == 0;
        let number = number([executable.as_bytes(), b"\0", program.as_bytes()].into_iter().flatten());
        is_own.then(|| Starts { path: place.join(format!("{number:016x}")), folder: File::from(folder) })
    }

    /// The path of the first.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the program has an image.
    pub fn have_image(&self) -> bool {
        let Ok(entries) = fs::read_dir(self.path.with_extension("folder")) else { return false };
        entries.flatten().any(|entry| entry.file_name().as_bytes().ends_with(IMAGE))
    }

    /// Whether this process was handed over before; it is written down that it is now. True where that fails. An image that cannot serve
    /// a start may execute the program in several ways, and none of them may lead here again and again. Number and time of its start
    /// identify a process.
    pub fn were_handed_over(&self) -> bool {
        self.note_process().unwrap_or(true)
    }

    fn note_process(&self) -> io::Result<bool> {
        let status = fs::read_to_string("/proc/self/stat")?;
        // Behind the name, which may hold anything: the 22nd field of all (proc_pid_stat(5)).
        let begun = status
            .rsplit_once(") ")
            .and_then(|(_, fields)| fields.split(' ').nth(19))
            .ok_or(io::ErrorKind::InvalidData)?;
        let line = format!("{} {begun}\n", std::process::id());
        let name = self.path.with_extension("handed");
        let name = name.file_name().unwrap_or_default();
        let open = |flags| {
            let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
            openat(self.folder.as_fd(), name, flags, Mode::RUSR | Mode::WUSR).map(File::from)
        };
        let mut told = Vec::new();
        if let Ok(mut file) = open(OFlags::RDONLY) {
            file.read_to_end(&mut told)?;
        }
        if told.split_inclusive(|byte| *byte == b'\n').any(|known| known == line.as_bytes()) {
            return Ok(true);
        }
        let anew = if told.len() > MOST { OFlags::TRUNC } else { OFlags::empty() };
        open(OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | anew)?.write_all(line.as_bytes())?;
        Ok(false)
    }
}

/// The folder of the store's images, as location.rs of the store finds it; None if there is none.
fn cache(variable: &dyn Fn(&str) -> Option<&'static OsStr>) -> Option<PathBuf> {
    let absolute = |name: &str| variable(name).map(Path::new).filter(|path| path.is_absolute());
    if variable("SNAPBOOT_STORE").is_some() {
        return absolute("SNAPBOOT_STORE").map(|store| store.join("cache"));
    }
    let place = absolute("XDG_CACHE_HOME").map(Path::to_owned).or_else(|| Some(absolute("HOME")?.join(".cache")));
    place.map(|place| place.join("snapboot/images"))
}

/// A number for a text.
fn number<'a>(text: impl Iterator<Item = &'a u8>) -> u64 {
    text.fold(BASIS, |number, byte| (number ^ u64::from(*byte)).wrapping_mul(PRIME))
}
