//! Ruby's C API: the functions that are the same in every CRuby from 3.0 on, declared by hand.
//!
//! No struct layout and no constant of a version is used here, so one file serves all of them: nil and true are taken from functions when
//! the library is initialised.
//!
//! Three types hold the rules that Ruby's functions have:
//! - [`Ruby`] is a token: the current thread is one of Ruby's and has the lock (GVL) of its Ractor. It exists only while a function
//!   runs that Ruby called ([`entry`]) and cannot leave its thread. [`Main`] says in addition that this is the main Ractor.
//! - [`Value`] is valid for as long as that token: the garbage collector finds it on the stack. One that lives longer is kept
//!   ([`Ruby::keep`]) or in a [`Root`].
//! - [`Jump`] is an exception on its way. Ruby raises by longjmp, which runs no destructor. So a function of Ruby's that may raise,
//!   allocate or run Ruby code is called in [`Ruby::protect`] and nowhere else. A jump then goes through Rust's own frames by `?`,
//!   and [`entry`] hands it back to Ruby when nothing is left to be dropped.
#![allow(unsafe_code)]

mod array;
mod collector;
mod feature;
mod frames;
mod method;
mod module;
mod objects;
mod ractor;
mod root;
mod string;
mod trace;

use std::ffi::{c_int, c_long, CStr};
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

pub use feature::Provided;
pub use method::Method;
pub use objects::Maker;
pub use root::Root;

/// The current thread is one of Ruby's and has the lock of its Ractor, for as long as `'r`. All of Ruby is called through this.
#[derive(Clone, Copy, Debug)]
pub struct Ruby<'r>(PhantomData<(&'r (), *mut ())>);

/// Likewise, and the Ractor is the main one: no other thread has such a token at the same time.
#[derive(Clone, Copy, Debug)]
pub struct Main<'r>(Ruby<'r>);

impl<'r> Deref for Main<'r> {
    type Target = Ruby<'r>;

    fn deref(&self) -> &Ruby<'r> {
        &self.0
    }
}

/// A Ruby object. The garbage collector never takes one with the lifetime `'static`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Value<'r>(usize, PhantomData<&'r ()>);

/// A Ruby name. Names made here are never collected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Id(usize);

/// How a protected call ended other than by returning: an exception, a throw, the end of its thread. Ruby holds the rest.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct Jump(c_int);

/// The result of something that Ruby may end.
pub type Protected<T> = Result<T, Jump>;

unsafe extern "C-unwind" {
    static rb_cObject: Value<'static>;
    static rb_cString: Value<'static>;
    static rb_mKernel: Value<'static>;
    static rb_eException: Value<'static>;

    fn rb_obj_class<'r>(object: Value<'r>) -> Value<'r>;
    fn rb_obj_is_kind_of(object: Value<'_>, class: Value<'_>) -> Value<'static>;
    fn rb_id2sym<'r>(id: Id) -> Value<'r>;
    fn rb_errinfo<'r>() -> Value<'r>;
    fn rb_set_errinfo(exception: Value<'_>);
    fn rb_ruby_verbose_ptr() -> *mut Value<'static>;
    fn rb_ruby_debug_ptr() -> *mut Value<'static>;
    fn rb_get_coverages<'r>() -> Value<'r>;
    fn rb_ext_ractor_safe(is_safe: bool);
    fn rb_int2inum<'r>(number: isize) -> Value<'r>;
    fn rb_f_exec<'r>(count: c_int, arguments: *const Value<'_>) -> Value<'r>;
    fn rb_jump_tag(state: c_int) -> !;
    fn rb_protect(
        function: extern "C-unwind" fn(usize) -> Value<'static>,
        argument: usize,
        state: *mut c_int,
    ) -> Value<'static>;
    fn rb_gc_register_mark_object(object: Value<'_>);
    fn rb_intern2(name: *const u8, size: c_long) -> Id;
    fn rb_funcallv<'r>(receiver: Value<'_>, method: Id, count: c_int, arguments: *const Value<'_>) -> Value<'r>;
    fn rb_funcall_passing_block<'r>(
        receiver: Value<'_>,
        method: Id,
        count: c_int,
        arguments: *const Value<'_>,
    ) -> Value<'r>;
    fn rb_call_super_kw<'r>(count: c_int, arguments: *const Value<'_>, has_keywords: c_int) -> Value<'r>;
    fn rb_keyword_given_p() -> c_int;
    fn rb_respond_to(object: Value<'_>, method: Id) -> c_int;
    fn rb_num2long(number: Value<'_>) -> c_long;
    fn rb_gv_get<'r>(name: *const std::ffi::c_char) -> Value<'r>;
}

static NIL: AtomicUsize = AtomicUsize::new(0);
static TRUE: AtomicUsize = AtomicUsize::new(0);

/// Does what a function that Ruby calls is for. A jump goes on, after all that `work` owned was dropped.
///
/// # Safety
/// Ruby calls the function that calls this. `'r` ends no later than that function, which owns nothing that needs to be dropped.
unsafe fn entry<'r>(work: impl FnOnce(Ruby<'r>) -> Protected<Value<'r>>) -> Value<'r> {
    match work(Ruby(PhantomData)) {
        Ok(value) => value,
        // SAFETY: the state is that of a protected call, whose exception (or throw) Ruby still holds. Nothing is left to be
        // dropped.
        Err(Jump(state)) => unsafe { rb_jump_tag(state) },
    }
}

/// Does what Ruby loads the library for.
///
/// # Safety
/// As for [`entry`]: only the library's `Init_` function calls this.
pub unsafe fn initialise(define: impl FnOnce(Ruby<'_>) -> Protected<()>) {
    let work = |ruby: Ruby<'_>| {
        let array = ruby.array()?;
        // nil is the element that an empty array has; true says that an object is one of its own class.
        NIL.store(ruby.entry_of(array, 0).0, Relaxed);
        // SAFETY: two objects.
        TRUE.store(unsafe { rb_obj_is_kind_of(array, rb_cObject) }.0, Relaxed);
        // SAFETY: the methods that follow may be called in any Ractor: what belongs to the main one asks for `Main`.
        unsafe { rb_ext_ractor_safe(true) };
        define(ruby)?;
        Ok(nil())
    };
    // SAFETY: by this function's own rule.
    unsafe { entry(work) };
}

fn nil() -> Value<'static> {
    Value(NIL.load(Relaxed), PhantomData)
}

impl<'r> Value<'r> {
    pub fn is_nil(self) -> bool {
        self == nil()
    }

    /// Whether it counts as true in a condition.
    pub fn is_truthy(self) -> bool {
        self.0 != 0 && !self.is_nil()
    }
}

impl<'r> Ruby<'r> {
    /// Calls something that may raise. It must not own anything, since a jump drops nothing: that is checked at compile time.
    pub fn protect<T: Copy, F: FnOnce() -> T>(self, function: F) -> Protected<T> {
        const { assert!(!std::mem::needs_drop::<F>(), "what a jump may leave must not own anything") };
        struct Call<T, F> {
            function: Option<F>,
            result: Option<T>,
        }
        extern "C-unwind" fn trampoline<T: Copy, F: FnOnce() -> T>(argument: usize) -> Value<'static> {
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

    /// Drops a jump. `before`: the exception that was being handled before, which is restored.
    pub fn forget(self, _: Jump, before: Value<'_>) {
        self.set_error_info(before);
    }

    pub fn nil(self) -> Value<'r> {
        nil()
    }

    /// `true` or `false`.
    pub fn boolean(self, is_true: bool) -> Value<'r> {
        // false is 0 in every Ruby there is.
        Value(if is_true { TRUE.load(Relaxed) } else { 0 }, PhantomData)
    }

    /// A number that needs no object of its own.
    pub fn number(self, number: usize) -> Value<'r> {
        // SAFETY: a number that small is no object, so that nothing is allocated.
        unsafe { rb_int2inum(number.min(u32::MAX as usize) as isize) }
    }

    /// Whether it is a String, of that class itself.
    pub fn is_string(self, object: Value<'_>) -> bool {
        // SAFETY: an object, whose class is only read.
        object.is_truthy() && unsafe { rb_obj_class(object) == rb_cString }
    }

    /// From now on the garbage collector never takes or moves this object.
    pub fn keep(self, object: Value<'_>) -> Protected<Value<'static>> {
        // SAFETY: an object, which is only noted.
        self.protect(|| unsafe { rb_gc_register_mark_object(object) })?;
        Ok(Value(object.0, PhantomData))
    }

    /// RUBY_VERSION. Empty if it is missing.
    pub fn version(self) -> Protected<Vec<u8>> {
        let version = self.find_constant(self.object_class(), "RUBY_VERSION")?;
        Ok(version.map(|version| self.bytes(version)).transpose()?.unwrap_or_default())
    }

    pub fn object_class(self) -> Value<'static> {
        // SAFETY: Ruby set it before it loaded this library.
        unsafe { rb_cObject }
    }

    pub fn kernel(self) -> Value<'static> {
        // SAFETY: as above.
        unsafe { rb_mKernel }
    }

    /// The name of a method or constant.
    pub fn intern(self, name: &str) -> Protected<Id> {
        // SAFETY: pointer and size are those of a string, which is copied.
        self.protect(|| unsafe { rb_intern2(name.as_ptr(), name.len() as c_long) })
    }

    /// A name as an object.
    pub fn symbol(self, name: &str) -> Protected<Value<'r>> {
        let id = self.intern(name)?;
        // SAFETY: a name that exists, whose Symbol was made with it.
        Ok(unsafe { rb_id2sym(id) })
    }

    /// Calls a method, private ones too.
    pub fn call(self, receiver: Value<'_>, method: Id, arguments: &[Value<'_>]) -> Protected<Value<'r>> {
        // SAFETY: pointer and number are those of a slice.
        self.protect(|| unsafe { rb_funcallv(receiver, method, arguments.len() as c_int, arguments.as_ptr()) })
    }

    /// Calls a method by its name, private ones too.
    pub fn send(self, receiver: Value<'_>, method: &str, arguments: &[Value<'_>]) -> Protected<Value<'r>> {
        self.call(receiver, self.intern(method)?, arguments)
    }

    /// Calls a method with the block that the running C function was given.
    pub fn call_with_block(self, receiver: Value<'_>, method: Id, arguments: &[Value<'_>]) -> Protected<Value<'r>> {
        let (count, arguments) = (arguments.len() as c_int, arguments.as_ptr());
        // SAFETY: pointer and number are those of a slice.
        self.protect(|| unsafe { rb_funcall_passing_block(receiver, method, count, arguments) })
    }

    /// Calls the method that the running C function overrides (`super`), with the block that it was given.
    pub fn call_super(self, arguments: &[Value<'_>]) -> Protected<Value<'r>> {
        let (count, arguments) = (arguments.len() as c_int, arguments.as_ptr());
        // SAFETY: pointer and number are those of a slice; whether the last is keywords, Ruby says itself.
        self.protect(|| unsafe { rb_call_super_kw(count, arguments, rb_keyword_given_p()) })
    }

    pub fn responds_to(self, object: Value<'_>, method: Id) -> Protected<bool> {
        // SAFETY: an object and a name.
        self.protect(|| unsafe { rb_respond_to(object, method) != 0 })
    }

    /// An Integer's value. Raises for other objects.
    pub fn integer(self, number: Value<'_>) -> Protected<i64> {
        // SAFETY: an object, which is only looked at.
        self.protect(|| unsafe { rb_num2long(number) })
    }

    /// A global variable's value.
    pub fn global(self, name: &CStr) -> Protected<Value<'r>> {
        // SAFETY: a C string, which is copied.
        self.protect(|| unsafe { rb_gv_get(name.as_ptr()) })
    }

    /// The exception that is being handled, or nil.
    pub fn error_info(self) -> Value<'r> {
        // SAFETY: it only reads.
        unsafe { rb_errinfo() }
    }

    /// Makes that the exception being handled, if it is one, else none.
    pub fn set_error_info(self, exception: Value<'_>) {
        // SAFETY: two objects.
        let is_exception = exception.is_truthy() && unsafe { rb_obj_is_kind_of(exception, rb_eException) }.is_truthy();
        // SAFETY: an exception or nil, with which it does not raise.
        unsafe { rb_set_errinfo(if is_exception { exception } else { nil() }) };
    }

    /// Whether line or branch coverage is set up.
    pub fn has_coverage(self) -> bool {
        // SAFETY: it only reads.
        unsafe { rb_get_coverages() }.is_truthy()
    }

    /// Whether warnings are off (-W0), or those about experimental features are.
    pub fn is_quiet(self) -> bool {
        // SAFETY: Ruby's own variable, which is there as long as the process.
        let is_off = unsafe { (*rb_ruby_verbose_ptr()).is_nil() };
        is_off || !self.warns_of_experiments().unwrap_or(true)
    }

    /// Whether Ruby reports every exception (-d).
    pub fn is_debugging(self) -> bool {
        // SAFETY: Ruby's own variable, which is there as long as the process.
        unsafe { *rb_ruby_debug_ptr() }.is_truthy()
    }

    /// Whether all warnings are on (-w).
    pub fn is_verbose(self) -> bool {
        // SAFETY: Ruby's own variable, which is there as long as the process.
        unsafe { *rb_ruby_verbose_ptr() }.is_truthy()
    }

    /// Runs something without warnings.
    pub fn without_warnings<T>(self, work: impl FnOnce() -> T) -> T {
        // SAFETY: Ruby's own variable, which is there as long as the process.
        let verbose = unsafe { rb_ruby_verbose_ptr() };
        // SAFETY: as above, and a value that it may have.
        let before = unsafe { verbose.replace(nil()) };
        let result = work();
        // SAFETY: as above.
        unsafe { verbose.write(before) };
        result
    }

    /// Ruby's own exec. Returns only by raising.
    pub fn exec(self, arguments: &[Value<'_>]) -> Protected<Value<'r>> {
        // SAFETY: pointer and number are those of a slice.
        self.protect(|| unsafe { rb_f_exec(arguments.len() as c_int, arguments.as_ptr()) })
    }
}
