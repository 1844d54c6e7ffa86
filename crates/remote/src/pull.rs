//! Takes an image from the remote store: the newest whose inputs agree here. Of the others only heads and tables are fetched.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;

use failure::{Failure, Result};
use image::{Head, HEAD_AREA, HEAD_OFFSET};
use image_file::differences::{self, Seen};
use image_file::{starts, FirstHead, ImageFile};
use runtime::terminal::Terminal;
use store::{changes, fallback};

use crate::chunks::{most_bytes_of, path_of, unpack, SIZE};
use crate::draft::Draft;
use crate::manifest::Chunk;
use crate::push::NEWEST;
use crate::trusted::Trust;
use crate::{folder_of, readers, used, Manifest, Storage};

/// How many images are looked at before this machine makes its own.
const MOST_CANDIDATES: usize = 8;

/// What is wanted.
pub struct Wanted<'a> {
    /// The key of such images.
    pub key: &'a str,
    /// Where the image goes.
    pub output: &'a Path,
    /// Its permissions. None: those of an image that was made here, for everybody who may read what its boot has read.
    pub mode: Option<u32>,
    /// The terminal of the starts that it is for.
    pub terminal: Option<&'a Terminal>,
    /// The command `snapboot` of this machine, to which an image of the store hands over starts that it cannot serve.
    pub snapboot: Option<&'a Path>,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pulled {
    /// An image is there.
    Image {
        /// How many chunks were fetched, those of other candidates included.
        chunks: usize,
    },
    /// There is none for this program on machines like this one.
    NoImage,
    /// There are some, and none fits. What differs from the newest.
    NoneFits(Vec<String>),
}

/// Takes the newest image that fits. Fails if none does and something was wrong with one.
pub fn pull(storage: &Storage, wanted: &Wanted<'_>) -> Result<Pulled> {
    let trust = Trust::in_storage(storage)?;
    let key = wanted.key;
    let (mut differing, mut wrong, mut seen) = (None, None, Fetched { chunks: 0, inputs: Seen::default() });
    for path in candidates(storage, key)? {
        let tried = trust.read(storage, &path, key).and_then(|manifest| {
            let Some(manifest) = manifest else { return Ok(None) };
            fetch(storage, &manifest, wanted, &mut seen).map(Some)
        });
        match tried {
            Ok(Some(lines)) if lines.is_empty() => {
                used::mark(storage, &path);
                return Ok(Pulled::Image { chunks: seen.chunks });
            }
            Ok(Some(lines)) => drop(differing.get_or_insert(lines)),
            Ok(None) => {}
            Err(failure) => drop(wrong.get_or_insert(failure)),
        }
    }
    match (wrong, differing) {
        (Some(failure), _) => Err(failure),
        (None, Some(lines)) => Ok(Pulled::NoneFits(lines)),
        (None, None) => Ok(Pulled::NoImage),
    }
}

/// The paths of the manifests of a key, the newest first.
fn candidates(storage: &Storage, key: &str) -> Result<Vec<String>> {
    let folder = folder_of(key);
    if !storage.lists() {
        return Ok(vec![folder + NEWEST]);
    }
    let mut paths: Vec<String> = storage.list(&folder)?.into_iter().map(|object| object.path).collect();
    paths.sort_by(|one, other| other.cmp(one));
    paths.truncate(MOST_CANDIDATES);
    Ok(paths)
}

/// What has been read for all candidates.
struct Fetched {
    chunks: usize,
    inputs: Seen,
}

/// Puts an image in its place if it fits; otherwise returns what differs.
fn fetch(storage: &Storage, manifest: &Manifest, wanted: &Wanted<'_>, fetched: &mut Fetched) -> Result<Vec<String>> {
    let chunks: Vec<Chunk<'_>> = manifest.chunks().collect();
    let draft = Draft::make(wanted.output, manifest.size)?;
    let mut there = BTreeSet::new();
    let mut get = |numbers: BTreeSet<usize>| -> Result<()> {
        let new: Vec<Chunk<'_>> = numbers.difference(&there).map(|number| chunks[*number]).collect();
        fetched.chunks += new.len();
        there.extend(numbers);
        let objects: Vec<(String, usize)> =
            new.iter().map(|chunk| (path_of(chunk.digest), most_bytes_of(chunk.length))).collect();
        storage.get_all(&objects, |number, stored| {
            let Chunk { digest, offset, length } = new[number];
            draft.write(offset, &unpack(&stored, digest, length)?)
        })
    };
    get(chunks_in(0..(HEAD_OFFSET + HEAD_AREA) as u64, chunks.len()))?;
    get(chunks_of_tables(&draft.head_area()?, manifest, chunks.len())?)?;
    let image = ImageFile::open(draft.path())?;
    let start = changes::start_at(wanted.terminal);
    let lines = differences::lines_by_content(&image, &start, &fetched.inputs)?;
    if !lines.is_empty() {
        return Ok(lines.into_iter().map(|line| line.text).collect());
    }
    get((0..chunks.len()).collect())?;
    if let Some(snapboot) = wanted.snapboot {
        draft.hand_over_to(&[snapboot.as_os_str(), fallback::SUBCOMMAND.as_ref(), wanted.output.as_os_str()])?;
    }
    let replaced = FirstHead::read(wanted.output).ok().map(|first| first.head.image_id());
    draft.publish(wanted.mode.map_or_else(|| readers::mode(&image), Ok)?)?;
    // A machine that has never frozen anything has no folder for counts.
    starts::create_folder();
    starts::begin_counting(image.head().image_id(), replaced);
    Ok(Vec::new())
}

/// The numbers of the chunks that hold the tables and the answers of all variants.
fn chunks_of_tables(area: &[u8], manifest: &Manifest, count: usize) -> Result<BTreeSet<usize>> {
    let first = Head::parse(area, manifest.size)?;
    let mut numbers = BTreeSet::new();
    for number in 0..first.variants {
        let head = Head::parse_variant(number, area, manifest.size)?;
        if head.file_size != manifest.size {
            return Err(Failure::failed(format!(
                "the manifest of an image should name its size, {} bytes, and names {}.",
                head.file_size, manifest.size
            )));
        }
        numbers.extend(chunks_in(head.tables_offset..head.tables_offset + head.tables_size, count));
        numbers.extend(chunks_in(head.answers_offset..head.answers_offset + head.answers_size, count));
    }
    Ok(numbers)
}

/// The numbers of the chunks, of so many, that hold a part of an image.
fn chunks_in(part: Range<u64>, count: usize) -> BTreeSet<usize> {
    let (first, behind) = (part.start / SIZE as u64, part.end.div_ceil(SIZE as u64));
    (first..behind).filter_map(|number| usize::try_from(number).ok()).filter(|number| *number < count).collect()
}
