//! The tables of a variant: those of the freezer, and what the command adds.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use failure::{Failure, Result};
use image::{settings_flag, HostFact, Item, Process, Section, Settings, Tables};
use image_file::info::Info;
use image_file::rotation;
use image_file::this_process::ThisProcess;
use image_writer::TablesWriter;
use inputs::facts::fact_kind;
use inputs::facts::Value;
use judge::environment::Environment;
use judge::environment_inputs::EnvironmentInputs;
use judge::reads::Reads;
use runtime::terminal::Terminal;

use super::capabilities;
use super::cpu_libraries::check_libraries;
use super::dump::Dump;
use super::libraries::Library;
use crate::boot_inputs::kernel_files::KernelFiles;
use crate::boot_inputs::Inputs;
use crate::outcome::{self, Stop};
use crate::program::Program;
use crate::request::{Cpu, FreezeRequest};

/// What the command adds to the freezer's dump.
pub struct Contents<'a> {
    pub request: &'a FreezeRequest,
    pub program: &'a Program,
    /// What the boot saw of its environment.
    pub environment: &'a Environment,
    /// What counts of that, and of machine, user and process.
    pub reads: &'a Reads,
    /// The files and directories that count.
    pub inputs: &'a Inputs,
    /// The CPUs of the starts.
    pub cpu: Cpu,
    /// The terminal of the starts.
    pub terminal: Option<Terminal>,
    /// Maximum age of the image, if any.
    pub max_age: Option<Duration>,
    /// Arguments that force the fallback.
    pub guards: &'a [OsString],
    /// For `snapboot inspect`.
    pub info: &'a Info,
}

/// Combines the freezer's tables with the command's, and writes the answers of directories.
pub fn complete(
    dump: &Dump,
    dumped: &Tables<'_>,
    kernel_files: &KernelFiles,
    parts: &Contents<'_>,
) -> outcome::Result<(TablesWriter, Vec<u8>)> {
    let mut tables = TablesWriter::extending(dumped);
    let mut process: Process = dumped.one(Section::Process)?;
    process.comm = comm(parts.program.executed.file_name().unwrap_or_default());
    tables.replace(Section::Process, &process);
    if let Cpu::Level(level) = parts.cpu {
        let libraries = Library::all(dumped)?;
        let renewed = capabilities::find(dump, &libraries, level)?;
        let is_default = parts.request.cpu.is_none() && parts.cpu == parts.program.cpu;
        check_libraries(&libraries, &renewed, level).map_err(|unfit| match is_default {
            true => Stop::BeyondLevel(unfit.reason),
            false => unfit.failure.into(),
        })?;
        tables.replace_all(Section::Cpu, &level.features().collect::<Vec<_>>());
        renewed.iter().for_each(|words| tables.push(Section::Capabilities, &words.row));
    }
    let answers = parts.inputs.write(dumped, &mut tables)?;
    tables.push(Section::Settings, &settings(parts));
    let Contents { environment, reads, .. } = *parts;
    EnvironmentInputs { environment, reads }.write(parts.program.runtime.language, &mut tables);
    facts(parts, kernel_files, &mut tables)?;
    for guard in parts.guards {
        let text = tables.text(guard.as_bytes());
        tables.push(Section::Guards, &Item { text });
    }
    let info = serde_json::to_vec(parts.info)
        .map_err(|error| Failure::failed(format!("cannot describe the image: {error}.")))?;
    tables.set_bytes(Section::Info, &info);
    Ok((tables, answers))
}

fn settings(parts: &Contents<'_>) -> Settings {
    Settings {
        policy: parts.request.policy,
        flags: if parts.request.check_pages { settings_flag::CHECK_PAGES } else { 0 },
        made: rotation::now(),
        max_age: parts.max_age.map_or(0, |age| u64::try_from(age.as_nanos()).unwrap_or(u64::MAX)),
        max_thaws: parts.request.max_thaws.unwrap_or(0),
    }
}

/// The facts about machine, user and process that the boot read, with their values.
pub fn facts(parts: &Contents<'_>, files: &KernelFiles, tables: &mut TablesWriter) -> Result<()> {
    let Contents { environment, reads, terminal, .. } = *parts;
    let kernel = ThisProcess { boot: Some(terminal.as_ref().map_or([None; 3], Terminal::windows)) };
    let mut rows = Vec::new();
    for &(kind, of) in reads.facts.iter().chain(files.facts.iter().filter(|fact| !reads.facts.contains(fact))) {
        let Some(value) = Value::read(&kernel, kind, of) else {
            return Err(Failure::failed(format!(
                "the boot has read this, but it cannot be recorded: {}. Most likely it is too long, or this kernel does not show it; \
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
