//! Safe functions that Ruby calls as methods.
//!
//! Ruby calls a C function with the receiver and a fixed number of arguments, or with all arguments in an array. Each of the
//! constructors below makes such a C function for one safe function.
#![allow(unsafe_code)]

use std::ffi::{c_char, c_int, c_void, CStr};

use super::{entry, Protected, Ruby, Value};

unsafe extern "C-unwind" {
    fn rb_define_singleton_method(object: Value<'_>, name: *const c_char, function: *const c_void, parameters: c_int);
    fn rb_define_private_method(class: Value<'_>, name: *const c_char, function: *const c_void, parameters: c_int);
}

/// A C function, and the number of parameters that Ruby has to know.
#[derive(Clone, Copy)]
pub struct Method {
    function: *const c_void,
    parameters: c_int,
}

/// The one value of a type without size: that of a function or of a closure that captures nothing.
fn the_only<F: Copy>() -> F {
    const { assert!(size_of::<F>() == 0, "a method is a function that captures nothing") };
    // SAFETY: it has no bytes, and the constructor was given one that may be copied.
    unsafe { std::mem::transmute_copy::<(), F>(&()) }
}

impl Method {
    /// A method without parameters: `work(ruby)`.
    pub fn none<F>(_: F) -> Self
    where
        F: for<'r> Fn(Ruby<'r>) -> Protected<Value<'r>> + Copy,
    {
        extern "C-unwind" fn call<'r, F>(_: Value<'r>) -> Value<'r>
        where
            F: Fn(Ruby<'r>) -> Protected<Value<'r>> + Copy,
        {
            // SAFETY: Ruby calls this. It owns nothing.
            unsafe { entry(|ruby| the_only::<F>()(ruby)) }
        }
        Method { function: call::<F> as *const c_void, parameters: 0 }
    }

    /// A method of one parameter: `work(ruby, receiver, argument)`.
    pub fn one<F>(_: F) -> Self
    where
        F: for<'r> Fn(Ruby<'r>, Value<'r>, Value<'r>) -> Protected<Value<'r>> + Copy,
    {
        extern "C-unwind" fn call<'r, F>(receiver: Value<'r>, argument: Value<'r>) -> Value<'r>
        where
            F: Fn(Ruby<'r>, Value<'r>, Value<'r>) -> Protected<Value<'r>> + Copy,
        {
            // SAFETY: Ruby calls this. It owns nothing.
            unsafe { entry(|ruby| the_only::<F>()(ruby, receiver, argument)) }
        }
        Method { function: call::<F> as *const c_void, parameters: 1 }
    }

    /// A method of two parameters: `work(ruby, receiver, first, second)`.
    pub fn two<F>(_: F) -> Self
    where
        F: for<'r> Fn(Ruby<'r>, Value<'r>, Value<'r>, Value<'r>) -> Protected<Value<'r>> + Copy,
    {
        extern "C-unwind" fn call<'r, F>(receiver: Value<'r>, first: Value<'r>, second: Value<'r>) -> Value<'r>
        where
            F: Fn(Ruby<'r>, Value<'r>, Value<'r>, Value<'r>) -> Protected<Value<'r>> + Copy,
        {
            // SAFETY: Ruby calls this. It owns nothing.
            unsafe { entry(|ruby| the_only::<F>()(ruby, receiver, first, second)) }
        }
        Method { function: call::<F> as *const c_void, parameters: 2 }
    }

    /// A method of any number of parameters: `work(ruby, receiver, arguments)`.
    pub fn any<F>(_: F) -> Self
    where
        F: for<'r> Fn(Ruby<'r>, Value<'r>, &'r [Value<'r>]) -> Protected<Value<'r>> + Copy,
    {
        extern "C-unwind" fn call<'r, F>(count: c_int, arguments: *const Value<'r>, receiver: Value<'r>) -> Value<'r>
        where
            F: Fn(Ruby<'r>, Value<'r>, &'r [Value<'r>]) -> Protected<Value<'r>> + Copy,
        {
            let arguments: &[Value<'_>] = match count {
                0 => &[],
                // SAFETY: Ruby keeps its arguments on its stack until the function returns.
                count => unsafe { std::slice::from_raw_parts(arguments, count as usize) },
            };
            // SAFETY: Ruby calls this. It owns nothing.
            unsafe { entry(|ruby| the_only::<F>()(ruby, receiver, arguments)) }
        }
        Method { function: call::<F> as *const c_void, parameters: -1 }
    }
}

impl Ruby<'_> {
    /// Defines a singleton method of an object.
    pub fn define_singleton(self, object: Value<'_>, name: &CStr, method: Method) -> Protected<()> {
        let Method { function, parameters } = method;
        // SAFETY: the function has that many parameters.
        self.protect(|| unsafe { rb_define_singleton_method(object, name.as_ptr(), function, parameters) })
    }

    /// Defines a private method of a class or module.
    pub fn define_private(self, class: Value<'_>, name: &CStr, method: Method) -> Protected<()> {
        let Method { function, parameters } = method;
        // SAFETY: the function has that many parameters.
        self.protect(|| unsafe { rb_define_private_method(class, name.as_ptr(), function, parameters) })
    }
}
