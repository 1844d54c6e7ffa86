//! An image on its way to its place: a file without a name, which gets its name when all of it is there. So nothing is left of it, however
//! this process ends. Where the file system has no such files, as NFS, it lies in a control directory, as an image that is being frozen.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use failure::{Failure, Result};
use freeze::ControlDir;
use image::{Head, COMMAND_OFFSET, HEAD_AREA, HEAD_OFFSET, PAGE};
use image_file::ImageFile;
use rustix::fs::{linkat, AtFlags, Mode, OFlags, CWD};

/// A file that is removed unless it gets its name.
pub struct Draft {
    path: PathBuf,
    output: PathBuf,
    /// The directory that has it, if it has a name.
    directory: Option<ControlDir>,
    file: File,
}

impl Draft {
    /// Makes an empty one, of so many bytes.
    pub fn make(output: &Path, size: u64) -> Result<Draft> {
        let cannot = |error: io::Error| Failure::io("write", output, &error);
        let (file, path, directory) = match without_name(output) {
            Some((file, path)) => (file, path, None),
            None => {
                let directory = ControlDir::create(output)?;
                let path = directory.finished().to_owned();
                let mut options = OpenOptions::new();
                let file = options.read(true).write(true).create_new(true).mode(0o600).open(&path).map_err(cannot)?;
                (file, path, Some(directory))
            }
        };
        file.set_len(size).map_err(cannot)?;
        Ok(Draft { path, output: output.to_owned(), directory, file })
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Writes a part. Pages of zeros stay holes.
    pub fn write(&self, offset: u64, content: &[u8]) -> Result<()> {
        let pages = content.chunks(PAGE as usize).zip((offset..).step_by(PAGE as usize));
        for run in pages.collect::<Vec<_>>().chunk_by(|(one, _), (next, _)| is_zeros(one) == is_zeros(next)) {
            let ((first, at), length) = (run[0], run.iter().map(|(page, _)| page.len()).sum::<usize>());
            let start = usize::try_from(at - offset).unwrap_or(0);
            if !is_zeros(first) {
                self.file.write_all_at(&content[start..start + length], at).map_err(|error| self.failure(&error))?;
            }
        }
        Ok(())
    }

    /// The area of the heads.
    pub fn head_area(&self) -> Result<Vec<u8>> {
        let mut area = vec![0; HEAD_AREA];
        self.file.read_exact_at(&mut area, HEAD_OFFSET as u64).map_err(|error| self.failure(&error))?;
        Ok(area)
    }

    /// Has the image hand over to this store what it cannot serve. `store_words`: see [`image::Command::store_words`].
    pub fn hand_over_to(&self, store_words: &[&OsStr]) -> Result<()> {
        let image = ImageFile::open(&self.path)?;
        let heads: Vec<Head> = image.variants.into_iter().map(|variant| variant.head).collect();
        let area = relocated(&self.head_area()?, &heads, store_words)?;
        self.file.write_all_at(&area, HEAD_OFFSET as u64).map_err(|error| self.failure(&error))
    }

    /// Gives it its name and its permissions, once it is on the disk.
    pub fn publish(self, mode: u32) -> Result<()> {
        let (cannot, mut made) = (|error: io::Error| self.failure(&error), None);
        self.file.set_permissions(Permissions::from_mode(mode)).map_err(cannot)?;
        self.file.sync_all().map_err(cannot)?;
        let directory = match &self.directory {
            Some(directory) => directory,
            None => {
                // No call gives a file without a name that of another one.
                let directory = ControlDir::create(&self.output)?;
                let linked = linkat(CWD, &self.path, CWD, directory.finished(), AtFlags::SYMLINK_FOLLOW);
                linked.map_err(|error| cannot(error.into()))?;
                &*made.insert(directory)
            }
        };
        fs::rename(directory.finished(), &self.output).map_err(cannot)?;
        let directory = self.output.parent().unwrap_or(Path::new("/"));
        // The image is there. Only a crash of the machine could take its name away.
        let _ = File::open(directory).and_then(|directory| directory.sync_all());
        Ok(())
    }

    fn failure(&self, error: &io::Error) -> Failure {
        Failure::io("write", &self.output, error)
    }
}

/// A file without a name in the folder of an output, and the path by which this process opens it once more. None if there can be none.
fn without_name(output: &Path) -> Option<(File, PathBuf)> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(output.parent()?, flags, Mode::from_raw_mode(0o600)).ok()?);
    let path = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
    path.exists().then_some((file, path))
}

/// The area of the heads with other words of the store.
fn relocated(area: &[u8], heads: &[Head], store_words: &[&OsStr]) -> Result<Vec<u8>> {
    let command = image::Command::parse(area, &heads[0])?;
    let strings = &area[COMMAND_OFFSET..][..heads[0].command_size as usize];
    // The words of the store and their number come last.
    let own = heads[0].command_count as usize - command.store_count() - 1;
    let own = strings.split(|byte| *byte == 0).take(own);
    let store_words: Vec<&[u8]> = store_words.iter().map(|word| word.as_bytes()).collect();
    let mut area = vec![0; HEAD_AREA];
    Head::write(heads, own, &store_words, &mut area).map_err(|error| Failure::refusal(format!("{error}.")))?;
    Ok(area)
}

fn is_zeros(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| *byte == 0)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn pages_of_zeros_take_no_space() {
        let top = tempfile::tempdir().unwrap();
        let (page, output) = (PAGE as usize, top.path().join("1.img"));
        let content = [vec![1; page], vec![0; 64 * page], vec![2; page + 5]].concat();
        let draft = Draft::make(&output, content.len() as u64).unwrap();
        draft.write(0, &content).unwrap();
        assert!(!output.exists());
        draft.publish(0o750).unwrap();
        let status = output.metadata().unwrap();
        assert_eq!((fs::read(&output).unwrap() == content, status.mode() & 0o7777), (true, 0o750));
        assert!(status.blocks() * 512 < 32 * PAGE, "{}", status.blocks());
    }

    #[test]
    fn a_draft_that_got_no_name_leaves_nothing() {
        let top = tempfile::tempdir().unwrap();
        drop(Draft::make(&top.path().join("1.img"), 9).unwrap());
        assert_eq!(fs::read_dir(top.path()).unwrap().count(), 0);
    }

    #[test]
    fn only_the_words_of_the_store_are_exchanged() {
        let head = |kinds| Head { pages_size: 7, file_size: 9, kinds, ..Head::default() };
        let mut area = vec![0; HEAD_AREA];
        let command: [&[u8]; 5] = [b"/usr/bin/python3", b"", b"python3", b"", b"tool.py"];
        Head::write(&[head(2), head(2)], command.into_iter(), &[b"/a/snapboot", b"fallback", b"/a/1.img"], &mut area)
            .unwrap();
        let heads: Vec<Head> =
            [0, image::VARIANTS_OFFSET].iter().map(|at| <Head as image::Record>::decode(&area[*at..])).collect();
        let other = relocated(&area, &heads, &["/b/bin/snapboot", "fallback", "/b/2.img"].map(OsStr::new)).unwrap();
        let heads: Vec<Head> =
            [0, image::VARIANTS_OFFSET].iter().map(|at| <Head as image::Record>::decode(&other[*at..])).collect();
        let command = image::Command::parse(&other, &heads[1]).unwrap();
        let texts = |words: Vec<&[u8]>| words.concat();
        assert_eq!(texts(command.store_words().collect()), b"/b/bin/snapboot\0fallback\0/b/2.img\0");
        assert_eq!(
            (command.program(), texts(command.argv().collect())),
            (&b"/usr/bin/python3\0"[..], b"python3\0\0tool.py\0".to_vec())
        );
        assert_eq!((heads[1].pages_size, heads[1].kinds, heads.len()), (7, 2, 2));
    }
}
