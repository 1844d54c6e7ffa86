//! The body of the fuzz target for boot archives: reads bytes as a boot, `snapboot archive` and a writer read an archive, and
//! compares what was let through with what docs/internals/archive-format.md promises. Any broken promise is a panic.
//!
//! The fuzz target of cargo-fuzz and the test of crates/archive that needs no nightly toolchain both call [`read`].

use std::fs;
use std::path::Path;

use archive::{
    checksum, encoding, input_kind, Archive, BlockHead, Context, DirectoryList, EntryHead, Freshness, Header, Kind,
    Packed, Policy, Scope, SegmentHead, Slot, ALIGNMENT, DEFAULT_BOUND, FIRST_SEGMENT,
};
use record::Record;

/// Reads the bytes as they are, and once more with checksums that are right, so that what lies behind them is reached. Needs a
/// directory for the file. How many payloads were let through.
pub fn read(data: &[u8], directory: &Path) -> usize {
    let found = inspect(data, directory);
    let mut sealed = data.to_vec();
    seal(&mut sealed);
    found + inspect(&sealed, directory)
}

fn inspect(data: &[u8], directory: &Path) -> usize {
    let path = directory.join("archive");
    fs::write(&path, data).unwrap();
    let Ok(archive) = Archive::open(&path, Path::new("/nowhere")) else { return 0 };
    let (mut decoder, mut found) = (archive.decoder(), 0);
    let whole = archive.entries().flatten().count();
    assert!(archive.live().len() <= whole && archive.left_over() <= archive.size());
    for entry in archive.live() {
        let key = entry.key();
        let scope = Scope::new(key.kind, &Context { id: key.context, description: String::new() });
        if let Some(same) = archive.find(&scope, &[key.name]) {
            assert!(same.key() == key);
            // Nothing below that root is there.
            let is_file = |kind| matches!(kind, input_kind::FILE | input_kind::DIRECTORY);
            let depends = same.inputs().any(|row| is_file(row.input.kind) && row.name.starts_with(b"./"));
            assert!(!depends || archive.check(&same, Policy::Check, None) == Freshness::Stale);
        }
        assert!(entry.inputs().count() == entry.inputs().len());
        let Some(payload) = decoder.decode(&entry) else { continue };
        assert!(payload.len() == entry.plain_size());
        found += 1;
        if key.kind == Kind::Directory {
            if let Some(list) = DirectoryList::parse(payload) {
                for (name, _) in list.names() {
                    let _ = list.find(&[name]);
                }
            }
        }
    }
    drop(decoder);
    drop(archive);
    let pruned = archive::prune(&path, None, DEFAULT_BOUND).map(|done| done.after);
    if pruned.is_ok_and(|after| after > 0) {
        assert!(Archive::open(&path, Path::new("/")).unwrap().is_whole());
    }
    found
}

/// Puts right checksums over whatever is there.
fn seal(file: &mut [u8]) {
    let size = Header::SIZE - 4;
    let Some(sum) = file.get(..size).map(checksum) else { return };
    put(file, size, sum);
    let mut at = FIRST_SEGMENT as usize;
    while let Some(head) = file.get(at..).and_then(|rest| rest.get(..SegmentHead::SIZE)).map(SegmentHead::decode) {
        let Some(size) = usize::try_from(head.size).ok().filter(|size| *size >= SegmentHead::SIZE) else { return };
        let Some(segment) = at.checked_add(size).and_then(|end| file.get_mut(at..end)) else { return };
        seal_segment(segment, &head);
        at += size;
    }
}

fn seal_segment(segment: &mut [u8], head: &SegmentHead) {
    segment[..4].copy_from_slice(&SegmentHead::MAGIC);
    let start = usize::try_from(head.index_offset).unwrap_or(usize::MAX);
    let size = head.slots as usize * Slot::SIZE;
    if let Some(end) = start.checked_add(size).filter(|end| *end <= segment.len()) {
        for slot in (start..end).step_by(Slot::SIZE) {
            let place = Slot::decode(&segment[slot..]).place as usize * ALIGNMENT as usize;
            if let Some(key_sum) = seal_entry(segment, place) {
                put(segment, slot, key_sum);
            }
        }
        let sum = checksum(&segment[start..end]);
        put(segment, 28, sum);
    }
    let sum = checksum(&segment[8..SegmentHead::SIZE]);
    put(segment, 4, sum);
}

/// The checksum of the entry's key.
fn seal_entry(segment: &mut [u8], place: usize) -> Option<u32> {
    let entry = segment.get(place..)?;
    let head = EntryHead::decode(entry.get(..EntryHead::SIZE)?);
    let key_end = EntryHead::SIZE + head.key_size as usize;
    let key_sum = checksum(entry.get(EntryHead::SIZE..key_end)?);
    let payload = entry.get(head.payload_offset as usize..)?.get(..head.payload_size as usize)?;
    let payload_sum = checksum(payload);
    let packed = payload.get(..Packed::SIZE).map(Packed::decode).filter(|_| head.encoding == encoding::PACKED);
    put(segment, place + 4, payload_sum);
    let head_sum = checksum(segment[place..].get(4..key_end + head.inputs_size as usize)?);
    put(segment, place, head_sum);
    if let Some(packed) = packed {
        seal_block(segment, packed.block as usize * ALIGNMENT as usize);
    }
    Some(key_sum)
}

fn seal_block(segment: &mut [u8], place: usize) {
    let Some(fields) = segment.get(place..).and_then(|block| block.get(..BlockHead::SIZE)) else { return };
    let end = BlockHead::SIZE + BlockHead::decode(fields).size as usize;
    if let Some(sum) = segment[place..].get(4..end).map(checksum) {
        put(segment, place, sum);
    }
}

fn put(bytes: &mut [u8], at: usize, number: u32) {
    bytes[at..at + 4].copy_from_slice(&number.to_le_bytes());
}
