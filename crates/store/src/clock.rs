//! The time of day, as far as the store may rely on it: the clock may be set back.

use std::time::SystemTime;

/// Seconds since 1970.
pub fn unix_now() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// How long ago a moment was (seconds since 1970, and seconds). A moment in the future was recorded before the clock was set back. Its age
/// is unknown, and counts as very long, so that nothing waits until the clock gets there.
pub fn seconds_since(moment: u64) -> u64 {
    unix_now().checked_sub(moment).unwrap_or(u64::MAX)
}

/// Sorts moments by age, the oldest first. Moments in the future were recorded before the clock was set back, and so before all others.
pub fn by_age(moment: SystemTime) -> (bool, SystemTime) {
    (moment <= SystemTime::now(), moment)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_moment_that_has_yet_to_come_is_long_past() {
        assert!(seconds_since(unix_now() - 10) < 1000);
        assert_eq!(seconds_since(unix_now() + 10), u64::MAX);
        let now = SystemTime::now();
        let mut moments =
            [now, now + Duration::from_secs(2000), now - Duration::from_secs(9), now + Duration::from_secs(1000)];
        moments.sort_by_key(|moment| by_age(*moment));
        assert_eq!(moments.map(|moment| moment > now), [true, true, false, false]);
        assert!(moments[0] < moments[1] && moments[2] < moments[3]);
    }
}
