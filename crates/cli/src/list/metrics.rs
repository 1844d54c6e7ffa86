//! The metrics of `snapboot list --openmetrics`.

use store::RemoteMetrics;

use super::Row;
use crate::openmetrics::{Family, Kind};

/// A sample: its labels, and its value.
type Sample = (Vec<(&'static str, String)>, f64);

/// The metrics of these images, and of the remote store.
pub fn families(rows: &[Row], remote: &RemoteMetrics) -> Vec<Family> {
    let counter = |name, unit, help, samples| Family { name, help, kind: Kind::Counter, unit, samples };
    let images = || rows.iter().filter(|row| row.size > 0);
    let of_image = |row: &Row| vec![("command", row.name.clone()), ("image", row.path.display().to_string())];
    let starts = images().flat_map(|row| {
        [("thawed", row.thawed), ("fallen_back", row.fallen_back)].map(|(result, count)| {
            let labels = of_image(row).into_iter().chain([("result", result.to_owned())]).collect();
            (labels, count as f64)
        })
    });
    let looks = [("hit", remote.hits), ("miss", remote.misses - remote.left.min(remote.misses)), ("left", remote.left)];
    let chunks = [("fetched", remote.chunks_fetched), ("given", remote.chunks_given)];
    let bytes = [("fetched", remote.bytes_fetched), ("given", remote.bytes_given)];
    let only = |value: f64| vec![(Vec::new(), value)];
    vec![
        Family {
            name: "snapboot_image_size_bytes",
            help: "Size of an image on the disk.",
            kind: Kind::Gauge,
            unit: "bytes",
            samples: images().map(|row| (of_image(row), row.size as f64)).collect(),
        },
        counter("snapboot_starts", "", "Starts of an image, by whether it has thawed.", starts.collect()),
        counter(
            "snapboot_saved_seconds",
            "seconds",
            "Time that thawed starts have saved, of images whose starts were measured.",
            images().filter_map(|row| Some((of_image(row), row.saved?))).collect(),
        ),
        counter(
            "snapboot_remote_looks",
            "",
            "Looks into the remote store: whether it had an image that fits, or another machine was making it (left).",
            labelled("result", &looks),
        ),
        counter("snapboot_remote_errors", "", "Looks and gifts that failed.", only(remote.errors as f64)),
        counter("snapboot_remote_given_images", "", "Images given to the remote store.", only(remote.given as f64)),
        counter("snapboot_remote_requests", "", "Requests to the remote store.", only(remote.requests as f64)),
        counter("snapboot_remote_chunks", "", "Chunks that were fetched and given.", labelled("direction", &chunks)),
        counter(
            "snapboot_remote_traffic_bytes",
            "bytes",
            "Bytes of objects that were fetched and given, as they travel.",
            labelled("direction", &bytes),
        ),
        counter(
            "snapboot_remote_saved_seconds",
            "seconds",
            "How much longer the freezes of the fetched images took, where they were made, than their ways here.",
            only(remote.seconds_saved),
        ),
    ]
}

/// A sample for each value of a label.
fn labelled(name: &'static str, values: &[(&str, u64)]) -> Vec<Sample> {
    values.iter().map(|(value, count)| (vec![(name, (*value).to_owned())], *count as f64)).collect()
}
