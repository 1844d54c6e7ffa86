//! The C library's functions through which a program reads its surroundings: its environment, the machine, the user,
//! the terminal.
//!
//! The freezer is preloaded and interposes them. While the program boots they record each read; they always pass the
//! call on. Calls within the C library do not come here. The libraries of the process are bound to these functions for
//! good, so in a thawed process they remain and only pass calls on.

use core::ffi::{c_char, c_int, c_long, c_uint, c_ulong, c_void, CStr};
use core::mem::transmute_copy;
use core::sync::atomic::{AtomicPtr, Ordering::Relaxed};

use crate::standard_streams;

use ::channel::Kind;

use super::events::{is_on, record, variable};
use super::on_demand::{self, name_of};
use super::ruby_code;

extern "C" {
    static environ: *const *const c_char;
}

/// The C library's function that a function of this library interposes.
pub struct Next {
    name: &'static CStr,
    address: AtomicPtr<c_void>,
}

impl Next {
    /// The next function of that name, which ends with its only NUL.
    pub const fn new(name: &'static str) -> Next {
        let Ok(name) = CStr::from_bytes_with_nul(name.as_bytes()) else { panic!("a name ends with a NUL") };
        Next { name, address: AtomicPtr::new(core::ptr::null_mut()) }
    }

    /// Its address.
    pub fn address(&self) -> *mut c_void {
        let address = self.address_if_any();
        assert!(!address.is_null(), "glibc has every function that is named here");
        address
    }

    /// The same of a function that an older C library may lack; null then.
    pub fn address_if_any(&self) -> *mut c_void {
        let mut address = self.address.load(Relaxed);
        if address.is_null() {
            // SAFETY: a plain call with a NUL-terminated name.
            address = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) };
            self.address.store(address, Relaxed);
        }
        address
    }

    /// The function as a pointer of type `F`.
    ///
    /// # Safety
    ///
    /// `F` is the type of a pointer to that function.
    pub unsafe fn get<F>(&self) -> F {
        // SAFETY: the caller guarantees the type, which is that of a pointer.
        unsafe { transmute_copy(&self.address()) }
    }
}

/// Defines functions that record a read and pass the call on: `fn NAME(ARGUMENT: TYPE, ...) -> TYPE { record }`.
macro_rules! pass_on {
    ($(fn $name:ident($($argument:ident: $type:ty),*) -> $result:ty $record:block)*) => {
        /// The C library's functions.
        #[allow(non_upper_case_globals)]
        mod next {
            use super::Next;
            $(pub static $name: Next = Next::new(concat!(stringify!($name), "\0"));)*
        }

        /// Resolves all of them now, so that a thawed process need not.
        pub fn bind() {
            $(next::$name.address();)*
            GETENV.address();
            SECURE_GETENV.address();
        }

        $(
            /// The C library's function of this name, see the module's description.
            ///
            /// # Safety
            /// As for the function of the C library.
            #[no_mangle]
            #[allow(unused_mut)]
            pub unsafe extern "C" fn $name($(mut $argument: $type),*) -> $result {
                if is_on() $record
                // SAFETY: the type is that of the C library's function; the arguments are the caller's.
                unsafe { next::$name.get::<unsafe extern "C" fn($($type),*) -> $result>()($($argument),*) }
            }
        )*
    };
}

fn fact(kind: &[u8]) {
    record(Kind::Fact, kind, b"");
}

/// A fact with a number below 100: a limit, a descriptor.
fn numbered_fact(kind: &[u8], number: u32) {
    let digits = [b'0' + (number / 10 % 10) as u8, b'0' + (number % 10) as u8];
    record(Kind::Fact, kind, &digits);
}

/// Whether a standard stream is a terminal, and which.
fn is_terminal(number: c_int) {
    if (0..=2).contains(&number) {
        numbered_fact(b"terminal", number as u32);
    }
}

/// Settings or name of a terminal at a standard stream: they differ in each start.
fn terminal_state(number: c_int) {
    is_terminal(number);
    // SAFETY: a plain call.
    if (0..=2).contains(&number) && unsafe { libc::isatty(number) } == 1 {
        record(Kind::Early, TERMINAL_STATE, b"");
    }
}

const TERMINAL_STATE: &[u8] = b"settings or the name of its terminal";

/// A read of a limit.
pub fn limit_is_read(resource: c_uint) {
    numbered_fact(b"limit", resource);
}

/// Whether a process id means this process: only its own facts count.
pub fn is_own(pid: c_int) -> bool {
    // SAFETY: a plain call.
    pid == 0 || pid == unsafe { libc::getpid() }
}

pass_on! {
    // The machine.
    fn gethostname(_name: *mut c_char, _size: usize) -> c_int { fact(b"hostname") }
    // For the host's name in the answer see the front ends: hardly any caller uses it.
    fn uname(_answer: *mut c_void) -> c_int { fact(b"kernel") }
    fn sysinfo(_answer: *mut c_void) -> c_int { fact(b"memory") }
    fn get_nprocs() -> c_int { fact(b"cpus") }
    fn get_nprocs_conf() -> c_int { fact(b"cpus") }
    fn sched_getaffinity(pid: c_int, _size: usize, _answer: *mut c_void) -> c_int {
        if is_own(pid) { fact(b"affinity") }
    }
    fn pthread_getaffinity_np(_thread: c_ulong, _size: usize, _answer: *mut c_void) -> c_int { fact(b"affinity") }
    fn sysconf(name: c_int) -> c_long {
        match name {
            libc::_SC_NPROCESSORS_CONF | libc::_SC_NPROCESSORS_ONLN => fact(b"cpus"),
            libc::_SC_PHYS_PAGES => fact(b"memory"),
            libc::_SC_OPEN_MAX => numbered_fact(b"limit", libc::RLIMIT_NOFILE),
            libc::_SC_CHILD_MAX => numbered_fact(b"limit", libc::RLIMIT_NPROC),
            _ => {}
        }
    }
    // Limits.
    fn getdtablesize() -> c_int { numbered_fact(b"limit", libc::RLIMIT_NOFILE) }
    fn getrlimit(resource: c_uint, _answer: *mut c_void) -> c_int { numbered_fact(b"limit", resource) }
    fn getrlimit64(resource: c_uint, _answer: *mut c_void) -> c_int { numbered_fact(b"limit", resource) }
    fn getpriority(which: c_uint, who: c_uint) -> c_int {
        if which == libc::PRIO_PROCESS && is_own(who as c_int) { fact(b"nice") }
    }
    // The user.
    fn getuid() -> c_uint { fact(b"user") }
    fn geteuid() -> c_uint { fact(b"user") }
    fn getgid() -> c_uint { fact(b"user") }
    fn getegid() -> c_uint { fact(b"user") }
    fn getresuid(_real: *mut c_uint, _effective: *mut c_uint, _saved: *mut c_uint) -> c_int { fact(b"user") }
    fn getresgid(_real: *mut c_uint, _effective: *mut c_uint, _saved: *mut c_uint) -> c_int { fact(b"user") }
    fn getgroups(_size: c_int, _answer: *mut c_uint) -> c_int { fact(b"groups") }
    // The terminal. On this architecture a function with any third argument may be called as one with a pointer.
    fn ioctl(number: c_int, request: c_ulong, _argument: *mut c_void) -> c_int {
        if request == libc::TIOCGWINSZ && (0..=2).contains(&number) { numbered_fact(b"window", number as u32) }
        if request == libc::TCGETS { terminal_state(number) }
    }
    fn isatty(number: c_int) -> c_int { is_terminal(number) }
    fn tcgetattr(number: c_int, _settings: *mut c_void) -> c_int { terminal_state(number) }
    fn ttyname(number: c_int) -> *mut c_char { terminal_state(number) }
    fn ttyname_r(number: c_int, _name: *mut c_char, _size: usize) -> c_int { terminal_state(number) }
    // Duplicates of standard streams.
    fn dup2(from: c_int, to: c_int) -> c_int { standard_streams::copied(from, to) }
    fn dup3(from: c_int, to: c_int, _flags: c_int) -> c_int { standard_streams::copied(from, to) }
    // Local time follows a variable that the C library reads itself.
    fn localtime(_time: *const c_void) -> *mut c_void { variables(&[c"TZ"]) }
    fn localtime_r(_time: *const c_void, _answer: *mut c_void) -> *mut c_void { variables(&[c"TZ"]) }
    fn mktime(_time: *mut c_void) -> c_long { variables(&[c"TZ"]) }
    // Programs that this process executes with all its variables.
    fn execve(program: *const c_char, _arguments: *const *const c_char, variables: *const *const c_char) -> c_int {
        if includes_environment(variables) { variables = executed_with(program, variables) }
    }
    fn execvpe(program: *const c_char, _arguments: *const *const c_char, variables: *const *const c_char) -> c_int {
        if includes_environment(variables) { variables = executed_with(program, variables) }
    }
    fn posix_spawn(_pid: *mut c_int, program: *const c_char, _actions: *const c_void, _attributes: *const c_void,
                   _arguments: *const *const c_char, variables: *const *const c_char) -> c_int {
        if includes_environment(variables) { variables = executed_with(program, variables) }
    }
    fn posix_spawnp(_pid: *mut c_int, program: *const c_char, _actions: *const c_void, _attributes: *const c_void,
                    _arguments: *const *const c_char, variables: *const *const c_char) -> c_int {
        if includes_environment(variables) { variables = executed_with(program, variables) }
    }
    fn system(command: *const c_char) -> c_int { if !command.is_null() { executed_with_all(c"/bin/sh".as_ptr()) } }
    fn popen(_command: *const c_char, _mode: *const c_char) -> *mut c_void { executed_with_all(c"/bin/sh".as_ptr()) }
    // Variables that the program changes itself.
    fn setenv(name: *const c_char, _value: *const c_char, _overwrite: c_int) -> c_int { forget(name) }
    fn putenv(entry: *const c_char) -> c_int { forget(entry) }
    fn unsetenv(name: *const c_char) -> c_int { forget(name) }
    fn clearenv() -> c_int { on_demand::forget(None) }
}

static GETENV: Next = Next::new("getenv\0");
static SECURE_GETENV: Next = Next::new("secure_getenv\0");

type SetFn = unsafe extern "C" fn(*const c_char, *const c_char, c_int) -> c_int;

/// `getenv`, with the address of its caller.
///
/// # Safety
///
/// The name is a string.
pub unsafe extern "C" fn getenv_for(name: *const c_char, caller: *const c_void) -> *mut c_char {
    // SAFETY: the type is that of the C library's function; the name is a string of the caller's.
    unsafe { read(&GETENV, name, caller) }
}

/// `secure_getenv`, with the address of its caller.
///
/// # Safety
///
/// The name is a string.
pub unsafe extern "C" fn secure_getenv_for(name: *const c_char, caller: *const c_void) -> *mut c_char {
    // SAFETY: as above.
    unsafe { read(&SECURE_GETENV, name, caller) }
}

/// The C library's function of this name, see the module's description.
///
/// # Safety
/// As for the function of the C library.
#[no_mangle]
pub unsafe extern "C" fn execv(program: *const c_char, arguments: *const *const c_char) -> c_int {
    // SAFETY: as the caller says.
    unsafe { execve(program, arguments, environ) }
}

/// The C library's function of this name, see the module's description.
///
/// # Safety
/// As for the function of the C library.
#[no_mangle]
pub unsafe extern "C" fn execvp(program: *const c_char, arguments: *const *const c_char) -> c_int {
    // SAFETY: as the caller says.
    unsafe { execvpe(program, arguments, environ) }
}

/// Reads a variable and records the read. A hidden variable is set now. One for libraries is shown to all but Ruby itself, for which it
/// would be in ENV.
///
/// # Safety
///
/// `get` is a function like getenv, and the name a string.
unsafe fn read(get: &Next, name: *const c_char, caller: *const c_void) -> *mut c_char {
    // SAFETY: the caller guarantees the function's type.
    let (get, set) = unsafe {
        let set = next::setenv.get::<SetFn>();
        (get.get::<unsafe extern "C" fn(*const c_char) -> *mut c_char>(), set)
    };
    // SAFETY: names and values are strings.
    unsafe {
        let mut value = get(name);
        if is_on() {
            if let Some(hidden) = value.is_null().then(|| on_demand::unhide(CStr::from_ptr(name))).flatten() {
                set(name, hidden.as_ptr(), 1);
                value = get(name);
            }
            variable(CStr::from_ptr(name), value);
            if ruby_code::is_foreign(caller) {
                record(Kind::Foreign, CStr::from_ptr(name).to_bytes(), b"");
            }
            if let Some(internal) = on_demand::internal(CStr::from_ptr(name)).filter(|_| !ruby_code::is_own(caller)) {
                return internal.as_ptr().cast_mut();
            }
        }
        value
    }
}

fn variables(names: &[&CStr]) {
    for name in names {
        // SAFETY: the name is a string.
        unsafe { getenv_for(name.as_ptr(), core::ptr::null()) };
    }
}

/// The variables of a locale named "". LC_CTYPE's are inputs in any case.
pub fn locale(category: c_int, name: *const c_char) {
    // SAFETY: a name is a string, or null to ask which locale is in effect.
    if category != libc::LC_CTYPE && !name.is_null() && unsafe { *name } == 0 {
        variables(&[c"LC_ALL", c"LC_COLLATE", c"LC_MESSAGES", c"LC_MONETARY", c"LC_NUMERIC", c"LC_TIME", c"LANG"]);
    }
}

/// Records that a program is executed with all variables.
fn executed(program: *const c_char) {
    // SAFETY: a program is named by a string.
    record(Kind::Executed, unsafe { CStr::from_ptr(program) }.to_bytes(), b"");
}

/// The same; returns all variables for the program, including those hidden from this process.
fn executed_with(program: *const c_char, variables: *const *const c_char) -> *const *const c_char {
    executed(program);
    // SAFETY: what a program is executed with is a list of strings.
    unsafe { on_demand::with_hidden(variables) }
}

/// The same if the C library passes this process' own variables: hidden ones are set for that.
pub fn executed_with_all(program: *const c_char) {
    executed(program);
    // SAFETY: both are strings.
    on_demand::unhide_all(|name, value| unsafe {
        next::setenv.get::<SetFn>()(name, value, 1);
    });
}

/// Whether this list of variables contains all names of the process' own.
fn includes_environment(list: *const *const c_char) -> bool {
    // SAFETY: `environ` and what a program is executed with are null-terminated lists of strings, or null.
    unsafe {
        core::ptr::eq(list, environ)
            || !list.is_null()
                && !environ.is_null()
                && strings(environ).all(|own| strings(list).any(|other| name_of(own) == name_of(other)))
    }
}

/// # Safety
/// `list` is a null-terminated list of strings that live on.
unsafe fn strings<'a>(list: *const *const c_char) -> impl Iterator<Item = &'a [u8]> {
    let mut next = list;
    core::iter::from_fn(move || {
        // SAFETY: the caller guarantees the list, which has not ended yet.
        unsafe {
            let string = *next;
            next = next.add(1);
            (!string.is_null()).then(|| CStr::from_ptr(string).to_bytes())
        }
    })
    .fuse()
}

/// Unhides the variable in `NAME` or `NAME=VALUE`.
fn forget(entry: *const c_char) {
    if !entry.is_null() {
        // SAFETY: it is a string.
        on_demand::forget(Some(name_of(unsafe { CStr::from_ptr(entry) }.to_bytes())));
    }
}

/// Writes the C library's environment to a new file, each entry with a NUL: Python only knows its own changes. Of a
/// hidden variable only the name is written. Entries that cannot be written are missing.
pub fn write_environment(path: &CStr) {
    // SAFETY: plain calls with a path and with strings that live on; `environ` is a null-terminated list of strings, or null.
    unsafe {
        let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_TRUNC | libc::O_CLOEXEC;
        let file = libc::syscall(libc::SYS_openat, libc::AT_FDCWD, path.as_ptr(), flags, 0o600);
        if file < 0 || environ.is_null() {
            return;
        }
        for entry in strings(environ) {
            let shown = if on_demand::was_hidden(entry) { name_of(entry) } else { entry };
            libc::syscall(libc::SYS_write, file, shown.as_ptr(), shown.len());
            libc::syscall(libc::SYS_write, file, c"".as_ptr(), 1);
        }
        libc::syscall(libc::SYS_close, file);
    }
}
