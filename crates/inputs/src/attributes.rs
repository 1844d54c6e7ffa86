//! The kernel's attributes of a process that a boot may change: one table of them, and how an image treats each.
//!
//! The freezer reads each attribute when the process starts and again at the freeze (crates/freezer sys/attributes.rs).
//! Some cannot be read back; for these the recorder watches the system calls that set them (crates/recorder calls.rs).
//! Only attributes that the boot changed matter; the others stay those of each start. To add one: a row here, its
//! system calls in crates/freezer sys/attribute_calls.rs, and a row in tests/images/attributes.py, from which
//! `tools/attributes.py --write` generates docs/process-attributes.md.

/// How an image treats an attribute that the boot has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// A thaw sets the boot's value again.
    Repeated,
    /// As `Repeated`, but only in starts that inherit the value that the boot inherited: the new value may derive from
    /// it.
    RepeatedFromSame,
    /// The freeze is refused: a thaw would have more rights than an ordinary start.
    Rights,
    /// The freeze is refused: a thaw cannot do the same.
    Refused,
}

/// How a change of an attribute is detected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// By a system call that is cheap enough to make around each import.
    Call,
    /// By reading files below /proc.
    File,
    /// By watching the system calls that set it: the kernel offers no way to read it.
    Seen,
}

macro_rules! attributes {
    ($($variant:ident $name:literal $class:ident $source:ident,)*) => {
        /// An attribute of a process.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[allow(missing_docs)]
        pub enum Attribute { $($variant,)* }

        impl Attribute {
            /// All attributes, in the order in which a thaw sets them again.
            pub const ALL: &'static [Attribute] = &[$(Attribute::$variant,)*];

            /// The name of the attribute, to be read after "its".
            pub fn name(self) -> &'static str {
                match self { $(Attribute::$variant => $name,)* }
            }

            /// How an image treats it.
            pub fn class(self) -> Class {
                match self { $(Attribute::$variant => Class::$class,)* }
            }

            /// How a change of it is detected.
            pub fn source(self) -> Source {
                match self { $(Attribute::$variant => Source::$source,)* }
            }
        }
    };
}

attributes! {
    // The directory comes first: if it is gone, nothing has been changed yet. Files come before limits that may forbid
    // opening any.
    Directory "current directory" Repeated Call,
    OutOfMemoryScore "oom_score_adj" Repeated File,
    CoreDumpFilter "coredump_filter" Repeated File,
    Affinity "CPU affinity" RepeatedFromSame Call,
    Scheduling "nice value, scheduling policy and priority" RepeatedFromSame Call,
    IoPriority "I/O priority" Repeated Call,
    MemoryPolicy "NUMA memory policy" RepeatedFromSame Call,
    Personality "personality" RepeatedFromSame Call,
    TimerSlack "timer slack" Repeated Call,
    HugePages "switch for transparent huge pages (PR_SET_THP_DISABLE)" Repeated Call,
    MemoryMerge "switch for memory merging (PR_SET_MEMORY_MERGE)" Repeated Call,
    Subreaper "child subreaper flag" Repeated Call,
    ParentDeathSignal "parent death signal" Repeated Call,
    MachineChecks "machine check policy (PR_MCE_KILL)" Repeated Call,
    IoFlusher "I/O flusher flag" Repeated Call,
    ExtendedRegisters "permission for extended registers (ARCH_REQ_XCOMP_PERM)" Repeated Call,
    LimitCpu "limit of CPU time" Repeated Call,
    LimitFileSize "limit of file sizes" Repeated Call,
    LimitData "limit of data" Repeated Call,
    LimitStack "limit of the stack" Repeated Call,
    LimitCore "limit of core dumps" Repeated Call,
    LimitResident "limit of resident memory" Repeated Call,
    LimitProcesses "limit of processes" Repeated Call,
    LimitOpenFiles "limit of open files" Repeated Call,
    LimitLocked "limit of locked memory" Repeated Call,
    LimitAddressSpace "limit of the address space" Repeated Call,
    LimitFileLocks "limit of file locks" Repeated Call,
    LimitPendingSignals "limit of pending signals" Repeated Call,
    LimitMessageQueues "limit of message queues" Repeated Call,
    LimitNice "limit of niceness" Repeated Call,
    LimitRealTimePriority "limit of real-time priority" Repeated Call,
    LimitRealTimeCpu "limit of real-time CPU time" Repeated Call,
    Users "user ids (real, effective, saved, file system)" Rights Call,
    Groups "group ids (real, effective, saved, file system)" Rights Call,
    SupplementaryGroups "supplementary groups" Rights Call,
    Capabilities "capabilities (effective, permitted, inheritable)" Rights Call,
    AmbientCapabilities "ambient capabilities" Rights Call,
    CapabilityBounds "capability bounding set" Rights Call,
    SecureBits "securebits" Rights Call,
    NoNewPrivileges "no-new-privileges flag" Rights Call,
    SeccompFilters "seccomp filters" Rights File,
    Landlock "Landlock rules" Rights Seen,
    Dumpable "dumpable flag (PR_SET_DUMPABLE)" Rights Call,
    DenyWriteExecute "refusal of writable code (PR_SET_MDWE)" Rights Call,
    Speculation "speculation controls" Rights Call,
    Root "root directory" Rights File,
    Namespaces "namespaces" Rights File,
    ControlGroup "control group" Rights File,
    SecurityLabel "security labels (/proc/self/attr)" Rights File,
    Keyrings "keyrings" Rights Call,
    Tracer "permission for a tracer (PR_SET_PTRACER)" Refused Seen,
    Session "session" Refused Call,
    ProcessGroup "process group" Refused Call,
    LockedMemory "locked memory (mlock, mlockall)" Refused File,
    CoreScheduling "core scheduling cookie" Refused Call,
    Autogroup "niceness of its autogroup" Refused File,
    LoginId "audit login id" Refused File,
    SyscallDispatch "dispatch of system calls (PR_SET_SYSCALL_USER_DISPATCH)" Refused Seen,
    IoPorts "permission for I/O ports" Refused Seen,
    CpuSwitches "switches of the CPU (TSC, CPUID, shadow stack, address tags)" Refused Call,
    SegmentTable "local descriptor table" Refused Call,
}

impl Attribute {
    /// The limits, by RLIMIT_ number.
    pub const LIMITS: &'static [Attribute] = Attribute::ALL.split_at(Attribute::LimitCpu as usize).1.split_at(16).0;

    /// The RLIMIT_ number of a limit.
    pub fn limit(self) -> Option<u32> {
        Self::LIMITS.iter().position(|limit| *limit == self).map(|number| number as u32)
    }

    /// Whether a thaw sets it again.
    pub fn is_repeated(self) -> bool {
        matches!(self.class(), Class::Repeated | Class::RepeatedFromSame)
    }

    /// Why a freeze whose boot has changed it is refused, as the parts of `FACT; REMEDY`.
    pub fn finding(self) -> [&'static str; 3] {
        let remedy = match self.class() {
            Class::Rights => {
                " while it booted; a thaw would have more rights than an ordinary start, so do that in the main part, or in an after_thaw hook"
            }
            _ => " while it booted; a thaw cannot repeat that, so do it in the main part, or in an after_thaw hook",
        };
        ["the program has changed its ", self.name(), remedy]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_have_their_numbers() {
        assert_eq!(Attribute::LimitCpu.limit(), Some(0));
        assert_eq!(Attribute::LimitOpenFiles.limit(), Some(7));
        assert_eq!(Attribute::LimitRealTimeCpu.limit(), Some(15));
        assert_eq!(Attribute::Directory.limit(), None);
    }

    #[test]
    fn what_is_only_seen_is_never_repeated() {
        assert!(Attribute::ALL.iter().all(|it| it.source() != Source::Seen || !it.is_repeated()));
    }
}
