//! Damages a seed as file systems do, and as an attacker would to get past a check.

use fastrand::Rng;
use image::validate::{ADDRESS_END, MAX_DESCRIPTORS};
use image::{reserved, HEAD_AREA, MAX_TABLES, PAGE, RESERVED_END, RESERVED_START};

use crate::seeds::Seed;

/// Numbers at the boundaries of checks.
const BORDERS: [u64; 18] = [
    0,
    1,
    u64::MAX,
    i64::MAX as u64,
    1 << 63,
    u32::MAX as u64,
    1 << 32,
    1 << 31,
    PAGE,
    HEAD_AREA as u64,
    MAX_TABLES,
    RESERVED_START,
    RESERVED_END,
    ADDRESS_END,
    MAX_DESCRIPTORS as u64,
    reserved::LEFTOVER_END - reserved::VDSO,
    64,
    u64::MAX - PAGE + 1,
];

/// One of the seeds, damaged.
pub fn spoiled(seeds: &[Seed], rng: &mut Rng) -> Seed {
    // Smaller seeds are faster to read and have as many fields.
    let mut seed = seeds[rng.usize(..seeds.len()).min(rng.usize(..seeds.len()))].clone();
    for _ in 0..[1, 1, 1, 2, 3, 16][rng.usize(..6)] {
        match rng.u8(..20) {
            0 => truncate(&mut seed, rng),
            1 => splice(&mut seed, &seeds[rng.usize(..seeds.len())], rng),
            2 => seed.file_size = number(seed.file_size, rng),
            3 => repeat(part(&mut seed, rng), rng),
            4..=6 => byte(part(&mut seed, rng), rng),
            7..=10 => head_field(&mut seed, rng),
            _ => table_field(&mut seed, rng),
        }
    }
    seed
}

/// The part to damage; mostly the tables, which a damaged head hides.
fn part<'a>(seed: &'a mut Seed, rng: &mut Rng) -> &'a mut Vec<u8> {
    if rng.u8(..4) == 0 {
        &mut seed.area
    } else {
        &mut seed.tables
    }
}

fn byte(bytes: &mut [u8], rng: &mut Rng) {
    if bytes.is_empty() {
        return;
    }
    let place = &mut bytes[rng.usize(..bytes.len())];
    *place = match rng.u8(..4) {
        0 => [0, 1, 0x7f, 0x80, 0xff][rng.usize(..5)],
        1 => rng.u8(..),
        _ => *place ^ (1 << rng.u8(..8)),
    };
}

fn head_field(seed: &mut Seed, rng: &mut Rng) {
    let (offset, size) = seed.head_fields[rng.usize(..seed.head_fields.len())];
    field(&mut seed.area, offset, size, rng);
}

fn table_field(seed: &mut Seed, rng: &mut Rng) {
    // The directory and the single rows come first and get half of the damage.
    let count = seed.table_fields.len();
    let index = rng.usize(..count).min(if rng.bool() { count } else { rng.usize(..count) });
    let (offset, size) = seed.table_fields[index];
    field(&mut seed.tables, offset, size, rng);
}

/// Changes a number; of other fields (digests, names) a byte.
fn field(bytes: &mut [u8], offset: usize, size: usize, rng: &mut Rng) {
    let Some(place) = bytes.get_mut(offset..offset + size) else { return };
    if size > 8 {
        return byte(place, rng);
    }
    let mut raw = [0; 8];
    raw[..size].copy_from_slice(place);
    place.copy_from_slice(&number(u64::from_le_bytes(raw), rng).to_le_bytes()[..size]);
}

/// A number to replace `now`.
fn number(now: u64, rng: &mut Rng) -> u64 {
    let near = [1, 8, PAGE, 24][rng.usize(..4)];
    match rng.u8(..8) {
        0 => now.wrapping_add(near),
        1 => now.wrapping_sub(near),
        2 => now ^ (1 << rng.u8(..64)),
        3 => rng.u64(..) >> rng.u8(..64),
        4 => (rng.u64(..) >> rng.u8(..64)) & !(PAGE - 1),
        5 => BORDERS[rng.usize(..BORDERS.len())].wrapping_sub(near),
        _ => BORDERS[rng.usize(..BORDERS.len())],
    }
}

/// Truncates the file; its recorded size may or may not follow.
fn truncate(seed: &mut Seed, rng: &mut Rng) {
    let bytes = part(seed, rng);
    let length = rng.usize(..=bytes.len());
    let lost = bytes.len() - length;
    bytes.truncate(length);
    if rng.bool() {
        seed.file_size = seed.file_size.saturating_sub(lost as u64);
    }
}

/// Replaces a part by the same part of `other`.
fn splice(seed: &mut Seed, other: &Seed, rng: &mut Rng) {
    let (into, from) = if rng.u8(..3) == 0 { (&mut seed.area, &other.area) } else { (&mut seed.tables, &other.tables) };
    let start = rng.usize(..=into.len().min(from.len()));
    if rng.bool() {
        into.truncate(start);
        into.extend_from_slice(&from[start..]);
    } else {
        let end = start + rng.usize(..=into.len().min(from.len()) - start);
        into[start..end].copy_from_slice(&from[start..end]);
    }
}

/// Repeats some bytes elsewhere, as a file system does that mixes up blocks, or removes them.
fn repeat(bytes: &mut Vec<u8>, rng: &mut Rng) {
    let length = rng.usize(..=bytes.len().min(256)) & if rng.bool() { !7 } else { !0 };
    let (from, to) = (rng.usize(..=bytes.len() - length), rng.usize(..=bytes.len() - length));
    if rng.u8(..4) == 0 {
        bytes.drain(from..from + length);
    } else {
        bytes.copy_within(from..from + length, to);
    }
}
