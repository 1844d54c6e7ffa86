//! Writes the image: completes the freezer's dump to a file that can be rehearsed, appends it as a variant to the final
//! file, and puts that into place. Runs nothing and prints nothing.
//!
//! [`Rehearsable`] is a completed dump, [`Variant`] its place in the final file, [`Draft`] the whole file that is not in
//! place yet, [`Verified`] one whose first start was tried, and [`Published`] the image.

mod capabilities;
mod cpu_libraries;
mod dump;
mod libraries;
mod page_order;
mod permissions;
mod traces;
mod trained_pages;
mod variant_tables;

use std::ffi::OsString;
use std::fmt;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read, Seek};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use failure::{Failure, Result};
use image::{Head, Mapping, Process, Section, HEAD_AREA, HEAD_OFFSET};
use image_file::this_process::umask;
use image_file::{digest_pages, rotation};
use image_writer::TablesWriter;
use recorder::Accesses;
use rustix::fs::{fadvise, Advice};

use crate::boot::{RunPages, StartKind, UsedPages};
use crate::boot_inputs::kernel_files::KernelFiles;
use crate::boot_inputs::{Ignored, Inputs};
use crate::control_dir::ControlDir;
use crate::fault::Point;
use crate::interrupt::Interrupt;
use crate::outcome;
use crate::program::Program;
use crate::request::FreezeRequest;
use page_order::PageOrder;

pub use dump::Dump;
pub use permissions::Readers;
pub use variant_tables::Contents;

/// How much of an image is read back (bytes). The most used parts come first.
const READ_BACK: u64 = 1 << 30;

/// A completed dump, in a file of its own that starts can be tried from.
pub struct Rehearsable {
    path: PathBuf,
    head: Head,
    launcher_size: u64,
    pub mappings: Vec<Mapping>,
    /// Where the stack began, above everything that its size depends on. Tells whether the kernel gives each boot a
    /// memory layout of its own.
    stack: u64,
    tables: TablesWriter,
    answers: Vec<u8>,
    readers: Readers,
}

/// A variant in the final file.
pub struct Variant {
    head: Head,
    stack: u64,
    /// Who may read everything that the boots up to this one read.
    readers: Readers,
    inputs: Inputs,
}

/// An image that is complete, and not in place.
pub struct Draft<'a> {
    dir: &'a ControlDir,
    program: &'a Program,
    max_thaws: Option<u64>,
    /// Its head, which identifies it.
    head: Head,
}

/// An image whose first start was tried.
pub struct Verified<'a> {
    draft: Draft<'a>,
    thaws_in: Duration,
}

/// An image in its place.
pub struct Published {
    /// Its size in bytes.
    pub size: u64,
    /// How long its first start took, from its execution to the end of an empty main part.
    pub thaws_in: Duration,
    /// Identifies it to files outside.
    pub image_id: u64,
}

/// Who may read what the boots of these variants have read, and this one. `dump` is in the directory of the image,
/// whose group counts if the directory says so.
pub fn readers(dump: &Dump, accesses: &Accesses, ignored: &Ignored, variants: &[&Variant]) -> Result<Readers> {
    let mut readers = variants.last().map_or_else(|| Readers::new(dump.group), |last| last.readers.clone());
    readers.add_boot(accesses, ignored);
    let mapped = dump.mapped_files()?;
    mapped.iter().filter(|(path, _)| !ignored.is_own(path)).for_each(|(path, _)| readers.add(path));
    Ok(readers)
}

/// Whether a library of the dumped process has picked instructions for good when it was loaded, as a recipe says.
pub fn has_picked_once(dump: &Dump) -> Result<bool> {
    let names: Vec<&str> =
        recipes::cpu().filter(|cpu| cpu.once).flat_map(|cpu| &cpu.libraries).map(String::as_str).collect();
    let mapped = dump.mapped_files()?;
    let mut files = mapped.iter().filter_map(|(path, _)| path.file_name());
    Ok(files.any(|file| names.iter().any(|name| file.as_bytes().starts_with(name.as_bytes()))))
}

impl Rehearsable {
    /// Completes the dump.
    ///
    /// Fails if the disk is full, or the dump is incomplete.
    pub fn complete(
        dump: &Dump,
        contents: &Contents<'_>,
        kernel_files: &KernelFiles,
        readers: Readers,
    ) -> outcome::Result<Rehearsable> {
        let path = dump.path.clone();
        let cannot = |error: io::Error| Failure::io("write", &path, &error);
        let dumped = dump.tables()?;
        let (tables, answers) = variant_tables::complete(dump, &dumped, kernel_files, contents)?;
        let trailer = &dump.trailer;
        let mut head = Head {
            pages_offset: trailer.pages_offset,
            pages_size: trailer.pages_size,
            tables_offset: (trailer.pages_offset + trailer.pages_size).next_multiple_of(image::PAGE),
            ..Head::default()
        };
        let file = open(&path).map_err(cannot)?;
        file.set_permissions(Permissions::from_mode(mode(&readers))).map_err(cannot)?;
        write_tables(&file, &mut head, &tables.clone().finish(), &answers, &path)?;
        write_heads(&file, &mut [head], contents.program, store_words(contents.request), &path)?;
        // Out of the page cache: the rehearsal brings back the pages that a start needs.
        file.sync_data().map_err(cannot)?;
        let _ = fadvise(&file, 0, None, Advice::DontNeed);
        Point::BeforeRehearsal.reached();
        let mappings = dumped.rows(Section::Mappings)?.collect();
        let stack = dumped.one::<Process>(Section::Process)?.env_end;
        Ok(Rehearsable { head, launcher_size: trailer.pages_offset, mappings, stack, tables, answers, readers, path })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The same with these facts about files of the kernel, in its tables.
    pub fn with_kernel_files(mut self, contents: &Contents<'_>, files: &KernelFiles) -> Result<Rehearsable> {
        variant_tables::facts(contents, files, &mut self.tables)?;
        Ok(self)
    }

    /// Completes what an ordinary start needs and a rehearsal does not.
    pub fn make_usable(&self, contents: &Contents<'_>) -> Result<()> {
        let cannot = |error: io::Error| Failure::io("write", &self.path, &error);
        let (file, mut head) = (open(&self.path).map_err(cannot)?, self.head);
        if contents.request.check_pages {
            head.pages_digest = digest_pages(&file, head.pages_offset, head.pages_size).map_err(cannot)?;
        }
        write_tables(&file, &mut head, &self.tables.clone().finish(), &self.answers, &self.path)?;
        // A fallback must not make the store build another image.
        write_heads(&file, &mut [head], contents.program, &[], &self.path)?;
        if contents.request.max_thaws.is_some() {
            write_counter(&rotation::counter_path(&self.path), &head)?;
        }
        Ok(())
    }

    /// Appends it to the final file in the control directory after `last`: tables with the results of the rehearsal, and
    /// the pages in the order in which starts need them. Removes its own file.
    pub fn append(
        self,
        dir: &ControlDir,
        last: Option<&Variant>,
        rehearsal: &UsedPages,
        runs: &[RunPages],
        inputs: Inputs,
    ) -> Result<Variant> {
        let Rehearsable { path, launcher_size, mappings, mut tables, answers, .. } = self;
        let finished = dir.finished();
        let cannot = |error: io::Error| Failure::io("write", finished, &error);
        trained_pages::write(&rehearsal.written, runs, &mut tables);
        let of_files = page_order::ranges_of_files(&rehearsal.of_files);
        let with = |order: &PageOrder| {
            let mut tables = tables.clone();
            tables.replace_all(Section::Mappings, &order.mappings);
            tables.replace_all(Section::Touched, &order.touched);
            tables.replace_all(Section::TouchedFiles, &of_files);
            tables.finish()
        };
        // Other offsets do not change the size of the tables.
        let size = with(&PageOrder::new(mappings.clone(), &rehearsal.touched, 0)).len() as u64;
        let tables_offset = last.map_or(launcher_size, |last| end(&last.head));
        let pages_offset = (tables_offset + size).next_multiple_of(image::PAGE);
        let order = PageOrder::new(mappings, &rehearsal.touched, pages_offset);
        let from = File::open(&path).map_err(cannot)?;
        let file = create(finished).map_err(cannot)?;
        if last.is_none() {
            io::copy(&mut (&from).take(launcher_size), &mut &file).map_err(cannot)?;
            file.write_all_at(&[0], HEAD_OFFSET as u64).map_err(cannot)?;
        }
        Point::BeforePages.reached();
        order.copy(&from, &file).map_err(cannot)?;
        let mut head = Head {
            pages_offset,
            pages_size: order.size(),
            pages_digest: digest_pages(&file, pages_offset, order.size()).map_err(cannot)?,
            tables_offset,
            ..Head::default()
        };
        write_tables(&file, &mut head, &with(&order), &answers, finished)?;
        // Free its disk space; only one image should remain.
        fs::remove_file(&path).map_err(cannot)?;
        Ok(Variant { head, stack: self.stack, readers: self.readers, inputs })
    }
}

/// Whether the kernel gave two variants the same memory layout.
pub fn share_layout(variants: &[&Variant]) -> bool {
    (1..variants.len()).any(|index| variants[..index].iter().any(|before| before.stack == variants[index].stack))
}

/// Why the image is not executable for everybody whom the umask permits, if others could reach it and could start the
/// program. `last` is its last variant.
pub fn restriction(last: &Variant, program: &Program) -> Option<Restriction> {
    let mode = mode(&last.readers);
    let mut readers = last.readers.clone();
    let closed = readers.restrictive_file()?.to_owned();
    let is_news = mode & 0o077 != 0o755 & !umask() & 0o077
        && !readers.restricts(program.output.parent().unwrap_or(Path::new("/")))
        && !readers.restricts(&program.executed);
    is_news.then_some(Restriction { mode, closed })
}

/// Why an image is not executable for everybody.
pub struct Restriction {
    mode: u32,
    /// A file that the boot has read, and not everybody may.
    closed: PathBuf,
}

impl fmt::Display for Restriction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the image has mode {:04o}: the boot has read {}, and who may not read that may not read the image either",
            self.mode,
            self.closed.display()
        )
    }
}

impl<'a> Draft<'a> {
    /// Completes the final file in the control directory. `kinds` are those of the variants, in order; there is at least
    /// one.
    ///
    /// Fails if the disk is full, or an input changed meanwhile.
    pub fn complete(
        dir: &'a ControlDir,
        request: &FreezeRequest,
        program: &'a Program,
        variants: &[&Variant],
        kinds: &[StartKind],
    ) -> Result<Draft<'a>> {
        let finished = dir.finished();
        let cannot = |error: io::Error| Failure::io("write", finished, &error);
        let file = create(finished).map_err(cannot)?;
        let mut heads = alternating(variants.iter().map(|variant| variant.head).collect(), kinds);
        write_heads(&file, &mut heads, program, store_words(request), finished)?;
        let mode = variants.last().map_or(0o500, |last| mode(&last.readers));
        file.set_permissions(Permissions::from_mode(mode)).map_err(cannot)?;
        traces::refuse(finished, &program.environment)?;
        Point::BeforeSync.reached();
        file.sync_all().map_err(cannot)?;
        read_back(&file);
        drop(file);
        variants.iter().try_for_each(|variant| variant.inputs.still_unchanged())?;
        Ok(Draft { dir, program, max_thaws: request.max_thaws, head: heads[0] })
    }

    /// The file.
    pub fn path(&self) -> &'a Path {
        self.dir.finished()
    }

    /// The draft after its first starts, of which the first took `thaws_in`.
    pub fn verified(self, thaws_in: Duration) -> Verified<'a> {
        Verified { draft: self, thaws_in }
    }
}

impl Verified<'_> {
    /// Renames the image into place, with a counter if its thaws are limited. Fails before it changes anything there.
    pub fn publish(self, interrupt: &Interrupt) -> outcome::Result<Published> {
        let Verified { draft: Draft { dir, program, max_thaws, head }, thaws_in } = self;
        let (output, counter) = (program.output.as_path(), dir.file("thaws"));
        if max_thaws.is_some() {
            write_counter(&counter, &head)?;
        }
        Point::BeforeRename.reached();
        interrupt.check()?;
        if max_thaws.is_some() {
            // Before the image, so an image is never without its counter. For a moment the old image has the new
            // counter, and falls back.
            let place = rotation::counter_path(output);
            fs::rename(&counter, &place).map_err(|error| Failure::io("write", &place, &error))?;
        }
        fs::rename(dir.finished(), output).map_err(|error| Failure::io("write", output, &error))?;
        Point::BeforeDirectorySync.reached();
        let directory = output.parent().unwrap_or(Path::new("/"));
        // The image is in place. The only remaining failure is that its name may not survive a crash of the machine.
        let _ = File::open(directory).and_then(|directory| directory.sync_all());
        if max_thaws.is_none() {
            rotation::remove_counter(output);
        }
        Point::AfterRename.reached();
        Ok(Published { size: head.file_size, thaws_in, image_id: head.image_id() })
    }
}

/// Executable for everybody whom the umask permits and who could read what the boots read; writable for the owner only,
/// since a launcher trusts no other file.
fn mode(readers: &Readers) -> u32 {
    readers.permitted_bits(0o755 & !umask()) | 0o500
}

/// Makes variants for several kinds of starts alternate: a start takes the next variant of its kind, counting from any
/// variant of the first kind, so each is used equally often. Those for a higher level of CPU come first, since a start
/// takes the first that its CPU can use. `kinds` are the variants' kinds, grouped. Does nothing if one of a kind would be
/// missing.
fn alternating(heads: Vec<Head>, kinds: &[StartKind]) -> Vec<Head> {
    let all: Vec<&[StartKind]> = kinds.chunk_by(|one, next| one == next).collect();
    if all.iter().any(|of_kind| of_kind.len() != all[0].len()) {
        return heads;
    }
    let (count, each) = (all.len(), all[0].len());
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by_key(|&kind| all[kind][0].level.is_none());
    let heads = (0..each).flat_map(|start| order.iter().map(|kind| &heads[kind * each + start]).collect::<Vec<_>>());
    heads.map(|head| Head { kinds: count as u32, ..*head }).collect()
}

fn store_words(request: &FreezeRequest) -> &[OsString] {
    request.store.as_ref().map_or(&[], |store| &store.on_fallback)
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).open(path)
}

fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)
}

fn write_counter(path: &Path, head: &Head) -> Result<()> {
    rotation::write_counter(path, head.image_id()).map_err(|error| Failure::io("write", path, &error))
}

/// Brings the image into the page cache as after a restart of the machine: in the large folios that reading creates.
/// Mapping and copying from these takes a sixth less time than from the single pages that writing leaves. If this
/// fails, starts are only slower.
fn read_back(mut file: &File) {
    let _ = fadvise(file, 0, None, Advice::DontNeed);
    let _ = file.rewind().and_then(|()| io::copy(&mut file.take(READ_BACK), &mut io::sink()));
}

/// Writes tables and answers after the data pages, in place of the freezer's, and completes their head.
fn write_tables(file: &File, head: &mut Head, tables: &[u8], answers: &[u8], path: &Path) -> Result<()> {
    let cannot = |error: io::Error| Failure::io("write", path, &error);
    head.tables_size = tables.len() as u64;
    head.tables_sum = image::checksum(tables);
    head.answers_offset = end(head);
    head.answers_size = answers.len() as u64;
    file.write_all_at(tables, head.tables_offset).map_err(cannot)?;
    file.write_all_at(answers, head.answers_offset).map_err(cannot)
}

/// Where a variant ends (bytes): a multiple of the page size.
fn end(head: &Head) -> u64 {
    let ends = [
        head.tables_offset + head.tables_size,
        head.pages_offset + head.pages_size,
        head.answers_offset + head.answers_size,
    ];
    ends.into_iter().max().unwrap_or(0).next_multiple_of(image::PAGE)
}

/// Truncates the file after the last variant, and writes the heads of all.
///
/// The first byte of the magic comes last: without it the file is not an image.
fn write_heads(
    file: &File,
    heads: &mut [Head],
    program: &Program,
    store_words: &[OsString],
    path: &Path,
) -> Result<()> {
    let cannot = |error: io::Error| Failure::io("write", path, &error);
    let size = heads.iter().map(end).max().unwrap_or(0);
    heads.iter_mut().for_each(|head| head.file_size = size);
    let mut area = vec![0; HEAD_AREA];
    let command = program.fallback_command();
    let store_words: Vec<&[u8]> = store_words.iter().map(|word| word.as_bytes()).collect();
    Head::write(heads, command.iter().map(|string| string.as_bytes()), &store_words, &mut area)
        .map_err(|error| Failure::refusal(format!("{error}.")))?;
    file.set_len(size).map_err(cannot)?;
    Point::BeforeHead.reached();
    file.write_all_at(&area[1..], HEAD_OFFSET as u64 + 1).map_err(cannot)?;
    Point::BeforeMagic.reached();
    file.write_all_at(&area[..1], HEAD_OFFSET as u64).map_err(cannot)
}
