//! What an image does without though it should have it: what training runs have shown, what starts have told, a recipe. An image of a store that
//! lacks something for which another freeze may be better is not used for good.

use std::time::Duration;

use crate::request::{FreezeRequest, InStore};
use crate::training::Part;

/// So little is learnt of some programs that half of it says nothing.
const FEW: usize = 20;

/// What one image does without, each in words.
#[derive(Clone, Default)]
pub struct Lacks {
    /// What another freeze may find.
    what: Vec<String>,
    /// What starts have told, and with which no image can be made.
    told: Option<String>,
}

impl Lacks {
    /// What is known before anything is assembled.
    pub fn new(what: impl Iterator<Item = String>) -> Lacks {
        Lacks { what: what.collect(), told: None }
    }

    /// Notes that this part was taken out. `is_passing`: for a reason that need not last.
    pub fn add(&mut self, part: Part, why: &str, is_passing: bool) {
        let whose = if part == Part::Told { "starts from it have told" } else { "the training runs have shown" };
        let lack = format!("nothing that {whose} is in the image, because {why}");
        match part {
            Part::Told if !is_passing => self.told = Some(lack),
            _ => self.what.push(lack),
        }
    }

    /// Notes where much less was learnt than for the last image of the store that lacked nothing: a training run may have failed, as in the
    /// middle of an upgrade. `count`: how many modules or features were.
    pub fn compare(&mut self, count: usize, store: Option<&InStore>) {
        let known = store.map_or(0, |store| store.knows);
        if self.what.is_empty() && known >= FEW && count < known / 2 {
            self.what.push(format!("only {count} files could be loaded early, and {known} in an earlier image"));
        }
    }

    /// All of it.
    pub fn all(&self) -> impl Iterator<Item = String> + '_ {
        self.told.iter().chain(&self.what).cloned()
    }

    /// Whether another freeze may do better.
    pub fn is_any(&self) -> bool {
        !self.what.is_empty()
    }

    /// Whether it is nothing but what starts have told, and will be the same another time.
    pub fn only_told(&self) -> bool {
        self.what.is_empty() && self.told.is_some()
    }

    /// How long the image may be used.
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
            (lacks.is_any(), lacks.only_told(), lacks.all().count())
        };
        assert_eq!(after(Part::Told, false), (false, true, 1));
        assert_eq!(after(Part::Told, true), (true, false, 1));
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
