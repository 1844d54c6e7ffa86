//! The interpreters on PATH, and which of them can be frozen.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use failure::Result;
use freeze::BootEnvironment;
use runtime::{looks_like_interpreter, probe, range, resolve, search_path, Runtime, PYTHONS, RUBIES};

use super::{Line, State};

/// One line for each interpreter; the last line is No if none of them can be frozen.
pub fn lines() -> Vec<Line> {
    let environment = BootEnvironment::pick(std::env::vars_os(), &[], &[]);
    let mut found: BTreeMap<PathBuf, Result<Runtime>> = BTreeMap::new();
    for candidate in candidates() {
        let search_path = search_path();
        // A shim of an inactive version leads nowhere, and so is no interpreter.
        let Ok(resolved) = resolve(&[OsString::from(&candidate)], &search_path) else { continue };
        let real = resolved.program.canonicalize().unwrap_or_else(|_| resolved.program.clone());
        found.entry(real).or_insert_with(|| probe(&resolved.program, environment.seen()));
    }
    let mut lines: Vec<Line> = found.iter().map(|(path, runtime)| line(path, runtime)).collect();
    if !lines.iter().any(|line| line.state == State::Yes) {
        let reason = format!("none on PATH that can be frozen: CPython {}, CRuby {}", range(&PYTHONS), range(&RUBIES));
        lines.push(Line::new("interpreters", State::No, reason));
    }
    lines
}

fn line(path: &Path, runtime: &Result<Runtime>) -> Line {
    match runtime {
        Ok(runtime) => Line::new("interpreter", State::Yes, format!("{} ({})", runtime.label, path.display())),
        Err(refusal) => Line::new("interpreter", State::Note, refusal.message.clone()),
    }
}

/// Files on PATH with names of interpreters, each name once in each directory.
fn candidates() -> BTreeSet<PathBuf> {
    let directories: Vec<PathBuf> = std::env::split_paths(&search_path()).collect();
    let entries = directories.iter().filter_map(|directory| directory.read_dir().ok()).flatten().flatten();
    entries.filter(|entry| looks_like_interpreter(&entry.file_name())).map(|entry| entry.path()).collect()
}
