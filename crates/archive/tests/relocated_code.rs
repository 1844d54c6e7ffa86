//! Paths in code of Ruby: only code of a known layout gets others. The crate that has the source cannot be linked outside of Ruby.

#[path = "../../archive-ruby/src/relocate.rs"]
mod relocate;

use relocate::relocate;

const OLD: &[u8] = b"/old/place.rb";
const NEW: &[u8] = b"/a/new/place.rb";
const CHANGES: [(&[u8], &[u8]); 1] = [(OLD, NEW)];
/// The offset of the object, and of the list of objects.
const OBJECT: u32 = 36;
const LIST: u32 = OBJECT + 3 + OLD.len() as u32;

/// Code of that version whose only object is the path.
fn code(version: (u32, u32)) -> Vec<u8> {
    let size = LIST + 4;
    let mut bytes = b"YARB".to_vec();
    for number in [version.0, version.1, size, 0, 0, 1, 0, LIST] {
        bytes.extend(number.to_le_bytes());
    }
    // A string; its encoding and its size, each with a 1 at the low end.
    bytes.extend([5, 1, (OLD.len() as u8) << 1 | 1]);
    bytes.extend(OLD);
    bytes.extend(OBJECT.to_le_bytes());
    bytes
}

fn contains(bytes: &[u8], text: &[u8]) -> bool {
    bytes.windows(text.len()).any(|part| part == text)
}

#[test]
fn code_of_a_known_layout_gets_another_path() {
    for version in [(3, 1), (3, 3)] {
        let moved = relocate(&code(version), &CHANGES).unwrap();
        assert!(contains(&moved, NEW));
        // The list leads to the new string, and a second change finds it.
        assert!(contains(&relocate(&moved, &[(NEW, OLD)]).unwrap(), OLD));
    }
}

#[test]
fn other_code_stays_as_it_is() {
    for version in [(3, 0), (3, 2), (3, 4), (4, 1), (0, 0)] {
        assert_eq!(relocate(&code(version), &CHANGES), None, "{version:?}");
    }
    let known = code((3, 1));
    assert_eq!(relocate(&known, &[(b"/another", NEW)]), None);
    for size in 0..known.len() {
        assert_eq!(relocate(&known[..size], &CHANGES), None, "the first {size} bytes");
    }
    let mut other = known.clone();
    other[3] = b'X';
    assert_eq!(relocate(&other, &CHANGES), None);
}

/// No byte makes it read or write outside of the code.
#[test]
fn changed_code_is_left_alone_or_changed() {
    let known = code((3, 3));
    for place in 0..known.len() {
        for value in [0, 1, 0x20, 0x7f, 0x80, 0xff] {
            let mut other = known.clone();
            other[place] = value;
            let _ = relocate(&other, &CHANGES);
        }
    }
}
