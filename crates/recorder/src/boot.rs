//! Starts a watched boot: installs the filter, sends its listener to the recorder and executes the program.

use std::ffi::OsString;
use std::io::{self, IoSlice};
use std::mem::{offset_of, MaybeUninit};
use std::os::fd::AsFd;
use std::path::Path;

use libc::{
    seccomp_data, sock_filter, AT_EMPTY_PATH, BPF_ABS, BPF_JEQ, BPF_JMP, BPF_JSET, BPF_K, BPF_LD, BPF_RET, BPF_W,
    SECCOMP_RET_ALLOW, SECCOMP_RET_USER_NOTIF,
};
use rustix::net::{sendmsg, SendAncillaryBuffer, SendAncillaryMessage, SendFlags};

use crate::arch::AUDIT;
use crate::calls;
use crate::sys;

/// Installs the filter, sends its listener over the socket `socket`, and executes `program`. `argv` starts with the
/// program's name; `environment` is its whole environment, in this order. Returns only on failure: with the system's error number if
/// the execution failed, without one otherwise.
///
/// Without privileges a filter requires "no new privileges", under which set-user-id programs run as the user who
/// boots. Neither the filter nor that flag outlives the process: an image holds memory.
pub fn execute(socket: i32, program: &Path, argv: &[OsString], environment: &[(OsString, OsString)]) -> io::Error {
    let prepare = || -> io::Result<()> {
        let listener = sys::set_filter(&filter())?;
        let rights = [listener.as_fd()];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut message = SendAncillaryBuffer::new(&mut space);
        message.push(SendAncillaryMessage::ScmRights(&rights));
        sendmsg(sys::inherited(socket), &[IoSlice::new(b"!")], &mut message, SendFlags::empty())?;
        Ok(())
    };
    if let Err(error) = prepare() {
        return io::Error::other(error);
    }
    sys::execute(program, argv, environment)
}

/// Notifies the recorder of every call in the table and allows all others. Calls of another architecture are allowed
/// too: a 32-bit child runs as usual, and its accesses are not recorded. A call such as fstat that names an open file
/// only by its number (AT_EMPTY_PATH) has no file name; boots make many of these, so they are allowed.
fn filter() -> Vec<sock_filter> {
    let line = |code, k, jt: usize, jf: usize| sock_filter { code: code as u16, jt: jt as u8, jf: jf as u8, k };
    let load = |offset: usize| line(BPF_LD | BPF_W | BPF_ABS, offset as u32, 0, 0);
    let is = |value: u32, jt, jf| line(BPF_JMP | BPF_JEQ | BPF_K, value, jt, jf);
    let (pass, ask) =
        (line(BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0), line(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF, 0, 0));
    // After the rows come a line that allows, a line that notifies, four lines for each argument that may hold flags,
    // and the options of prctl.
    let asks = calls::numbers().map(|(number, flags)| (number, flags.map_or(1, |it| 2 + 4 * (it - FLAGS[0]))));
    let others = calls::setters().chain([calls::LISTEN]).map(|number| (number, 1));
    let all: Vec<(i64, usize)> = asks.chain(others).chain([(libc::SYS_prctl, 2 + 4 * FLAGS.len())]).collect();
    let rows = all.len();
    let mut filter =
        vec![load(offset_of!(seccomp_data, arch)), is(AUDIT, 0, rows + 1), load(offset_of!(seccomp_data, nr))];
    for (index, (number, place)) in all.into_iter().enumerate() {
        filter.push(is(number as u32, rows - index - 1 + place, 0));
    }
    filter.extend([pass, ask]);
    for argument in FLAGS {
        let value = load(offset_of!(seccomp_data, args) + argument * size_of::<u64>());
        filter.extend([value, line(BPF_JMP | BPF_JSET | BPF_K, AT_EMPTY_PATH as u32, 1, 0), ask, pass]);
    }
    filter.push(load(offset_of!(seccomp_data, args)));
    let options = calls::PRCTL.len();
    filter.extend(calls::PRCTL.iter().enumerate().map(|(index, (option, _))| is(*option, options - index, 0)));
    filter.extend([pass, ask]);
    filter
}

/// The arguments that hold AT_ flags in at least one call.
const FLAGS: [usize; 3] = [2, 3, 4];

#[cfg(test)]
mod tests {
    use super::*;

    /// The filter's answer to a call, evaluated as the kernel does.
    fn answer(architecture: u32, number: u32, arguments: [u32; 6]) -> u32 {
        let filter = filter();
        let (mut place, mut value) = (0, 0);
        loop {
            let line = &filter[place];
            place += 1;
            match u32::from(line.code) {
                code if code == BPF_LD | BPF_W | BPF_ABS => {
                    value = match line.k {
                        0 => number,
                        4 => architecture,
                        offset => arguments[(offset as usize - 16) / 8],
                    }
                }
                code if code == BPF_RET | BPF_K => return line.k,
                code => {
                    let is_met = if code & BPF_JSET == BPF_JSET { value & line.k != 0 } else { value == line.k };
                    place += usize::from(if is_met { line.jt } else { line.jf });
                }
            }
        }
    }

    #[test]
    fn calls_of_the_table_ask_and_no_others() {
        for (number, _) in calls::numbers() {
            assert_eq!(answer(AUDIT, number as u32, [0; 6]), SECCOMP_RET_USER_NOTIF, "{number}");
            assert_eq!(answer(0x4000_0003, number as u32, [0; 6]), SECCOMP_RET_ALLOW, "of a 32-bit program");
        }
        for number in calls::setters().chain([calls::LISTEN]) {
            assert_eq!(answer(AUDIT, number as u32, [0; 6]), SECCOMP_RET_USER_NOTIF, "{number}");
        }
        for (option, _) in calls::PRCTL {
            assert_eq!(answer(AUDIT, libc::SYS_prctl as u32, [*option; 6]), SECCOMP_RET_USER_NOTIF, "prctl {option}");
        }
        for option in [0, libc::PR_SET_NAME as u32, libc::PR_GET_NO_NEW_PRIVS as u32] {
            assert_eq!(answer(AUDIT, libc::SYS_prctl as u32, [option; 6]), SECCOMP_RET_ALLOW, "prctl {option}");
        }
        for number in [libc::SYS_read, libc::SYS_exit_group, libc::SYS_sendmsg, 100_000] {
            assert_eq!(answer(AUDIT, number as u32, [!0; 6]), SECCOMP_RET_ALLOW, "{number}");
        }
    }

    #[test]
    fn what_has_no_name_does_not_ask() {
        for (number, flags) in calls::numbers() {
            let mut arguments = [0; 6];
            flags.into_iter().for_each(|argument| arguments[argument] = AT_EMPTY_PATH as u32);
            let expected = if flags.is_some() { SECCOMP_RET_ALLOW } else { SECCOMP_RET_USER_NOTIF };
            assert_eq!(answer(AUDIT, number as u32, arguments), expected, "{number}");
        }
        assert_eq!(calls::numbers().filter(|(_, flags)| flags.is_some()).count(), 4);
    }
}
