//! Modules: their constants and methods.
#![allow(unsafe_code)]

use std::ffi::{c_char, c_int, CStr};

use super::{Id, Protected, Ruby, Value};

unsafe extern "C-unwind" {
    fn rb_define_module_under<'r>(outer: Value<'_>, name: *const c_char) -> Value<'r>;
    fn rb_define_module<'r>(name: *const c_char) -> Value<'r>;
    fn rb_const_get<'r>(module: Value<'_>, name: Id) -> Value<'r>;
    fn rb_const_defined(module: Value<'_>, name: Id) -> c_int;
    fn rb_alias(class: Value<'_>, new: Id, old: Id);
}

impl<'r> Ruby<'r> {
    /// A module, created if it does not exist.
    pub fn module(self, name: &CStr) -> Protected<Value<'r>> {
        // SAFETY: a C string, which is copied.
        self.protect(|| unsafe { rb_define_module(name.as_ptr()) })
    }

    /// A module in another, created if it does not exist.
    pub fn module_under(self, outer: Value<'_>, name: &CStr) -> Protected<Value<'r>> {
        // SAFETY: a C string, which is copied.
        self.protect(|| unsafe { rb_define_module_under(outer, name.as_ptr()) })
    }

    /// A constant of a module, if it exists.
    pub fn constant(self, outer: Value<'_>, name: Id) -> Protected<Option<Value<'r>>> {
        // SAFETY: a module and a name.
        self.protect(|| unsafe { (rb_const_defined(outer, name) != 0).then(|| rb_const_get(outer, name)) })
    }

    /// A constant by its name, if it exists.
    pub fn find_constant(self, outer: Value<'_>, name: &str) -> Protected<Option<Value<'r>>> {
        self.constant(outer, self.intern(name)?)
    }

    /// Gives a method a second name.
    pub fn alias(self, class: Value<'_>, new: &str, old: &str) -> Protected<()> {
        let (new, old) = (self.intern(new)?, self.intern(old)?);
        // SAFETY: a module and two names.
        self.protect(|| unsafe { rb_alias(class, new, old) })
    }

    /// Whether a class or module has a private method of that name.
    pub fn has_private_method(self, class: Value<'_>, name: &str) -> Protected<bool> {
        self.send(class, "private_method_defined?", &[self.symbol(name)?]).map(Value::is_truthy)
    }

    /// The source file of a class' method. `None`: it is written in C.
    pub fn source_of(self, class: Value<'_>, name: &str) -> Protected<Option<Vec<u8>>> {
        let method = self.send(class, "instance_method", &[self.symbol(name)?])?;
        let location = self.send(method, "source_location", &[])?;
        if location.is_nil() {
            return Ok(None);
        }
        self.bytes(self.entry_of(location, 0)).map(Some)
    }

    /// All names in a class of a method that is written in C and was defined there as `original`.
    pub fn names_of_c_method(self, class: Value<'_>, original: &str) -> Protected<Vec<String>> {
        let (wanted, inherited) = (self.symbol(original)?, self.boolean(false));
        let mut names = Vec::new();
        for kind in ["instance_methods", "private_instance_methods"] {
            let list = self.send(class, kind, &[inherited])?;
            for at in 0..self.length(list)? {
                let name = self.entry_of(list, at);
                let method = self.send(class, "instance_method", &[name])?;
                let is_same = self.send(method, "original_name", &[])? == wanted;
                if is_same && self.send(method, "source_location", &[])?.is_nil() {
                    names.push(String::from_utf8_lossy(&self.bytes(self.send(name, "to_s", &[])?)?).into_owned());
                }
            }
        }
        Ok(names)
    }

    /// The method of that name that an object has, as an object that can be compared.
    pub fn own_method(self, object: Value<'_>, name: &str) -> Protected<Value<'r>> {
        self.send(object, "method", &[self.symbol(name)?])
    }
}
