//! The registers of x86-64.

use nix::libc::user_regs_struct;

/// Number, first argument and result of the call that a process is in, or comes from.
pub fn call(registers: &user_regs_struct) -> (i64, u64, i64) {
    (registers.orig_rax as i64, registers.rdi, registers.rax as i64)
}
