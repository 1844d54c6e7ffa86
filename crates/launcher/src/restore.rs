//! The kernel's side of the frozen process, and the jump.
#![allow(unsafe_code)]

use core::convert::Infallible;

use image::{process_flag, reserved, Descriptor, Process, Section, SignalAction, RESERVED_START};
use linux_raw_sys::auxvec::AT_SYSINFO_EHDR;
use linux_raw_sys::general::SIGCHLD;
use linux_raw_sys::prctl::{prctl_mm_map, PR_SET_MM, PR_SET_MM_MAP, PR_SET_NAME};

use crate::arch;
use crate::argument_block::{Block, Rehearsal};
use crate::frozen::Frozen;
use crate::objects::Running;
use crate::reason::Reason;
use crate::steps::Steps;
use crate::sys::{self, Action};
use crate::vdso::Vdso;

/// SIGCANCEL and SIGSETXID, which glibc keeps for itself. It takes them over whatever they were (and its posix_spawn leaves them
/// ignored).
const C_LIBRARY_SIGNALS: core::ops::RangeInclusive<u32> = 32..=33;

/// More than kernels keep of an auxiliary vector (bytes).
const AUXV_ROOM: usize = 1024;

/// SIG_IGN of the kernel.
const IGNORE: u64 = 1;

/// Restores everything but memory, and jumps into the frozen process.
pub fn go_on(frozen: &Frozen, vdso: &Vdso, block: &mut Block, steps: &mut Steps) -> Result<Infallible, Reason> {
    let process = &frozen.process;
    let inherited = note_ignored_signals(frozen, block)?;
    descriptors(frozen, block.rehearsal().is_some())?;
    // SAFETY: the frozen process' memory is in place; its argv area is writable memory of its stack.
    let (argv, environment) = unsafe { block.copy_strings_to(process.arg_start..process.env_end) };
    let in_arguments = argv.start == process.arg_start;
    set_memory_map(frozen, vdso, &argv, &environment)?;
    if in_arguments {
        // SAFETY: the strings were just copied there, and the start of the stack is the frozen process' memory.
        unsafe { block.point_arguments(process) };
    }
    // SAFETY: the addresses are those that the frozen process had registered.
    unsafe {
        let registers = &frozen.registers;
        let tid = sys::adopt_thread(process, registers)
            .map_err(|errno| Reason::new("cannot register the thread").errno(errno))?;
        sys::register_rseq(process).map_err(|errno| {
            let text =
                "this kernel does not accept the restartable sequences (rseq) of the frozen process; freeze with \
                GLIBC_TUNABLES=glibc.pthread.rseq=0";
            Reason::new(text).errno(errno)
        })?;
        (process.tid_address as *mut u32).write(tid);
        let comm = block.comm(process.comm);
        sys::prctl(&[PR_SET_NAME as usize, comm.as_ptr() as usize])
            .map_err(|errno| Reason::new("cannot set the process' name").errno(errno))?;
        for action in frozen.rows::<SignalAction>(Section::Signals)? {
            let wanted =
                Action { handler: action.handler, flags: action.flags, restorer: action.restorer, mask: action.mask };
            if inherited & bit(action.number) == 0 {
                sys::set_action(action.number, &wanted)
                    .map_err(|errno| Reason::new("cannot set a signal's action").errno(errno))?;
            }
        }
        if process.signal_mask != 0 {
            sys::block_signals(process.signal_mask)
                .map_err(|errno| Reason::new("cannot set the signal mask").errno(errno))?;
        }
        sys::close(frozen.file);
        if in_arguments && process.flags & process_flag::ENVIRONMENT_MOVED == 0 {
            block.point_environment_to(environment.end);
        }
        if block.rehearsal() == Some(Rehearsal::Check) {
            sys::exit(0);
        }
        steps.write(block);
        let handover = block.hand_over(RESERVED_START..reserved::LEFTOVER_END, argv, environment);
        // The point of no return.
        arch::jump(registers, handover)
    }
}

fn bit(signal: u32) -> u64 {
    1 << (signal - 1)
}

/// Signals that this process was told to ignore (nohup, a shell's background job) stay ignored, as in an ordinary start, also
/// those that the frozen process has a handler for. A note in the environment tells the front end, whose runtime has its own
/// idea of every signal since it started. SIGCHLD is left out if the frozen process has a handler for it: nobody can wait for a
/// child while it is ignored, so a runtime stops ignoring it when it starts. Returns them as a mask.
fn note_ignored_signals(frozen: &Frozen, block: &mut Block) -> Result<u64, Reason> {
    let mut known = 0;
    for action in frozen
        .rows::<SignalAction>(Section::Signals)?
        .filter(|action| action.handler == IGNORE || action.number == SIGCHLD)
    {
        known |= bit(action.number);
    }
    let mut mask = 0;
    let mut list = [0u8; 192];
    let mut length = 0;
    let is_open = |number: &u32| known & bit(*number) == 0 && !C_LIBRARY_SIGNALS.contains(number);
    for number in (1..=64).filter(is_open) {
        let now = sys::action(number).map_err(|errno| Reason::new("cannot read a signal's action").errno(errno))?;
        if now.handler != IGNORE {
            continue;
        }
        mask |= bit(number);
        if length > 0 {
            list[length] = b',';
            length += 1;
        }
        if number >= 10 {
            list[length] = b'0' + (number / 10) as u8;
            length += 1;
        }
        list[length] = b'0' + (number % 10) as u8;
        length += 1;
    }
    if mask != 0 {
        block.write_note(&[b"SNAPBOOT_IGNORED=", &list[..length]]);
    }
    Ok(mask)
}

/// Tells the kernel where heap, stack, arguments and environment are. This is what /proc shows and what `brk` goes by.
fn set_memory_map(
    frozen: &Frozen,
    vdso: &Vdso,
    argv: &core::ops::Range<u64>,
    environment: &core::ops::Range<u64>,
) -> Result<(), Reason> {
    let Process { start_code, end_code, start_data, end_data, start_brk, brk, start_stack, .. } = frozen.process;
    let mut room = [0; AUXV_ROOM];
    let auxv = auxiliary_vector(frozen, vdso, &mut room);
    let map = prctl_mm_map {
        start_code,
        end_code,
        start_data,
        end_data,
        start_brk,
        brk,
        start_stack,
        arg_start: argv.start,
        arg_end: argv.end,
        env_start: environment.start,
        env_end: environment.end,
        auxv: auxv.as_ptr() as *mut u64,
        auxv_size: auxv.len() as u32,
        exe_fd: u32::MAX,
    };
    // SAFETY: the kernel reads the structure and the vector and checks every address.
    unsafe {
        let place = &raw const map as usize;
        sys::prctl(&[PR_SET_MM as usize, PR_SET_MM_MAP as usize, place, size_of::<prctl_mm_map>(), 0])
    }
    .map(drop)
    .map_err(|errno| Reason::new("this kernel does not let a process set its memory map").errno(errno))
}

/// The auxiliary vector that the kernel keeps for debuggers and profilers. Where functions of another vdso are called, it names that one, so that
/// they can unwind through it; the process itself goes by the copy of the vector on its stack.
fn auxiliary_vector<'a>(frozen: &Frozen, vdso: &Vdso, room: &'a mut [u8; AUXV_ROOM]) -> &'a [u8] {
    const ENTRY: usize = 16;
    let recorded = frozen.tables.bytes(Section::Auxv);
    let auxv = &mut room[..recorded.len().min(AUXV_ROOM)];
    auxv.copy_from_slice(&recorded[..auxv.len()]);
    if let Some(address) = vdso.other() {
        let kind = u64::from(AT_SYSINFO_EHDR).to_ne_bytes();
        auxv.chunks_exact_mut(ENTRY)
            .filter(|entry| entry.starts_with(&kind))
            .for_each(|entry| entry[ENTRY / 2..].copy_from_slice(&address.to_ne_bytes()));
    }
    auxv
}

/// Makes the descriptors again. All get O_CLOEXEC first, so that a fallback after a failure does not pass them on.
fn descriptors(frozen: &Frozen, is_rehearsal: bool) -> Result<(), Reason> {
    let mut rows = frozen.rows::<Descriptor>(Section::Descriptors)?;
    while let Some(row) = rows.next() {
        let path = frozen.text(row.path)?;
        let next = || rows.clone().next();
        descriptors::restore(&row, path, next, is_rehearsal, &Running).map_err(|failed| {
            let reason = Reason::new(failed.text).subject(crate::start::without_nul(path));
            failed.errno.map_or(reason, |errno| reason.errno(errno))
        })?;
    }
    Ok(())
}
