//! An installation of the command whose freezer and front end are stand-ins, so that everything the command itself does can be tested: what
//! it starts, how it reads the answers, what it leaves behind.
//!
//! The first preload tells the stand-in for the Python front end what to do; `stand_in.py` lists the words.
#![allow(dead_code)] // Each test file uses its own part.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use image::arch::Registers;
use image::{mapping_kind, CpuLeaf, Mapping, Process, Section, NO_FILE, PAGE};
use image_writer::TablesWriter;
use serde_json::Value;

/// The installation and a directory to work in; removed at the end of the test.
pub struct Scene {
    top: tempfile::TempDir,
}

impl Scene {
    /// Installs the command and the stand-ins.
    pub fn new() -> Self {
        // On the file system of the command, which is linked and not copied: while a file is open for writing, a process that another test
        // forks at that moment prevents its execution.
        let scene = Scene { top: tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap() };
        let library = scene.path("libexec/snapboot");
        fs::create_dir_all(scene.path("bin")).unwrap();
        fs::create_dir_all(library.join("python/snapboot/front_end")).unwrap();
        fs::create_dir_all(scene.work()).unwrap();
        fs::hard_link(env!("CARGO_BIN_EXE_snapboot"), scene.path("bin/snapboot")).unwrap();
        fs::write(library.join("snapboot-launcher"), launcher()).unwrap();
        // Any library that does nothing when it is preloaded.
        fs::copy(loaded_library("/libc"), library.join("libsnapboot_freezer.so")).unwrap();
        fs::write(library.join("python/snapboot/front_end/freeze.py"), include_str!("stand_in.py")).unwrap();
        fs::write(library.join("python/snapboot/front_end/site_reads.py"), "").unwrap();
        let mut tables = TablesWriter::new();
        minimal(&mut tables);
        fs::write(library.join("python/snapboot/front_end/tables"), tables.finish()).unwrap();
        scene
    }

    /// A path in the installation.
    pub fn path(&self, name: &str) -> PathBuf {
        self.top.path().join(name)
    }

    /// The directory that commands run in.
    pub fn work(&self) -> PathBuf {
        self.path("work")
    }

    /// Writes a file into the working directory.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>, mode: u32) -> PathBuf {
        let path = self.work().join(name);
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        path
    }

    /// A call of the command in the working directory, with a small environment.
    pub fn snapboot(&self, words: &[&str]) -> Command {
        let mut command = Command::new(self.path("bin/snapboot"));
        command.args(words).current_dir(self.work()).env_clear();
        command.env("PATH", "/usr/local/bin:/usr/bin:/bin").env("HOME", "/nowhere").env("LANG", "C.UTF-8");
        command
    }

    /// `freeze -o out.img --preload WORD -- python3`.
    pub fn freeze(&self, word: &str) -> Command {
        self.snapboot(&["freeze", "-o", "out.img", "--preload", word, "--", "python3"])
    }

    /// The contents of the working directory, hidden files included.
    pub fn listing(&self) -> Vec<String> {
        let entries = fs::read_dir(self.work()).unwrap();
        let mut names: Vec<String> = entries.map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

/// Standard error of a command as text.
pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Standard output of a command as text.
pub fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The facts that the stand-in prints.
pub fn facts(output: &Output) -> Value {
    let said = stderr(output);
    let line = said.lines().find(|line| line.starts_with('{')).unwrap_or_else(|| panic!("{said}"));
    serde_json::from_str(line).unwrap()
}

/// A library that this process has loaded.
fn loaded_library(part: &str) -> PathBuf {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let path = maps.lines().filter_map(|line| line.split_whitespace().nth(5)).find(|path| path.contains(part));
    Path::new(path.unwrap()).to_owned()
}

/// A program that stops itself as a rehearsal does, and has room for an image's head.
fn launcher() -> Vec<u8> {
    const START: u64 = 0x40_0000;
    const CODE: &[u8] = b"\xb8\x27\0\0\0\x0f\x05\
        \x89\xc7\xbe\x13\0\0\0\xb8\x3e\0\0\0\x0f\x05\
        \x31\xff\xb8\xe7\0\0\0\x0f\x05"; // kill(getpid(), SIGSTOP); exit_group(0)
    let numbers = |numbers: &[u64]| numbers.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<u8>>();
    let mut file = b"\x7fELF\x02\x01\x01".to_vec();
    file.resize(16, 0);
    file.extend(b"\x02\0\x3e\0\x01\0\0\0"); // an executable for x86-64
    file.extend(numbers(&[START + 120, 64, 0]));
    file.extend(b"\0\0\0\0\x40\0\x38\0\x01\0\0\0\0\0\0\0");
    file.extend(b"\x01\0\0\0\x05\0\0\0"); // one segment, to be read and executed
    file.extend(numbers(&[0, START, START, 0x1000, 0x1000, 0x1000]));
    file.extend(CODE);
    file.resize(32 * 1024, 0);
    file
}

/// The bytes of an ELF file for a processor, with a loader or (empty) without.
pub fn elf(machine: u16, loader: &str) -> Vec<u8> {
    let mut file = vec![0; 64 + 56];
    file[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
    file[20] = 1; // the version, once more
    file[18..20].copy_from_slice(&machine.to_le_bytes());
    file[32..40].copy_from_slice(&64u64.to_le_bytes());
    file[54..56].copy_from_slice(&56u16.to_le_bytes());
    file[56..58].copy_from_slice(&1u16.to_le_bytes());
    file[64..68].copy_from_slice(&(if loader.is_empty() { 1u32 } else { 3 }).to_le_bytes());
    file[72..80].copy_from_slice(&120u64.to_le_bytes());
    file[96..104].copy_from_slice(&(loader.len() as u64 + 1).to_le_bytes());
    file.extend_from_slice(loader.as_bytes());
    file.push(0);
    file
}

/// The minimum of an image: a process with registers, and their memory.
pub fn minimal(tables: &mut TablesWriter) {
    let (start, kind, file) = (0x30000, mapping_kind::ANONYMOUS, NO_FILE);
    let mapping = Mapping { start, end: start + 5 * PAGE, protection: 7, kind, file, ..Mapping::default() };
    tables.push(Section::Process, &Process { tid_address: start, ..Process::default() });
    tables.push(Section::Registers, &Registers { rsp: start, rip: start, ..Registers::default() });
    tables.push(Section::Mappings, &mapping);
    tables.push(Section::Cpu, &CpuLeaf::default());
}
