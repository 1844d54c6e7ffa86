//! The kernel's side of the frozen process, and the jump.
#![allow(unsafe_code)]

use core::convert::Infallible;

use image::{descriptor_kind, process_flag, reserved, Descriptor, Process, Section, SignalAction, RESERVED_START};
use linux_raw_sys::auxvec::AT_SYSINFO_EHDR;
use linux_raw_sys::errno::EBADF;
use linux_raw_sys::general::{O_ACCMODE, O_APPEND, O_CLOEXEC, O_DIRECT, O_NONBLOCK, SIGCHLD};
use linux_raw_sys::prctl::{prctl_mm_map, PR_SET_MM, PR_SET_MM_MAP, PR_SET_NAME};

use crate::arch;
use crate::block::{Block, Rehearsal};
use crate::frozen::Frozen;
use crate::reason::Reason;
use crate::steps::Steps;
use crate::sys::{self, Action, Errno, Fd};
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
            let text = "this kernel does not take the restartable sequences (rseq) of the frozen process; freeze with GLIBC_TUNABLES=glibc.pthread.rseq=0";
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
/// idea of every signal since it started. But for SIGCHLD: no runtime with a handler for it goes on ignoring it, as nobody could wait for a child
/// then. Returns them as a mask.
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

/// Makes the descriptors again. All get O_CLOEXEC first, so that a fallback after a failure does not pass them on. In a rehearsal
/// files are for reading only, whatever the program has opened them for.
fn descriptors(frozen: &Frozen, is_rehearsal: bool) -> Result<(), Reason> {
    let rows = frozen.rows::<Descriptor>(Section::Descriptors)?;
    for descriptor in rows {
        let number = descriptor.number;
        let failed = |errno| Reason::new("cannot make a descriptor of the frozen process again").errno(errno);
        let made = match descriptor.kind {
            descriptor_kind::EVENTFD => {
                sys::eventfd(descriptor.value as u32, descriptor.flags & (O_NONBLOCK | O_CLOEXEC))
            }
            descriptor_kind::EPOLL => sys::epoll(descriptor.flags),
            descriptor_kind::PIPE_WRITE => continue,
            descriptor_kind::WATCH => {
                sys::watch(number, descriptor.peer, descriptor.flags, descriptor.value).map_err(failed)?;
                continue;
            }
            descriptor_kind::PIPE_READ => {
                pipe(frozen, &descriptor)?;
                continue;
            }
            _ => {
                let path = frozen.text(descriptor.path)?;
                let gone = Reason::new("a file that the frozen process holds open cannot be opened")
                    .subject(crate::start::without_nul(path));
                let flags = if is_rehearsal { descriptor.flags & !O_ACCMODE } else { descriptor.flags };
                let file = sys::open(path, flags).map_err(|errno| gone.errno(errno))?;
                if descriptor.value != 0 && descriptor.flags & O_APPEND == 0 {
                    sys::seek(file, descriptor.value).map_err(|errno| gone.errno(errno))?;
                }
                Ok(file)
            }
        };
        renumber(made.map_err(failed)?, number, descriptor.flags)?;
    }
    Ok(())
}

/// Gives a descriptor its number. The kernel's word for one above the limit is that it is a bad descriptor.
fn renumber(descriptor: Fd, number: u32, flags: u32) -> Result<(), Reason> {
    sys::renumber(descriptor, number, flags).map_err(|errno| match errno {
        Errno(EBADF) => {
            Reason::new("the limit of open files (ulimit -n) is too low for the frozen process' descriptors")
        }
        _ => Reason::new("cannot give a descriptor of the frozen process its number").errno(errno),
    })
}

fn pipe(frozen: &Frozen, read: &Descriptor) -> Result<(), Reason> {
    let failed = |errno| Reason::new("cannot make a pipe of the frozen process again").errno(errno);
    let write = frozen
        .rows::<Descriptor>(Section::Descriptors)?
        .find(|row| row.kind == descriptor_kind::PIPE_WRITE && row.number == read.peer)
        .ok_or(Reason::new("the image is damaged: a pipe without a writing end"))?;
    let (read_end, write_end) = sys::pipe(O_CLOEXEC).map_err(failed)?;
    // The kernel may have given the writing end the number that the reading end needs.
    let write_end = if write_end.0 == read.number {
        sys::duplicate_above(write_end, read.number.max(write.number)).map_err(failed)?
    } else {
        write_end
    };
    renumber(read_end, read.number, read.flags)?;
    renumber(write_end, write.number, write.flags)?;
    let status = |flags: u32| flags & (O_NONBLOCK | O_DIRECT);
    sys::set_status_flags(read.number, status(read.flags)).map_err(failed)?;
    sys::set_status_flags(write.number, status(write.flags)).map_err(failed)?;
    if read.value != 0 {
        sys::set_pipe_capacity(read.number, read.value);
    }
    Ok(())
}
