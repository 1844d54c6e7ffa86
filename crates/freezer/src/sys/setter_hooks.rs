//! The C library's functions through which a program sets attributes of its process. An attribute that the boot sets
//! counts as changed, even if its value is the same as before: another start may inherit a different one.
//! [`super::libc_hooks`] explains why they are here.

use core::ffi::{c_char, c_int, c_uint, c_ulong, c_void};

use inputs::attributes::Attribute;

use super::attributes::touch;
use super::events::is_on;
use super::libc_hooks::{is_own, limit_is_read, Next};

/// Defines functions that pass the call on, and record the attribute if the call succeeded.
macro_rules! set {
    ($(fn $name:ident($($argument:ident: $type:ty),*) { $attribute:expr })*) => {
        /// The C library's functions.
        #[allow(non_upper_case_globals)]
        mod next {
            use super::Next;
            $(pub static $name: Next = Next::new(concat!(stringify!($name), "\0"));)*
        }

        /// Resolves all of them now, so that a thawed process need not.
        pub fn bind() {
            $(next::$name.address();)*
        }

        $(
            /// The C library's function of this name, see the module's description.
            ///
            /// # Safety
            /// As for the function of the C library.
            #[no_mangle]
            pub unsafe extern "C" fn $name($($argument: $type),*) -> c_int {
                // SAFETY: the type is that of the C library's function; the arguments are the caller's.
                let result = unsafe {
                    next::$name.get::<unsafe extern "C" fn($($type),*) -> c_int>()($($argument),*)
                };
                if is_on() && result != -1 {
                    let attribute: Option<Attribute> = $attribute;
                    attribute.into_iter().for_each(touch);
                }
                result
            }
        )*
    };
}

set! {
    fn chdir(_path: *const c_char) { Some(Attribute::Directory) }
    fn fchdir(_number: c_int) { Some(Attribute::Directory) }
    fn setrlimit(resource: c_uint, _limit: *const c_void) { limit(resource) }
    fn setrlimit64(resource: c_uint, _limit: *const c_void) { limit(resource) }
    fn prlimit(pid: c_int, resource: c_uint, new: *const c_void, answer: *mut c_void) { read_or_set(pid, resource, new, answer) }
    fn prlimit64(pid: c_int, resource: c_uint, new: *const c_void, answer: *mut c_void) { read_or_set(pid, resource, new, answer) }
    fn nice(_by: c_int) { Some(Attribute::Scheduling) }
    fn setpriority(which: c_uint, who: c_uint, _value: c_int) {
        (which == libc::PRIO_PROCESS && is_own(who as c_int)).then_some(Attribute::Scheduling)
    }
    fn sched_setscheduler(pid: c_int, _policy: c_int, _parameters: *const c_void) {
        is_own(pid).then_some(Attribute::Scheduling)
    }
    fn sched_setparam(pid: c_int, _parameters: *const c_void) { is_own(pid).then_some(Attribute::Scheduling) }
    fn sched_setaffinity(pid: c_int, _size: usize, _mask: *const c_void) { is_own(pid).then_some(Attribute::Affinity) }
    fn personality(persona: c_ulong) { (persona as u32 != u32::MAX).then_some(Attribute::Personality) }
    // On this architecture a variadic function may be called as one with these arguments.
    fn prctl(option: c_int, _2: c_ulong, _3: c_ulong, _4: c_ulong, _5: c_ulong) {
        match option {
            libc::PR_SET_TIMERSLACK => Some(Attribute::TimerSlack),
            libc::PR_SET_THP_DISABLE => Some(Attribute::HugePages),
            libc::PR_SET_CHILD_SUBREAPER => Some(Attribute::Subreaper),
            libc::PR_SET_PDEATHSIG => Some(Attribute::ParentDeathSignal),
            libc::PR_MCE_KILL => Some(Attribute::MachineChecks),
            _ => None,
        }
    }
}

fn limit(resource: c_uint) -> Option<Attribute> {
    Attribute::LIMITS.get(resource as usize).copied()
}

fn read_or_set(pid: c_int, resource: c_uint, new: *const c_void, answer: *mut c_void) -> Option<Attribute> {
    if !is_own(pid) {
        return None;
    }
    if !answer.is_null() {
        limit_is_read(resource);
    }
    if new.is_null() {
        None
    } else {
        limit(resource)
    }
}
