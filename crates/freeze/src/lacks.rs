//! What an image lacks of training runs' results, starts' reports, or a recipe. A store replaces an image that lacks
//! something which another freeze may include.

use std::time::Duration;

use crate::request::{FreezeRequest, InStore};
use crate::training::Part;

/// Below this number of learnt modules, half of them says nothing.
const FEW: usize = 20;

/// What one image lacks, in words.
#[derive(Clone, Default)]
pub struct Lacks {
    /// What another freeze may include.
    what: Vec<String>,
    /// Reports of starts with which no image can be made.
    reports: Option<String>,
}

impl Lacks {
    /// What is missing before anything is assembled.
    pub fn new(what: impl Iterator<Item = String>) -> Lacks {
        Lacks { what: what.collect(), reports: None }
    }

    /// Records that this part was taken out. `is_passing` says whether the reason may pass.
    pub fn add(&mut self, part: Part, why: &str, is_passing: bool) {
        let whose =
            if part == Part::StartReports { "starts from it have told" } else { "the training runs have shown" };
        let lack = format!("nothing that {whose} is in the image, because {why}");
        match part {
            Part::StartReports if !is_passing => self.reports = Some(lack),
            _ => self.what.push(lack),
        }
    }

    /// Records if much less was learnt than for the store's last complete image: a training run may have failed, as in
    /// the middle of an upgrade. `count` is the number of learnt modules or features.
    pub fn compare(&mut self, count: usize, store: Option<&InStore>) {
        let known = store.map_or(0, |store| store.knows);
        if self.what.is_empty() && known >= FEW && count < known / 2 {
            self.what.push(format!("only {count} files could be loaded early, and {known} in an earlier image"));
        }
    }

    /// All of it.
    pub fn all(&self) -> impl Iterator<Item = String> + '_ {
        self.reports.iter().chain(&self.what).cloned()
    }

    /// Whether another freeze may include more.
    pub fn is_any(&self) -> bool {
        !self.what.is_empty()
    }

    /// Whether it lacks only reports of starts, and will again another time.
    pub fn lacks_only_reports(&self) -> bool {
        self.what.is_empty() && self.reports.is_some()
    }

    /// Maximum age of the image.
    pub fn max_age(&self, request: &FreezeRequest) -> Option<Duration> {
        let lesser = request.store.as_ref().map(|store| store.lesser_age).filter(|_| self.is_any());
        request.max_age.or(lesser)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_starts_have_told_may_be_in_the_way_for_good_and_all_else_may_not() {
        let after = |part, is_passing| {
            let mut lacks = Lacks::default();
            lacks.add(part, "of this", is_passing);
            (lacks.is_any(), lacks.lacks_only_reports(), lacks.all().count())
        };
        assert_eq!(after(Part::StartReports, false), (false, true, 1));
        assert_eq!(after(Part::StartReports, true), (true, false, 1));
        assert_eq!((after(Part::Trained, false), after(Part::Trained, true)), ((true, false, 1), (true, false, 1)));
    }

    #[test]
    fn much_less_than_before_is_a_lack() {
        let is = |count, knows| {
            let mut lacks = Lacks::default();
            lacks.compare(count, Some(&InStore { knows, ..InStore::default() }));
            lacks.is_any()
        };
        assert!(is(0, 333) && is(165, 333) && !is(170, 333) && !is(0, 5) && !is(400, 333));
        let mut outside = Lacks::default();
        outside.compare(0, None);
        assert!(!outside.is_any());
    }
}
