//! The kernel's state of the process: signals, registrations, and the addresses of heap, stack and arguments.

use image::{process_flag, Platform, Process, Section, SignalAction};
use image_writer::TablesWriter;

use crate::arch;
use crate::findings::{Findings, Kind};
use crate::maps::decimal;
use crate::sys;

/// SIG_DFL of the kernel.
const DEFAULT: u64 = 0;

/// Writes the process, platform, cpu, signals and auxv sections.
pub fn add(
    tables: &mut TablesWriter,
    findings: &mut Findings,
    thread_pointer: u64,
    stack_end: u64,
    vdso: Option<core::ops::Range<u64>>,
) {
    tables.push(Section::Process, &process(findings, thread_pointer, stack_end));
    let vdso = vdso.map(sys::readable_memory).unwrap_or_default();
    let platform = Platform { vdso: image::digest(vdso), vdso_size: vdso.len() as u64 };
    tables.push(Section::Platform, &platform);
    inputs::cpu::native().for_each(|leaf| tables.push(Section::Cpu, &leaf));
    tables.set_bytes(Section::Auxv, &sys::read_file(b"/proc/self/auxv\0"));
    for number in 1..=64u32 {
        let Some([handler, flags, restorer, mask]) = sys::signal_action(number) else { continue };
        if handler != DEFAULT {
            tables.push(Section::Signals, &SignalAction { handler, flags, restorer, mask, number, reserved: 0 });
        }
    }
}

fn process(findings: &mut Findings, thread_pointer: u64, stack_end: u64) -> Process {
    let tid_address = sys::tid_address().unwrap_or_else(|_| {
        findings.add(
            Kind::Kernel,
            &[b"this kernel does not tell where the thread id is kept (CONFIG_CHECKPOINT_RESTORE is off), so nothing can be frozen on it"],
        );
        0
    });
    let (robust_list, robust_length) = sys::robust_list();
    let (rseq_area, rseq_length) = crate::libc::rseq_area(thread_pointer);
    let (altstack_start, altstack_size, altstack_flags) = sys::alternate_stack();
    let stat = sys::read_file(b"/proc/self/stat\0");
    // Numbered as in proc(5), where the first field after the name in parentheses is number 3.
    let after_name = stat.iter().rposition(|&byte| byte == b')').map_or(0, |position| position + 2);
    let field = |number: usize| {
        stat[after_name.min(stat.len())..].split(|&byte| byte == b' ').nth(number - 3).map_or(0, decimal_of_line)
    };
    let (arg_start, env_start, env_end) = (field(48), field(50), field(51));
    let moved = !sys::environment_lies_in(env_start..env_end);
    Process {
        tid_address,
        robust_list,
        robust_length,
        rseq_area,
        rseq_length,
        rseq_signature: arch::RSEQ_SIGNATURE,
        altstack_start,
        altstack_size,
        altstack_flags,
        flags: if moved { process_flag::ENVIRONMENT_MOVED } else { 0 },
        signal_mask: sys::signal_masks().0,
        start_code: field(26),
        end_code: field(27),
        start_data: field(45),
        end_data: field(46),
        start_brk: field(47),
        brk: sys::heap_end(),
        start_stack: field(28),
        arg_start,
        env_end,
        stack_end,
        stack_limit: sys::attributes::stack_limit_at_start(),
        comm: comm(),
    }
}

fn decimal_of_line(word: &[u8]) -> u64 {
    decimal(word.trim_ascii())
}

/// The thread's name; the command replaces it by the name in an ordinary start.
fn comm() -> [u8; 16] {
    let mut comm = [0; 16];
    let name = sys::read_file(b"/proc/self/comm\0");
    let name = name.trim_ascii_end();
    let length = name.len().min(15);
    comm[..length].copy_from_slice(&name[..length]);
    comm
}
