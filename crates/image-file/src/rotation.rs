//! Rotation: the limits of an image's age and number of thaws.

use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use failure::{Failure, Result};
use image::{Record, Settings, ThawsHead};
use jiff::{SignedDuration, Span, SpanRelativeTo, Timestamp};

/// A text that is no duration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoDuration(String);

impl fmt::Display for NoDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected a duration such as 90m, 12h or 7d, found {:?}", self.0)
    }
}

impl std::error::Error for NoDuration {}

/// Parses a duration such as `12h`, `7d` or `1d 12h`; a day has 24 hours.
pub fn parse_duration(text: &str) -> std::result::Result<Duration, NoDuration> {
    let expected = || NoDuration(text.to_owned());
    let span: Span = text.parse().map_err(|_| expected())?;
    let duration = span.to_duration(SpanRelativeTo::days_are_24_hours()).map_err(|_| expected())?;
    Duration::try_from(duration)
        .ok()
        .filter(|it| !it.is_zero() && u64::try_from(it.as_nanos()).is_ok())
        .ok_or_else(expected)
}

/// The path of the file that counts the thaws of an image.
pub fn counter_path(image: &Path) -> PathBuf {
    let mut name = OsString::from(image);
    name.push(".thaws");
    name.into()
}

/// Writes a counter of zero thaws. `image_id` is the checksum of the image's tables.
pub fn write_counter(path: &Path, image_id: u64) -> io::Result<()> {
    let mut head = [0; ThawsHead::SIZE];
    ThawsHead { magic: ThawsHead::MAGIC, image: image_id }.encode(&mut head);
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    io::Write::write_all(&mut file, &head)?;
    file.sync_all()
}

/// Refuses to overwrite a file of the counter's name that is not a counter.
pub fn check_counter(image: &Path) -> Result<()> {
    let path = counter_path(image);
    match path.symlink_metadata() {
        Ok(metadata) if !metadata.is_file() || head(&path).is_none() => Err(Failure::refusal(format!(
            "{} exists and does not count an image's thaws, but --max-thaws needs that name. Remove it, or choose another name \
             for the image.",
            path.display()
        ))),
        _ => Ok(()),
    }
}

/// Removes the counter of an image that no longer needs one.
pub fn remove_counter(image: &Path) {
    let path = counter_path(image);
    if head(&path).is_some() {
        let _ = fs::remove_file(path);
    }
}

fn head(path: &Path) -> Option<ThawsHead> {
    let mut bytes = [0; ThawsHead::SIZE];
    trust::look::open(path).and_then(|mut file| file.read_exact(&mut bytes)).ok()?;
    Some(ThawsHead::decode(&bytes)).filter(|head| head.magic == ThawsHead::MAGIC)
}

/// Why the number of an image's thaws is unknown.
struct NoCount {
    counter: PathBuf,
    what: Counter,
}

/// What is wrong with a counter.
enum Counter {
    Missing,
    Unreadable(io::Error),
    NoFile,
    OfAnother,
    ReadOnly(io::Error),
}

impl fmt::Display for NoCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self.counter.display();
        match &self.what {
            Counter::Missing => write!(f, "{shown} is not there"),
            Counter::Unreadable(error) => write!(f, "{shown}: {error}"),
            Counter::NoFile => write!(f, "{shown} is not a regular file"),
            Counter::OfAnother => write!(f, "{shown} belongs to another image"),
            Counter::ReadOnly(error) => write!(f, "{shown} cannot be written ({error})"),
        }
    }
}

/// The number of thaws of an image.
fn count_thaws(image: &Path, image_id: u64) -> std::result::Result<u64, NoCount> {
    let counter = counter_path(image);
    count_in(&counter, image_id).map_err(|what| NoCount { counter, what })
}

fn count_in(counter: &Path, image_id: u64) -> std::result::Result<u64, Counter> {
    match counter.symlink_metadata() {
        Err(error) if error.kind() == ErrorKind::NotFound => return Err(Counter::Missing),
        Err(error) => return Err(Counter::Unreadable(error)),
        Ok(metadata) if !metadata.is_file() => return Err(Counter::NoFile),
        Ok(_) => {}
    }
    if head(counter).is_none_or(|head| head.image != image_id) {
        return Err(Counter::OfAnother);
    }
    let opened = fs::OpenOptions::new().append(true).open(counter).and_then(|file| file.metadata());
    opened.map(|metadata| metadata.len() - ThawsHead::SIZE as u64).map_err(Counter::ReadOnly)
}

/// The path with links resolved: thaws look for the counter beside the file itself.
fn resolved(image: &Path) -> PathBuf {
    image.canonicalize().unwrap_or_else(|_| image.to_owned())
}

/// The limits that an image has exceeded, one a line.
pub fn exceeded_limits(settings: &Settings, image: &Path, image_id: u64) -> Vec<String> {
    let mut found = Vec::new();
    if settings.max_age != 0 {
        let made = format_time(settings.made);
        match u64::try_from(now().saturating_sub(settings.made)) {
            Err(_) => found.push(format!("age: unknown, since the clock is behind {made}, when the image was made")),
            Ok(age) if age > settings.max_age => {
                let (most, age) = (format_duration(settings.max_age), format_duration(age));
                found.push(format!("age: made {made}, {age} ago; to be used for {most}"));
            }
            Ok(_) => {}
        }
    }
    if settings.max_thaws != 0 {
        match count_thaws(&resolved(image), image_id) {
            Ok(thaws) if thaws < settings.max_thaws => {}
            Ok(_) => found.push(format!("thaws: all of --max-thaws {} were used", settings.max_thaws)),
            Err(why) => found.push(format!("thaws: they cannot be counted, since {why}")),
        }
    }
    found
}

/// The limits of an image in words; empty if there are none.
pub fn limits(settings: &Settings, image: &Path, image_id: u64) -> Vec<String> {
    let mut limits = Vec::new();
    if settings.max_age != 0 {
        let end = settings.made.saturating_add_unsigned(settings.max_age);
        limits.push(format!("until {} ({} after it was made)", format_time(end), format_duration(settings.max_age)));
    }
    if settings.max_thaws != 0 {
        let used = count_thaws(&resolved(image), image_id)
            .map_or_else(|why| why.to_string(), |thaws| format!("{thaws} so far"));
        limits.push(format!("for {} thaws ({used})", settings.max_thaws));
    }
    limits
}

/// The wall clock (ns since 1970).
pub fn now() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

/// A time (ns since 1970) in the form of RFC 3339, in seconds.
pub fn format_time(ns: i64) -> String {
    Timestamp::from_second(ns.div_euclid(1_000_000_000)).map_or_else(|_| ns.to_string(), |time| time.to_string())
}

/// A duration (ns) such as `36h`.
fn format_duration(ns: u64) -> String {
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
        let hours = |text| parse_duration(text).map(|it| it.as_secs_f64() / 3600.0);
        assert_eq!(
            (hours("12h"), hours("7d"), hours("90m"), hours("1d 12h")),
            (Ok(12.0), Ok(168.0), Ok(1.5), Ok(36.0))
        );
        for wrong in ["", "0s", "-1h", "12", "x", "1 month", "9999999d"] {
            assert!(parse_duration(wrong).unwrap_err().to_string().contains("such as 90m, 12h or 7d"), "{wrong}");
        }
    }

    #[test]
    fn age_is_said_from_what_to_what() {
        let lines = |made| {
            let settings = Settings { made, max_age: HOUR, ..Settings::default() };
            exceeded_limits(&settings, Path::new("/no/app.img"), 0).join("")
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
        let lines = |sum| exceeded_limits(&settings, &image, sum).join("");
        assert!(lines(7).contains("app.img.thaws is not there"));
        write_counter(&counter_path(&image), 7).unwrap();
        check_counter(&image).unwrap();
        assert_eq!(lines(7), "");
        assert_eq!(limits(&settings, &image, 7), ["for 2 thaws (0 so far)"]);
        assert!(lines(8).contains("belongs to another image"));
        let bytes = [fs::read(counter_path(&image)).unwrap(), vec![1, 1]].concat();
        fs::write(counter_path(&image), bytes).unwrap();
        assert_eq!(lines(7), "thaws: all of --max-thaws 2 were used");
        remove_counter(&image);
        assert!(!counter_path(&image).exists());
    }

    #[test]
    fn a_file_of_somebody_else_is_left_alone() {
        let top = tempfile::tempdir().unwrap();
        let image = top.path().join("app.img");
        fs::write(counter_path(&image), "my own notes").unwrap();
        assert!(check_counter(&image).unwrap_err().message.contains("does not count an image's thaws"));
        remove_counter(&image);
        assert!(counter_path(&image).exists());
    }
}
