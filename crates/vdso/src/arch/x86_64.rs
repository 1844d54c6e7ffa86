//! x86-64. The functions take the arguments of the system calls in the registers that the kernel expects: rdi, rsi,
//! rdx.

use crate::SystemCall;

/// The system call that a function replaces, if there is one.
pub fn system_call(name: &[u8]) -> Option<SystemCall> {
    match name.strip_prefix(b"__vdso_").unwrap_or(name) {
        b"gettimeofday" => SystemCall::if_missing(96),
        b"time" => SystemCall::if_missing(201),
        b"clock_gettime" => SystemCall::if_missing(228),
        b"clock_getres" => SystemCall::if_missing(229),
        b"getcpu" => SystemCall::if_missing(309),
        // The state lies in memory that the C library allocated, in the layout of the kernel that reported its size.
        // The system call ignores the further arguments.
        b"getrandom" => SystemCall::always(318),
        _ => None,
    }
}

/// `jmp [rip + 0]`, and the address.
pub fn jump(address: u64) -> [u8; 14] {
    let mut code = [0xff, 0x25, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    code[6..].copy_from_slice(&address.to_le_bytes());
    code
}

/// `mov eax, number; syscall; ret`.
pub fn call(number: u32) -> [u8; 8] {
    let [a, b, c, d] = number.to_le_bytes();
    [0xb8, a, b, c, d, 0x0f, 0x05, 0xc3]
}
