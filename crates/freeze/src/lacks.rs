//! What an image lacks of training runs' results, starts' reports, or a recipe. A store replaces an image that lacks
//! something which another freeze may include.

use std::fmt;
use std::time::Duration;

use crate::outcome::Stop;
use crate::profile::{FailedRun, Part};
use crate::request::{FreezeRequest, InStore};

/// If an earlier image knew fewer modules than this, it is no sign of a failure that the new one knows less than half of them.
const FEW: usize = 20;

/// Something that an image lacks.
#[derive(Clone)]
pub enum Lack {
    /// The application, as the recipe of this name has it, because of this.
    Application(String, Stop),
    /// The result of a training run.
    Run(FailedRun),
    /// Part of the profile, because no image could be made with it.
    Part(Part, Stop),
    /// Most modules that an earlier image has: how many there are, and how many that has.
    Most(usize, usize),
}

impl fmt::Display for Lack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Lack::Application(recipe, why) => {
                write!(f, "the application is not in the image, as the recipe for {recipe} has it, because {why}")
            }
            Lack::Run(run) => run.fmt(f),
            Lack::Part(part, why) => {
                let who = match part {
                    Part::StartReports => "thawed starts have reported",
                    Part::Trained => "the training runs have loaded",
                };
                write!(f, "none of the modules that {who} is in the image, because ")?;
                match why {
                    Stop::Refused(_) => write!(f, "with it the program cannot be frozen: {why}"),
                    // The rest of the message is for a user who has no image at all.
                    Stop::Failed(failure) => {
                        let first = failure.message.split(". ").next().unwrap_or_default();
                        write!(f, "with it the freeze failed: {first}")
                    }
                    _ => why.fmt(f),
                }
            }
            Lack::Most(count, known) => {
                write!(f, "only {count} files could be loaded early, and {known} in an earlier image")
            }
        }
    }
}

impl Lack {
    /// Whether another freeze may include it. Reports of starts with which no image can be made stay useless.
    fn may_pass(&self) -> bool {
        !matches!(self, Lack::Part(Part::StartReports, why) if !why.is_passing())
    }
}

/// All that one image lacks.
#[derive(Clone, Default)]
pub struct Lacks(pub Vec<Lack>);

impl Lacks {
    /// The same with one more.
    pub fn with(mut self, lack: Lack) -> Lacks {
        self.0.push(lack);
        self
    }

    /// The same, and whether much less was learnt than for the store's last complete image: a training run may have
    /// failed, as in the middle of an upgrade. `count` is the number of learnt modules or features.
    pub fn compared(self, count: usize, store: Option<&InStore>) -> Lacks {
        let known = store.map_or(0, |store| store.knows);
        let is_much_less = !self.may_pass() && known >= FEW && count < known / 2;
        if is_much_less {
            self.with(Lack::Most(count, known))
        } else {
            self
        }
    }

    /// All of it in words, first what stays so.
    pub fn in_words(&self) -> Vec<String> {
        let (passing, staying): (Vec<&Lack>, Vec<_>) = self.0.iter().partition(|lack| lack.may_pass());
        staying.into_iter().chain(passing).map(Lack::to_string).collect()
    }

    /// Whether another freeze may include more.
    pub fn may_pass(&self) -> bool {
        self.0.iter().any(Lack::may_pass)
    }

    /// Whether it lacks only reports of starts, and will again another time.
    pub fn stay(&self) -> bool {
        !self.0.is_empty() && !self.may_pass()
    }

    /// Maximum age of the image.
    pub fn max_age(&self, request: &FreezeRequest) -> Option<Duration> {
        let lesser = request.store.as_ref().map(|store| store.lesser_age).filter(|_| self.may_pass());
        request.max_age.or(lesser)
    }
}

#[cfg(test)]
mod tests {
    use failure::Failure;

    use super::*;

    #[test]
    fn what_starts_have_told_may_be_in_the_way_for_good_and_all_else_may_not() {
        let after = |part, is_passing| {
            let failure = Failure { is_passing, ..Failure::failed("of this. More") };
            let lacks = Lacks::default().with(Lack::Part(part, Stop::Failed(failure)));
            (lacks.may_pass(), lacks.stay(), lacks.in_words().len())
        };
        assert_eq!(after(Part::StartReports, false), (false, true, 1));
        assert_eq!(after(Part::StartReports, true), (true, false, 1));
        assert_eq!((after(Part::Trained, false), after(Part::Trained, true)), ((true, false, 1), (true, false, 1)));
    }

    #[test]
    fn much_less_than_before_is_a_lack() {
        let is =
            |count, knows| Lacks::default().compared(count, Some(&InStore { knows, ..InStore::default() })).may_pass();
        assert!(is(0, 333) && is(165, 333) && !is(170, 333) && !is(0, 5) && !is(400, 333));
        assert!(!Lacks::default().compared(0, None).may_pass());
    }
}
