//! Modules: their constants and methods.
#![allow(unsafe_code)]

use std::ffi::{c_char, c_int, CStr};

use super::{bytes, entry_of, intern, protect, send, symbol, Id, Protected, Value};

unsafe extern "C-unwind" {
    fn rb_define_module_under(outer: Value, name: *const c_char) -> Value;
    fn rb_define_module(name: *const c_char) -> Value;
    fn rb_const_get(module: Value, name: Id) -> Value;
    fn rb_const_defined(module: Value, name: Id) -> c_int;
    fn rb_alias(class: Value, new: Id, old: Id);
    fn rb_singleton_class(object: Value) -> Value;
}

/// A module, made if it is not there.
pub fn module(name: &CStr) -> Protected {
    // SAFETY: a C string, which is copied.
    protect(|| unsafe { rb_define_module(name.as_ptr()) })
}

/// A module in another, made if it is not there.
pub fn module_under(outer: Value, name: &CStr) -> Protected {
    // SAFETY: a C string, which is copied.
    protect(|| unsafe { rb_define_module_under(outer, name.as_ptr()) })
}

/// A constant of a module, if it is there.
pub fn constant(outer: Value, name: Id) -> Protected<Option<Value>> {
    // SAFETY: a module and a name.
    protect(|| unsafe { (rb_const_defined(outer, name) != 0).then(|| rb_const_get(outer, name)) })
}

/// A constant by its name, if it is there.
pub fn find_constant(outer: Value, name: &str) -> Protected<Option<Value>> {
    constant(outer, intern(name)?)
}

/// Gives a method another name, too.
pub fn alias(class: Value, new: &str, old: &str) -> Protected<()> {
    let (new, old) = (intern(new)?, intern(old)?);
    // SAFETY: a module and two names.
    protect(|| unsafe { rb_alias(class, new, old) })
}

/// Gives a method of an object itself another name, too.
pub fn alias_singleton(object: Value, new: &str, old: &str) -> Protected<()> {
    // SAFETY: an object that may have methods of its own.
    alias(protect(|| unsafe { rb_singleton_class(object) })?, new, old)
}

/// Whether a class or module has a private method of that name.
pub fn has_private_method(class: Value, name: &str) -> Protected<bool> {
    send(class, "private_method_defined?", &[symbol(name)?]).map(Value::is_truthy)
}

/// The source file of a class' method. `None`: it is written in C.
pub fn source_of(class: Value, name: &str) -> Protected<Option<Vec<u8>>> {
    let method = send(class, "instance_method", &[symbol(name)?])?;
    let location = send(method, "source_location", &[])?;
    if location.is_nil() {
        return Ok(None);
    }
    bytes(entry_of(location, 0)).map(Some)
}

/// The method of that name that an object has, as an object that can be compared.
pub fn own_method(object: Value, name: &str) -> Protected {
    send(object, "method", &[symbol(name)?])
}
