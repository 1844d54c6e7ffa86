//! The start of a boot that is watched: it puts the filter before its own system calls, hands the listening end to whoever watches,
//! and becomes the program.

use std::ffi::OsString;
use std::io::{self, IoSlice};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use libc::{
    c_uint, seccomp_data, sock_filter, BPF_ABS, BPF_JEQ, BPF_JMP, BPF_K, BPF_LD, BPF_RET, BPF_W, SECCOMP_RET_ALLOW,
    SECCOMP_RET_USER_NOTIF,
};
use nix::sys::socket::{sendmsg, ControlMessage, MsgFlags};
use nix::unistd::close;

use crate::calls;
use crate::sys;

/// AUDIT_ARCH_X86_64 of linux/audit.h.
const ARCHITECTURE: u32 = 0xc000_003e;

/// Executes `program` under the filter, and sends its listening end over the socket `socket` before. `argv` starts with the program's
/// name; `environment` is all that the program gets. Returns only when something failed: when it was the program's execution, with
/// the system's error number, otherwise without one.
///
/// Without privileges a filter can be set only together with "no new privileges", under which set-user-id programs run as the user
/// who boots. Neither the filter nor that flag outlives the process: an image holds memory.
pub fn execute(socket: i32, program: &Path, argv: &[OsString], environment: &[(OsString, OsString)]) -> io::Error {
    let prepare = || -> io::Result<()> {
        let listener = sys::set_filter(&filter())?;
        let rights = [listener.as_raw_fd()];
        let message = [ControlMessage::ScmRights(&rights)];
        sendmsg::<()>(socket, &[IoSlice::new(b"!")], &message, MsgFlags::empty(), None)?;
        Ok(close(socket)?)
    };
    if let Err(error) = prepare() {
        return io::Error::other(error);
    }
    let Some((name, arguments)) = argv.split_first() else { return io::Error::other("no name for the program") };
    Command::new(program).arg0(name).args(arguments).env_clear().envs(environment.iter().cloned()).exec()
}

/// Asks at every call of the table, lets all others through; also all calls of another architecture: a 32-bit program that a boot
/// starts runs as ever, and what it looks at is not seen.
fn filter() -> Vec<sock_filter> {
    let line = |code: c_uint, k: u32| sock_filter { code: code as u16, jt: 0, jf: 0, k };
    let load = |offset: usize| line(BPF_LD | BPF_W | BPF_ABS, offset as u32);
    let rows = calls::numbers().count() as u8;
    let mut filter = vec![
        load(std::mem::offset_of!(seccomp_data, arch)),
        // To the line before the last.
        sock_filter { jf: rows + 1, ..line(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE) },
        load(std::mem::offset_of!(seccomp_data, nr)),
    ];
    for (index, number) in calls::numbers().enumerate() {
        // To the last line.
        let jt = rows - index as u8;
        filter.push(sock_filter { jt, ..line(BPF_JMP | BPF_JEQ | BPF_K, number as u32) });
    }
    filter.push(line(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
    filter.push(line(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF));
    filter
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the filter says to a call, worked out as the kernel would.
    fn answer(architecture: u32, number: u32) -> u32 {
        let filter = filter();
        let (mut place, mut value) = (0, 0);
        loop {
            let line = &filter[place];
            place += 1;
            match u32::from(line.code) {
                code if code == BPF_LD | BPF_W | BPF_ABS => value = if line.k == 0 { number } else { architecture },
                code if code == BPF_RET | BPF_K => return line.k,
                _ => place += usize::from(if value == line.k { line.jt } else { line.jf }),
            }
        }
    }

    #[test]
    fn calls_of_the_table_ask_and_no_others() {
        for number in calls::numbers() {
            assert_eq!(answer(ARCHITECTURE, number as u32), SECCOMP_RET_USER_NOTIF, "{number}");
            assert_eq!(answer(0x4000_0003, number as u32), SECCOMP_RET_ALLOW, "of a 32-bit program");
        }
        for number in [libc::SYS_read, libc::SYS_exit_group, libc::SYS_sendmsg, 100_000] {
            assert_eq!(answer(ARCHITECTURE, number as u32), SECCOMP_RET_ALLOW, "{number}");
        }
    }
}
