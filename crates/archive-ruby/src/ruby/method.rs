//! Functions with a fixed number of parameters, after the receiver, that Ruby calls.
#![allow(unsafe_code)]

use std::ffi::{c_char, c_int, CStr};

use super::{protect, Method, Protected, Value};

unsafe extern "C-unwind" {
    fn rb_define_singleton_method(object: Value, name: *const c_char, function: Method, parameters: c_int);
    fn rb_define_private_method(class: Value, name: *const c_char, function: Method, parameters: c_int);
}

pub type None = extern "C-unwind" fn(Value) -> Value;
pub type One = extern "C-unwind" fn(Value, Value) -> Value;
pub type Two = extern "C-unwind" fn(Value, Value, Value) -> Value;
/// All arguments: their number, where they are, the receiver.
pub type Any = unsafe extern "C-unwind" fn(c_int, *const Value, Value) -> Value;

/// A function with the number of parameters that Ruby has to know.
#[derive(Clone, Copy)]
pub enum Function {
    None(None),
    One(One),
    Two(Two),
    Any(Any),
}

impl Function {
    fn parts(self) -> (Method, c_int) {
        match self {
            Function::None(function) => (function as Method, 0),
            Function::One(function) => (function as Method, 1),
            Function::Two(function) => (function as Method, 2),
            Function::Any(function) => (function as Method, -1),
        }
    }

    /// Defines it as a method of an object itself.
    pub fn define_singleton(self, object: Value, name: &CStr) -> Protected<()> {
        let (function, parameters) = self.parts();
        // SAFETY: the function has that many parameters, by its type.
        protect(|| unsafe { rb_define_singleton_method(object, name.as_ptr(), function, parameters) })
    }

    /// Defines it as a private method of a class or module.
    pub fn define_private(self, class: Value, name: &CStr) -> Protected<()> {
        let (function, parameters) = self.parts();
        // SAFETY: the function has that many parameters, by its type.
        protect(|| unsafe { rb_define_private_method(class, name.as_ptr(), function, parameters) })
    }
}

/// The arguments of a function of type [`Any`].
///
/// # Safety
/// `count` and `arguments` are what Ruby gave to it.
pub unsafe fn arguments<'a>(count: c_int, arguments: *const Value) -> &'a [Value] {
    if count == 0 {
        return &[];
    }
    // SAFETY: Ruby keeps its arguments on its stack until the function returns.
    unsafe { std::slice::from_raw_parts(arguments, count as usize) }
}
