//! Takes an image from the remote store: the newest whose inputs agree here. Of the others only heads and tables are fetched.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::{Path, PathBuf};

use failure::{Failure, Result};
use image::{HEAD_AREA, HEAD_OFFSET};
use image_file::differences::{self, Seen};
use image_file::{starts, FirstHead, ImageFile};
use runtime::terminal::Terminal;
use store::{changes, fallback, Folder};

use crate::chunks::{cut, hex_digest, most_bytes_of, path_of, unpack, Chunk, Chunked, SIZE};
use crate::difference::{self, unpack_front, unpack_rest, Before, Parts};
use crate::draft::Draft;
use crate::trusted::Trust;
use crate::{folder_of, readers, used, Manifest, Storage, NEWEST};

/// How many images are looked at before this machine makes its own.
const MOST_CANDIDATES: usize = 8;

/// What is wanted.
pub struct Wanted<'a> {
    /// The key of such images.
    pub key: &'a str,
    /// The folder of the command, if the image goes into a store.
    pub folder: Option<&'a Folder>,
    /// Where the image goes.
    pub output: &'a Path,
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
        /// The bytes of these, compressed.
        bytes: u64,
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
    let (mut differing, mut wrong, mut fetched) = (None, None, Fetched::default());
    let mut knows_seed = false;
    for path in candidates(storage, key)? {
        let tried = trust.read(storage, &path, key).and_then(|manifest| {
            let Some(manifest) = manifest else { return Ok(None) };
            if let Some(seed) = manifest.hash_seed.filter(|_| !knows_seed) {
                knows_seed = true;
                wanted.folder.iter().for_each(|folder| store::hash_seed::keep(folder, seed));
            }
            fetch(storage, &manifest, wanted, &mut fetched).map(Some)
        });
        match tried {
            Ok(Some(lines)) if lines.is_empty() => {
                used::mark(storage, &path);
                return Ok(Pulled::Image { chunks: fetched.chunks, bytes: fetched.bytes });
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
pub(crate) fn candidates(storage: &Storage, key: &str) -> Result<Vec<String>> {
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
#[derive(Default)]
pub(crate) struct Fetched {
    pub(crate) chunks: usize,
    pub(crate) bytes: u64,
    inputs: Seen,
}

/// Puts an image in its place if it fits; otherwise returns what differs.
fn fetch(storage: &Storage, manifest: &Manifest, wanted: &Wanted<'_>, fetched: &mut Fetched) -> Result<Vec<String>> {
    // Whatever is wrong with the difference, the image itself may be as it should.
    if let Ok(Some(lines)) = fetch_difference(storage, manifest, wanted, fetched) {
        return Ok(lines);
    }
    let mut draft = Whole::begin(storage, manifest, wanted.output, fetched)?;
    let lines = differing(&draft.draft, wanted, &draft.fetched.inputs)?;
    if lines.is_empty() {
        draft.get_rest()?;
        put_in_place(draft.draft, wanted)?;
    }
    Ok(lines)
}

/// Makes the image from the one before, if that is there, and puts it in its place if it fits. Returns what differs; None if there is no image
/// from which it could be made.
fn fetch_difference(
    storage: &Storage,
    manifest: &Manifest,
    wanted: &Wanted<'_>,
    fetched: &mut Fetched,
) -> Result<Option<Vec<String>>> {
    let Some(difference) = &manifest.difference else { return Ok(None) };
    let there = wanted.folder.map_or_else(|| vec![wanted.output.to_owned()], Folder::all_images);
    let Some(before) = image_among(&there, &difference.from) else { return Ok(None) };
    let Some(before) = Before::read(&before)? else { return Ok(None) };
    let size = manifest.image.size;
    let draft = Draft::make(wanted.output, size)?;
    for (offset, bytes) in unpack_front(&get_bytes(storage, &difference.front, fetched)?, &before, size)? {
        draft.write(offset, &bytes)?;
    }
    let lines = differing(&draft, wanted, &fetched.inputs)?;
    if !lines.is_empty() {
        return Ok(Some(lines));
    }
    let stored = get_bytes(storage, &difference.rest, fetched)?;
    for (offset, bytes) in unpack_rest(&stored, &before, &draft.head_area()?, size, &difference.moved)? {
        draft.write(offset, &bytes)?;
    }
    let mut chunks = manifest.image.iter();
    cut(draft.file(), size, |content| match chunks.next() {
        Some(chunk) if chunk.digest == hex_digest(content) => Ok(()),
        _ => Err(Failure::failed("an image that was made from a difference should have the digests of its manifest.")),
    })?;
    put_in_place(draft, wanted)?;
    Ok(Some(lines))
}

/// The image at one of these paths that has this identity.
pub(crate) fn image_among(paths: &[PathBuf], identity: &str) -> Option<ImageFile> {
    let mut images = paths.iter().filter_map(|path| ImageFile::open(path).ok());
    images.find(|image| difference::identity(image) == identity)
}

/// Bytes of the remote store.
fn get_bytes(storage: &Storage, wanted: &Chunked, fetched: &mut Fetched) -> Result<Vec<u8>> {
    let chunks: Vec<Chunk<'_>> = wanted.iter().collect();
    let mut bytes = vec![0; usize::try_from(wanted.size).unwrap_or(usize::MAX)];
    get_chunks(storage, &chunks, fetched, |chunk, content| {
        bytes[chunk.offset as usize..][..content.len()].copy_from_slice(&content);
        Ok(())
    })?;
    Ok(bytes)
}

/// Calls `each` with chunks and their contents, in any order.
pub(crate) fn get_chunks(
    storage: &Storage,
    chunks: &[Chunk<'_>],
    fetched: &mut Fetched,
    mut each: impl FnMut(Chunk<'_>, Vec<u8>) -> Result<()>,
) -> Result<()> {
    let objects: Vec<(String, usize)> =
        chunks.iter().map(|chunk| (path_of(chunk.digest), most_bytes_of(chunk.length))).collect();
    storage.get_all(&objects, |number, stored| {
        fetched.chunks += 1;
        fetched.bytes += stored.len() as u64;
        each(chunks[number], unpack(&stored, chunks[number].digest, chunks[number].length)?)
    })
}

/// An image that is fetched chunk by chunk.
struct Whole<'a> {
    storage: &'a Storage,
    chunks: Vec<Chunk<'a>>,
    there: BTreeSet<usize>,
    draft: Draft,
    fetched: &'a mut Fetched,
}

impl<'a> Whole<'a> {
    /// Fetches heads, tables and answers.
    fn begin(
        storage: &'a Storage,
        manifest: &'a Manifest,
        output: &Path,
        fetched: &'a mut Fetched,
    ) -> Result<Whole<'a>> {
        let size = manifest.image.size;
        let draft = Draft::make(output, size)?;
        let mut whole =
            Whole { storage, chunks: manifest.image.iter().collect(), there: BTreeSet::new(), draft, fetched };
        whole.get(chunks_in(0..(HEAD_OFFSET + HEAD_AREA) as u64, whole.chunks.len()))?;
        let front = Parts::find(&whole.draft.head_area()?, size)?.front;
        whole.get(front.into_iter().flat_map(|part| chunks_in(part, whole.chunks.len())).collect())?;
        Ok(whole)
    }

    fn get_rest(&mut self) -> Result<()> {
        self.get((0..self.chunks.len()).collect())
    }

    /// Fetches the chunks of these numbers.
    fn get(&mut self, numbers: BTreeSet<usize>) -> Result<()> {
        let new: Vec<Chunk<'_>> = numbers.difference(&self.there).map(|number| self.chunks[*number]).collect();
        self.there.extend(numbers);
        get_chunks(self.storage, &new, self.fetched, |chunk, content| self.draft.write(chunk.offset, &content))
    }
}

/// Fetches an image into a file that is removed with the draft.
pub(crate) fn fetch_whole(storage: &Storage, manifest: &Manifest, output: &Path) -> Result<Draft> {
    let mut fetched = Fetched::default();
    let mut whole = Whole::begin(storage, manifest, output, &mut fetched)?;
    whole.get_rest()?;
    Ok(whole.draft)
}

/// What of an image's inputs differs here.
fn differing(draft: &Draft, wanted: &Wanted<'_>, inputs: &Seen) -> Result<Vec<String>> {
    let mut image = ImageFile::open(draft.path())?;
    // Lists of its directory leave out the name that it gets, whether another image has it by now or none.
    image.path = wanted.output.to_owned();
    let lines = differences::lines_by_content(&image, &changes::start_at(wanted.terminal), inputs)?;
    Ok(lines.into_iter().map(|line| line.text).collect())
}

/// Makes it an image of this machine.
fn put_in_place(draft: Draft, wanted: &Wanted<'_>) -> Result<()> {
    let image = ImageFile::open(draft.path())?;
    if let Some(snapboot) = wanted.snapboot {
        draft.hand_over_to(&[snapboot.as_os_str(), fallback::SUBCOMMAND.as_ref(), wanted.output.as_os_str()])?;
    }
    let replaced = FirstHead::read(wanted.output).ok().map(|first| first.head.image_id());
    draft.publish(readers::mode(&image)?)?;
    // A machine that has never frozen anything has no folder for counts.
    starts::create_folder();
    starts::begin_counting(image.head().image_id(), replaced);
    Ok(())
}

/// The numbers of the chunks, of so many, that hold a part of an image.
fn chunks_in(part: Range<u64>, count: usize) -> BTreeSet<usize> {
    let (first, behind) = (part.start / SIZE as u64, part.end.div_ceil(SIZE as u64));
    (first..behind).filter_map(|number| usize::try_from(number).ok()).filter(|number| *number < count).collect()
}
