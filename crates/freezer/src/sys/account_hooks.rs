//! The C library's functions that look users, groups, services and protocols up. During the boot they announce each
//! look-up to the recorder, so that an image depends on these lines of /etc/passwd and the like, and not on all users
//! of the machine.
//! [`super::libc_hooks`] explains why they are here.
//!
//! Look-ups by other means (enumerating all users, within the C library, by other programs) are not announced; then the
//! whole table counts.

use core::ffi::{c_char, c_int, c_uint, c_void, CStr};

use ::channel::Request;
use image::lookup_kind;

use super::channel::send_to_recorder;
use super::events::is_on;
use super::libc_hooks::Next;

/// Defines functions that announce a look-up, call the C library, and announce the end.
macro_rules! look_up {
    ($(fn $name:ident($key:ident: $kind:ty $(, $argument:ident: $type:ty)*) -> $result:ty { $announce:expr })*) => {
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
            pub unsafe extern "C" fn $name($key: $kind $(, $argument: $type)*) -> $result {
                let is_announced = is_on();
                if is_announced {
                    $announce;
                }
                // SAFETY: the type is that of the C library's function; the arguments are the caller's.
                let result = unsafe {
                    next::$name.get::<unsafe extern "C" fn($kind $(, $type)*) -> $result>()($key $(, $argument)*)
                };
                if is_announced {
                    send_to_recorder(Request::LookedUp, &[]);
                }
                result
            }
        )*
    };
}

look_up! {
    fn getpwnam(name: *const c_char) -> *mut c_void { by_name(name) }
    fn getpwnam_r(name: *const c_char, entry: *mut c_void, buffer: *mut c_char, size: usize, found: *mut c_void) -> c_int {
        by_name(name)
    }
    fn getpwuid(number: c_uint) -> *mut c_void { by_number(number) }
    fn getpwuid_r(number: c_uint, entry: *mut c_void, buffer: *mut c_char, size: usize, found: *mut c_void) -> c_int {
        by_number(number)
    }
    fn getgrnam(name: *const c_char) -> *mut c_void { by_name(name) }
    fn getgrnam_r(name: *const c_char, entry: *mut c_void, buffer: *mut c_char, size: usize, found: *mut c_void) -> c_int {
        by_name(name)
    }
    fn getgrgid(number: c_uint) -> *mut c_void { by_number(number) }
    fn getgrgid_r(number: c_uint, entry: *mut c_void, buffer: *mut c_char, size: usize, found: *mut c_void) -> c_int {
        by_number(number)
    }
    fn getservbyname(name: *const c_char, protocol: *const c_char) -> *mut c_void { entry_by_name(name) }
    fn getservbyname_r(
        name: *const c_char, protocol: *const c_char, entry: *mut c_void, buffer: *mut c_char, size: usize, found: *mut c_void
    ) -> c_int {
        entry_by_name(name)
    }
    fn getservbyport(port: c_int, protocol: *const c_char) -> *mut c_void { entry_by_number(host_order(port)) }
    fn getservbyport_r(
        port: c_int, protocol: *const c_char, entry: *mut c_void, buffer: *mut c_char, size: usize, found: *mut c_void
    ) -> c_int {
        entry_by_number(host_order(port))
    }
    fn getprotobyname(name: *const c_char) -> *mut c_void { entry_by_name(name) }
    fn getprotobyname_r(
        name: *const c_char, entry: *mut c_void, buffer: *mut c_char, size: usize, found: *mut c_void
    ) -> c_int {
        entry_by_name(name)
    }
    fn getprotobynumber(number: c_int) -> *mut c_void { entry_by_number(number as c_uint) }
    fn getprotobynumber_r(
        number: c_int, entry: *mut c_void, buffer: *mut c_char, size: usize, found: *mut c_void
    ) -> c_int {
        entry_by_number(number as c_uint)
    }
}

fn by_name(name: *const c_char) {
    look_up_name(lookup_kind::NAME, name);
}

fn by_number(number: c_uint) {
    look_up_number(lookup_kind::NUMBER, number);
}

fn entry_by_name(name: *const c_char) {
    look_up_name(lookup_kind::ENTRY, name);
}

fn entry_by_number(number: c_uint) {
    look_up_number(lookup_kind::ENTRY, number);
}

/// A port, which the C library's functions take in network byte order.
fn host_order(port: c_int) -> c_uint {
    u16::from_be(port as u16).into()
}

fn look_up_name(kind: u32, name: *const c_char) {
    if !name.is_null() {
        // SAFETY: callers name what they look up by strings.
        look_up(kind, unsafe { CStr::from_ptr(name) }.to_bytes());
    }
}

fn look_up_number(kind: u32, number: c_uint) {
    let mut digits = [0; 10];
    let (mut start, mut rest) = (digits.len(), number);
    loop {
        start -= 1;
        digits[start] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    look_up(kind, &digits[start..]);
}

/// Announces to the recorder what this thread will look up.
pub fn look_up(kind: u32, text: &[u8]) {
    send_to_recorder(Request::LookUp, &[&[b'0' + kind as u8, b'/'], text]);
}
