//! Checks whether a boot can be watched while it is frozen, and what prevents it.

use std::fs;

use failure::Result;
use freeze::watch_trial;

use super::{Line, State};

/// All lines, in the order in which they are shown.
pub fn lines() -> Vec<Line> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let scope = fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").ok();
    let trial = watch_trial();
    let is_permitted = trial.is_ok();
    vec![recorder(trial), seccomp(&status, is_permitted), ptrace(scope.as_deref(), &status)]
}

/// Tries the whole mechanism.
fn recorder(trial: Result<()>) -> Line {
    match trial {
        Ok(()) => Line::new(
            "recorder",
            State::Yes,
            "tried: a boot can be watched (seccomp user notifications, process_vm_readv)",
        ),
        Err(failure) => Line::new("recorder", State::No, format!("tried: {failure}")),
    }
}

/// The system call filters that this process was started under. The trial has shown whether they permit what a freeze needs.
fn seccomp(status: &str, is_permitted: bool) -> Line {
    let filters = match (field(status, "Seccomp"), field(status, "Seccomp_filters")) {
        (None, _) => {
            return Line::new(
                "seccomp",
                State::No,
                "the kernel was built without it (CONFIG_SECCOMP), and freezing needs it",
            )
        }
        (Some("0"), _) => return Line::new("seccomp", State::Yes, "no filter of system calls is in place here"),
        (_, Some(number)) if number != "1" => format!("{number} filters of system calls are"),
        _ => "a filter of system calls is".to_owned(),
    };
    let whose = "in place here (of a container, a service or a sandbox)";
    if is_permitted {
        return Line::new("seccomp", State::Yes, format!("{filters} {whose}, and what freezing needs is permitted"));
    }
    Line::new(
        "seccomp",
        State::Note,
        format!(
            "{filters} {whose}, and may forbid what freezing needs; the default filters of podman and Docker do not"
        ),
    )
}

/// Whether Yama lets a process read the memory of its children.
fn ptrace(scope: Option<&str>, status: &str) -> Line {
    /// The number of CAP_SYS_PTRACE.
    const PTRACE: u32 = 19;
    let may_trace = field(status, "CapEff")
        .and_then(|mask| u64::from_str_radix(mask, 16).ok())
        .is_some_and(|mask| mask >> PTRACE & 1 == 1);
    let scope = scope.map(str::trim);
    match scope {
        None => Line::new("ptrace", State::Yes, "not restricted: this kernel has no kernel.yama.ptrace_scope"),
        Some("0" | "1") => {
            Line::new("ptrace", State::Yes, format!("kernel.yama.ptrace_scope={}: memory of children can be read", scope.unwrap_or_default()))
        }
        Some("2") if may_trace => Line::new("ptrace", State::Yes, "kernel.yama.ptrace_scope=2, and this process has CAP_SYS_PTRACE"),
        Some(scope) => Line::new(
            "ptrace",
            State::Note,
            format!("kernel.yama.ptrace_scope={scope} forbids reading the memory of children: freeze as root, or set it to 1 (3 stays \
                until the next boot of the machine)"),
        ),
    }
}

/// The value of a field in /proc/self/status.
fn field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    let value = |line: &'a str| Some(line.strip_prefix(name)?.strip_prefix(':')?.trim());
    status.lines().find_map(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_are_counted() {
        let line = |status, permitted| seccomp(status, permitted);
        assert_eq!(line("Seccomp:\t0\n", true).state, State::Yes);
        assert_eq!(line("", true).state, State::No);
        let two = line("Name:\tx\nSeccomp:\t2\nSeccomp_filters:\t2\n", true);
        assert!(
            two.state == State::Yes && two.reason.starts_with("2 filters of system calls are in place"),
            "{}",
            two.reason
        );
        let one = line("Seccomp:\t2\nSeccomp_filters:\t1\n", false);
        assert!(one.state == State::Note && one.reason.starts_with("a filter"), "{}", one.reason);
    }

    #[test]
    fn yama_has_a_say() {
        let privileged = "CapEff:\t0000000000080000\n";
        assert_eq!(ptrace(None, "").state, State::Yes);
        assert_eq!(ptrace(Some("1\n"), "").state, State::Yes);
        assert_eq!(ptrace(Some("2\n"), "CapEff:\t0\n").state, State::Note);
        assert_eq!(ptrace(Some("2\n"), privileged).state, State::Yes);
        assert_eq!(ptrace(Some("3\n"), privileged).state, State::Note);
    }
}
