//! Completes the freezer's output: adds the command's own tables, writes the head, and renames the file into place.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read, Seek};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::time::Duration;

use failure::{Failure, Result};
use image::{
    fact_kind, settings_flag, Head, HostFact, Item, Mapping, Process, Section, Settings, Tables, HEAD_AREA, HEAD_OFFSET,
};
use image_file::digest_pages;
use image_file::info::Info;
use image_file::rotation;
use image_file::this_process::ThisProcess;
use image_writer::TablesWriter;
use inputs::facts::{Kernel, Value};
use judge::environment::Environment;
use judge::environment_inputs::EnvironmentInputs;
use judge::reads::Reads;
use runtime::terminal::Terminal;
use runtime::Language;
use rustix::fs::{fadvise, Advice};

use super::boot_inputs::{Booted, Inputs};
use super::control_dir::ControlDir;
use super::cpu::check_libraries;
use super::dump::{mapped_files, read_at, trailer};
use super::first_start::{first_start, StartKind};
use super::interrupt::Interrupt;
use super::kernel_files::KernelFiles;
use super::page_order::PageOrder;
use super::permissions::Readers;
use super::rehearse::{rehearse, UsedPages};
use super::trained_pages::{self, RunPages};
use super::training::{Profile, Trainer};
use crate::fault::Point;
use crate::outcome;
use crate::request::Cpu;
use crate::traces;

/// How much of an image is read back (bytes). The most used parts come first.
const READ_BACK: u64 = 1 << 30;

/// What the command adds to the freezer's dump.
pub struct Added<'a> {
    /// Program and argv for the fallback.
    pub command: &'a [OsString],
    /// See [`image::Command::store_words`].
    pub store_words: &'a [OsString],
    /// The name that the kernel gives the process in an ordinary start (comm).
    pub name: &'a OsStr,
    /// What the boot depended on.
    pub booted: &'a Booted<'a>,
    /// The language of the program.
    pub language: Language,
    /// The results of training runs.
    pub profile: &'a Profile,
    /// Makes training runs from the image. Its terminal is that of the starts.
    pub trainer: &'a Trainer<'a>,
    /// Whether to make training runs from the image.
    pub makes_runs: bool,
    /// What the boot saw of its environment.
    pub environment: &'a Environment,
    /// What the boot read of its environment, and of machine, user and process.
    pub reads: &'a Reads,
    /// How starts check files: one of [`image::policy`].
    pub policy: u32,
    /// Whether starts check the data pages.
    pub check_pages: bool,
    /// The CPUs on which the image thaws.
    pub cpu: Cpu,
    /// Maximum age of the image, if any.
    pub max_age: Option<Duration>,
    /// Maximum number of thaws, if any.
    pub max_thaws: Option<u64>,
    /// Arguments that force the fallback.
    pub guards: &'a [OsString],
    /// For `snapboot inspect`.
    pub info: &'a Info,
}

/// The tables and answers of a variant.
struct Tail<'a> {
    tables: TablesWriter,
    answers: &'a [u8],
    mappings: Vec<Mapping>,
    rehearsal: &'a UsedPages,
    runs: &'a [RunPages],
}

/// The properties of a finished image.
pub struct Assembled {
    /// Its size in bytes.
    pub size: u64,
    /// How long its first start took, from its execution to the end of an empty main part.
    pub thaws_in: Duration,
    /// Identifies it to files outside.
    pub image_id: u64,
}

/// An image under construction: the launcher, followed by its variants.
pub struct Assembly<'a> {
    dir: &'a ControlDir,
    /// The heads of the variants in the file `finished`.
    heads: Vec<Head>,
    /// Where each variant's stack began, above everything that its size depends on. Tells whether the kernel gives each
    /// boot a memory layout of its own.
    stacks: Vec<u64>,
    inputs: Vec<Inputs>,
    /// Who may read everything that the boots read.
    readers: Option<Readers>,
}

impl<'a> Assembly<'a> {
    /// An image without variants.
    pub fn new(dir: &'a ControlDir) -> Self {
        Assembly { dir, heads: Vec::new(), stacks: Vec::new(), inputs: Vec::new(), readers: None }
    }

    /// Completes the dump in the control directory, thaws it once to see which pages it touches, makes the training
    /// runs from it, and adds it as the next variant. If a training run from it came out differently, adds nothing and
    /// returns the difference.
    ///
    /// Fails if the disk is full, an input changed meanwhile, or the dump is incomplete.
    pub fn add(&mut self, parts: &Added<'_>) -> Result<Option<String>> {
        let path = self.dir.file("image");
        let cannot = |error: io::Error| Failure::io("write", &path, &error);
        let file = OpenOptions::new().read(true).write(true).open(&path).map_err(cannot)?;
        let trailer = trailer(&file, &path)?;
        let dumped = read_at(&file, trailer.tables_offset, trailer.tables_size).map_err(cannot)?;
        let dumped = Tables::parse_unchecked_sum(&dumped)?;
        let mapped = mapped_files(&dumped)?;
        // The directory's group, if the directory says so.
        let group = file.metadata().map_err(cannot)?.gid();
        let readers = self.readers.get_or_insert_with(|| Readers::new(group));
        readers.add_boot(parts.booted.accesses, parts.booted.ignored);
        mapped.iter().filter(|(path, _)| !parts.booted.ignored.is_own(path)).for_each(|(path, _)| readers.add(path));
        let inputs = Inputs::record(parts.booted, mapped)?;
        let mut kernel_files = KernelFiles::classify(parts.booted.accesses);
        let (mut tables, answers) = complete(&dumped, &inputs, &kernel_files, parts)?;
        let mut head = Head {
            pages_offset: trailer.pages_offset,
            pages_size: trailer.pages_size,
            tables_offset: (trailer.pages_offset + trailer.pages_size).next_multiple_of(image::PAGE),
            ..Head::default()
        };
        file.set_permissions(Permissions::from_mode(self.mode())).map_err(cannot)?;
        write_tables(&file, &mut head, &tables.clone().finish(), &answers, &path)?;
        write_heads(&file, &mut [head], parts.command, parts.store_words, &path)?;
        // Out of the page cache: the rehearsal brings back the pages that a start needs.
        file.sync_data().map_err(cannot)?;
        let _ = fadvise(&file, 0, None, Advice::DontNeed);
        // A file that is open for writing cannot be executed.
        drop(file);
        Point::BeforeRehearsal.reached();
        let mappings: Vec<Mapping> = dumped.rows(Section::Mappings)?.collect();
        let rehearsal = rehearse(&path, &mappings, parts.environment, parts.trainer.terminal);
        if !kernel_files.drop_measured().is_empty() {
            facts(parts.reads, parts.environment, &kernel_files, parts.trainer.terminal, &mut tables)?;
        }
        let runs = if parts.makes_runs {
            self.make_usable(&path, head, &tables, &answers, parts)?;
            let runs = parts.profile.run_from(&path, &mappings, parts.trainer);
            rotation::remove_counter(&path);
            match runs {
                Ok(runs) => runs,
                Err(disproved) => return Ok(Some(disproved)),
            }
        } else {
            Vec::new()
        };
        let added = Tail { tables, answers: &answers, mappings, rehearsal: &rehearsal, runs: &runs };
        self.append(&path, trailer.pages_offset, added)?;
        // Free its disk space; only one image should remain.
        fs::remove_file(&path).map_err(cannot)?;
        self.stacks.push(dumped.one::<Process>(Section::Process)?.env_end);
        self.inputs.push(inputs);
        Ok(None)
    }

    /// Completes what an ordinary start needs and a rehearsal does not.
    fn make_usable(
        &self,
        path: &Path,
        mut head: Head,
        tables: &TablesWriter,
        answers: &[u8],
        parts: &Added<'_>,
    ) -> Result<()> {
        let cannot = |error: io::Error| Failure::io("write", path, &error);
        let file = OpenOptions::new().read(true).write(true).open(path).map_err(cannot)?;
        if parts.check_pages {
            head.pages_digest = digest_pages(&file, head.pages_offset, head.pages_size).map_err(cannot)?;
        }
        write_tables(&file, &mut head, &tables.clone().finish(), answers, path)?;
        // A fallback must not make the store build another image.
        write_heads(&file, &mut [head], parts.command, &[], path)?;
        if parts.max_thaws.is_some() {
            let counter = rotation::counter(path);
            rotation::write_counter(&counter, head.image_id())
                .map_err(|error| Failure::io("write", &counter, &error))?;
        }
        Ok(())
    }

    /// Appends a variant to the final file: tables with the results of the rehearsal, and the pages in the order in
    /// which starts need them. `launcher_size` is the size of the launcher, which comes first in the rehearsed file
    /// (bytes).
    fn append(&mut self, rehearsed: &Path, launcher_size: u64, added: Tail<'_>) -> Result<()> {
        let Tail { mut tables, answers, mappings, rehearsal, runs } = added;
        let finished = self.dir.finished();
        let cannot = |error: io::Error| Failure::io("write", finished, &error);
        trained_pages::write(&rehearsal.written, runs, &mut tables);
        let with = |order: &PageOrder| {
            let mut tables = tables.clone();
            tables.replace_all(Section::Mappings, &order.mappings);
            tables.replace_all(Section::Touched, &order.touched);
            tables.finish()
        };
        // Other offsets do not change the size of the tables.
        let size = with(&PageOrder::new(mappings.clone(), &rehearsal.touched, 0)).len() as u64;
        let tables_offset = self.heads.last().map_or(launcher_size, end);
        let pages_offset = (tables_offset + size).next_multiple_of(image::PAGE);
        let order = PageOrder::new(mappings, &rehearsal.touched, pages_offset);
        let from = File::open(rehearsed).map_err(cannot)?;
        let file = self.finished().map_err(cannot)?;
        if self.heads.is_empty() {
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
        write_tables(&file, &mut head, &with(&order), answers, finished)?;
        self.heads.push(head);
        Ok(())
    }

    fn finished(&self) -> io::Result<File> {
        OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(self.dir.finished())
    }

    /// Executable for everybody whom the umask permits and who could read what the boots read; writable for the owner
    /// only, since a launcher trusts no other file.
    fn mode(&self) -> u32 {
        let mode = 0o755 & !ThisProcess::FOR_BOOT.umask();
        self.readers.as_ref().map_or(mode, |readers| readers.permitted_bits(mode)) | 0o500
    }

    /// Why the image at `output` is not executable for everybody whom the umask permits, if others could reach it and
    /// could start the program `executed`.
    pub fn restriction_message(&mut self, output: &Path, executed: &Path) -> Option<String> {
        let mode = self.mode();
        let readers = self.readers.as_mut()?;
        let closed = readers.restrictive_file()?.display().to_string();
        let is_news = mode & 0o077 != 0o755 & !ThisProcess::FOR_BOOT.umask() & 0o077
            && !readers.restricts(output.parent().unwrap_or(Path::new("/")))
            && !readers.restricts(executed);
        is_news.then(|| {
            format!("the image has mode {mode:04o}: the boot has read {closed}, and who may not read that may not read the image either")
        })
    }

    /// Makes variants for several kinds of starts alternate: a start takes the next variant of its kind, counting from
    /// any variant of the first kind, so each is used equally often. `kinds` are the variants' kinds, grouped. Does
    /// nothing if one of a kind would be missing.
    fn alternate(&mut self, kinds: &[StartKind]) {
        let all: Vec<&[StartKind]> = kinds.chunk_by(|one, next| one == next).collect();
        if all.iter().any(|of_kind| of_kind.len() != all[0].len()) {
            return;
        }
        let (count, each) = (all.len(), all[0].len());
        let heads = (0..each).flat_map(|start| self.heads.iter().skip(start).step_by(each));
        self.heads = heads.map(|head| Head { kinds: count as u32, ..*head }).collect();
    }

    /// Whether the kernel gave two variants the same memory layout.
    pub fn shares_layout(&self) -> bool {
        (1..self.stacks.len()).any(|index| self.stacks[..index].contains(&self.stacks[index]))
    }

    /// Starts the image once for each kind and renames it into place, with a counter if its thaws are limited. For
    /// `command` and `store_words` see [`Added`]; `kinds` are those of its variants, in order.
    ///
    /// Fails, and leaves `output` unchanged, if the disk is full, an input changed meanwhile, or the image does not
    /// thaw.
    #[allow(clippy::too_many_arguments)]
    pub fn finish(
        mut self,
        output: &Path,
        command: &[OsString],
        store_words: &[OsString],
        kinds: &[StartKind],
        max_thaws: Option<u64>,
        interrupt: &Interrupt,
        environment: &Environment,
    ) -> outcome::Result<Assembled> {
        let (finished, counter) = (self.dir.finished(), self.dir.file("thaws"));
        let cannot = |error: io::Error| Failure::io("write", finished, &error);
        let file = self.finished().map_err(cannot)?;
        self.alternate(kinds);
        write_heads(&file, &mut self.heads, command, store_words, finished)?;
        file.set_permissions(Permissions::from_mode(self.mode())).map_err(cannot)?;
        traces::refuse(finished, environment)?;
        Point::BeforeSync.reached();
        file.sync_all().map_err(cannot)?;
        read_back(&file);
        drop(file);
        for inputs in &self.inputs {
            inputs.still_unchanged()?;
        }
        let kinds = kinds.chunk_by(|one, next| one == next).map(|of_kind| &of_kind[0]);
        let took = kinds.map(|kind| first_start(finished, &self.dir.file("said"), kind));
        let took = took.collect::<Result<Vec<_>>>()?;
        if max_thaws.is_some() {
            rotation::write_counter(&counter, self.heads[0].image_id())
                .map_err(|error| Failure::io("write", &counter, &error))?;
        }
        Point::BeforeRename.reached();
        interrupt.check()?;
        if max_thaws.is_some() {
            // Before the image, so an image is never without its counter. For a moment the old image has the new
            // counter, and falls back.
            let place = rotation::counter(output);
            fs::rename(&counter, &place).map_err(|error| Failure::io("write", &place, &error))?;
        }
        fs::rename(finished, output).map_err(|error| Failure::io("write", output, &error))?;
        Point::BeforeDirectorySync.reached();
        let directory = output.parent().unwrap_or(Path::new("/"));
        // The image is in place. The only remaining failure is that its name may not survive a crash of the machine.
        let _ = File::open(directory).and_then(|directory| directory.sync_all());
        if max_thaws.is_none() {
            rotation::remove_counter(output);
        }
        Point::AfterRename.reached();
        let thaws_in = took.first().copied().unwrap_or_default();
        Ok(Assembled { size: self.heads[0].file_size, thaws_in, image_id: self.heads[0].image_id() })
    }
}

/// Brings the image into the page cache as after a restart of the machine: in the large folios that reading creates.
/// Mapping and copying from these takes a sixth less time than from the single pages that writing leaves. If this
/// fails, starts are only slower.
fn read_back(mut file: &File) {
    let _ = fadvise(file, 0, None, Advice::DontNeed);
    let _ = file.rewind().and_then(|()| io::copy(&mut file.take(READ_BACK), &mut io::sink()));
}

/// Combines the freezer's tables with the command's, and writes the answers of directories.
fn complete(
    dumped: &Tables<'_>,
    inputs: &Inputs,
    kernel_files: &KernelFiles,
    parts: &Added<'_>,
) -> Result<(TablesWriter, Vec<u8>)> {
    let mut tables = TablesWriter::extending(dumped);
    let mut process: Process = dumped.one(Section::Process)?;
    process.comm = comm(parts.name);
    tables.replace(Section::Process, &process);
    if let Cpu::Level(level) = parts.cpu {
        check_libraries(dumped, level)?;
        tables.replace_all(Section::Cpu, &level.features().collect::<Vec<_>>());
    }
    let answers = inputs.write(dumped, &mut tables)?;
    tables.push(Section::Settings, &settings(parts));
    let Added { environment, reads, language, .. } = *parts;
    EnvironmentInputs { environment, reads }.write(language, &mut tables);
    facts(parts.reads, parts.environment, kernel_files, parts.trainer.terminal, &mut tables)?;
    for guard in parts.guards {
        let text = tables.text(guard.as_bytes());
        tables.push(Section::Guards, &Item { text });
    }
    let info = serde_json::to_vec(parts.info)
        .map_err(|error| Failure::failed(format!("cannot describe the image: {error}.")))?;
    tables.set_bytes(Section::Info, &info);
    Ok((tables, answers))
}

fn settings(parts: &Added<'_>) -> Settings {
    Settings {
        policy: parts.policy,
        flags: if parts.check_pages { settings_flag::CHECK_PAGES } else { 0 },
        made: rotation::now(),
        max_age: parts.max_age.map_or(0, |age| u64::try_from(age.as_nanos()).unwrap_or(u64::MAX)),
        max_thaws: parts.max_thaws.unwrap_or(0),
    }
}

/// The facts about machine, user and process that the boot read, with their values.
fn facts(
    reads: &Reads,
    environment: &Environment,
    files: &KernelFiles,
    terminal: Option<&Terminal>,
    tables: &mut TablesWriter,
) -> Result<()> {
    let kernel = ThisProcess { boot: Some(terminal.map_or([None; 3], Terminal::windows)) };
    let mut rows = Vec::new();
    for &(kind, of) in reads.facts.iter().chain(files.facts.iter().filter(|fact| !reads.facts.contains(fact))) {
        let Some(value) = Value::ask(&kernel, kind, of) else {
            return Err(Failure::failed(format!(
                "the boot has read this, but it cannot be recorded: {}. Most likely it is too long, or this kernel does not tell it; \
                 read it after the freeze point (see snapboot.defer).",
                inputs::facts::name(kind, of)
            )));
        };
        rows.push(HostFact { kind, of, value: tables.text(value.bytes()) });
    }
    for (of, content) in files.rows() {
        rows.push(HostFact { kind: fact_kind::KERNEL_FILE, of, value: tables.text(content) });
    }
    for found in &reads.found {
        rows.push(HostFact { kind: fact_kind::FOUND, of: 0, value: tables.text(found) });
    }
    if let Some(searched) = &reads.searched {
        let record = searched.record(environment.value(searched.variable));
        rows.push(HostFact { kind: fact_kind::SEARCHED, of: 0, value: tables.text(&record) });
    }
    tables.replace_all(Section::Facts, &rows);
    Ok(())
}

/// A name as the kernel stores it: at most 15 bytes.
fn comm(name: &OsStr) -> [u8; 16] {
    let mut comm = [0; 16];
    let length = name.len().min(comm.len() - 1);
    comm[..length].copy_from_slice(&name.as_bytes()[..length]);
    comm
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
    command: &[OsString],
    store_words: &[OsString],
    path: &Path,
) -> Result<()> {
    let cannot = |error: io::Error| Failure::io("write", path, &error);
    let size = heads.iter().map(end).max().unwrap_or(0);
    heads.iter_mut().for_each(|head| head.file_size = size);
    let mut area = vec![0; HEAD_AREA];
    let store_words: Vec<&[u8]> = store_words.iter().map(|word| word.as_bytes()).collect();
    Head::write(heads, command.iter().map(|string| string.as_bytes()), &store_words, &mut area)
        .map_err(|error| Failure::refusal(format!("{error}.")))?;
    file.set_len(size).map_err(cannot)?;
    Point::BeforeHead.reached();
    file.write_all_at(&area[1..], HEAD_OFFSET as u64 + 1).map_err(cannot)?;
    Point::BeforeMagic.reached();
    file.write_all_at(&area[..1], HEAD_OFFSET as u64).map_err(cannot)
}
