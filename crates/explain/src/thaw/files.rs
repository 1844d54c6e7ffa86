//! The files that a thaw maps: the image itself, and libraries.

use image::{MappedFile, Mapping, Section};
use image_file::Variant;

use super::{count, put, size, step};
use crate::start_tree::part;
use crate::tree::{Kind, Node};

/// Adds them to the step that maps them. `seconds`: of each file of the tables, of the image, of everything else.
pub fn add(root: &mut Node, variant: &Variant, seconds: &[f64]) {
    let Some(step) = step(root, "mapping memory and libraries") else { return };
    let tables = variant.tables();
    let (Ok(files), Ok(rows)) = (tables.rows::<MappedFile>(Section::Files), tables.rows::<Mapping>(Section::Mappings))
    else {
        return;
    };
    let mut mapped = vec![(0u64, 0u64); files.len() + 2];
    for row in rows {
        if let Some((number, bytes)) = mapped.get_mut(row.timed_as(files.len())) {
            *number += 1;
            *bytes += row.end - row.start;
        }
    }
    let mut names: Vec<String> = files
        .map(|file| tables.text(file.path).map(|path| String::from_utf8_lossy(path).into_owned()).unwrap_or_default())
        .collect();
    names.extend(["the image", "other memory, dropping what the kernel made"].map(str::to_owned));
    let parts = names.iter().zip(&mapped).zip(seconds);
    let parts = parts.filter_map(|((name, &(number, bytes)), &seconds)| {
        let mappings = count(number, "mapping")?;
        let detail = Some(format!("{} in {mappings}", size(bytes)));
        Some(Node { seconds, detail, ..part(name, Kind::Mapping, 0.0) })
    });
    put(step, parts.collect());
}
