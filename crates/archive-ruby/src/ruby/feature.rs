//! Ruby's own require, and its tables of features.
#![allow(unsafe_code)]

use std::ffi::{c_char, c_int, CStr};
use std::ptr;

use super::{Id, Protected, Ruby, Value};

unsafe extern "C-unwind" {
    static rb_eLoadError: Value<'static>;
    fn rb_f_require<'r>(object: Value<'_>, name: Value<'_>) -> Value<'r>;
    fn rb_feature_provided(feature: *const c_char, loading: *mut *const c_char) -> c_int;
    fn rb_exc_new_str<'r>(class: Value<'_>, message: Value<'_>) -> Value<'r>;
    fn rb_ivar_get<'r>(object: Value<'_>, name: Id) -> Value<'r>;
    fn rb_ivar_set<'r>(object: Value<'_>, name: Id, value: Value<'r>) -> Value<'r>;
    fn rb_exc_raise(exception: Value<'_>) -> !;
    fn rb_file_absolute_path<'r>(path: Value<'_>, directory: Value<'_>) -> Value<'r>;
    fn rb_file_dirname<'r>(path: Value<'_>) -> Value<'r>;
    fn rb_profile_frames(start: c_int, limit: c_int, frames: *mut Value<'_>, lines: *mut c_int) -> c_int;
    fn rb_profile_frame_path<'r>(frame: Value<'r>) -> Value<'r>;
    fn rb_profile_frame_method_name<'r>(frame: Value<'r>) -> Value<'r>;
    fn rb_profile_frame_absolute_path<'r>(frame: Value<'r>) -> Value<'r>;
    fn rb_sourcefile() -> *const c_char;
}

/// Whether a feature is provided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Provided {
    No,
    Loading,
    Yes,
}

/// Ruby's own methods that call another one: Ruby looks for the file behind their frames.
const CALLERS: [&[u8]; 5] = [b"bind_call", b"call", b"===", b"[]", b"public_send"];

impl<'r> Ruby<'r> {
    /// The state of a feature in Ruby's own tables of loaded features, and of those being loaded.
    pub fn provided(self, feature: &CStr) -> Protected<Provided> {
        self.protect(|| {
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

    /// Ruby's own require, without any override of it.
    pub fn original_require(self, receiver: Value<'_>, name: Value<'_>) -> Protected<Value<'r>> {
        // SAFETY: any objects will do.
        self.protect(|| unsafe { rb_f_require(receiver, name) })
    }

    /// Whether the `path` of a LoadError is the very String that require was given, and not a frozen copy: patches of one version differ in
    /// that.
    pub fn tells_given_name(self) -> Protected<bool> {
        // No file can be below that one.
        let (name, before) = (self.text(b"/dev/null/none.rb")?, self.error_info());
        let Err(jump) = self.original_require(self.kernel(), name) else { return Ok(false) };
        let (error, path) = (self.error_info(), self.intern("@path")?);
        self.forget(jump, before);
        // SAFETY: an object, which the jump has left, and a name of an instance variable.
        Ok(self.protect(|| unsafe { rb_ivar_get(error, path) })? == name)
    }

    /// Raises the LoadError of a feature that is not found. `feature`: the String for its `path`, in ASCII.
    pub fn not_found(self, feature: Value<'_>) -> Protected<Value<'r>> {
        let message = [b"cannot load such file -- ", self.bytes(feature)?.as_slice()].concat();
        let (message, path) = (self.binary(&message)?, self.intern("@path")?);
        self.protect(|| {
            // SAFETY: a class, a String, and a name of an instance variable. So does Ruby itself, in load_failed.
            unsafe {
                let error = rb_exc_new_str(rb_eLoadError, message);
                rb_ivar_set(error, path, feature);
                rb_exc_raise(error)
            }
        })
    }

    /// The real path of the source file whose code called the running C function. `None`: there is none, or only Ruby knows.
    pub fn caller_file(self) -> Protected<Option<Value<'r>>> {
        let (mut frames, mut lines) = ([self.nil(); 3], [0; 3]);
        let (room, numbers) = (frames.as_mut_ptr(), lines.as_mut_ptr());
        // SAFETY: there is room for three frames.
        let count = self.protect(|| unsafe { rb_profile_frames(0, 3, room, numbers) })?;
        for (at, frame) in frames[..count as usize].iter().enumerate() {
            // SAFETY: a frame that Ruby gave.
            let path = self.protect(|| unsafe { rb_profile_frame_absolute_path(*frame) })?;
            if !self.is_string(path) {
                return Ok(None);
            }
            if self.with_bytes(path, |path| path.starts_with(b"/"))? {
                // SAFETY: as above.
                let name = self.protect(|| unsafe { rb_profile_frame_path(*frame) })?;
                // The frame of eval'ed code may be shown as that of the method around it.
                return Ok(self.is_running(name)?.then_some(path));
            }
            // The frame of the C function itself, or of one that it was called through.
            if !self.is_bytes(path, b"<cfunc>")? {
                return Ok(None);
            }
            if at > 0 {
                // SAFETY: as above.
                let name = self.protect(|| unsafe { rb_profile_frame_method_name(*frame) })?;
                if !self.with_bytes(name, |name| CALLERS.contains(&name))? {
                    return Ok(None);
                }
            }
        }
        Ok(None)
    }

    /// Whether the Ruby code that runs, or called the running C function, was compiled under that name.
    fn is_running(self, path: Value<'_>) -> Protected<bool> {
        // SAFETY: it only reads.
        let name = unsafe { rb_sourcefile() };
        if !self.is_string(path) || name.is_null() {
            return Ok(false);
        }
        let path = self.c_bytes(path)?;
        // SAFETY: a C string of the source that runs.
        Ok(unsafe { CStr::from_ptr(name) } == path.as_c_str())
    }

    /// File.absolute_path(path, File.dirname(file))
    pub fn beside(self, path: Value<'_>, file: Value<'_>) -> Protected<Value<'r>> {
        // SAFETY: any objects will do.
        self.protect(|| unsafe { rb_file_absolute_path(path, rb_file_dirname(file)) })
    }
}
