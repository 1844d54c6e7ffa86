//! The registers of aarch64, which has the first argument and the result in the same one.

use nix::libc::user_regs_struct;

/// Number, first argument and result of the call that a process is in, or comes from.
pub fn call(registers: &user_regs_struct) -> (i64, u64, i64) {
    (registers.regs[8] as i64, registers.regs[0], registers.regs[0] as i64)
}
