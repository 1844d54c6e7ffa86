//! Ruby's own require, and what it knows of features.
#![allow(unsafe_code)]

use std::ffi::{c_char, c_int, CStr};
use std::ptr;

use super::{binary, bytes_in_place, c_bytes, intern, nil, protect, Id, Protected, Value};

unsafe extern "C-unwind" {
    fn rb_f_require(object: Value, name: Value) -> Value;
    fn rb_feature_provided(feature: *const c_char, loading: *mut *const c_char) -> c_int;
    fn rb_provide(feature: *const c_char);
    safe static rb_eLoadError: Value;
    fn rb_exc_new_str(class: Value, message: Value) -> Value;
    fn rb_ivar_set(object: Value, name: Id, value: Value) -> Value;
    fn rb_exc_raise(exception: Value) -> !;
    fn rb_file_absolute_path(path: Value, directory: Value) -> Value;
    fn rb_file_dirname(path: Value) -> Value;
    fn rb_profile_frames(start: c_int, limit: c_int, frames: *mut Value, lines: *mut c_int) -> c_int;
    fn rb_profile_frame_path(frame: Value) -> Value;
    fn rb_profile_frame_method_name(frame: Value) -> Value;
    fn rb_profile_frame_absolute_path(frame: Value) -> Value;
    safe fn rb_sourcefile() -> *const c_char;
}

/// Whether a feature is provided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Provided {
    No,
    Loading,
    Yes,
}

/// What Ruby's own tables say of a feature: of those that are loaded, and those that are being loaded.
pub fn provided(feature: &CStr) -> Protected<Provided> {
    protect(|| {
        let mut loading = ptr::null();
        // SAFETY: a C string, and a place for the address of another one.
        let is_provided = unsafe { rb_feature_provided(feature.as_ptr(), &mut loading) } != 0;
        match (is_provided, loading.is_null()) {
            (false, _) => Provided::No,
            (true, false) => Provided::Loading,
            (true, true) => Provided::Yes,
        }
    })
}

/// Makes a path a feature, without a look at it. Raises where $LOADED_FEATURES is frozen.
pub fn provide(path: &'static CStr) -> Protected<()> {
    // SAFETY: a C string that lives as long as the process: Ruby makes a string over it.
    protect(|| unsafe { rb_provide(path.as_ptr()) })
}

/// Ruby's own require, without anybody's method around it.
pub fn original_require(receiver: Value, name: Value) -> Protected {
    // SAFETY: any objects will do.
    protect(|| unsafe { rb_f_require(receiver, name) })
}

/// Raises the LoadError of a feature that is nowhere. `feature`: a String, as it was asked for, in ASCII.
pub fn not_found(feature: Value) -> Protected {
    let message = [b"cannot load such file -- ", bytes_in_place(feature)?].concat();
    let (message, path) = (binary(&message)?, intern("@path")?);
    protect(|| {
        // SAFETY: a class, a String, and a name of an instance variable. So does Ruby itself, in load_failed.
        unsafe {
            let error = rb_exc_new_str(rb_eLoadError, message);
            rb_ivar_set(error, path, feature);
            rb_exc_raise(error)
        }
    })
}

/// Methods of Ruby's own that call another one, and behind whose frame Ruby looks for the file.
const CALLERS: [&[u8]; 5] = [b"bind_call", b"call", b"===", b"[]", b"public_send"];

/// The real path of the source file whose code called the C function that runs now. `None`: there is none, or only Ruby knows.
pub fn caller_file() -> Protected<Option<Value>> {
    let (mut frames, mut lines) = ([nil(); 3], [0; 3]);
    let (room, numbers) = (frames.as_mut_ptr(), lines.as_mut_ptr());
    // SAFETY: there is room for three frames.
    let count = protect(|| unsafe { rb_profile_frames(0, 3, room, numbers) })?;
    for (at, frame) in frames[..count as usize].iter().enumerate() {
        // SAFETY: a frame that Ruby gave.
        let path = protect(|| unsafe { rb_profile_frame_absolute_path(*frame) })?;
        let bytes = if path.is_string() { c_bytes(path)?.to_bytes() } else { return Ok(None) };
        // SAFETY: as above.
        let name = |of: unsafe extern "C-unwind" fn(Value) -> Value| protect(|| unsafe { of(*frame) });
        match bytes {
            // The frame of eval'ed code may be shown as that of the method around it.
            [b'/', ..] => return Ok(is_running(name(rb_profile_frame_path)?)?.then_some(path)),
            // The frame of the C function itself, and one that it was called through.
            b"<cfunc>" if at == 0 => {}
            b"<cfunc>" if CALLERS.contains(&bytes_in_place(name(rb_profile_frame_method_name)?)?) => {}
            _ => return Ok(None),
        }
    }
    Ok(None)
}

/// Whether the Ruby code that runs, or called the C function that does, was compiled under that name.
fn is_running(path: Value) -> Protected<bool> {
    let name = rb_sourcefile();
    if !path.is_string() || name.is_null() {
        return Ok(false);
    }
    // SAFETY: a C string of the source that runs.
    Ok(unsafe { CStr::from_ptr(name) } == c_bytes(path)?)
}

/// File.absolute_path(path, File.dirname(file))
pub fn beside(path: Value, file: Value) -> Protected {
    // SAFETY: any objects will do.
    protect(|| unsafe { rb_file_absolute_path(path, rb_file_dirname(file)) })
}
