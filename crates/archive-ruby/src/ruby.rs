//! Ruby's C API: the functions that are the same in every CRuby from 3.0 on, declared by hand.
//!
//! No struct layout and no constant of a version is used here, so that one file serves all of them: nil and true are taken
//! from functions when the library is initialised. What is not part of the public API is looked up by name
//! ([`look_up`]) and done without where it is not there.
//!
//! A Ruby exception leaves frames by longjmp, which drops nothing. So a function of Ruby's that may raise, allocate or run Ruby
//! code is called in [`protect`] and nowhere else: what ended it comes back as a [`Jump`], through Rust's own frames by `?`, and
//! [`entry`] goes on with it when nothing is left to be dropped.
//!
//! Functions declared `safe` never raise. They ask of their callers only what holds everywhere in this crate: the thread is one
//! of Ruby's and has the GVL (the thread of queue.rs calls nothing of Ruby), and a [`Value`] came from Ruby and is still on the stack or
//! kept.
#![allow(unsafe_code)]

mod array;
mod collector;
mod feature;
pub mod method;
mod module;
mod optional;
mod string;
mod trace;

use std::ffi::{c_int, c_long, c_void, CStr};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

pub use array::{array, array_of, clear_array, entry_of, is_array, is_same_array, length, push, replace};
pub use collector::{allocated, forgive, make_room, old_objects};
pub use feature::{beside, caller_file, not_found, original_require, provide, provided, Provided};
pub use module::{
    alias, alias_singleton, constant, find_constant, has_private_method, module, module_under, own_method, source_of,
};
pub use optional::{is_compiling_traced, is_main_ractor, look_up};
pub use string::{
    binary, binary_static, bytes, bytes_in_place, c_bytes, clear, file_name, freeze, path, text, with_binary,
};
pub use trace::{compile_tracer, disable, enable};

/// A Ruby object. The garbage collector finds those on the stack; others have to be [`keep`]t.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Value(usize);

/// A Ruby name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Id(usize);

/// A function that Ruby calls. The number of its parameters is told where it is defined.
pub type Method = *const c_void;

/// How a protected call ended, if not by returning: an exception, a throw, the end of its thread. Ruby holds the rest of it.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct Jump(c_int);

/// What may be ended by Ruby.
pub type Protected<T = Value> = Result<T, Jump>;

unsafe extern "C-unwind" {
    safe static rb_cObject: Value;
    safe static rb_cString: Value;
    safe static rb_cSymbol: Value;
    safe static rb_mKernel: Value;
    safe static rb_eException: Value;

    safe fn rb_obj_class(object: Value) -> Value;
    safe fn rb_obj_is_kind_of(object: Value, class: Value) -> Value;
    safe fn rb_id2sym(id: Id) -> Value;
    safe fn rb_errinfo() -> Value;
    safe fn rb_ruby_verbose_ptr() -> *mut Value;
    safe fn rb_get_coverages() -> Value;
    safe fn rb_ext_ractor_safe(is_safe: bool);
    safe fn rb_int2inum(number: isize) -> Value;

    fn rb_set_errinfo(exception: Value);
    fn rb_f_exec(count: c_int, arguments: *const Value) -> Value;
    fn rb_jump_tag(state: c_int) -> !;
    fn rb_protect(function: extern "C-unwind" fn(usize) -> Value, argument: usize, state: *mut c_int) -> Value;
    fn rb_gc_register_mark_object(object: Value);
    fn rb_intern2(name: *const u8, size: c_long) -> Id;
    fn rb_funcallv(receiver: Value, method: Id, count: c_int, arguments: *const Value) -> Value;
    fn rb_funcall_passing_block(receiver: Value, method: Id, count: c_int, arguments: *const Value) -> Value;
    fn rb_call_super_kw(count: c_int, arguments: *const Value, has_keywords: c_int) -> Value;
    safe fn rb_keyword_given_p() -> c_int;
    safe fn rb_warning_category_enabled_p(category: c_int) -> bool;
    safe fn rb_ruby_debug_ptr() -> *mut Value;
    fn rb_respond_to(object: Value, method: Id) -> c_int;
    fn rb_num2long(number: Value) -> c_long;
    fn rb_gv_get(name: *const std::ffi::c_char) -> Value;
}

static NIL: AtomicUsize = AtomicUsize::new(0);
static TRUE: AtomicUsize = AtomicUsize::new(0);

/// Called once, when Ruby loads the library.
pub fn initialise() {
    // nil is the name that no error has; true, that an object is one of its own class.
    if let Ok(array) = array() {
        NIL.store(entry_of(array, 0).0, Relaxed);
        TRUE.store(rb_obj_is_kind_of(array, rb_cObject).0, Relaxed);
    }
    rb_ext_ractor_safe(true);
}

/// Calls something that may raise. It must not own anything, since nothing is dropped then: that is checked when this is compiled.
pub fn protect<T: Copy, F: FnOnce() -> T>(function: F) -> Protected<T> {
    const { assert!(!std::mem::needs_drop::<F>(), "what may be left by a jump must not own anything") };
    struct Call<T, F> {
        function: Option<F>,
        result: Option<T>,
    }
    extern "C-unwind" fn trampoline<T: Copy, F: FnOnce() -> T>(argument: usize) -> Value {
        // SAFETY: the argument is the address of the call below, which nothing else uses meanwhile.
        let call = unsafe { &mut *(argument as *mut Call<T, F>) };
        call.result = call.function.take().map(|function| function());
        nil()
    }
    let (mut call, mut state) = (Call { function: Some(function), result: None }, 0);
    // SAFETY: the trampoline gets the argument that it expects, and `state` is valid for the call.
    unsafe { rb_protect(trampoline::<T, F>, &raw mut call as usize, &mut state) };
    call.result.filter(|_| state == 0).ok_or(Jump(state))
}

/// Does what a function that Ruby calls is for. What ended `work` goes on, after all that it owned was dropped.
pub fn entry(work: impl FnOnce() -> Protected) -> Value {
    match work() {
        Ok(value) => value,
        Err(jump) => jump.resume(),
    }
}

impl Jump {
    /// Goes on with what ended the protected call. Its caller owns nothing.
    fn resume(self) -> ! {
        // SAFETY: the state is that of a protected call, whose exception (or throw) Ruby still holds. Only `entry` calls this,
        // where nothing is left to be dropped.
        unsafe { rb_jump_tag(self.0) }
    }

    /// Forgets it: the exception that was there before is there again.
    pub fn forget(self, before: Value) {
        set_error_info(before);
    }
}

pub fn nil() -> Value {
    Value(NIL.load(Relaxed))
}

/// `true` or `false`.
pub fn boolean(is_true: bool) -> Value {
    // false is 0 in every Ruby there is.
    Value(if is_true { TRUE.load(Relaxed) } else { 0 })
}

/// A number that needs no object of its own.
pub fn number(number: usize) -> Value {
    rb_int2inum(number.min(u32::MAX as usize) as isize)
}

impl Value {
    pub fn is_nil(self) -> bool {
        self == nil()
    }

    /// Whether it counts as true in a condition.
    pub fn is_truthy(self) -> bool {
        self.0 != 0 && !self.is_nil()
    }

    /// Whether it is a String, of that class itself.
    pub fn is_string(self) -> bool {
        self.is_truthy() && rb_obj_class(self) == rb_cString
    }

    /// Whether it is a Symbol.
    pub fn is_symbol(self) -> bool {
        self.is_truthy() && rb_obj_class(self) == rb_cSymbol
    }
}

/// The garbage collector never takes this object.
pub fn keep(object: Value) -> Protected {
    // SAFETY: an object, which is only noted.
    protect(|| unsafe { rb_gc_register_mark_object(object) })?;
    Ok(object)
}

pub fn object_class() -> Value {
    rb_cObject
}

pub fn kernel() -> Value {
    rb_mKernel
}

/// The name of a method or constant.
pub fn intern(name: &str) -> Protected<Id> {
    // SAFETY: pointer and size are those of a string, which is copied.
    protect(|| unsafe { rb_intern2(name.as_ptr(), name.len() as c_long) })
}

/// A name as an object.
pub fn symbol(name: &str) -> Protected {
    Ok(rb_id2sym(intern(name)?))
}

/// Calls a method, private ones too.
pub fn call(receiver: Value, method: Id, arguments: &[Value]) -> Protected {
    // SAFETY: pointer and number are those of a slice.
    protect(|| unsafe { rb_funcallv(receiver, method, arguments.len() as c_int, arguments.as_ptr()) })
}

/// Calls a method by its name, private ones too.
pub fn send(receiver: Value, method: &str, arguments: &[Value]) -> Protected {
    call(receiver, intern(method)?, arguments)
}

/// Calls a method with the block that the C function which runs now was given.
pub fn call_with_block(receiver: Value, method: Id, arguments: &[Value]) -> Protected {
    // SAFETY: pointer and number are those of a slice.
    protect(|| unsafe { rb_funcall_passing_block(receiver, method, arguments.len() as c_int, arguments.as_ptr()) })
}

/// Calls the method of the same name that the C function which runs now stands before, with the block that it was given.
pub fn call_super(arguments: &[Value]) -> Protected {
    let has_keywords = rb_keyword_given_p();
    // SAFETY: pointer and number are those of a slice.
    protect(|| unsafe { rb_call_super_kw(arguments.len() as c_int, arguments.as_ptr(), has_keywords) })
}

pub fn responds_to(object: Value, method: Id) -> Protected<bool> {
    // SAFETY: an object and a name.
    protect(|| unsafe { rb_respond_to(object, method) != 0 })
}

/// An Integer's value. Raises for other objects.
pub fn integer(number: Value) -> Protected<i64> {
    // SAFETY: an object, which is only looked at.
    protect(|| unsafe { rb_num2long(number) })
}

/// A global variable's value.
pub fn global(name: &CStr) -> Protected {
    // SAFETY: a C string, which is copied.
    protect(|| unsafe { rb_gv_get(name.as_ptr()) })
}

/// The exception that is being handled, or nil.
pub fn error_info() -> Value {
    rb_errinfo()
}

/// Makes that the exception that is being handled, if it is one, else none.
pub fn set_error_info(exception: Value) {
    let is_exception = exception.is_truthy() && rb_obj_is_kind_of(exception, rb_eException).is_truthy();
    // SAFETY: an exception or nil, with which it does not raise.
    unsafe { rb_set_errinfo(if is_exception { exception } else { nil() }) };
}

/// Whether line or branch coverage has been set up.
pub fn has_coverage() -> bool {
    rb_get_coverages().is_truthy()
}

/// RB_WARN_CATEGORY_EXPERIMENTAL. Part of the public API, the same in all versions.
const EXPERIMENTAL: c_int = 2;

/// Whether warnings are not wanted (-W0), or none of experimental features.
pub fn is_quiet() -> bool {
    // SAFETY: Ruby's own variable, which is there as long as the process.
    unsafe { *rb_ruby_verbose_ptr() }.is_nil() || !rb_warning_category_enabled_p(EXPERIMENTAL)
}

/// Whether Ruby tells of every exception (-d).
pub fn is_debugging() -> bool {
    // SAFETY: Ruby's own variable, which is there as long as the process.
    unsafe { *rb_ruby_debug_ptr() }.is_truthy()
}

/// Whether warnings are wanted in full (-w).
pub fn is_verbose() -> bool {
    // SAFETY: Ruby's own variable, which is there as long as the process.
    unsafe { *rb_ruby_verbose_ptr() }.is_truthy()
}

/// Does something without warnings.
pub fn without_warnings<T>(work: impl FnOnce() -> T) -> T {
    let verbose = rb_ruby_verbose_ptr();
    // SAFETY: Ruby's own variable, which is there as long as the process, and a value that it may have.
    let before = unsafe { verbose.replace(nil()) };
    let result = work();
    // SAFETY: as above.
    unsafe { verbose.write(before) };
    result
}

/// Ruby's own exec. Returns only by raising.
pub fn exec(arguments: &[Value]) -> Protected {
    // SAFETY: pointer and number are those of a slice.
    protect(|| unsafe { rb_f_exec(arguments.len() as c_int, arguments.as_ptr()) })
}
