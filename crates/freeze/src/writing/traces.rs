//! A last check of an image before it is renamed into place: it must not contain the real value of a secret, however
//! that came there.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use aho_corasick::AhoCorasick;
use failure::{Failure, Result};
use judge::environment::Environment;
use judge::secrets::Secret;

/// Refuses an image that contains the value of a secret of this environment.
pub fn refuse(image: &Path, environment: &Environment) -> Result<()> {
    let traces: Vec<(&Secret, Vec<u8>)> = environment
        .secrets
        .iter()
        .flat_map(|secret| secret.traces().into_iter().map(move |trace| (secret, trace)))
        .collect();
    if traces.is_empty() {
        return Ok(());
    }
    let bytes = fs::read(image).map_err(|error| Failure::io("read", image, &error))?;
    let all = AhoCorasick::new(traces.iter().map(|(_, trace)| trace))
        .map_err(|error| Failure::failed(format!("cannot look for secrets in the image: {error}.")))?;
    let found =
        all.find(&bytes).map(|found| traces[found.pattern().as_usize()].0).or_else(|| at_an_edge(&bytes, &traces));
    match found {
        None => Ok(()),
        Some(secret) => Err(Failure::refusal(format!(
            "the value of {0}, which looks like a secret, is in the image, though the boot had a made-up one. Most likely the program has read \
             it from somewhere else, such as a file, while it booted. Load it after the freeze point, or let the image hold it with --env {0}.",
            secret.name.to_string_lossy()
        ))),
    }
}

/// The secret that one page ends with a part of, and another one begins with the rest: they may lie anywhere in the
/// file.
fn at_an_edge<'a>(bytes: &[u8], traces: &[(&'a Secret, Vec<u8>)]) -> Option<&'a Secret> {
    let cuts = |trace: &[u8], is_there: &dyn Fn(&[u8], usize) -> bool| -> BTreeSet<usize> {
        let pages = bytes.chunks(image::PAGE as usize);
        pages.flat_map(|page| (1..trace.len()).filter(|&at| is_there(page, at)).collect::<Vec<_>>()).collect()
    };
    let is_cut = |trace: &[u8]| {
        let ends = cuts(trace, &|page, at| page.ends_with(&trace[..at]));
        !ends.is_empty() && !cuts(trace, &|page, at| ends.contains(&at) && page.starts_with(&trace[at..])).is_empty()
    };
    traces.iter().find(|(_, trace)| is_cut(trace)).map(|(secret, _)| *secret)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_found_at_the_edge_of_a_page_too() {
        let value = "correct-horse-battery-staple";
        let all = [("A_TOKEN".into(), value.into())];
        let environment = Environment::pick(all.into_iter(), &[], &[]);
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("image");
        let is_refused = |at: usize, text: &str| {
            let mut bytes = vec![b'.'; 3 * 4096];
            bytes[at..at + text.len()].copy_from_slice(text.as_bytes());
            fs::write(&file, bytes).unwrap();
            refuse(&file, &environment).is_err()
        };
        assert!(is_refused(100, value) && is_refused(100, "Y29ycmVjdC1ob3JzZS1iYXR0ZXJ5LXN0YXBsZQ"));
        let mut bytes = vec![b'.'; 3 * 4096];
        bytes[8192..8192 + 16].copy_from_slice(&value.as_bytes()[12..]);
        fs::write(&file, &bytes).unwrap();
        assert!(refuse(&file, &environment).is_ok(), "its end alone");
        bytes[4096 - 12..4096].copy_from_slice(&value.as_bytes()[..12]);
        fs::write(&file, &bytes).unwrap();
        assert!(refuse(&file, &environment).is_err());
        assert!(!is_refused(100, &value[..12]) && !is_refused(4096, "nothing"));
    }
}
