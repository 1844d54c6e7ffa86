//! Further results of a thaw: the inputs that it checked, the files that it mapped, and their cost.
//!
//! The launcher records the times, in the order of the image's tables; the tables name them.

mod faults;
mod files;
mod inputs;

use std::path::Path;

use image_file::{ImageFile, Variant};

pub use self::faults::{Faults, Moments, NoCost};
use crate::events::Event;
use crate::merge::median_and_spread;
use crate::tree::Node;

/// Puts the launcher's work in these runs into the tree of an image's start. Launchers of older images record none of it.
pub fn add_launcher(root: &mut Node, image: &Path, runs: &[Vec<Event>]) {
    let Ok(image) = ImageFile::open(image) else { return };
    let (mut checked, mut mapped) = (Vec::new(), Vec::new());
    for event in runs.iter().flatten() {
        match event {
            Event::Checked { tables, beside, seconds } => checked.push((*tables, *beside, seconds)),
            Event::Mapped { tables, seconds } => mapped.push((*tables, seconds)),
            _ => {}
        }
    }
    if let Some((variant, beside, seconds)) = checked.first().and_then(|&(tables, beside, _)| {
        let same = checked.iter().filter(|run| (run.0, run.1) == (tables, beside)).map(|run| run.2);
        Some((variant_at(&image, tables)?, beside, medians(same)))
    }) {
        inputs::add(root, variant, &seconds, beside);
    }
    if let Some((variant, seconds)) = mapped.first().and_then(|&(tables, _)| {
        let same = mapped.iter().filter(|run| run.0 == tables).map(|run| run.1);
        Some((variant_at(&image, tables)?, medians(same)))
    }) {
        files::add(root, variant, &seconds);
    }
}

/// The variant with these tables.
fn variant_at(image: &ImageFile, tables: u64) -> Option<&Variant> {
    image.variants.iter().find(|variant| variant.head.tables_offset == tables)
}

/// The median of each time of several lists.
fn medians<'a>(lists: impl Iterator<Item = &'a Vec<f64>>) -> Vec<f64> {
    let lists: Vec<_> = lists.collect();
    let most = lists.iter().map(|list| list.len()).max().unwrap_or(0);
    let median = |index: usize| {
        let mut times: Vec<f64> = lists.iter().filter_map(|list| list.get(index).copied()).collect();
        median_and_spread(&mut times).0
    };
    (0..most).map(median).collect()
}

/// A step of a thaw by its name.
fn step<'a>(root: &'a mut Node, name: &str) -> Option<&'a mut Node> {
    root.children.iter_mut().find(|child| child.name == name)
}

/// Puts parts of a step into it, one after the other, the most expensive first. If they exceed the step, they are scaled down.
fn put(step: &mut Node, mut parts: Vec<Node>) {
    parts.sort_by(|one, other| other.seconds.total_cmp(&one.seconds));
    let all: f64 = parts.iter().map(|part| part.seconds).sum();
    if all > step.own() {
        let share = step.own() / all;
        parts.iter_mut().for_each(|part| scale(part, share));
    }
    let mut start = step.start + step.children.iter().map(|child| child.seconds).sum::<f64>();
    for mut part in parts {
        shift(&mut part, start);
        start += part.seconds;
        step.children.push(part);
    }
}

fn scale(node: &mut Node, share: f64) {
    node.seconds *= share;
    node.children.iter_mut().for_each(|child| scale(child, share));
}

/// Moves the begin of a part, and places its children one after the other.
fn shift(node: &mut Node, mut start: f64) {
    node.start = start;
    for child in &mut node.children {
        shift(child, start);
        start += child.seconds;
    }
}

/// `1 file`, `2 files`, `2 directories`; nothing of none.
fn count(number: u64, singular: &str) -> Option<String> {
    let several = match singular.strip_suffix('y') {
        Some(stem) => format!("{stem}ies"),
        None => format!("{singular}s"),
    };
    (number > 0).then(|| format!("{number} {}", if number == 1 { singular } else { &several }))
}

/// `2.3 MB`.
fn size(bytes: u64) -> String {
    match bytes as f64 {
        bytes if bytes < 1e6 => format!("{:.0} kB", bytes / 1e3),
        bytes if bytes < 1e9 => format!("{:.1} MB", bytes / 1e6),
        bytes => format!("{:.1} GB", bytes / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::start_tree::part;
    use crate::tree::Kind;

    fn lasting(seconds: f64) -> Node {
        Node { seconds, ..part("a", Kind::Launcher, 0.0) }
    }

    #[test]
    fn parts_of_a_step_are_never_more_than_it() {
        let mut step = Node { start: 1.0, ..lasting(2.0) };
        put(&mut step, vec![lasting(1.0), lasting(3.0)]);
        let placed: Vec<_> = step.children.iter().map(|child| (child.start, child.seconds)).collect();
        assert_eq!(placed, [(1.0, 1.5), (2.5, 0.5)]);
        assert_eq!(step.own(), 0.0);
    }

    #[test]
    fn times_are_medians_and_lists_may_differ() {
        assert_eq!(medians([vec![1.0, 9.0], vec![3.0], vec![2.0, 1.0]].iter()), [2.0, 5.0]);
    }
}
