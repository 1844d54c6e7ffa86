//! How system calls take file names: the shapes of their arguments. Which calls are recorded is listed for each
//! architecture, by TABLE in `arch`. Also the system calls that set attributes of the process which the kernel does not report, or after
//! which the process cannot report its own accesses.

use libc::{
    c_long, seccomp_data, AT_FDCWD, AT_SYMLINK_NOFOLLOW, O_ACCMODE, O_CREAT, O_DIRECTORY, O_NOFOLLOW, O_PATH, O_RDONLY,
    O_TMPFILE, O_TRUNC,
};

/// What a call does with a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// Opens it for reading, or executes it.
    Read,
    /// Reads its status; follows links.
    Look,
    /// Reads its status; does not follow a link.
    LookAtLink,
    /// Does one of both, for code that makes of the status only what kind of file is there.
    LookAtKind,
    LookAtKindOfLink,
    /// Reads the target of the link.
    ReadLink,
    /// Opens it as a directory.
    OpenDirectory,
    /// Opens it for writing without creating it.
    Write,
    /// Creates it if it is missing.
    Make,
    /// Removes or renames it.
    Remove,
}

/// Where a relative name starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    /// The working directory.
    Cwd,
    /// The directory open under this number.
    Descriptor(i32),
}

/// One access that a system call makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// The name at this address, and what the call does with it.
    Name(Base, u64, Use),
    /// Lists the directory open under this number.
    List(i32),
}

/// The shape of a call's arguments. Numbers are indices of arguments.
#[derive(Clone, Copy)]
#[allow(dead_code)] // Not every architecture has calls of each shape.
pub enum Shape {
    /// Name.
    Name(usize, Use),
    /// Directory and name.
    At(usize, usize, Use),
    /// Directory, name and AT_ flags, which say whether links are followed.
    Flagged(usize, usize, usize),
    /// Name and open flags.
    Open(usize, usize),
    /// Directory, name and open flags.
    OpenAt(usize, usize, usize),
    /// Directory, name and `struct open_how`.
    OpenHow(usize, usize, usize),
    /// Name, and a second name that is created.
    Two(usize, usize, Use),
    /// Two names, each with its directory.
    TwoAt([usize; 4], Use),
    /// Open directory.
    List,
    /// The address of a socket, which may be a path (`struct sockaddr_un`).
    Address(usize),
}

/// The attribute that a call sets (`inputs::attributes`).
pub fn setting(call: &seccomp_data) -> Option<Attribute> {
    let number = c_long::from(call.nr);
    if number == libc::SYS_prctl {
        return PRCTL.iter().find(|(option, _)| *option == call.args[0] as u32).map(|(_, attribute)| *attribute);
    }
    // The other operations of seccomp are queries.
    let is_question = number == libc::SYS_seccomp && call.args[0] > u64::from(libc::SECCOMP_SET_MODE_FILTER);
    let row = SETTERS.iter().chain(SETTERS_HERE).find(|(setter, _)| *setter == number);
    row.filter(|_| !is_question).map(|(_, attribute)| *attribute)
}

/// The numbers of calls that set an attribute whatever their arguments are.
pub fn setters() -> impl Iterator<Item = i64> {
    SETTERS.iter().chain(SETTERS_HERE).map(|(number, _)| *number)
}

/// The call that opens a socket for others.
pub const LISTEN: c_long = libc::SYS_listen;

const SETTERS: &[(c_long, Attribute)] = &[
    (libc::SYS_fchdir, Directory),
    (libc::SYS_setuid, Users),
    (libc::SYS_setreuid, Users),
    (libc::SYS_setresuid, Users),
    (libc::SYS_setgid, Groups),
    (libc::SYS_setregid, Groups),
    (libc::SYS_setresgid, Groups),
    (libc::SYS_setgroups, SupplementaryGroups),
    (libc::SYS_capset, Capabilities),
    (libc::SYS_seccomp, SeccompFilters),
    (libc::SYS_landlock_restrict_self, Landlock),
    (libc::SYS_chroot, Root),
    (libc::SYS_pivot_root, Root),
    (libc::SYS_unshare, Namespaces),
    (libc::SYS_setns, Namespaces),
    (libc::SYS_setsid, Session),
    (libc::SYS_setpgid, ProcessGroup),
    (libc::SYS_mlockall, LockedMemory),
];

/// The options of prctl that set an attribute.
pub const PRCTL: &[(u32, Attribute)] = &[
    (libc::PR_SET_DUMPABLE as u32, Dumpable),
    (libc::PR_SET_SECCOMP as u32, SeccompFilters),
    (libc::PR_SET_NO_NEW_PRIVS as u32, NoNewPrivileges),
    (PR_SET_SYSCALL_USER_DISPATCH, SyscallDispatch),
    (PR_SET_PTRACER, Tracer),
];
/// From linux/prctl.h.
const PR_SET_SYSCALL_USER_DISPATCH: u32 = 59;
const PR_SET_PTRACER: u32 = 0x5961_6d61;

use crate::arch::{SETTERS_HERE, TABLE};
use inputs::attributes::Attribute::{self, *};
use Shape::{Address, At, Flagged, List, Name, Open, OpenAt, OpenHow, Two, TwoAt};
use Use::{Look, LookAtLink, Make, Read, Write};

/// The numbers of all calls in the table, and the index of the argument that holds AT_ flags, if any.
pub fn numbers() -> impl Iterator<Item = (i64, Option<usize>)> {
    TABLE.iter().map(|(number, shape)| match shape {
        Flagged(.., flags) => (*number, Some(*flags)),
        _ => (*number, None),
    })
}

/// The accesses that a call makes. Only calls that take two names make a second one. `read` returns the eight bytes at
/// an address of the process.
pub fn accesses(call: &seccomp_data, read: impl FnOnce(u64) -> Option<u64>) -> [Option<Access>; 2] {
    let arguments = call.args;
    let base = |index: usize| match arguments[index] as i32 {
        AT_FDCWD => Base::Cwd,
        number => Base::Descriptor(number),
    };
    let at = |directory: usize, name: usize, used| Some(Access::Name(base(directory), arguments[name], used));
    let here = |name: usize, used| Some(Access::Name(Base::Cwd, arguments[name], used));
    let Some((_, shape)) = TABLE.iter().find(|(number, _)| *number == c_long::from(call.nr)) else {
        return [None, None];
    };
    match *shape {
        Name(name, used) => [here(name, used), None],
        At(directory, name, used) => [at(directory, name, used), None],
        Flagged(directory, name, flags) => {
            let used = match c_long::from(call.nr) {
                libc::SYS_execveat => Read,
                _ if arguments[flags] as i32 & AT_SYMLINK_NOFOLLOW != 0 => LookAtLink,
                _ => Look,
            };
            [at(directory, name, used), None]
        }
        Open(name, flags) => [here(name, opened(arguments[flags])), None],
        OpenAt(directory, name, flags) => [at(directory, name, opened(arguments[flags])), None],
        OpenHow(directory, name, how) => {
            // The flags are the first field.
            let used = read(arguments[how]).map_or(Read, opened);
            [at(directory, name, used), None]
        }
        Two(name, made, used) => [here(name, used), here(made, Make)],
        TwoAt([directory, name, other, made], used) => [at(directory, name, used), at(other, made, Make)],
        Address(address) => {
            let address = arguments[address];
            let is_name =
                read(address).is_some_and(|start| start & 0xffff == libc::AF_UNIX as u64 && start & 0xff_0000 != 0);
            // The name follows the two bytes of the family. A name that begins with a NUL is not a path.
            [is_name.then_some(Access::Name(Base::Cwd, address + 2, Make)), None]
        }
        List => [Some(Access::List(arguments[0] as i32)), None],
    }
}

/// What a call with these open flags does.
fn opened(flags: u64) -> Use {
    let flags = flags as i32;
    let has = |wanted: i32| flags & wanted == wanted;
    match flags & O_ACCMODE {
        // A file without a name, in that directory.
        _ if has(O_TMPFILE) => Look,
        _ if has(O_PATH) => {
            if has(O_NOFOLLOW) {
                LookAtLink
            } else {
                Look
            }
        }
        _ if has(O_CREAT) => Make,
        O_RDONLY if has(O_DIRECTORY) => Use::OpenDirectory,
        O_RDONLY if !has(O_TRUNC) => Read,
        _ => Write,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_call_has_one_row() {
        let mut all: Vec<i64> = numbers().map(|(number, _)| number).collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), TABLE.len());
    }

    #[test]
    fn a_call_that_sets_an_attribute_is_told_from_one_that_asks() {
        let call = |number: c_long, first: u64| seccomp_data {
            nr: number as i32,
            arch: crate::arch::AUDIT,
            instruction_pointer: 0,
            args: [first, 0, 0, 0, 0, 0],
        };
        assert_eq!(setting(&call(libc::SYS_setsid, 0)), Some(Session));
        assert_eq!(setting(&call(libc::SYS_prctl, libc::PR_SET_NO_NEW_PRIVS as u64)), Some(NoNewPrivileges));
        assert_eq!(setting(&call(libc::SYS_prctl, libc::PR_GET_NO_NEW_PRIVS as u64)), None);
        assert_eq!(setting(&call(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER.into())), Some(SeccompFilters));
        assert_eq!(setting(&call(libc::SYS_seccomp, libc::SECCOMP_GET_ACTION_AVAIL.into())), None);
        assert_eq!(setting(&call(libc::SYS_openat, 0)), None);
    }

    #[test]
    fn open_flags_tell_reading_from_writing() {
        let table = [
            (O_RDONLY | libc::O_CLOEXEC, Read),
            (O_RDONLY | O_DIRECTORY | libc::O_NONBLOCK, Use::OpenDirectory),
            (libc::O_WRONLY, Write),
            (libc::O_RDWR, Write),
            (O_RDONLY | O_TRUNC, Write),
            (libc::O_WRONLY | O_CREAT | O_TRUNC, Make),
            (libc::O_RDWR | O_CREAT, Make),
            (libc::O_RDWR | O_TMPFILE, Look),
            (O_PATH | O_DIRECTORY, Look),
            (O_PATH | O_NOFOLLOW, LookAtLink),
        ];
        for (flags, used) in table {
            assert_eq!(opened(flags as u64), used, "{flags:#o}");
        }
    }
}
