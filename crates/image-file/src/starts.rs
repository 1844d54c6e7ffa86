//! The counts of an image's starts: thaws, fallbacks, and the reason of the last fallback.
//!
//! Nothing depends on these files, so failures to write them are ignored; see docs/internals/image-format.md. They lie
//! in the user's state folder and not beside the image, since an image may lie where the user cannot write, and its
//! folder should contain only images.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use image::{Record, StartsHead};
use rustix::process::geteuid;
use serde::Serialize;

use crate::rotation;
use crate::{FirstHead, ImageFile};

/// The folder of the files, in the user's state folder.
const FOLDER: &str = "starts";
/// Maximum number of files.
const MAX: usize = 256;

/// The counts of an image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Starts {
    /// Number of thaws.
    pub thaws: u64,
    /// Number of fallbacks.
    pub fallbacks: u64,
    /// Number of fallbacks since the last thaw.
    pub since_thaw: u64,
    /// The last fallback.
    pub last_fallback: Option<Fallback>,
}

/// A start that fell back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fallback {
    /// Its time in the form of RFC 3339.
    pub time: String,
    /// Its reason in the launcher's words. May contain any bytes of file names.
    pub reason: String,
}

impl Starts {
    /// The counts of this image; None if there are none.
    pub fn read(image: &ImageFile) -> Option<Self> {
        let sum = image.head().image_id();
        Self::parse(&trust::read(&file(&folder()?, sum)).ok()?, sum)
    }

    /// The counts in another state folder, see [`begin_counting_below`].
    pub fn read_below(state: &Path, image_id: u64) -> Option<Self> {
        Self::parse(&trust::read(&file(&state.join(FOLDER), image_id)).ok()?, image_id)
    }

    fn parse(bytes: &[u8], image_id: u64) -> Option<Self> {
        let (head, text) = bytes.split_at_checked(StartsHead::SIZE)?;
        let head = head_for(head, image_id)?;
        let text = text.get(..usize::try_from(head.reason).ok()?)?;
        let last = (head.last != 0).then(|| Fallback {
            time: rotation::format_time(head.last),
            reason: String::from_utf8_lossy(text).into_owned(),
        });
        let StartsHead { thaws, fallbacks, since, .. } = head;
        Some(Starts { thaws, fallbacks, since_thaw: since, last_fallback: last })
    }
}

/// The head of a file, if it is one for this image.
fn head_for(bytes: &[u8], image_id: u64) -> Option<StartsHead> {
    let head = StartsHead::decode(bytes);
    (head.magic == StartsHead::MAGIC && head.image == image_id).then_some(head)
}

/// The time of an image's last start; None if it was not counted.
pub fn last_start(image: &Path) -> Option<SystemTime> {
    let FirstHead { head, .. } = FirstHead::read(image).ok()?;
    self::file(&folder()?, head.image_id()).metadata().ok()?.modified().ok()
}

/// Removes the counts of an image that is about to be removed.
pub fn remove_counts(image: &Path) {
    let Ok(FirstHead { head, .. }) = FirstHead::read(image) else { return };
    if let Some(folder) = folder() {
        // Fails if there were none, or the folder is read-only.
        let _ = fs::remove_file(file(&folder, head.image_id()));
    }
}

/// Takes back a fallback of this image, since another image serves the start.
pub fn take_back_fallback(image: &Path) {
    let Ok(FirstHead { head, .. }) = FirstHead::read(image) else { return };
    let Some(path) = folder().map(|folder| file(&folder, head.image_id())) else { return };
    if trust::open(&path).is_err() {
        return;
    }
    let Ok(file) = fs::OpenOptions::new().read(true).write(true).open(path) else { return };
    let mut bytes = [0; StartsHead::SIZE];
    if file.read_exact_at(&mut bytes, 0).is_err() {
        return;
    }
    if let Some(mut counted) = head_for(&bytes, head.image_id()) {
        counted.fallbacks = counted.fallbacks.saturating_sub(1);
        counted.since = counted.since.saturating_sub(1);
        counted.encode(&mut bytes);
        let _ = file.write_all_at(&bytes, 0);
    }
}

/// The folder of these files: `STATE/starts`. None if starts are not counted, or if the folder would lie in another
/// user's home.
fn folder() -> Option<PathBuf> {
    let absolute = |value: &OsStr| Path::new(value).is_absolute();
    let state = match std::env::var_os(StartsHead::VARIABLE) {
        Some(state) => Some(state).filter(|state| absolute(state)),
        None => StartsHead::PLACES.into_iter().find_map(|(name, below)| {
            let mut state = std::env::var_os(name).filter(|value| absolute(value))?;
            state.push(below);
            Some(state)
        }),
    };
    let folder = Path::new(&state?).join(FOLDER);
    trust::check_place(&folder).is_ok().then_some(folder)
}

fn file(folder: &Path, image_id: u64) -> PathBuf {
    folder.join(format!("{image_id:016x}"))
}

/// Creates the folder, if the lowest existing folder above it belongs to the user. Call it before a boot, which may
/// look into that folder. A missing home is not created: accounts of services have one in name only.
pub fn create_folder() {
    let Some(folder) = folder() else { return };
    let above = folder.ancestors().find_map(|above| Some((above, above.metadata().ok()?)));
    let is_in_home = |above: &Path| match std::env::var_os("HOME") {
        Some(home) if folder.starts_with(&home) => above.starts_with(home),
        _ => true,
    };
    if above.is_some_and(|(above, status)| status.uid() == geteuid().as_raw() && is_in_home(above)) {
        let _ = fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder);
    }
}

/// Begins to count for a new image, and removes the counts of the image that it replaced.
pub fn begin_counting(image_id: u64, replaced: Option<u64>) {
    let Some(folder) = folder() else { return };
    if let Some(replaced) = replaced.filter(|&replaced| replaced != image_id) {
        let _ = fs::remove_file(file(&folder, replaced));
    }
    // Without the file, starts are not counted.
    let _ = write_zeros(&folder, image_id);
    forget_oldest(&folder);
}

/// Begins to count the starts of an image in another state folder, which must exist: those of processes with this
/// folder in SNAPBOOT_STATE.
pub fn begin_counting_below(state: &Path, image_id: u64) -> io::Result<()> {
    let folder = state.join(FOLDER);
    fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
    write_zeros(&folder, image_id)
}

/// Writes a file with zero counts, if there is none.
fn write_zeros(folder: &Path, image_id: u64) -> io::Result<()> {
    let mut bytes = [0; StartsHead::FILE_SIZE];
    let head =
        StartsHead { magic: StartsHead::MAGIC, image: image_id, thaws: 0, since: 0, fallbacks: 0, last: 0, reason: 0 };
    head.encode(&mut bytes);
    let path = file(folder, image_id);
    let mut made = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
    made.write_all(&bytes).inspect_err(|_| {
        let _ = fs::remove_file(&path);
    })
}

/// Removes the file that was written longest ago, since its image is no longer started. Leaves other files alone.
fn forget_oldest(folder: &Path) {
    let entries = folder.read_dir().into_iter().flatten().flatten();
    let written = |entry: fs::DirEntry| {
        let name = entry.file_name();
        let is_sum = name.len() == 16 && name.as_bytes().iter().all(u8::is_ascii_hexdigit);
        let found =
            entry.metadata().ok().filter(|it| is_sum && it.is_file() && it.len() == StartsHead::FILE_SIZE as u64)?;
        let written = found.modified().unwrap_or(SystemTime::UNIX_EPOCH);
        // A time in the future comes from before the clock was set back, so such a file counts as the oldest.
        Some((written <= SystemTime::now(), written, entry.path()))
    };
    let mut all: Vec<_> = entries.filter_map(written).collect();
    all.sort();
    let many = all.len().saturating_sub(MAX);
    for (.., path) in &all[..many] {
        let _ = fs::remove_file(path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(thaws: u64, since: u64, fallbacks: u64, reason: &[u8]) -> Option<Starts> {
        let head = StartsHead {
            magic: StartsHead::MAGIC,
            image: 7,
            thaws,
            since,
            fallbacks,
            last: 10_i64.pow(18),
            reason: reason.len() as u64,
        };
        let mut bytes = [0; StartsHead::FILE_SIZE];
        head.encode(&mut bytes);
        bytes[StartsHead::SIZE..][..reason.len()].copy_from_slice(reason);
        Starts::parse(&bytes, 7)
    }

    #[test]
    fn what_was_written_is_read() {
        let starts = counted(41, 2, 3, b"stale: this file has changed: /a").unwrap();
        let last = Fallback { time: "2001-09-09T01:46:40Z".into(), reason: "stale: this file has changed: /a".into() };
        assert_eq!(starts, Starts { thaws: 41, fallbacks: 3, since_thaw: 2, last_fallback: Some(last) });
    }

    #[test]
    fn what_belongs_to_another_image_or_is_damaged_is_not_believed() {
        let starts = [&[0; StartsHead::FILE_SIZE][..], b""].map(|bytes| Starts::parse(bytes, 7));
        assert_eq!(starts, [None, None]);
        let head = StartsHead {
            magic: StartsHead::MAGIC,
            image: 7,
            thaws: 0,
            since: 0,
            fallbacks: 0,
            last: 1,
            reason: u64::MAX,
        };
        let mut bytes = [0; StartsHead::FILE_SIZE];
        head.encode(&mut bytes);
        assert_eq!((Starts::parse(&bytes, 7), Starts::parse(&bytes, 8)), (None, None));
    }

    #[test]
    fn those_that_were_written_last_are_kept() {
        let top = tempfile::tempdir().unwrap();
        let others = ["notes.txt", "00000000000000ff", "zzzzzzzzzzzzzzzz"].map(|name| top.path().join(name));
        others.iter().for_each(|path| fs::write(path, "of somebody else").unwrap());
        for number in 0x100..0x103 + MAX as u64 {
            let path = file(top.path(), number);
            let made = fs::File::create(path).unwrap();
            made.set_len(StartsHead::FILE_SIZE as u64).unwrap();
            made.set_modified(SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(10_000 - number)).unwrap();
        }
        forget_oldest(top.path());
        assert_eq!(top.path().read_dir().unwrap().count(), MAX + others.len());
        assert!(file(top.path(), 0x100).exists() && !file(top.path(), 0x102 + MAX as u64).exists());
        assert!(others.iter().all(|path| path.exists()));
    }
}
