//! The limits of a builder: it inherits those (`ulimit`) of the start that asks for an image, which were meant for that start alone.

use rustix::process::{getrlimit, setrlimit, Resource, Rlimit};

use crate::no_image_reason::NoImageReason;

/// A limit that can stop a builder.
struct Limit {
    resource: Resource,
    /// Its option in a shell.
    option: &'static str,
    /// Below this, as far as known, no image can be made.
    least: u64,
    /// Never raised above this, since an image of a program that reads the limit while it boots is only for starts with the same limit.
    usual: Option<u64>,
}

const MB: u64 = 1 << 20;
const LIMITS: [Limit; 7] = [
    Limit { resource: Resource::Nofile, option: "-n", least: 256, usual: Some(1024) },
    Limit { resource: Resource::Stack, option: "-s", least: MB, usual: Some(8 * MB) },
    Limit { resource: Resource::Fsize, option: "-f", least: 1024 * MB, usual: None },
    Limit { resource: Resource::As, option: "-v", least: 1024 * MB, usual: None },
    Limit { resource: Resource::Data, option: "-d", least: 1024 * MB, usual: None },
    Limit { resource: Resource::Cpu, option: "-t", least: 60, usual: None },
    Limit { resource: Resource::Nproc, option: "-u", least: 64, usual: None },
];

/// Raises the limits of this process as far as permitted.
pub fn make() {
    for limit in &LIMITS {
        let now = getrlimit(limit.resource);
        if let Some(raised) = limit.raised(&now) {
            // If that is not permitted, the next check reports it.
            let _ = setrlimit(limit.resource, Rlimit { current: raised, ..now });
        }
    }
}

/// Why the limits are too low for a builder that this process starts; None if they are not.
pub fn lacks() -> Option<NoImageReason> {
    let limit = LIMITS.iter().find(|limit| limit.is_too_low(&getrlimit(limit.resource)))?;
    Some(NoImageReason::Limit { option: limit.option })
}

impl Limit {
    /// The new value; None if it stays. An inner None is no limit.
    fn raised(&self, now: &Rlimit) -> Option<Option<u64>> {
        let wanted = at_most(now.maximum, self.usual);
        let is_lower = now.current.is_some_and(|current| wanted.is_none_or(|wanted| current < wanted));
        is_lower.then_some(wanted)
    }

    /// Whether it would still be too low.
    fn is_too_low(&self, now: &Rlimit) -> bool {
        now.maximum.is_some_and(|most| most < self.least)
    }
}

/// The lower of two limits.
fn at_most(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    [one, other].into_iter().flatten().min()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(option: &str) -> &'static Limit {
        LIMITS.iter().find(|limit| limit.option == option).unwrap()
    }

    #[test]
    fn a_limit_is_raised_to_what_is_usual() {
        let raised = |option, current, maximum| limit(option).raised(&Rlimit { current, maximum });
        assert_eq!(raised("-n", Some(40), Some(524_288)), Some(Some(1024)));
        assert_eq!(raised("-n", Some(40), Some(500)), Some(Some(500)));
        assert_eq!(
            (raised("-n", Some(1024), None), raised("-n", Some(4096), None), raised("-n", None, None)),
            (None, None, None)
        );
        assert_eq!(raised("-v", Some(5), None), Some(None));
        assert_eq!(raised("-v", Some(5), Some(5)), None);
        assert_eq!(raised("-s", Some(MB), None), Some(Some(8 * MB)));
    }

    #[test]
    fn what_cannot_be_raised_may_be_too_low() {
        let is = |option, maximum| limit(option).is_too_low(&Rlimit { current: Some(1), maximum });
        assert!(is("-n", Some(40)) && !is("-n", Some(1024)) && !is("-n", None));
        assert!(is("-f", Some(100 * MB)) && is("-t", Some(1)) && !is("-t", Some(3600)));
    }
}
