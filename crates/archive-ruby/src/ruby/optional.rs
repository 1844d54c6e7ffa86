//! Functions that some Rubies export outside of the public API: looked up by name, and optional.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_void, CStr};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::OnceLock;

use super::trace::SCRIPT_COMPILED;
use super::{Id, Main, Protected, Ruby, Value};

#[derive(Clone, Copy, Debug, Default)]
struct Optional {
    is_main_ractor: Option<unsafe extern "C-unwind" fn() -> bool>,
    is_category_enabled: Option<unsafe extern "C-unwind" fn(c_int) -> bool>,
    /// The events that are traced.
    events: Option<&'static AtomicU32>,
}

static OPTIONAL: OnceLock<Optional> = OnceLock::new();

/// The class Ractor and the methods that say which one runs, for a Ruby that does not export its own function.
static RACTOR: OnceLock<(Value<'static>, [Id; 3])> = OnceLock::new();

/// The module Warning, its method `[]` and the name `experimental`, for the same reason.
static WARNING: OnceLock<(Value<'static>, Id, Value<'static>)> = OnceLock::new();

/// RB_WARN_CATEGORY_EXPERIMENTAL. Part of the public API, the same in all versions.
const EXPERIMENTAL: c_int = 2;

fn optional() -> Optional {
    OPTIONAL.get().copied().unwrap_or_default()
}

impl<'r> Ruby<'r> {
    /// Looks for it in the running Ruby.
    pub(super) fn look_up(self) -> Protected<()> {
        let version = self.version()?;
        let is_known = matches!(version.get(..4), Some([b'3', b'.', b'0'..=b'4', b'.']));
        let find = |name: &CStr| -> Option<*mut c_void> {
            // SAFETY: looks a C string up in what is loaded; changes nothing.
            let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
            Some(address).filter(|address| is_known && !address.is_null())
        };
        // SAFETY: these are the types that the functions and the variable of these names have in Ruby 3.0 to 3.4.
        OPTIONAL.get_or_init(|| unsafe {
            Optional {
                is_main_ractor: find(c"rb_ractor_main_p_").map(|address| std::mem::transmute(address)),
                is_category_enabled: find(c"rb_warning_category_enabled_p").map(|address| std::mem::transmute(address)),
                events: find(c"ruby_vm_event_flags").map(|address| &*address.cast::<AtomicU32>()),
            }
        });
        Ok(())
    }

    /// The token of the main Ractor, if this is the main one.
    pub fn main(self) -> Option<Main<'r>> {
        let is_main = match optional().is_main_ractor {
            // SAFETY: the function is what `look_up` says.
            Some(is_main) => unsafe { is_main() },
            None => self.is_main_ractor().unwrap_or(false),
        };
        is_main.then_some(Main(self))
    }

    /// Whether Ractor's own methods say that this is the main one.
    fn is_main_ractor(self) -> Protected<bool> {
        let (class, [count, current, main]) = match RACTOR.get() {
            Some(known) => *known,
            None => {
                let Some(class) = self.find_constant(self.object_class(), "Ractor")? else { return Ok(false) };
                let names = [self.intern("count")?, self.intern("current")?, self.intern("main")?];
                let class = self.keep(class)?;
                *RACTOR.get_or_init(|| (class, names))
            }
        };
        Ok(self.call(class, count, &[])? == self.number(1)
            || self.call(class, current, &[])? == self.call(class, main, &[])?)
    }

    /// Whether warnings about experimental features are on.
    pub(super) fn warns_of_experiments(self) -> bool {
        match optional().is_category_enabled {
            // SAFETY: the function is what `look_up` says, and every Ruby has this category.
            Some(is_enabled) => unsafe { is_enabled(EXPERIMENTAL) },
            None => self.asks_warning().unwrap_or(true),
        }
    }

    /// The value of `Warning[:experimental]`.
    fn asks_warning(self) -> Protected<bool> {
        let (module, get, name) = match WARNING.get() {
            Some(known) => *known,
            None => {
                let Some(module) = self.find_constant(self.object_class(), "Warning")? else { return Ok(true) };
                let (module, get, name) = (self.keep(module)?, self.intern("[]")?, self.symbol("experimental")?);
                let name = self.keep(name)?;
                *WARNING.get_or_init(|| (module, get, name))
            }
        };
        Ok(self.call(module, get, &[name])?.is_truthy())
    }

    /// Whether compiling is traced. `None`: this Ruby does not show it.
    pub fn is_compiling_traced(self) -> Option<bool> {
        optional().events.map(|events| events.load(Relaxed) & SCRIPT_COMPILED != 0)
    }
}
