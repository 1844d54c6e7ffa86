//! What some Rubies export without its being public API: looked up by name, and done without where it is not there.
#![allow(unsafe_code)]

use std::ffi::{c_char, c_void, CStr};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::OnceLock;

use super::{call, constant, intern, keep, number, object_class, rb_provided, Id, Value, SCRIPT_COMPILED};

#[derive(Clone, Copy, Debug, Default)]
struct Optional {
    iseq_of: Option<unsafe extern "C-unwind" fn(Value) -> *const c_void>,
    evaluate: Option<unsafe extern "C-unwind" fn(*const c_void) -> Value>,
    is_main_ractor: Option<unsafe extern "C-unwind" fn() -> bool>,
    /// Enters a path into the table of what is being loaded. Whoever requires it takes it out, and calls the function instead
    /// of loading a file.
    enter: Option<unsafe extern "C-unwind" fn(*const c_char, extern "C" fn())>,
    /// The events that somebody traces.
    events: Option<&'static AtomicU32>,
}

static OPTIONAL: OnceLock<Optional> = OnceLock::new();

/// Looks for it in the Ruby that runs. `is_known`: this is Ruby 3.0 to 3.4, where the functions have the parameters that are
/// declared here. `has_one_table`: this is Ruby 3.1, where extensions that wait for their initialisation are in the table of what
/// is being loaded.
pub fn look_up(is_known: bool, has_one_table: bool) {
    let find = |name: &CStr| {
        // SAFETY: looks a C string up in what is loaded; changes nothing.
        let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
        (!address.is_null() && is_known).then_some(address)
    };
    OPTIONAL.get_or_init(|| {
        // SAFETY: these are the types that the functions and the variable of these names have in the Rubies that the caller
        // vouches for.
        unsafe {
            Optional {
                iseq_of: find(c"rb_iseqw_to_iseq").map(|address| std::mem::transmute(address)),
                evaluate: find(c"rb_iseq_eval").map(|address| std::mem::transmute(address)),
                is_main_ractor: find(c"rb_ractor_main_p_").map(|address| std::mem::transmute(address)),
                enter: find(c"ruby_init_ext").filter(|_| has_one_table).map(|address| std::mem::transmute(address)),
                events: find(c"ruby_vm_event_flags").map(|address| &*address.cast::<AtomicU32>()),
            }
        }
    });
    if let Some(class) = constant(object_class(), intern("Ractor")) {
        RACTOR.get_or_init(|| (keep(class), ["count", "current", "main"].map(intern)));
    }
}

fn optional() -> Optional {
    OPTIONAL.get().copied().unwrap_or_default()
}

/// Runs the code of a RubyVM::InstructionSequence as `require` does: without a frame of its own. May raise.
pub fn evaluate(code: Value) -> Value {
    match optional() {
        // SAFETY: the functions are what `look_up` says, and the object is one that `load_from_binary` gave.
        Optional { iseq_of: Some(iseq_of), evaluate: Some(evaluate), .. } => unsafe { evaluate(iseq_of(code)) },
        _ => call(code, intern("eval"), &[]),
    }
}

/// Enters a file into Ruby's table of what is being loaded, until somebody has Ruby require it: that makes it a feature, without a
/// look at the file. `false`: it is not entered, because this Ruby cannot do that, or knows the file already.
pub fn enter(path: &CStr) -> bool {
    extern "C" fn nothing() {}
    let Some(enter) = optional().enter else { return false };
    // SAFETY: both functions are what `look_up` and their declarations say, and get a C string, which is copied.
    unsafe {
        if rb_provided(path.as_ptr()) != 0 {
            return false;
        }
        enter(path.as_ptr(), nothing);
    }
    true
}

/// Whether this is the main Ractor.
pub fn is_main_ractor() -> bool {
    match (optional().is_main_ractor, RACTOR.get()) {
        // SAFETY: the function is what `look_up` says.
        (Some(is_main), _) => unsafe { is_main() },
        (None, Some((class, [count, current, main]))) => {
            call(*class, *count, &[]) == number(1) || call(*class, *current, &[]) == call(*class, *main, &[])
        }
        (None, None) => false,
    }
}

/// The class Ractor and what it is asked, where its own function is not exported.
static RACTOR: OnceLock<(Value, [Id; 3])> = OnceLock::new();

/// Whether somebody wants to hear of all code that is compiled. `None`: this Ruby does not tell.
pub fn is_compiling_traced() -> Option<bool> {
    optional().events.map(|events| events.load(Relaxed) & SCRIPT_COMPILED != 0)
}
