//! Ruby's C API: the functions that are the same in every CRuby from 3.0 on, declared by hand.
//!
//! No struct layout and no constant of a version is used here, so that one file serves all of them: nil and true are taken
//! from functions when the library is initialised. What is not part of the public API is looked up by name
//! ([`look_up`]) and done without where it is not there.
//!
//! A Ruby exception leaves frames by longjmp. Functions that may raise say so; their callers hold nothing that needs to be
//! dropped, or call them through [`protect`].
//!
//! Functions declared `safe` ask of their callers only what holds everywhere in this crate: the thread is one of Ruby's and
//! has the GVL (the thread of queue.rs calls nothing of Ruby), and a [`Value`] came from Ruby and is still on the stack or kept.
#![allow(unsafe_code)]

pub mod method;
mod optional;

use std::ffi::{c_char, c_int, c_long, c_void, CStr};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

pub use optional::{enter, evaluate, is_compiling_traced, is_main_ractor, look_up};

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

/// How a protected call ended, if not by returning: an exception, a throw, a `break`.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct Jump(c_int);

unsafe extern "C-unwind" {
    safe static rb_cObject: Value;
    safe static rb_cString: Value;
    safe static rb_cSymbol: Value;
    safe static rb_mKernel: Value;
    safe static rb_cModule: Value;
    safe static rb_eSyntaxError: Value;

    safe fn rb_id2sym(id: Id) -> Value;
    safe fn rb_ruby_verbose_ptr() -> *mut Value;
    safe fn rb_file_expand_path(path: Value, directory: Value) -> Value;
    fn rb_provided(feature: *const c_char) -> c_int;
    fn rb_warning(format: *const c_char, ...);
    fn rb_intern2(name: *const u8, size: c_long) -> Id;
    fn rb_define_module_under(outer: Value, name: *const c_char) -> Value;
    fn rb_define_module(name: *const c_char) -> Value;
    fn rb_define_singleton_method(object: Value, name: *const c_char, function: Method, parameters: c_int);
    fn rb_define_private_method(class: Value, name: *const c_char, function: Method, parameters: c_int);
    fn rb_define_method(class: Value, name: *const c_char, function: Method, parameters: c_int);
    fn rb_remove_method(class: Value, name: *const c_char);
    safe fn rb_singleton_class(object: Value) -> Value;
    safe fn rb_alias(class: Value, new: Id, old: Id);
    safe fn rb_ext_ractor_safe(is_safe: bool);
    safe fn rb_gc_register_mark_object(object: Value);

    safe fn rb_obj_class(object: Value) -> Value;
    safe fn rb_obj_is_kind_of(object: Value, class: Value) -> Value;
    fn rb_funcallv(receiver: Value, method: Id, count: c_int, arguments: *const Value) -> Value;
    fn rb_funcall_passing_block(receiver: Value, method: Id, count: c_int, arguments: *const Value) -> Value;
    safe fn rb_respond_to(object: Value, method: Id) -> c_int;
    safe fn rb_const_get(module: Value, name: Id) -> Value;
    safe fn rb_const_defined(module: Value, name: Id) -> c_int;
    fn rb_gv_get(name: *const c_char) -> Value;

    fn rb_str_new(bytes: *const u8, size: c_long) -> Value;
    fn rb_str_new_static(bytes: *const u8, size: c_long) -> Value;
    fn rb_utf8_str_new(bytes: *const u8, size: c_long) -> Value;
    safe fn rb_str_resize(string: Value, size: c_long) -> Value;
    safe fn rb_str_freeze(string: Value) -> Value;
    fn rb_string_value_ptr(string: *mut Value) -> *const u8;
    fn rb_string_value_cstr(string: *mut Value) -> *const c_char;
    safe fn rb_get_path(path: Value) -> Value;

    safe fn rb_gc_stat(key: Value) -> usize;
    safe fn rb_gc_enable() -> Value;
    safe fn rb_gc_disable() -> Value;
    safe fn rb_float_new(number: f64) -> Value;

    safe fn rb_ary_new() -> Value;
    safe fn rb_ary_clear(array: Value) -> Value;
    safe fn rb_ary_modify(array: Value);
    safe fn rb_ary_push(array: Value, element: Value) -> Value;
    safe fn rb_obj_frozen_p(object: Value) -> Value;
    fn rb_ary_new_from_values(size: c_long, elements: *const Value) -> Value;
    safe fn rb_ary_entry(array: Value, index: c_long) -> Value;
    safe fn rb_ary_replace(array: Value, other: Value) -> Value;
    fn rb_ary_ptr_use_start(array: Value) -> *const Value;

    safe fn rb_num2long(number: Value) -> c_long;
    safe fn rb_int2inum(number: isize) -> Value;

    fn rb_protect(function: extern "C-unwind" fn(usize) -> Value, argument: usize, state: *mut c_int) -> Value;
    safe fn rb_jump_tag(state: c_int) -> !;
    safe fn rb_errinfo() -> Value;
    safe fn rb_set_errinfo(exception: Value);
    fn rb_loaderror_with_path(path: Value, format: *const c_char, ...) -> !;

    fn rb_f_exec(count: c_int, arguments: *const Value) -> Value;
    safe fn rb_f_require(object: Value, name: Value) -> Value;
    fn rb_provide(feature: *const c_char);
    safe fn rb_get_coverages() -> Value;
    safe fn rb_file_absolute_path(path: Value, directory: Value) -> Value;
    safe fn rb_file_dirname(path: Value) -> Value;
    fn rb_profile_frames(start: c_int, limit: c_int, frames: *mut Value, lines: *mut c_int) -> c_int;
    safe fn rb_profile_frame_path(frame: Value) -> Value;
    safe fn rb_profile_frame_absolute_path(frame: Value) -> Value;
    safe fn rb_sourcefile() -> *const c_char;

    safe fn rb_thread_current() -> Value;
    safe fn rb_thread_sleep_deadly();
    safe fn rb_thread_wakeup_alive(thread: Value) -> Value;

    fn rb_tracepoint_new(
        thread: Value,
        events: u32,
        function: extern "C-unwind" fn(Value, *mut c_void),
        data: *mut c_void,
    ) -> Value;
    safe fn rb_tracepoint_enable(tracepoint: Value) -> Value;
    safe fn rb_tracepoint_disable(tracepoint: Value) -> Value;
}

static NIL: AtomicUsize = AtomicUsize::new(0);
static TRUE: AtomicUsize = AtomicUsize::new(0);

/// Called once, when Ruby loads the library.
pub fn initialise() {
    let array = rb_ary_new();
    NIL.store(rb_ary_entry(array, 0).0, Relaxed);
    TRUE.store(rb_obj_is_kind_of(array, object_class()).0, Relaxed);
    rb_ext_ractor_safe(true);
}

pub fn nil() -> Value {
    Value(NIL.load(Relaxed))
}

/// `true` or `false`.
pub fn boolean(is_true: bool) -> Value {
    // false is 0 in every Ruby there is.
    Value(if is_true { TRUE.load(Relaxed) } else { 0 })
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
        self.0 != 0 && !self.is_nil() && rb_obj_class(self) == rb_cString
    }
}

/// The garbage collector never takes this object.
pub fn keep(object: Value) -> Value {
    rb_gc_register_mark_object(object);
    object
}

pub fn object_class() -> Value {
    rb_cObject
}

pub fn kernel() -> Value {
    rb_mKernel
}

pub fn module_class() -> Value {
    rb_cModule
}

pub fn intern(name: &str) -> Id {
    // SAFETY: pointer and size are those of a string, which is copied.
    unsafe { rb_intern2(name.as_ptr(), name.len() as c_long) }
}

/// A module, made if it is not there.
pub fn module(name: &CStr) -> Value {
    // SAFETY: a C string, which is copied.
    unsafe { rb_define_module(name.as_ptr()) }
}

/// A module in another, made if it is not there.
pub fn module_under(outer: Value, name: &CStr) -> Value {
    // SAFETY: a C string, which is copied.
    unsafe { rb_define_module_under(outer, name.as_ptr()) }
}

/// Calls a method, private ones too. May raise.
pub fn call(receiver: Value, method: Id, arguments: &[Value]) -> Value {
    // SAFETY: pointer and number are those of a slice.
    unsafe { rb_funcallv(receiver, method, arguments.len() as c_int, arguments.as_ptr()) }
}

/// Calls a method with the block that the C function which runs now was given. May raise.
pub fn call_with_block(receiver: Value, method: Id, arguments: &[Value]) -> Value {
    // SAFETY: pointer and number are those of a slice.
    unsafe { rb_funcall_passing_block(receiver, method, arguments.len() as c_int, arguments.as_ptr()) }
}

/// A global variable's value.
pub fn global(name: &CStr) -> Value {
    // SAFETY: a C string, which is copied.
    unsafe { rb_gv_get(name.as_ptr()) }
}

/// A constant below Object, if it is there. May raise where it has an autoload.
pub fn constant(outer: Value, name: Id) -> Option<Value> {
    (rb_const_defined(outer, name) != 0).then(|| rb_const_get(outer, name))
}

/// A new binary string.
pub fn binary(bytes: &[u8]) -> Value {
    // SAFETY: pointer and size are those of a slice, which is copied.
    unsafe { rb_str_new(bytes.as_ptr(), bytes.len() as c_long) }
}

/// A new binary string over memory that is never unmapped and never changes.
pub fn binary_static(bytes: &'static [u8]) -> Value {
    // SAFETY: pointer and size are those of a slice that lives as long as the process.
    unsafe { rb_str_new_static(bytes.as_ptr(), bytes.len() as c_long) }
}

/// Gives `look` a binary string over memory that need not live longer than that. May raise as `look` may.
pub fn with_binary<T>(bytes: &[u8], look: impl FnOnce(Value) -> T) -> T {
    // SAFETY: whoever finds the string later (in ObjectSpace) finds it empty: below it gets memory of its own. When `look`
    // raises, the memory is still there: it is the archive's mapping or its decoder's buffer, which grows only.
    let string = unsafe { rb_str_new_static(bytes.as_ptr(), bytes.len() as c_long) };
    let result = look(string);
    rb_str_resize(string, 0);
    result
}

/// A new UTF-8 string.
pub fn text(bytes: &[u8]) -> Value {
    // SAFETY: pointer and size are those of a slice, which is copied.
    unsafe { rb_utf8_str_new(bytes.as_ptr(), bytes.len() as c_long) }
}

/// The bytes of a string without NUL: valid until Ruby runs again. Raises where there is a NUL, and for other objects.
pub fn c_bytes<'a>(mut string: Value) -> &'a CStr {
    // SAFETY: Ruby answers with a C string, or raises.
    unsafe { CStr::from_ptr(rb_string_value_cstr(&mut string)) }
}

/// A string's bytes where they are: valid until Ruby runs again, and as long as the string is where that is frozen. Raises for
/// other objects.
pub fn bytes_in_place<'a>(mut string: Value) -> &'a [u8] {
    let size = rb_num2long(call(string, intern("bytesize"), &[]));
    // SAFETY: Ruby answers with the start of that many bytes, and nothing has run in between.
    unsafe { std::slice::from_raw_parts(rb_string_value_ptr(&mut string), size as usize) }
}

/// A copy of a string's bytes. Raises for other objects.
pub fn bytes(string: Value) -> Vec<u8> {
    bytes_in_place(string).to_vec()
}

/// Gives the memory of a string back that nobody needs any more, before the garbage collector finds it.
pub fn clear(string: Value) {
    rb_str_resize(string, 0);
}

/// The elements of an array, valid until Ruby runs again. `size` must not be larger than the array.
pub fn elements<'a>(array: Value, size: usize) -> &'a [Value] {
    // SAFETY: the array has that many elements, which is asked of the caller.
    unsafe { std::slice::from_raw_parts(rb_ary_ptr_use_start(array), size) }
}

/// Where the elements of an array lie. Two arrays that share them have had no change since one became a copy of the other.
pub fn elements_address(array: Value) -> usize {
    // SAFETY: it is an array; nothing is read.
    unsafe { rb_ary_ptr_use_start(array) as usize }
}

/// Number of elements of an array.
pub fn length(array: Value) -> usize {
    rb_num2long(call(array, intern("length"), &[])) as usize
}

/// The element of an array, nil beyond its end.
pub fn entry(array: Value, index: usize) -> Value {
    rb_ary_entry(array, index as c_long)
}

/// Makes one array a copy of another. They share their elements until one of them changes.
pub fn replace(array: Value, other: Value) {
    // Elements that nobody shares any more are its own then, and freed here instead of by the next collection.
    rb_ary_modify(array);
    rb_ary_replace(array, other);
}

pub fn array() -> Value {
    rb_ary_new()
}

pub fn array_of(elements: &[Value]) -> Value {
    // SAFETY: pointer and size are those of a slice, which is copied.
    unsafe { rb_ary_new_from_values(elements.len() as c_long, elements.as_ptr()) }
}

/// Takes all elements out of an array. May raise where that is frozen.
pub fn clear_array(array: Value) {
    rb_ary_clear(array);
}

/// Appends an element to an array. May raise where that is frozen.
pub fn push(array: Value, element: Value) {
    rb_ary_push(array, element);
}

pub fn is_frozen(object: Value) -> bool {
    rb_obj_frozen_p(object).is_truthy()
}

/// An Integer's value. Raises for other objects.
pub fn integer(number: Value) -> i64 {
    rb_num2long(number)
}

pub fn number(number: usize) -> Value {
    rb_int2inum(number as isize)
}

pub fn freeze(string: Value) -> Value {
    rb_str_freeze(string)
}

pub fn responds_to(object: Value, method: Id) -> bool {
    rb_respond_to(object, method) != 0
}

pub fn alias(class: Value, new: &str, old: &str) {
    rb_alias(class, intern(new), intern(old));
}

/// The path that a program gave, as Ruby understands it: to_path, to_str. Raises TypeError and others.
pub fn path(object: Value) -> Value {
    rb_get_path(object)
}

/// Calls something that may raise. What it holds when it raises is not dropped.
pub fn protect<F: FnOnce() -> Value>(function: F) -> Result<Value, Jump> {
    extern "C-unwind" fn trampoline<F: FnOnce() -> Value>(argument: usize) -> Value {
        // SAFETY: the argument is the address of the option below, which nothing else uses meanwhile.
        let function = unsafe { &mut *(argument as *mut Option<F>) }.take();
        function.map_or_else(nil, |function| function())
    }
    let (mut function, mut state) = (Some(function), 0);
    // SAFETY: the trampoline gets the argument that it expects, and `state` is valid for the call.
    let value = unsafe { rb_protect(trampoline::<F>, &raw mut function as usize, &mut state) };
    if state == 0 {
        Ok(value)
    } else {
        Err(Jump(state))
    }
}

impl Jump {
    /// Goes on with the exception (or throw) that ended the protected call. Nothing here is dropped.
    pub fn resume(self) -> ! {
        rb_jump_tag(self.0)
    }

    /// Whether it is a SyntaxError.
    pub fn is_syntax_error(self) -> bool {
        rb_obj_is_kind_of(rb_errinfo(), rb_eSyntaxError).is_truthy()
    }

    /// Forgets it.
    pub fn forget(self) {
        rb_set_errinfo(nil());
    }
}

pub fn error_info() -> Value {
    rb_errinfo()
}

pub fn set_error_info(exception: Value) {
    rb_set_errinfo(exception);
}

/// Raises the LoadError of a feature that is nowhere.
pub fn raise_not_found(feature: Value) -> ! {
    let message = c_bytes(feature);
    // SAFETY: the format has one string, and a C string is given.
    unsafe { rb_loaderror_with_path(feature, c"cannot load such file -- %s".as_ptr(), message.as_ptr()) }
}

/// Ruby's own exec. Returns only by raising.
pub fn exec(arguments: &[Value]) -> Value {
    // SAFETY: pointer and number are those of a slice.
    unsafe { rb_f_exec(arguments.len() as c_int, arguments.as_ptr()) }
}

/// Ruby's own require, without anybody's method around it. May raise.
pub fn original_require(receiver: Value, name: Value) -> Value {
    rb_f_require(receiver, name)
}

/// Appends a path to $LOADED_FEATURES, by Ruby's own means, which keep its index true. Raises where that is frozen.
pub fn provide(feature: &'static CStr) {
    // SAFETY: a C string that lives as long as the process: Ruby makes a string over it.
    unsafe { rb_provide(feature.as_ptr()) }
}

/// Whether line or branch coverage has been set up.
pub fn has_coverage() -> bool {
    rb_get_coverages().is_truthy()
}

/// The real path of the source file whose code called the C function that runs now. `None`: there is none, or only Ruby knows.
pub fn caller_file() -> Option<Value> {
    let (mut frames, mut lines) = ([nil(); 2], [0; 2]);
    // SAFETY: there is room for two frames.
    let count = unsafe { rb_profile_frames(0, 2, frames.as_mut_ptr(), lines.as_mut_ptr()) };
    for frame in &frames[..count as usize] {
        let path = rb_profile_frame_absolute_path(*frame);
        match path.is_string().then(|| c_bytes(path).to_bytes()) {
            // The frame of eval'ed code may be shown as that of the method around it.
            Some([b'/', ..]) => return is_running(rb_profile_frame_path(*frame)).then_some(path),
            // The frame of the C function itself.
            Some(b"<cfunc>") => {}
            _ => return None,
        }
    }
    None
}

/// Whether the Ruby code that runs, or called the C function that does, was compiled under that name.
fn is_running(path: Value) -> bool {
    let name = rb_sourcefile();
    // SAFETY: a C string of the source that runs, or none.
    path.is_string() && !name.is_null() && unsafe { CStr::from_ptr(name) } == c_bytes(path)
}

/// File.absolute_path(path, File.dirname(file)). May raise.
pub fn beside(path: Value, file: Value) -> Value {
    rb_file_absolute_path(path, rb_file_dirname(file))
}

pub fn current_thread() -> Value {
    rb_thread_current()
}

/// Sleeps until somebody wakes this thread. Other threads run. May raise (an interrupt, a deadlock).
pub fn sleep() {
    rb_thread_sleep_deadly();
}

/// Wakes a thread that sleeps; nothing happens to any other.
pub fn wake(thread: Value) {
    rb_thread_wakeup_alive(thread);
}

/// Number of the event for code that has just been compiled. Part of the public API, the same in all versions.
const SCRIPT_COMPILED: u32 = 0x2000;

/// A TracePoint that calls `function` with itself when a file or string has been compiled. It is not enabled.
pub fn compile_tracer(function: extern "C-unwind" fn(Value, *mut c_void)) -> Value {
    // SAFETY: the function has the type that Ruby calls, and no use for data.
    unsafe { rb_tracepoint_new(nil(), SCRIPT_COMPILED, function, std::ptr::null_mut()) }
}

pub fn enable(tracepoint: Value) {
    rb_tracepoint_enable(tracepoint);
}

pub fn disable(tracepoint: Value) {
    rb_tracepoint_disable(tracepoint);
}

/// Whether an array of `size` strings is still what its copy is: because they share their elements, or by comparing these.
pub fn is_same_array(array: Value, copy: Value, size: usize) -> bool {
    if size > 0 && elements_address(array) == elements_address(copy) {
        return !entry(array, size - 1).is_nil() && entry(array, size).is_nil();
    }
    length(array) == size && length(copy) == size && elements(array, size) == elements(copy, size)
}

/// File.expand_path(path). May raise.
pub fn expanded(path: Value) -> Value {
    rb_file_expand_path(path, nil())
}

/// Whether Ruby itself knows a feature as loaded or being loaded.
pub fn is_provided(feature: Value) -> bool {
    let feature = c_bytes(feature);
    // SAFETY: a C string, which is copied.
    unsafe { rb_provided(feature.as_ptr()) != 0 }
}

/// Whether warnings are wanted in full (-w).
pub fn is_verbose() -> bool {
    // SAFETY: Ruby's own variable, which is there as long as the process.
    unsafe { *rb_ruby_verbose_ptr() }.is_truthy()
}

/// Does something without warnings. It must not raise.
pub fn without_warnings<T>(work: impl FnOnce() -> T) -> T {
    let verbose = rb_ruby_verbose_ptr();
    // SAFETY: Ruby's own variable, which is there as long as the process, and a value that it may have.
    let before = unsafe { verbose.replace(nil()) };
    let result = work();
    // SAFETY: as above.
    unsafe { verbose.write(before) };
    result
}

/// What Ruby says of a file that requires itself, in the end.
pub fn warn_of_circle(path: &CStr) {
    // SAFETY: the format has one string, and a C string is given.
    unsafe { rb_warning(c"loading in progress, circular require considered harmful - %s".as_ptr(), path.as_ptr()) }
}

/// Whether an object is a Symbol.
pub fn is_symbol(object: Value) -> bool {
    rb_obj_class(object) == rb_cSymbol
}

/// A name as an object.
pub fn symbol(name: &str) -> Value {
    rb_id2sym(intern(name))
}

/// Number of objects that have outlived several collections.
pub fn old_objects() -> usize {
    rb_gc_stat(symbol("old_objects"))
}

/// Nearly as many objects as a page of Ruby's heap holds: 16 kB, 40 bytes each (HEAP_PAGE_SIZE and RVALUE in gc.c).
const OBJECTS_OF_PAGE: usize = 400;

/// Has the heap grow until it has places for so many objects, unless the collector is off, which makes it grow anyway. Some of
/// the new objects are put into an Array: while they are kept, no page of the heap is empty, and Ruby gives none back.
pub fn make_room(objects: usize, kept: Value) {
    let available = symbol("heap_available_slots");
    let is_off = rb_gc_disable().is_truthy();
    if is_off {
        return;
    }
    let saved = rb_errinfo();
    let result = protect(|| {
        while rb_gc_stat(available) < objects {
            // A number beyond what fits into a Value: an object, and the cheapest to make and to take away.
            push(kept, rb_float_new(f64::MAX));
            for _ in 1..OBJECTS_OF_PAGE {
                rb_float_new(f64::MAX);
            }
        }
        nil()
    });
    rb_gc_enable();
    // There is no more memory: whoever needs it will hear of that.
    if result.is_err() {
        rb_set_errinfo(saved);
    }
}

/// Gives a method of an object itself another name, too.
pub fn alias_singleton(object: Value, new: &str, old: &str) {
    rb_alias(rb_singleton_class(object), intern(new), intern(old));
}

/// Takes a method of an object itself away again.
pub fn remove_singleton(object: Value, name: &CStr) {
    // SAFETY: a C string, which is copied.
    unsafe { rb_remove_method(rb_singleton_class(object), name.as_ptr()) }
}

/// Whether a class or module has a private method of that name.
pub fn has_private_method(class: Value, name: &str) -> bool {
    call(class, intern("private_method_defined?"), &[symbol(name)]).is_truthy()
}

/// The source file of a class' method. `None`: it is written in C.
pub fn source_of(class: Value, name: &str) -> Option<Vec<u8>> {
    let method = call(class, intern("instance_method"), &[symbol(name)]);
    let location = call(method, intern("source_location"), &[]);
    (!location.is_nil()).then(|| bytes(entry(location, 0)))
}
