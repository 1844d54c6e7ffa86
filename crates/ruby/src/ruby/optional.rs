//! What some Rubies export without its being public API: looked up by name, and done without where it is not there.
#![allow(unsafe_code)]

use std::ffi::{c_char, c_void, CStr};
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering::Relaxed};
use std::sync::OnceLock;

use super::feature::rb_f_require;
use super::trace::SCRIPT_COMPILED;
use super::{
    array, call, error_info, find_constant, intern, keep, number, object_class, original_require, protect, rb_set_errinfo,
    send, set_error_info, text, Id, Jump, Protected, Value,
};

#[derive(Clone, Copy, Debug, Default)]
struct Optional {
    iseq_of: Option<unsafe extern "C-unwind" fn(Value) -> *const c_void>,
    evaluate: Option<unsafe extern "C-unwind" fn(*const c_void) -> Value>,
    is_main_ractor: Option<unsafe extern "C-unwind" fn() -> bool>,
    /// Enters a path into the table of what is being loaded. Whoever requires it calls the function instead of loading a file.
    enter: Option<unsafe extern "C-unwind" fn(*const c_char, extern "C-unwind" fn())>,
    /// The events that somebody traces.
    events: Option<&'static AtomicU32>,
    /// Where in what `ruby_current_ec` points to (in words) the exception is that is being handled.
    error_info: Option<usize>,
}

static OPTIONAL: OnceLock<Optional> = OnceLock::new();

/// The class Ractor and what it is asked, where its own function is not exported.
static RACTOR: OnceLock<(Value, [Id; 3])> = OnceLock::new();

/// The exception that has Ruby's require fail. Nobody rescues it but [`require_with`].
static SIGN: OnceLock<Value> = OnceLock::new();

fn find(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: looks a C string up in what is loaded; changes nothing.
    Some(unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) }).filter(|address| !address.is_null())
}

/// Looks for it in the Ruby that runs. `is_known`: this is Ruby 3.0 to 3.4, where the functions have the parameters that are
/// declared here. `has_one_table`: this is Ruby 3.1, where extensions that wait for their initialisation are in the table of what
/// is being loaded.
pub fn look_up(is_known: bool, has_one_table: bool) -> Protected<()> {
    if let Some(class) = find_constant(object_class(), "Ractor")? {
        let class = (keep(class)?, [intern("count")?, intern("current")?, intern("main")?]);
        RACTOR.get_or_init(|| class);
    }
    if !is_known {
        return Ok(());
    }
    let exception = find_constant(object_class(), "Exception")?;
    let sign = send(exception.unwrap_or(object_class()), "new", &[text(b"snapboot: a file could not be loaded")?])?;
    send(sign, "set_backtrace", &[array()?])?;
    SIGN.get_or_init(|| sign);
    keep(sign)?;
    // SAFETY: these are the types that the functions and the variable of these names have in the Rubies that the caller vouches
    // for.
    OPTIONAL.get_or_init(|| unsafe {
        Optional {
            iseq_of: find(c"rb_iseqw_to_iseq").map(|address| std::mem::transmute(address)),
            evaluate: find(c"rb_iseq_eval").map(|address| std::mem::transmute(address)),
            is_main_ractor: find(c"rb_ractor_main_p_").map(|address| std::mem::transmute(address)),
            enter: find(c"ruby_init_ext").filter(|_| has_one_table).map(|address| std::mem::transmute(address)),
            events: find(c"ruby_vm_event_flags").map(|address| &*address.cast::<AtomicU32>()),
            error_info: find_error_info(sign),
        }
    });
    Ok(())
}

fn optional() -> Optional {
    OPTIONAL.get().copied().unwrap_or_default()
}

/// Where Ruby keeps the exception that is being handled, found by putting one there.
fn find_error_info(sign: Value) -> Option<usize> {
    /// Of what is looked at (words); the structure is twice as large in every Ruby that this is done in.
    const WORDS: usize = 32;
    let context = context()?;
    let before = error_info();
    set_error_info(sign);
    // SAFETY: the thread's context, which is larger, and which nobody changes meanwhile.
    let words = unsafe { std::slice::from_raw_parts(context, WORDS) };
    let found: Vec<usize> = (0..WORDS).filter(|at| words[*at] == sign).collect();
    set_error_info(before);
    match found[..] {
        [at] => Some(at),
        _ => None,
    }
}

/// The context of the thread that runs.
fn context() -> Option<*mut Value> {
    let place = find(c"ruby_current_ec")?.cast::<*mut Value>();
    // SAFETY: the thread's own variable of that name holds an address, or none.
    Some(unsafe { *place }).filter(|context| !context.is_null())
}

/// Makes anything what is being handled: what Ruby notes of a throw is no exception.
fn restore(information: Value) {
    if let (Some(context), Some(at)) = (context(), optional().error_info) {
        // SAFETY: `find_error_info` has found it there, and the value was there before.
        unsafe { context.add(at).write(information) };
    }
}

/// Runs the code of a RubyVM::InstructionSequence as `load` does: without a frame of its own.
fn evaluate(code: Value) -> Protected {
    match optional() {
        // SAFETY: the functions are what `look_up` says, and the object is one that `load_from_binary` gave.
        Optional { iseq_of: Some(iseq_of), evaluate: Some(evaluate), .. } => protect(|| unsafe { evaluate(iseq_of(code)) }),
        _ => send(code, "eval", &[]),
    }
}

/// A file that is to be loaded by running code, on the stack of whoever has Ruby require it.
struct Entered {
    code: Value,
    /// How the code ended, if not by returning, and what Ruby noted of that.
    end: Option<(Jump, Value)>,
}

/// The file that was entered into Ruby's table, and that Ruby has not asked for yet.
static ENTERED: AtomicPtr<Entered> = AtomicPtr::new(ptr::null_mut());

/// Whether [`require_with`] is possible in this Ruby, and now.
pub fn can_require_with() -> bool {
    let Optional { enter, iseq_of, evaluate, error_info, .. } = optional();
    let is_possible = enter.is_some() && iseq_of.is_some() && evaluate.is_some() && error_info.is_some();
    is_possible && ENTERED.load(Relaxed).is_null()
}

/// Has Ruby's own require load the file at `path`, which is also `name`, by running this code: Ruby sees to it that the file is in
/// its table of what is being loaded meanwhile, that it becomes a feature, and that others wait. Needs [`can_require_with`].
pub fn require_with(receiver: Value, name: Value, path: &CStr, code: Value) -> Protected {
    let Some(enter) = optional().enter else { return original_require(receiver, name) };
    let mut entered = Entered { code, end: None };
    ENTERED.store(&raw mut entered, Relaxed);
    let result = protect(|| {
        // SAFETY: the function is what `look_up` says, and gets a C string, which is copied. Where Ruby knows the file already
        // nothing is entered, and require finds that out, too.
        unsafe {
            enter(path.as_ptr(), load_entered);
            rb_f_require(receiver, name)
        }
    });
    // Ruby had no use for it.
    ENTERED.store(ptr::null_mut(), Relaxed);
    match entered.end {
        Some((jump, information)) if result.is_err() && Some(&error_info()) == SIGN.get() => {
            restore(information);
            Err(jump)
        }
        _ => result,
    }
}

/// Called by Ruby's require with the file in its table. There is no other way to tell it of a failure than an exception that it
/// finds when this has returned: it raises that, after it has taken the file out of the table.
extern "C-unwind" fn load_entered() {
    let entered = ENTERED.swap(ptr::null_mut(), Relaxed);
    let is_loaded = match ptr::NonNull::new(entered) {
        // SAFETY: `require_with` has put it there and waits for this to return. Nobody else has it.
        Some(mut entered) => unsafe { entered.as_mut() }.run(),
        // Somebody who entered it was interrupted.
        None => false,
    };
    if let (false, Some(sign)) = (is_loaded, SIGN.get()) {
        // SAFETY: an exception, with which it does not raise.
        unsafe { rb_set_errinfo(*sign) };
    }
}

impl Entered {
    fn run(&mut self) -> bool {
        self.end = evaluate(self.code).err().map(|jump| (jump, error_info()));
        self.end.is_none()
    }
}

/// Whether this is the main Ractor.
pub fn is_main_ractor() -> bool {
    match (optional().is_main_ractor, RACTOR.get()) {
        // SAFETY: the function is what `look_up` says.
        (Some(is_main), _) => unsafe { is_main() },
        (None, Some((class, [count, current, main]))) => {
            let ask = |question| call(*class, question, &[]);
            let is_alone = ask(*count).is_ok_and(|count| count == number(1));
            is_alone || matches!((ask(*current), ask(*main)), (Ok(current), Ok(main)) if current == main)
        }
        (None, None) => false,
    }
}

/// Whether somebody wants to hear of all code that is compiled. `None`: this Ruby does not tell.
pub fn is_compiling_traced() -> Option<bool> {
    optional().events.map(|events| events.load(Relaxed) & SCRIPT_COMPILED != 0)
}
