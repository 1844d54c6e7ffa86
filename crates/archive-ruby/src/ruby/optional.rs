//! What some Rubies export without its being public API: looked up by name, and done without where it is not there.
#![allow(unsafe_code)]

use std::ffi::{c_void, CStr};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::OnceLock;

use super::trace::SCRIPT_COMPILED;
use super::{call, find_constant, intern, keep, number, object_class, Id, Protected, Value};

#[derive(Clone, Copy, Debug, Default)]
struct Optional {
    is_main_ractor: Option<unsafe extern "C-unwind" fn() -> bool>,
    /// The events that somebody traces.
    events: Option<&'static AtomicU32>,
}

static OPTIONAL: OnceLock<Optional> = OnceLock::new();

/// The class Ractor and what it is asked, where its own function is not exported.
static RACTOR: OnceLock<(Value, [Id; 3])> = OnceLock::new();

/// Looks for it in the Ruby that runs. `is_known`: this is Ruby 3.0 to 3.4, where the function and the variable have the types
/// that are declared here.
pub fn look_up(is_known: bool) -> Protected<()> {
    if let Some(class) = find_constant(object_class(), "Ractor")? {
        let class = (keep(class)?, [intern("count")?, intern("current")?, intern("main")?]);
        RACTOR.get_or_init(|| class);
    }
    let find = |name: &CStr| -> Option<*mut c_void> {
        // SAFETY: looks a C string up in what is loaded; changes nothing.
        let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
        Some(address).filter(|address| is_known && !address.is_null())
    };
    // SAFETY: these are the types that the function and the variable of these names have in the Rubies that the caller vouches
    // for.
    OPTIONAL.get_or_init(|| unsafe {
        Optional {
            is_main_ractor: find(c"rb_ractor_main_p_").map(|address| std::mem::transmute(address)),
            events: find(c"ruby_vm_event_flags").map(|address| &*address.cast::<AtomicU32>()),
        }
    });
    Ok(())
}

fn optional() -> Optional {
    OPTIONAL.get().copied().unwrap_or_default()
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
