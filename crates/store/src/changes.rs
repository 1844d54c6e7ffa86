//! Inputs that change from start to start. If an input has retired an image, the next image leaves it to each start, with the modules that
//! load it, unless too little would be left of the image.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use freeze::{Changing, OwnFiles};
use image::{Input, Section};
use image_file::differences::{self, Seen, Subject};
use image_file::this_process::ThisProcess;
use image_file::ImageFile;
use runtime::terminal::Terminal;
use serde::{Deserialize, Serialize};

use crate::Folder;

/// Its file in the folder of the command.
const FILE: &str = "changes.json";
/// How long nothing must have been edited before an image of the program is made again, where one of its libraries serves meanwhile.
const PAUSE: Duration = Duration::from_secs(60);
/// If more inputs differ at once, the program was upgraded.
const MOST_AT_ONCE: usize = 8;
/// The number of inputs that are remembered.
const MOST: usize = 64;
/// How often a file must have made an image stale to count as changing.
const TIMES_OF_PLACE: u32 = 1;
/// How many starts must have found no image for the value of a variable, for it to count as changing. More than one: a variable may have a
/// few values, and an image serves each of them.
const TIMES_OF_VARIABLE: u32 = 2;

/// The changes until now.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Changes {
    /// How often each place has retired an image.
    places: BTreeMap<PathBuf, u32>,
    /// How often each variable has kept a start from all images.
    variables: BTreeMap<String, u32>,
    /// Places and names without which too little was left of an image.
    needed: BTreeSet<PathBuf>,
}

impl Changes {
    /// Reads the changes of a command; empty if the file cannot be read.
    pub fn load(folder: &Folder) -> Changes {
        folder.read(&folder.name_for_kind(FILE)).unwrap_or_default()
    }

    /// Records what differs from this image for a start at this terminal: the inputs that have retired it, if it is made again.
    pub fn record(&mut self, image: &Path, terminal: Option<&Terminal>, is_made_again: bool) {
        let subjects = differing(image, &start_at(terminal));
        if subjects.len() > MOST_AT_ONCE {
            return;
        }
        for subject in subjects {
            match subject {
                Subject::Place(place) if is_made_again && place.is_absolute() && place.to_str().is_some() => {
                    count(&mut self.places, place)
                }
                Subject::Variable(name) => {
                    if let Ok(name) = name.into_string() {
                        count(&mut self.variables, name);
                    }
                }
                _ => {}
            }
        }
    }

    /// The inputs that are left to each start.
    pub fn changing(&self) -> Changing {
        let places = self.places.iter().filter(|(_, times)| **times >= TIMES_OF_PLACE).map(|(place, _)| place);
        let names = self.variables.iter().filter(|(_, times)| **times >= TIMES_OF_VARIABLE).map(|(name, _)| name);
        Changing {
            places: places.filter(|place| !self.needed.contains(*place)).cloned().collect(),
            variables: names.filter(|name| !self.needed.contains(Path::new(name))).map(OsString::from).collect(),
        }
    }

    /// Records those that a new image depends on all the same: they are read before anything can be left, as a script itself.
    pub fn settle(&mut self, image: &Path) {
        let Ok(image) = ImageFile::open(image) else { return };
        let tables = image.tables();
        let Ok(rows) = tables.rows::<Input>(Section::Inputs) else { return };
        let inputs: BTreeSet<&[u8]> = rows.filter_map(|row| tables.text(row.path).ok()).collect();
        let places = self.changing().places.into_iter();
        self.needed.extend(places.filter(|place| inputs.contains(place.as_os_str().as_bytes())));
    }

    /// From now on, no image is made without these.
    pub fn need(&mut self, changing: &Changing) {
        let names = changing.variables.iter().map(PathBuf::from);
        self.needed.extend(changing.places.iter().cloned().chain(names));
    }

    /// Writes the file. If that fails, the next change counts as the first one.
    pub fn keep(&self, folder: &Folder) {
        let _ = folder.write(&folder.name_for_kind(FILE), self);
    }
}

/// What differs from an image for a start for which a process answers; nothing if the image cannot be read.
pub(crate) fn differing(image: &Path, start: &ThisProcess) -> BTreeSet<Subject> {
    let lines = ImageFile::open(image).and_then(|image| differences::lines_for_start(&image, start, &Seen::default()));
    lines.unwrap_or_default().into_iter().map(|line| line.subject).collect()
}

/// Whether a file of the user's own is among what differs that was changed a moment ago, and will be again.
pub(crate) fn is_being_edited(differing: &BTreeSet<Subject>) -> bool {
    let mut own = OwnFiles::new(Vec::new());
    let places = differing.iter().filter_map(|subject| match subject {
        Subject::Place(place) if own.contains(place) => Some(place),
        _ => None,
    });
    let changed = places.filter_map(|place| place.metadata().and_then(|status| status.modified()).ok());
    // What lies ahead of the clock says nothing.
    changed.filter_map(|changed| changed.elapsed().ok()).any(|age| age < PAUSE)
}

/// Answers for a start at this terminal, or at none.
pub fn start_at(terminal: Option<&Terminal>) -> ThisProcess {
    ThisProcess { boot: Some(terminal.map_or([None; 3], Terminal::windows)) }
}

/// Increments a count, of up to [`MOST`] different ones.
fn count<Key: Ord>(counts: &mut BTreeMap<Key, u32>, key: Key) {
    if counts.len() < MOST || counts.contains_key(&key) {
        *counts.entry(key).or_default() += 1;
    }
}
