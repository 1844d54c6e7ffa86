//! The numbers by which CPython identifies code from 3.12 on: a specialised call remembers the number of its target, so no two code objects
//! of an interpreter may have the same one.
//!
//! The interpreter counts in a field whose place nothing shows. New code shows the count, and so the place: in the interpreter's writable
//! memory, it is the field that holds the next number each time code is created.
#![allow(unsafe_code)]

use std::ffi::{c_char, c_int};
use std::fs::{read_to_string, File};
use std::ops::Range;
use std::os::unix::fs::FileExt;

use pyo3::ffi::{PyObject, Py_DecRef};

use super::layout::{read, Layout};

extern "C" {
    // Not part of the stable ABI, but exported by every version.
    fn PyCode_NewEmpty(file: *const c_char, function: *const c_char, line: c_int) -> *mut PyObject;
    static mut PyCode_Type: u8;
}

/// The offset of the field from the type of code objects, which lies in the same library; `None` if it is ambiguous.
pub fn find(layout: &Layout) -> Option<i32> {
    let memory = File::open("/proc/self/mem").ok()?;
    let area = writable_around(origin())?;
    let mut places: Option<Vec<usize>> = None;
    for _ in 0..3 {
        let next = next_by_new_code(layout)?.to_le_bytes();
        let mut content = vec![0; area.len()];
        memory.read_exact_at(&mut content, area.start as u64).ok()?;
        let has_it = |place: &usize| content.get(*place..*place + 4).is_some_and(|field| field == next);
        places = Some(match places {
            None => (0..content.len()).step_by(4).filter(has_it).collect(),
            Some(places) => places.into_iter().filter(has_it).collect(),
        });
    }
    match places?.as_slice() {
        [place] => i32::try_from((area.start + place) as i64 - origin() as i64).ok(),
        _ => None,
    }
}

/// Whether the field has that offset.
pub fn is_at(layout: &Layout, place: i32) -> bool {
    let address = origin().wrapping_add_signed(place as isize);
    let next = next_by_new_code(layout);
    let mut field = [0; 4];
    let is_read = File::open("/proc/self/mem").and_then(|memory| memory.read_exact_at(&mut field, address as u64));
    is_read.is_ok() && next == Some(u32::from_le_bytes(field))
}

/// Takes `count` unused numbers for new code, and returns the first. If they have run out, returns 0, which means none.
///
/// # Safety
/// [`is_at`] has confirmed `place`, and the caller holds the interpreter's lock.
pub unsafe fn take(place: i32, count: u32) -> u32 {
    let field = origin().wrapping_add_signed(place as isize) as *mut u32;
    // SAFETY: the field is there, and only who holds the lock uses it.
    unsafe {
        let first = field.read_unaligned();
        match first.checked_add(count) {
            Some(next) if first != 0 => {
                field.write_unaligned(next);
                first
            }
            _ => 0,
        }
    }
}

fn origin() -> usize {
    (&raw mut PyCode_Type) as usize
}

/// The contiguous writable memory around an address.
fn writable_around(address: usize) -> Option<Range<usize>> {
    let maps = read_to_string("/proc/self/maps").ok()?;
    let writable = maps.lines().filter_map(|line| {
        let (range, rest) = line.split_once(' ')?;
        let (start, end) = range.split_once('-')?;
        let range = usize::from_str_radix(start, 16).ok()?..usize::from_str_radix(end, 16).ok()?;
        rest.starts_with("rw").then_some(range)
    });
    let mut around: Option<Range<usize>> = None;
    for range in writable {
        around = match around {
            Some(before) if before.end == range.start => Some(before.start..range.end),
            Some(before) if before.contains(&address) => return Some(before),
            _ => Some(range),
        };
    }
    around.filter(|around| around.contains(&address))
}

/// The number that the next code will get, as new code shows. Valid only while the interpreter's lock is held.
fn next_by_new_code(layout: &Layout) -> Option<u32> {
    let field = layout.version?;
    // SAFETY: both texts end with a zero byte. New code has the field, and is given back.
    unsafe {
        let code = PyCode_NewEmpty(c"snapboot".as_ptr(), c"snapboot".as_ptr(), 1);
        if code.is_null() {
            pyo3::ffi::PyErr_Clear();
            return None;
        }
        let version = read::<u32>(code, field);
        Py_DecRef(code);
        version.checked_add(1).filter(|_| version != 0)
    }
}
