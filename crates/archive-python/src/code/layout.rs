//! The offsets of fields of code, tuples, bytes and strings in the running CPython, from its headers (`cpython/code.h`, `unicodeobject.h`),
//! and checks that they are right.
//!
//! A minor version never changes these layouts, but a build may (`--with-trace-refs`, `--disable-gil`): so before anything is written, the
//! fields of a code object, a tuple and a string are compared with what Python itself returns, as is the field of [`super::versions`].
//! Otherwise marshal keeps all code.
#![allow(unsafe_code)]

use pyo3::ffi::PyObject;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};

/// Bytes from the start of an object to its type, and to the number of its items where it has a variable size.
pub const TYPE: usize = 8;
pub const ITEMS: usize = 16;
/// From the start of a tuple to its hash, where it has one: from 3.14 on.
const TUPLE_HASH: usize = 24;
/// The size of the collector's header before a tuple.
pub const COLLECTOR_HEAD: usize = 16;
/// From the start of `bytes` to its hash and its content.
pub const BYTES_HASH: usize = 24;
pub const BYTES: usize = 32;
/// From the start of a string to its length, its hash and its flags.
pub const TEXT_LENGTH: usize = 16;
pub const TEXT_HASH: usize = 24;
pub const TEXT_STATE: usize = 32;
/// Flags of a string: whether it is interned, whether its content follows, and that this is ASCII.
pub const INTERNED: u32 = 3;
const COMPACT: u32 = 1 << 5;
pub const ASCII: u32 = 1 << 6;
/// All bits of the flags whose meaning is the same in every version: `interned`, `kind`, `compact`, `ascii`.
const KNOWN: u32 = 0x7f;
/// One byte for each character, the content follows, ASCII, not interned.
const PLAIN: u32 = 1 << 2 | COMPACT | ASCII;

/// The layout of one version.
pub struct Layout {
    /// The minor version.
    minor: u8,
    /// From the start of a code object to the end of its fields.
    pub code: usize,
    /// Fields of code that are no objects: start and size of each. All others start as zero.
    pub plain: &'static [(usize, usize)],
    /// The objects that code refers to, with their attributes if Python returns the very object.
    pub objects: &'static [(usize, &'static str)],
    /// The index of the source's path in `objects`.
    pub filename: usize,
    /// The number by which specialised calls identify the code; every code object has another.
    pub version: Option<usize>,
    /// Up to 3.10: the pointer to the array that says which variables of inner functions are arguments (`co_cell2arg`), null without any,
    /// and the place of the tuple of these variables.
    pub array: Option<(usize, usize)>,
    /// From the start of a tuple to its first item.
    pub tuple: usize,
    /// From the start of an ASCII string to its content.
    pub ascii: usize,
    /// Whether objects that are never freed keep a constant reference count.
    pub has_immortals: bool,
}

const THREE_8: Layout = Layout {
    minor: 8,
    code: 176,
    plain: &[(16, 28)],
    objects: &[
        (48, "co_code"),
        (56, "co_consts"),
        (64, "co_names"),
        (72, "co_varnames"),
        (80, "co_freevars"),
        (88, "co_cellvars"),
        (104, "co_filename"),
        (112, "co_name"),
        (120, ""),
    ],
    filename: 6,
    version: None,
    array: Some((96, 88)),
    tuple: 24,
    ascii: 48,
    has_immortals: false,
};

const THREE_11: Layout = Layout {
    minor: 11,
    code: 184,
    plain: &[(16, 8), (48, 48), (168, 4)],
    objects: FIELDS,
    filename: 5,
    version: None,
    array: None,
    tuple: 24,
    ascii: 48,
    has_immortals: false,
};

/// Of 3.11 and later.
const FIELDS: &[(usize, &str)] = &[
    (24, "co_consts"),
    (32, "co_names"),
    (40, "co_exceptiontable"),
    (96, ""),
    (104, ""),
    (112, "co_filename"),
    (120, "co_name"),
    (128, "co_qualname"),
    (136, "co_linetable"),
];

const THREE_12: Layout = Layout {
    minor: 12,
    code: 192,
    plain: &[(16, 8), (48, 44), (176, 4)],
    objects: FIELDS,
    filename: 5,
    version: Some(92),
    array: None,
    tuple: 24,
    ascii: 40,
    has_immortals: true,
};

const THREE_14: Layout = Layout { minor: 14, code: 208, plain: &[(16, 8), (48, 44), (192, 4)], tuple: 32, ..THREE_12 };

static LAYOUTS: [Layout; 8] = [
    THREE_8,
    Layout { minor: 9, ..THREE_8 },
    Layout { minor: 10, ..THREE_8 },
    THREE_11,
    THREE_12,
    Layout { minor: 13, code: 200, plain: &[(16, 8), (48, 44), (184, 4)], ..THREE_12 },
    THREE_14,
    Layout { minor: 15, ..THREE_14 },
];

/// The layout of the running Python, if `sample`, code of any function with a name of more than one ASCII letter, has that layout.
pub fn matching(sample: &Bound<'_, PyAny>) -> Option<&'static Layout> {
    let version = sample.py().version_info();
    let layout = LAYOUTS.iter().find(|layout| version.major == 3 && layout.minor == version.minor)?;
    let has_code = |name| -> Option<usize> { sample.get_type().getattr(name).ok()?.extract().ok() };
    if cfg!(not(all(target_pointer_width = "64", target_endian = "little")))
        || has_code("__basicsize__")? != layout.code
    {
        return None;
    }
    for (offset, name) in layout.objects.iter().filter(|(_, name)| !name.is_empty()) {
        let known = sample.getattr(*name).ok()?;
        // SAFETY: code objects have this size, as they have just said.
        if unsafe { read::<*mut PyObject>(sample.as_ptr(), *offset) } != known.as_ptr() {
            return None;
        }
    }
    let name = sample.getattr("co_name").ok()?.cast_into::<PyString>().ok()?;
    let text: String = name.extract().ok()?;
    // SAFETY: the smallest of all strings, "", has these fields and a byte behind them.
    let (length, state) =
        unsafe { (read::<usize>(name.as_ptr(), TEXT_LENGTH), read::<u32>(name.as_ptr(), TEXT_STATE)) };
    if length != text.len() || state & KNOWN & !INTERNED != PLAIN || state & INTERNED == 0 {
        return None;
    }
    // SAFETY: a new tuple of one item has its fields and the item, in one order or the other.
    let has_tuple = unsafe {
        let tuple = PyTuple::new(sample.py(), [&name]).ok()?;
        let is_hash = layout.tuple == TUPLE_HASH || read::<isize>(tuple.as_ptr(), TUPLE_HASH) == -1;
        is_hash
            && read::<usize>(tuple.as_ptr(), ITEMS) == 1
            && read::<*mut PyObject>(tuple.as_ptr(), layout.tuple) == name.as_ptr()
    };
    if !has_tuple {
        return None;
    }
    // SAFETY: the flags say that the content follows, and the length is that of Python's own answer.
    let content = unsafe { std::slice::from_raw_parts(name.as_ptr().cast::<u8>().add(layout.ascii), length) };
    (content == text.as_bytes()).then_some(layout)
}

impl Layout {
    /// What is laid out behind the fields of code: its instructions (from 3.11 on), or its `array`.
    ///
    /// # Safety
    /// `code` is a code object of this layout, and lives as long as the result is used.
    pub unsafe fn tail<'a>(&self, code: *mut PyObject) -> &'a [u8] {
        // SAFETY: instructions of two bytes each, as many as the object has items, follow the fields. The array has as many numbers as there are
        // variables in the tuple.
        unsafe {
            let Some((array, variables)) = self.array else {
                return std::slice::from_raw_parts(code.cast::<u8>().add(self.code), 2 * read::<usize>(code, ITEMS));
            };
            match read::<*const u8>(code, array) {
                start if start.is_null() => &[],
                start => std::slice::from_raw_parts(start, 8 * read::<usize>(read(code, variables), ITEMS)),
            }
        }
    }

    /// Gives a tuple its hash: one that is not known yet.
    ///
    /// # Safety
    /// `tuple` is a new tuple of this layout, which nobody else knows.
    pub unsafe fn begin_tuple(&self, tuple: *mut PyObject) {
        if self.tuple > TUPLE_HASH {
            // SAFETY: the field is there.
            unsafe { write(tuple, TUPLE_HASH, -1_isize) };
        }
    }

    /// The flags of an ASCII string that is not interned.
    pub fn plain_text(&self) -> u32 {
        // The bit behind `ascii` was "ready" until 3.11, and is "statically allocated" from 3.12 on.
        if self.has_immortals {
            PLAIN
        } else {
            PLAIN | 1 << 7
        }
    }

    /// The content of a string laid out as ASCII.
    ///
    /// # Safety
    /// `object` is a string, and lives as long as the result is used.
    pub unsafe fn ascii_text<'a>(&self, object: *mut PyObject) -> Option<&'a [u8]> {
        // SAFETY: every string has flags and a length; the flags say that so many bytes follow.
        unsafe {
            let state = read::<u32>(object, TEXT_STATE);
            (state & (COMPACT | ASCII) == COMPACT | ASCII).then(|| {
                std::slice::from_raw_parts(object.cast::<u8>().add(self.ascii), read::<usize>(object, TEXT_LENGTH))
            })
        }
    }
}

/// The value of a field.
///
/// # Safety
/// The object has a field of that type there.
pub unsafe fn read<T: Copy>(object: *mut PyObject, offset: usize) -> T {
    // SAFETY: as the caller promises.
    unsafe { object.cast::<u8>().add(offset).cast::<T>().read_unaligned() }
}

/// Sets a field.
///
/// # Safety
/// The object has a field of that type there, which nobody else reads or writes meanwhile.
pub unsafe fn write<T: Copy>(object: *mut PyObject, offset: usize, value: T) {
    // SAFETY: as the caller promises.
    unsafe { object.cast::<u8>().add(offset).cast::<T>().write_unaligned(value) }
}
