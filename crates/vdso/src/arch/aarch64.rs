//! aarch64, where nothing can be frozen yet. The functions take the arguments of the system calls in the registers that
//! the kernel expects.

use crate::SystemCall;

/// The system call that a function replaces, if there is one.
pub fn system_call(name: &[u8]) -> Option<SystemCall> {
    match name.strip_prefix(b"__kernel_").unwrap_or(name) {
        b"clock_gettime" => SystemCall::if_missing(113),
        b"clock_getres" => SystemCall::if_missing(114),
        b"gettimeofday" => SystemCall::if_missing(169),
        b"getrandom" => SystemCall::always(278),
        _ => None,
    }
}

/// `ldr x16, #8; br x16`, and the address.
pub fn jump(address: u64) -> [u8; 16] {
    let mut code = [0x50, 0x00, 0x00, 0x58, 0x00, 0x02, 0x1f, 0xd6, 0, 0, 0, 0, 0, 0, 0, 0];
    code[8..].copy_from_slice(&address.to_le_bytes());
    code
}

/// `mov w8, #number; svc #0; ret`.
pub fn call(number: u32) -> [u8; 12] {
    let mut code = [0, 0, 0, 0, 0x01, 0x00, 0x00, 0xd4, 0xc0, 0x03, 0x5f, 0xd6];
    code[..4].copy_from_slice(&(0x5280_0008 | number << 5).to_le_bytes());
    code
}
