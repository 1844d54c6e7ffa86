//! Rotation: for how long, and for how many thaws, an image may be used.

use std::ffi::OsString;
use std::fs;
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use failure::{Failure, Result};
use image::{Record, Settings, ThawsHead};
use jiff::{SignedDuration, Span, SpanRelativeTo, Timestamp};

/// Reads a duration such as `12h`, `7d` or `1d 12h`; a day has 24 hours.
pub fn duration(text: &str) -> std::result::Result<Duration, String> {
    let expected = || format!("expected a duration such as 90m, 12h or 7d, found {text:?}");
    let span: Span = text.parse().map_err(|_| expected())?;
    let duration = span.to_duration(SpanRelativeTo::days_are_24_hours()).map_err(|_| expected())?;
    Duration::try_from(duration)
        .ok()
        .filter(|it| !it.is_zero() && u64::try_from(it.as_nanos()).is_ok())
        .ok_or_else(expected)
}

/// The file in which the thaws of an image are counted.
pub fn counter(image: &Path) -> PathBuf {
    let mut name = OsString::from(image);
    name.push(".thaws");
    name.into()
}

/// Writes a counter that stands at zero. `image_id`: the checksum of the image's tables.
pub fn write_counter(path: &Path, image_id: u64) -> io::Result<()> {
    let mut head = [0; ThawsHead::SIZE];
    ThawsHead { magic: ThawsHead::MAGIC, image: image_id }.encode(&mut head);
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    io::Write::write_all(&mut file, &head)?;
    file.sync_all()
}

/// Refuses to overwrite a file that has the counter's name and is something else.
pub fn check_counter(image: &Path) -> Result<()> {
    let path = counter(image);
    match path.symlink_metadata() {
        Ok(metadata) if !metadata.is_file() || head(&path).is_none() => Err(Failure::refusal(format!(
            "{} exists and does not count an image's thaws, but --max-thaws needs that name. Remove it, or choose another name \
             for the image.",
            path.display()
        ))),
        _ => Ok(()),
    }
}

/// Removes the counter of an image that has no use for one any more. Without that it would only lie about.
pub fn remove_counter(image: &Path) {
    let path = counter(image);
    if head(&path).is_some() {
        let _ = fs::remove_file(path);
    }
}

fn head(path: &Path) -> Option<ThawsHead> {
    let mut bytes = [0; ThawsHead::SIZE];
    trust::look::open(path).and_then(|mut file| file.read_exact(&mut bytes)).ok()?;
    Some(ThawsHead::decode(&bytes)).filter(|head| head.magic == ThawsHead::MAGIC)
}

/// The thaws of an image that were counted; an error says why they are not known.
fn thaws(image: &Path, image_id: u64) -> std::result::Result<u64, String> {
    let path = counter(image);
    let shown = path.display();
    match path.symlink_metadata() {
        Err(error) if error.kind() == ErrorKind::NotFound => return Err(format!("{shown} is not there")),
        Err(error) => return Err(format!("{shown}: {error}")),
        Ok(metadata) if !metadata.is_file() => return Err(format!("{shown} is no regular file")),
        Ok(_) => {}
    }
    match head(&path) {
        Some(head) if head.image == image_id => {}
        _ => return Err(format!("{shown} belongs to another image")),
    }
    match fs::OpenOptions::new().append(true).open(&path).and_then(|file| file.metadata()) {
        Ok(metadata) => Ok(metadata.len() - ThawsHead::SIZE as u64),
        Err(error) => Err(format!("{shown} cannot be written ({error})")),
    }
}

/// Thaws look beside the file itself, whatever links lead to it.
fn resolved(image: &Path) -> PathBuf {
    image.canonicalize().unwrap_or_else(|_| image.to_owned())
}

/// Why an image counts as stale for its age or its thaws, a line each.
pub fn differences(settings: &Settings, image: &Path, image_id: u64) -> Vec<String> {
    let mut found = Vec::new();
    if settings.max_age != 0 {
        let made = time(settings.made);
        match u64::try_from(now().saturating_sub(settings.made)) {
            Err(_) => found.push(format!("age: unknown, since the clock is behind {made}, when the image was made")),
            Ok(age) if age > settings.max_age => {
                let (most, age) = (length(settings.max_age), length(age));
                found.push(format!("age: made {made}, {age} ago; to be used for {most}"));
            }
            Ok(_) => {}
        }
    }
    if settings.max_thaws != 0 {
        match thaws(&resolved(image), image_id) {
            Ok(thaws) if thaws < settings.max_thaws => {}
            Ok(_) => found.push(format!("thaws: all of --max-thaws {} were used", settings.max_thaws)),
            Err(why) => found.push(format!("thaws: they cannot be counted, since {why}")),
        }
    }
    found
}

/// Until when an image may be used, for people; nothing when there is no limit.
pub fn limits(settings: &Settings, image: &Path, image_id: u64) -> Vec<String> {
    let mut limits = Vec::new();
    if settings.max_age != 0 {
        let end = settings.made.saturating_add_unsigned(settings.max_age);
        limits.push(format!("until {} ({} after it was made)", time(end), length(settings.max_age)));
    }
    if settings.max_thaws != 0 {
        let used = thaws(&resolved(image), image_id).map_or_else(|why| why, |thaws| format!("{thaws} so far"));
        limits.push(format!("for {} thaws ({used})", settings.max_thaws));
    }
    limits
}

/// The wall clock (ns since 1970).
pub fn now() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

/// A time in ns since 1970, as RFC 3339 has it, in seconds.
pub fn time(ns: i64) -> String {
    Timestamp::from_second(ns.div_euclid(1_000_000_000)).map_or_else(|_| ns.to_string(), |time| time.to_string())
}

/// A length of time in ns, such as `36h`.
fn length(ns: u64) -> String {
    let duration = SignedDuration::from_nanos(i64::try_from(ns).unwrap_or(i64::MAX));
    let whole = SignedDuration::from_secs(duration.as_secs());
    format!("{:#}", if whole.is_zero() { duration } else { whole })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: u64 = 3_600_000_000_000;

    #[test]
    fn durations_as_people_write_them() {
        let hours = |text| duration(text).map(|it| it.as_secs_f64() / 3600.0);
        assert_eq!(
            (hours("12h"), hours("7d"), hours("90m"), hours("1d 12h")),
            (Ok(12.0), Ok(168.0), Ok(1.5), Ok(36.0))
        );
        for wrong in ["", "0s", "-1h", "12", "x", "1 month", "9999999d"] {
            assert!(duration(wrong).unwrap_err().contains("such as 90m, 12h or 7d"), "{wrong}");
        }
    }

    #[test]
    fn age_is_said_from_what_to_what() {
        let lines = |made| {
            let settings = Settings { made, max_age: HOUR, ..Settings::default() };
            differences(&settings, Path::new("/no/app.img"), 0).join("")
        };
        assert_eq!(lines(now()), "");
        assert!(
            lines(now() - 2 * HOUR as i64).ends_with("Z, 2h ago; to be used for 1h"),
            "{}",
            lines(now() - 2 * HOUR as i64)
        );
        assert!(lines(now() + HOUR as i64).starts_with("age: unknown"));
    }

    #[test]
    fn thaws_are_counted_for_this_image_only() {
        let top = tempfile::tempdir().unwrap();
        let image = top.path().join("app.img");
        let settings = Settings { max_thaws: 2, ..Settings::default() };
        let lines = |sum| differences(&settings, &image, sum).join("");
        assert!(lines(7).contains("app.img.thaws is not there"));
        write_counter(&counter(&image), 7).unwrap();
        check_counter(&image).unwrap();
        assert_eq!(lines(7), "");
        assert_eq!(limits(&settings, &image, 7), ["for 2 thaws (0 so far)"]);
        assert!(lines(8).contains("belongs to another image"));
        let bytes = [fs::read(counter(&image)).unwrap(), vec![1, 1]].concat();
        fs::write(counter(&image), bytes).unwrap();
        assert_eq!(lines(7), "thaws: all of --max-thaws 2 were used");
        remove_counter(&image);
        assert!(!counter(&image).exists());
    }

    #[test]
    fn a_file_of_somebody_else_is_left_alone() {
        let top = tempfile::tempdir().unwrap();
        let image = top.path().join("app.img");
        fs::write(counter(&image), "my own notes").unwrap();
        assert!(check_counter(&image).unwrap_err().message.contains("does not count an image's thaws"));
        remove_counter(&image);
        assert!(counter(&image).exists());
    }
}
