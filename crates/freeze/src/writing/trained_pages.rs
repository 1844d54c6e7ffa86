//! The pages that starts like training runs write to, in addition to those of every start.
//!
//! A program does not do the same each time, and mapping in a page without need costs as much as it saves when needed.
//! So a start maps in what all runs like it wrote: the runs with the same first argument (`check`). If there is none, and
//! the start's first argument is an option, these are the runs that begin with an option, otherwise those that do not.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use image::{trained_kind, HotRange, Section, TrainedStart, PAGE};
use image_writer::TablesWriter;

use crate::boot::RunPages;

/// Writes the hot ranges: those of `every` start, and for each kind of trained starts its additional ones.
pub fn write(every: &BTreeSet<u64>, runs: &[RunPages], tables: &mut TablesWriter) {
    push(every.iter().copied(), tables);
    for (argument, kind) in kinds(runs) {
        let mut like = runs.iter().filter(|run| match kind {
            trained_kind::ARGUMENT => run.argument == argument,
            _ => kind_of(&run.argument) == kind,
        });
        let first = like.next().map(|run| run.written.difference(every)).into_iter().flatten();
        let others: Vec<_> = like.collect();
        let shared = first.filter(|page| others.iter().all(|run| run.written.contains(page)));
        let hot = push(shared.copied(), tables);
        let argument = tables.text(argument.as_bytes());
        tables.push(Section::Trained, &TrainedStart { argument, kind, hot });
    }
}

/// The kinds of starts that differ, in the order in which a start looks its own up. If all runs of a kind have the same
/// argument, the kind is enough.
fn kinds(runs: &[RunPages]) -> Vec<(&OsStr, u32)> {
    let arguments: BTreeSet<&OsStr> = runs.iter().map(|run| run.argument.as_os_str()).collect();
    let of_kind = |kind| arguments.iter().filter(move |argument| kind_of(argument) == kind).count();
    let differ = |argument: &&OsStr| of_kind(kind_of(argument)) > 1;
    let exact = arguments.iter().copied().filter(differ).map(|argument| (argument, trained_kind::ARGUMENT));
    let whole = [trained_kind::OPTION, trained_kind::OTHER].into_iter().filter(|kind| of_kind(*kind) > 0);
    exact.chain(whole.map(|kind| (OsStr::new(""), kind))).collect()
}

fn kind_of(argument: &OsStr) -> u32 {
    TrainedStart::kind_of(argument.as_bytes())
}

/// Writes pages, sorted by address, as ranges. Returns the number of ranges.
fn push(pages: impl Iterator<Item = u64>, tables: &mut TablesWriter) -> u32 {
    let mut ranges: Vec<HotRange> = Vec::new();
    for start in pages {
        match ranges.last_mut() {
            Some(last) if last.end == start => last.end += PAGE,
            _ => ranges.push(HotRange { start, end: start + PAGE }),
        }
    }
    ranges.iter().for_each(|range| tables.push(Section::Hot, range));
    ranges.len() as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use image::Tables;

    fn run(argument: &str, pages: &[u64]) -> RunPages {
        RunPages { argument: argument.into(), written: pages.iter().map(|page| page * PAGE).collect() }
    }

    /// Argument, kind and pages of a trained start.
    type Of = (String, u32, Vec<u64>);

    /// The pages of every start, and those of trained ones.
    fn written(every: &[u64], runs: &[RunPages]) -> (Vec<u64>, Vec<Of>) {
        let mut tables = TablesWriter::new();
        write(&run("", every).written, runs, &mut tables);
        let bytes = tables.finish();
        let tables = Tables::parse_unchecked_sum(&bytes).unwrap();
        let hot: Vec<HotRange> = tables.rows(Section::Hot).unwrap().collect();
        let pages = |ranges: &[HotRange]| {
            ranges.iter().flat_map(|range| range.start / PAGE..range.end / PAGE).collect::<Vec<_>>()
        };
        let starts: Vec<TrainedStart> = tables.rows(Section::Trained).unwrap().collect();
        let mut at = hot.len() - starts.iter().map(|start| start.hot as usize).sum::<usize>();
        let of_all = pages(&hot[..at]);
        let of_each = starts.iter().map(|start| {
            let own = at..at + start.hot as usize;
            at = own.end;
            let argument = String::from_utf8(tables.text(start.argument).unwrap().to_vec()).unwrap();
            (argument, start.kind, pages(&hot[own]))
        });
        let of_each = of_each.collect();
        (of_all, of_each)
    }

    #[test]
    fn what_every_start_writes_stands_first_and_once() {
        let shown = written(&[1, 2, 9], &[run("check", &[1, 2, 3, 4, 9, 10])]);
        assert_eq!(shown, (vec![1, 2, 9], vec![(String::new(), trained_kind::OTHER, vec![3, 4, 10])]));
        assert_eq!(written(&[1], &[]), (vec![1], vec![]));
    }

    #[test]
    fn a_start_has_what_all_runs_like_it_wrote() {
        let runs =
            [run("lint", &[1, 2, 3]), run("lint", &[2, 3, 4]), run("fix", &[3, 4]), run("--help", &[7]), run("", &[3])];
        let (of_all, of_each) = written(&[], &runs);
        assert!(of_all.is_empty());
        let expected = [
            ("", trained_kind::ARGUMENT, vec![3]),
            ("fix", trained_kind::ARGUMENT, vec![3, 4]),
            ("lint", trained_kind::ARGUMENT, vec![2, 3]),
            ("", trained_kind::OPTION, vec![7]),
            ("", trained_kind::OTHER, vec![3]),
        ];
        assert_eq!(of_each, expected.map(|(argument, kind, pages)| (argument.to_owned(), kind, pages)));
    }
}
