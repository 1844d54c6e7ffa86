//! What another start has shown, and what therefore counts.
//!
//! If a program only keeps a fact, a thaw renews it and it is not an input; what it looked up below HOME or along PATH
//! counts by its answers.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use inputs::attributes::Attribute;
use judge::environment::Environment;
use judge::evidence::{ALL, CWD, HOST, KERNEL, KERNEL_VERSION};
use recorder::{Accesses, PathAccess, State};

use super::elsewhere::{self, Elsewhere};
use super::search_path::count_names;
use super::Ignored;
use crate::boot::{Boot, Report};

/// Reported instead of an object if only one of the starts prints something during the boot: its thaws print nothing.
const OUTPUT: &str = "whether it prints something while it boots";

/// Reported instead of an object if the starts set different attributes of their process, such as limits.
const ATTRIBUTES: &str = "what it changes of its process";

/// The ends of the paths of an order and of a key, as front ends write them.
const ORDER: &str = " (order)";
const KEY: &str = " (key)";

/// The results of another start.
pub struct OtherStart {
    /// The facts that later boots compare, with their values in the image.
    pub facts: Vec<(OsString, OsString)>,
    pub elsewhere: Elsewhere,
    /// Its accesses.
    pub accesses: Accesses,
    /// Its report, with the names that Python looked up.
    pub report: Report,
    /// Facts that the program only keeps, as far as the boots show.
    pub free: BTreeSet<String>,
    /// Facts that make another difference, with the object that differs.
    pub bound: Vec<(String, String)>,
    /// The size of an environment up to which all variables together are free (bytes), where a larger one makes a difference.
    pub largest: Option<u64>,
    /// Paths that differ between boots in the same conditions.
    pub noise: RefCell<BTreeSet<String>>,
    /// Whether a boot like the first one prints something.
    pub says: bool,
    /// The attributes of its process that such a boot changes.
    pub repeated: Vec<Attribute>,
    /// Time limit of a boot as another start.
    pub limit: Duration,
    /// Whether two boots may run at a time.
    pub two: bool,
}

impl OtherStart {
    /// Whether another boot differs only in noise.
    pub fn is_same(&self, other: &Report) -> bool {
        self.differs(other).all(|path| self.is_noise(path))
    }

    pub fn is_noise(&self, path: &str) -> bool {
        let noise = self.noise.borrow();
        noise.contains(path) || rows_of(path).any(|(rows, _)| has_rows_in_any_order(&noise, rows))
    }

    /// Whether a difference may come from the addresses of objects, which boots in the same environment hardly change.
    pub fn may_be_order(path: &str) -> bool {
        path.ends_with(ORDER) || row_with_other_keys(path).is_some()
    }

    /// The orders in which another boot differs; empty if it also differs otherwise, except in noise.
    pub fn orders_only<'a>(&self, other: &'a Report) -> Vec<&'a str> {
        let differs: Vec<&str> = self.differs(other).filter(|path| !self.is_noise(path)).collect();
        if differs.iter().all(|path| path.ends_with(ORDER)) {
            differs
        } else {
            Vec::new()
        }
    }

    /// The paths in which another boot differs.
    pub fn differs<'a>(&self, other: &'a Report) -> impl Iterator<Item = &'a str> {
        other.differs.iter().map(String::as_str).chain(self.other_differences(other))
    }

    /// Differences of another boot besides its objects.
    pub fn other_differences<'a>(&self, other: &'a Report) -> impl Iterator<Item = &'a str> + use<'a> {
        let output = (other.said && !self.says).then_some(OUTPUT);
        let attributes = (other.repeated != self.repeated).then_some(ATTRIBUTES);
        output.into_iter().chain(attributes)
    }

    /// Removes what need not count, and adds what counts instead. `environment` and `start` are those of the boot.
    pub fn apply(&self, mut boot: Boot, environment: &Environment, start: &Path, ignored: &Ignored) -> Boot {
        let Boot { report: Report { reads, searched, .. }, accesses, .. } = &mut boot;
        for (name, what) in &self.bound {
            reads.bind(name, what);
        }
        for name in &self.free {
            match name.as_str() {
                CWD if reads.asks_for_folder() && self.follow_start(accesses, start, ignored) => reads.renew_folder(),
                CWD => {}
                KERNEL if self.free.contains(KERNEL_VERSION) => reads.renew_system(KERNEL),
                KERNEL | KERNEL_VERSION => {}
                HOST => reads.renew_system(HOST),
                ALL => reads.pick(&self.report.picked, self.largest, environment),
                name if self.elsewhere.is_folder(name) => {
                    self.found_below(name, accesses, environment)
                        .into_iter()
                        .for_each(|found| reads.renew(name, found));
                }
                "PATH" => self.along_path(accesses, environment).into_iter().for_each(|found| reads.renew(name, found)),
                "PYTHONPATH" | "RUBYLIB" => {
                    count_names(&self.elsewhere, (&self.accesses, &self.report), reads, accesses, searched)
                }
                name => reads.renew(name, Vec::new()),
            }
        }
        boot
    }

    fn follow_start(&self, accesses: &mut Accesses, start: &Path, ignored: &Ignored) -> bool {
        let names = self.elsewhere.looked_up(&self.accesses, &self.report.importers);
        names.is_some_and(|names| {
            // A path that both boots look up by the same name does not depend on the start directory.
            let by_itself = |path: &Path| self.accesses.places.contains_key(path);
            elsewhere::make_relative(&names, start, accesses, ignored, by_itself)
        })
    }

    /// The names looked up along PATH, and where they are. None if the boot did not look in the same places.
    fn along_path(&self, accesses: &Accesses, environment: &Environment) -> Option<Vec<Vec<u8>>> {
        let path = environment.value("PATH")?;
        let directories: Vec<PathBuf> = std::env::split_paths(path).collect();
        let mut rows = Vec::new();
        for name in self.elsewhere.looked_up_below("PATH", &self.accesses)? {
            // The boot tried each up to the one that it used. If it continued, a file that it found was not suitable.
            let places = directories.iter().map(|directory| directory.join(&name));
            let looked_at: Vec<_> = places.map_while(|place| Some((accesses.places.get(&place)?, place))).collect();
            let there = |(access, _): &&(&PathAccess, PathBuf)| *access.target_state() != State::Absent;
            let found = match looked_at.split_last()? {
                (_, before) if before.iter().any(|place| there(&place)) => return None,
                (last, _) if there(&last) => Some(last.1.clone()),
                _ if looked_at.len() < directories.len() => return None,
                _ => None,
            };
            rows.push(row("PATH", &name, found.as_deref()));
        }
        Some(rows)
    }
}

/// The numbered rows that a path leads through, from the first one on: the path of what holds them, and the number.
fn rows_of(path: &str) -> impl Iterator<Item = (&str, &str)> {
    path.match_indices('[').filter_map(|(start, _)| {
        let (number, _) = path[start + 1..].split_once(']')?;
        let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then_some((&path[..start], number))
    })
}

/// What holds the row whose keys are others in another boot, and the row's number; None for other differences.
fn row_with_other_keys(path: &str) -> Option<(&str, &str)> {
    let (row, _) = path.strip_suffix(KEY)?.rsplit_once('[')?;
    rows_of(row).last().filter(|(rows, number)| row.len() == rows.len() + number.len() + 2)
}

/// Whether boots in the same conditions have given rows other numbers, as a parser does that numbers its states in the order
/// of their addresses: two of the rows had other keys. Nothing in such rows tells anything then.
fn has_rows_in_any_order(noise: &BTreeSet<String>, rows: &str) -> bool {
    let others = noise.range(rows.to_owned()..).take_while(|path| path.starts_with(rows));
    let numbers: BTreeSet<&str> =
        others.filter_map(|path| row_with_other_keys(path)).filter(|row| row.0 == rows).map(|row| row.1).collect();
    numbers.len() > 1
}

/// A row of [`fact_kind::FOUND`].
pub fn row(variable: &str, name: &Path, place: Option<&Path>) -> Vec<u8> {
    let place = place.map_or(OsStr::new("absent"), Path::as_os_str);
    [b"$", variable.as_bytes(), b"/", name.as_os_str().as_bytes(), b": ", place.as_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_whose_keys_are_others_in_equal_boots_have_any_order() {
        let noise = |paths: &[&str]| paths.iter().map(|&path| path.to_owned()).collect::<BTreeSet<String>>();
        let two = noise(&["a.b[4][WORD] (key)", "a.b[12][COMMA] (key)", "a.c[0]", "a.c[1]"]);
        assert!(has_rows_in_any_order(&two, "a.b"));
        // Values that differ each time say nothing about others beside them.
        assert!(!has_rows_in_any_order(&two, "a.c"));
        assert!(!has_rows_in_any_order(&noise(&["a.b[4][WORD] (key)", "a.b[4][COMMA] (key)"]), "a.b"));
        let rows: Vec<(&str, &str)> = rows_of("a.b[4][WORD][1].c").collect();
        assert_eq!(rows, [("a.b", "4"), ("a.b[4][WORD]", "1")]);
        assert_eq!(row_with_other_keys("a.b[4].c[WORD] (key)"), None);
    }
}
