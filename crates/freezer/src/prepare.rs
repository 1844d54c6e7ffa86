//! Before the fork: inspects what a fork silently drops (threads, timers, locks, pending signals, children). The child
//! could no longer see it.

use alloc::vec::Vec;

use crate::arch;
use crate::findings::{decimal, Findings, Kind};
use crate::maps::hexadecimal;
use crate::sys::{self, File};

/// How long other threads may take to fall asleep (ms), and how often they are checked.
const PATIENCE: u32 = 500;
const STEP: u32 = 5;

/// Collects findings and keeps them for the child.
pub fn inspect() {
    let mut findings = Findings::default();
    if let Some(refusal) = arch::refusal() {
        findings.add(Kind::Kernel, &[refusal]);
    }
    threads(&mut findings);
    timers(&mut findings);
    locks(&mut findings);
    signals(&mut findings);
    children(&mut findings);
    sys::attributes::compare(|attribute| findings.add_attribute(attribute));
    findings.keep();
}

/// Threads. A fork drops them; that is its contract. Reports them by name, and refuses those that no library restarts.
fn threads(findings: &mut Findings) {
    let own = decimal(sys::pid() as u64);
    let Ok(tasks) = File::open(b"/proc/self/task\0", libc::O_RDONLY | libc::O_DIRECTORY) else { return };
    let others: Vec<Vec<u8>> = tasks.names().into_iter().filter(|name| *name != own).collect();
    if others.is_empty() {
        return;
    }
    let mut waited = 0;
    while waited < PATIENCE && others.iter().any(|thread| state(thread) == Some(b'R')) {
        sys::sleep_ms(STEP);
        waited += STEP;
    }
    let libgomp = mapped_code(b"libgomp");
    let is_restarted = |thread: &&Vec<u8>| sys::channel::is_restarted(crate::maps::decimal(thread) as i32);
    for thread in others.iter().filter(|thread| !is_restarted(thread)) {
        let name = task_file(thread, b"comm");
        let name = name.trim_ascii_end();
        if libgomp.iter().any(|range| range.contains(&instruction_pointer(thread))) {
            findings.add(
                Kind::Thread,
                &[b"thread '", name, b"' belongs to an OpenMP pool (libgomp), which hangs in a forked process; freeze with OMP_NUM_THREADS=1, or use it only after the freeze point"],
            );
            continue;
        }
        let running: &[u8] = if state(thread) == Some(b'R') { b" (still running)" } else { b"" };
        findings.add(
            Kind::DroppedThread,
            &[
                b"thread '",
                name,
                b"'",
                running,
                b" is not in the image: a thaw has the main thread only, as a forked process has",
            ],
        );
    }
}

fn task_file(thread: &[u8], name: &[u8]) -> Vec<u8> {
    sys::read_file(&sys::c_path(&[b"/proc/self/task/", thread, b"/", name]))
}

/// The letter of the thread's state.
fn state(thread: &[u8]) -> Option<u8> {
    let stat = task_file(thread, b"stat");
    let after_name = stat.iter().rposition(|&byte| byte == b')')?;
    stat.get(after_name + 2).copied()
}

/// The instruction pointer of a sleeping thread (the last word of its `syscall` file); 0 if unknown.
fn instruction_pointer(thread: &[u8]) -> u64 {
    let text = task_file(thread, b"syscall");
    let last = text.trim_ascii_end().rsplit(|&byte| byte == b' ').next().unwrap_or(b"");
    last.strip_prefix(b"0x").and_then(hexadecimal).unwrap_or(0)
}

/// The executable ranges of a library.
fn mapped_code(library: &[u8]) -> Vec<core::ops::Range<u64>> {
    let execute = libc::PROT_EXEC as u32;
    let named = |name: &[u8]| name.windows(library.len()).any(|part| part == library);
    let areas = crate::maps::read();
    areas
        .iter()
        .filter(|area| area.protection & execute != 0 && named(&area.name))
        .map(|area| area.start..area.end)
        .collect()
}

fn timers(findings: &mut Findings) {
    for (which, name) in [
        (libc::ITIMER_REAL, &b"the real-time interval timer (alarm, setitimer)"[..]),
        (libc::ITIMER_VIRTUAL, b"the virtual interval timer"),
        (libc::ITIMER_PROF, b"the profiling interval timer"),
    ] {
        if sys::interval_timer(which) {
            findings.add(
                Kind::Timer,
                &[name, b" is running, and a fork drops it; stop it in a before_freeze hook and start it in an after_thaw hook"],
            );
        }
    }
    for line in sys::read_file(b"/proc/self/timers\0").split(|&byte| byte == b'\n') {
        if let Some(number) = line.strip_prefix(b"ID: ") {
            findings.add(
                Kind::Timer,
                &[b"POSIX timer ", number, b" exists, and a fork drops it; delete it in a before_freeze hook"],
            );
        }
    }
}

/// Locks and leases, which fdinfo lists as `lock:\t1: POSIX  ADVISORY  WRITE 4711 fe:00:123 0 EOF` for the descriptor
/// that holds them. A fork child does not own POSIX locks, so it could not find them.
fn locks(findings: &mut Findings) {
    let Ok(directory) = File::open(b"/proc/self/fd\0", libc::O_RDONLY | libc::O_DIRECTORY) else { return };
    for number in directory.names() {
        let path = sys::read_link(&sys::c_path(&[b"/proc/self/fd/", &number]));
        for line in sys::read_file(&sys::c_path(&[b"/proc/self/fdinfo/", &number])).split(|&byte| byte == b'\n') {
            let Some(lock) = line.strip_prefix(b"lock:") else { continue };
            let mut words = lock.trim_ascii().split(|&byte| byte == b' ').filter(|word| !word.is_empty());
            let kind = words.nth(1).unwrap_or(b"");
            findings.add(
                Kind::Lock,
                &[
                    b"descriptor ",
                    &number,
                    b" holds a ",
                    kind,
                    b" file lock on ",
                    &path,
                    b", and a thaw would not hold it; release it in a before_freeze hook",
                ],
            );
        }
    }
}

fn signals(findings: &mut Findings) {
    let (_, pending) = sys::signal_masks();
    for number in (1..=64u32).filter(|number| pending & (1 << (number - 1)) != 0) {
        findings.add(
            Kind::Signal,
            &[
                b"signal ",
                &decimal(number.into()),
                sys::signal_name(number),
                b" is pending, and a fork drops it; unblock or wait for it before the freeze",
            ],
        );
    }
}

/// Child processes, by name if the kernel lists them (CONFIG_PROC_CHILDREN).
fn children(findings: &mut Findings) {
    if !sys::has_children() {
        return;
    }
    let Ok(tasks) = File::open(b"/proc/self/task\0", libc::O_RDONLY | libc::O_DIRECTORY) else { return };
    let mut names = Vec::new();
    for thread in tasks.names() {
        let list = task_file(&thread, b"children");
        for child in list.trim_ascii().split(|&byte| byte == b' ').filter(|child| !child.is_empty()) {
            let name = sys::read_file(&sys::c_path(&[b"/proc/", child, b"/comm"]));
            let separator: &[u8] = if names.is_empty() { b" (" } else { b", " };
            names.extend_from_slice(&[separator, child, b" '", name.trim_ascii_end(), b"'"].concat());
        }
    }
    if !names.is_empty() {
        names.push(b')');
    }
    findings.add(
        Kind::Child,
        &[
            b"the program has started a child process",
            &names,
            b" that it has not waited for; end it in a before_freeze hook, or start it after the freeze point",
        ],
    );
}
