//! The records that the tables hold. All addresses are virtual addresses of the frozen process; all sizes are bytes.

use crate::Text;
use record::record;

record! {
    /// One range of memory, made in the order of the table.
    pub struct Mapping {
        /// First address, a multiple of the page size.
        pub start: u64,
        /// Address after the last byte, a multiple of the page size.
        pub end: u64,
        /// Offset in the image or in the mapped file; 0 for memory that starts as zeros.
        pub offset: u64,
        /// Protection: the kernel's PROT_ bits.
        pub protection: u32,
        /// One of [`mapping_kind`].
        pub kind: u32,
        /// Row in the files section for [`mapping_kind::FILE`] and, where it was known, for pages of a file that the
        /// process had changed; otherwise [`NO_FILE`].
        pub file: u32,
        /// Sum of [`mapping_flag`].
        pub flags: u32,
    }
}

impl Mapping {
    /// What its making is timed as, where `snapboot explain` asks: a file of the files section, by its row; behind these `files` rows the
    /// image; and behind that all else.
    pub fn timed_as(&self, files: usize) -> usize {
        match self.kind {
            mapping_kind::FILE => self.file as usize,
            mapping_kind::IMAGE | mapping_kind::COPY => files,
            _ => files + 1,
        }
    }
}

impl Mapping {
    /// Whether its bytes are data pages of the image.
    pub fn has_pages(&self) -> bool {
        matches!(self.kind, mapping_kind::IMAGE | mapping_kind::COPY | mapping_kind::VDSO_COPY)
    }
}

/// `Mapping::file` of memory that belongs to no file.
pub const NO_FILE: u32 = u32::MAX;

/// Where a mapping's bytes come from.
pub mod mapping_kind {
    /// Private pages of the image.
    pub const IMAGE: u32 = 1;
    /// Pages of a file of the files section.
    pub const FILE: u32 = 2;
    /// Zeros.
    pub const ANONYMOUS: u32 = 3;
    /// Bytes of the image copied into memory that an earlier row made (the stack: a file cannot be mapped there).
    pub const COPY: u32 = 4;
    /// A part of the kernel's vvar and vdso group, moved here from wherever the kernel put it. `offset` is the distance
    /// from the group's first byte.
    pub const VDSO: u32 = 5;
    /// The main thread's stack: zeros, with room to grow to the limit.
    pub const STACK: u32 = 6;
    /// The bytes of the vdso, at its place. Made only where the kernel has another one, to which its functions lead then.
    pub const VDSO_COPY: u32 = 7;
}

/// What holds for a mapping besides its protection.
pub mod mapping_flag {
    /// A shared mapping of a file, read-only.
    pub const SHARED: u32 = 1;
    /// MAP_NORESERVE.
    pub const NORESERVE: u32 = 2;
    /// MADV_DONTDUMP.
    pub const DONTDUMP: u32 = 4;
    /// MADV_HUGEPAGE.
    pub const HUGEPAGE: u32 = 8;
    /// MADV_NOHUGEPAGE.
    pub const NOHUGEPAGE: u32 = 16;
    /// MADV_WIPEONFORK.
    pub const WIPEONFORK: u32 = 32;
    /// MAP_DROPPABLE.
    pub const DROPPABLE: u32 = 64;
    /// MADV_MERGEABLE.
    pub const MERGEABLE: u32 = 128;
    /// MADV_GUARD_INSTALL: whoever touches these pages gets SIGSEGV, whatever the protection.
    pub const GUARD: u32 = 256;
}

record! {
    /// A file that is mapped, and its identity when the process was frozen.
    pub struct MappedFile {
        /// Absolute path.
        pub path: Text,
        /// Size in bytes.
        pub size: u64,
        /// Time of the last change of its content (ns since 1970).
        pub mtime: i64,
        /// Time of the last change of its inode (ns since 1970).
        pub ctime: i64,
        /// Digest of its content.
        pub digest: [u8; 16],
    }
}

record! {
    /// An open descriptor that is made again.
    pub struct Descriptor {
        /// Its number.
        pub number: u32,
        /// One of [`descriptor_kind`].
        pub kind: u32,
        /// Open flags (O_CLOEXEC included); the events for [`descriptor_kind::WATCH`].
        pub flags: u32,
        /// The other end's number for [`descriptor_kind::PIPE_READ`], what is watched for [`descriptor_kind::WATCH`]; otherwise 0.
        pub peer: u32,
        /// File offset, or the count of an eventfd, or the capacity of a pipe, or the data of a registration.
        pub value: u64,
        /// Path of a file or device.
        pub path: Text,
    }
}

/// What a descriptor is.
pub mod descriptor_kind {
    /// A regular file or a plain device, opened again by path.
    pub const FILE: u32 = 1;
    /// An eventfd.
    pub const EVENTFD: u32 = 2;
    /// The reading end of an empty pipe, with `peer` the writing end; `flags` are the reading end's.
    pub const PIPE_READ: u32 = 3;
    /// The writing end of the pipe whose row comes before; nothing to make, only its flags.
    pub const PIPE_WRITE: u32 = 4;
    /// An epoll instance.
    pub const EPOLL: u32 = 5;
    /// Not a descriptor: the epoll instance `number` watches `peer`. These rows come behind all others.
    pub const WATCH: u32 = 6;
}

record! {
    /// What the process does on a signal, where that is not the default.
    pub struct SignalAction {
        /// Handler address, or 1 for SIG_IGN.
        pub handler: u64,
        /// SA_ flags.
        pub flags: u64,
        /// Restorer address.
        pub restorer: u64,
        /// Signals blocked while the handler runs.
        pub mask: u64,
        /// Signal number.
        pub number: u32,
        /// Always 0.
        pub reserved: u32,
    }
}

record! {
    /// The kernel's view of the process besides its memory.
    pub struct Process {
        /// Where glibc keeps the thread id.
        pub tid_address: u64,
        /// Head of the robust list.
        pub robust_list: u64,
        /// Its registered length.
        pub robust_length: u64,
        /// The rseq area, or 0.
        pub rseq_area: u64,
        /// Its registered length.
        pub rseq_length: u32,
        /// Its signature.
        pub rseq_signature: u32,
        /// Alternate signal stack: lowest address.
        pub altstack_start: u64,
        /// Alternate signal stack: size.
        pub altstack_size: u64,
        /// Alternate signal stack: SS_ flags.
        pub altstack_flags: u32,
        /// Sum of [`process_flag`].
        pub flags: u32,
        /// Blocked signals.
        pub signal_mask: u64,
        /// mm: start of code.
        pub start_code: u64,
        /// mm: end of code.
        pub end_code: u64,
        /// mm: start of data.
        pub start_data: u64,
        /// mm: end of data.
        pub end_data: u64,
        /// mm: start of the heap that brk moves.
        pub start_brk: u64,
        /// mm: current end of that heap.
        pub brk: u64,
        /// mm: stack address that the kernel gave at start.
        pub start_stack: u64,
        /// Where argv strings start; new argv and environment go here.
        pub arg_start: u64,
        /// Where the environment strings end, padding included.
        pub env_end: u64,
        /// Where the main thread's stack mapping ended.
        pub stack_end: u64,
        /// Room for the stack (bytes): the limit when the process was frozen.
        pub stack_limit: u64,
        /// Name of the thread (comm), NUL-padded.
        pub comm: [u8; 16],
    }
}

/// What holds for the process as a whole.
pub mod process_flag {
    /// The runtime moved its environment out of the argv area (as those that set process titles do), so the new
    /// environment must not lie there either.
    pub const ENVIRONMENT_MOVED: u32 = 1;
}

record! {
    /// The kernel's vdso. One that differs is called by way of the copy ([`mapping_kind::VDSO_COPY`]).
    pub struct Platform {
        /// Digest of the vdso's bytes.
        pub vdso: [u8; 16],
        /// Size of the vdso.
        pub vdso_size: u64,
    }
}

record! {
    /// What a leaf of CPUID must answer: each register, under its mask.
    pub struct CpuLeaf {
        /// Number of the leaf; [`CpuLeaf::XCR0`] stands for that register, its low half in eax and its high half in edx.
        pub leaf: u32,
        /// Number of the subleaf.
        pub subleaf: u32,
        /// Bits of eax that count.
        pub eax_mask: u32,
        /// Bits of ebx that count.
        pub ebx_mask: u32,
        /// Bits of ecx that count.
        pub ecx_mask: u32,
        /// Bits of edx that count.
        pub edx_mask: u32,
        /// Value of these bits of eax.
        pub eax: u32,
        /// Value of these bits of ebx.
        pub ebx: u32,
        /// Value of these bits of ecx.
        pub ecx: u32,
        /// Value of these bits of edx.
        pub edx: u32,
    }
}

impl CpuLeaf {
    /// The number of a leaf that CPUs do not have, for the register states that the kernel has enabled.
    pub const XCR0: u32 = u32::MAX;
}

record! {
    /// How a thaw goes about its checks.
    pub struct Settings {
        /// One of [`policy`].
        pub policy: u32,
        /// Sum of [`settings_flag`].
        pub flags: u32,
        /// When the image was made (ns since 1970).
        pub made: i64,
        /// How long it may be used from then on (ns); 0 for ever.
        pub max_age: u64,
        /// How many thaws it may be used for; 0 for any number.
        pub max_thaws: u64,
    }
}

/// What else a thaw does.
pub mod settings_flag {
    /// It digests the data pages before it uses them.
    pub const CHECK_PAGES: u32 = 1;
}

/// What it takes for a file to be what it was.
pub mod policy {
    /// The same size and times; where only times differ, the same content. This holds for an image without settings.
    pub const CHECK: u32 = 0;
    /// The same size and content, whatever the times.
    pub const CONTENT: u32 = 1;
    /// Nothing, for loaded files; the same size, for mapped ones.
    pub const TRUST: u32 = 2;
}

record! {
    /// Pages that every start writes to, as a rehearsal of the finished image has shown, or starts like some training runs
    /// ([`TrainedStart`]).
    pub struct HotRange {
        /// First address, a multiple of the page size.
        pub start: u64,
        /// Address after the last byte, a multiple of the page size.
        pub end: u64,
    }
}

record! {
    /// Starts that are like some of the training runs, and what they write to besides. The first row that is about a start counts.
    pub struct TrainedStart {
        /// Their first argument, empty where there is none. Empty for starts of a kind, too.
        pub argument: Text,
        /// One of [`trained_kind`].
        pub kind: u32,
        /// How many hot ranges are about them. Those of the rows follow each other behind the ranges of every start.
        pub hot: u32,
    }
}

/// Which starts a [`TrainedStart`] is about.
pub mod trained_kind {
    /// Those with this first argument.
    pub const ARGUMENT: u32 = 0;
    /// Those whose first argument is an option.
    pub const OPTION: u32 = 1;
    /// Those whose first argument is none, and those without arguments.
    pub const OTHER: u32 = 2;
}

impl TrainedStart {
    /// The kind of a start with this first argument, which is empty where there is none.
    pub fn kind_of(argument: &[u8]) -> u32 {
        if argument.starts_with(b"-") {
            trained_kind::OPTION
        } else {
            trained_kind::OTHER
        }
    }
}

record! {
    /// A part of the data pages that every start reads or writes, as the rehearsal has shown. An image that is not in
    /// memory is read ahead by these.
    pub struct TouchedRange {
        /// Offset in the image, a multiple of the page size.
        pub offset: u64,
        /// Size in bytes.
        pub size: u64,
    }
}

record! {
    /// An environment variable whose value the boot depended on.
    pub struct Variable {
        /// Its name; several names with `:` between stand for the first of them that is not empty.
        pub name: Text,
        /// Digest of its value.
        pub value: [u8; 16],
        /// One of [`presence`].
        pub present: u32,
        /// Always 0.
        pub reserved: u32,
    }
}

/// What is wanted of a variable.
pub mod presence {
    /// That it is not set, as when the image was made.
    pub const UNSET: u32 = 0;
    /// That it is set to the recorded value.
    pub const SET: u32 = 1;
    /// Nothing, whatever the patterns say: the user has told that it does not count.
    pub const ANY: u32 = 2;
    /// That it is set to something of the recorded outline: a secret, of which the boot had a made-up value.
    pub const SECRET: u32 = 3;
    /// The same, and the outline holds its form and length, too.
    pub const SECRET_OF_FORM: u32 = 4;
    /// Of the locale of text: that it is C, or one whose name says UTF-8. A thaw renews the rest.
    pub const LOCALE_OF_UTF8_OR_C: u32 = 5;
    /// The same without C.
    pub const LOCALE_OF_UTF8: u32 = 6;
    /// That it is C, whatever variable says so.
    pub const LOCALE_C: u32 = 7;
    /// That it is set, and not to nothing: a thaw puts its value in the places of the one that the boot had.
    pub const RENEWED: u32 = 8;
    /// Of all variables together: that they take at most so many bytes, each with `=` and a NUL. The value is a number then.
    pub const AT_MOST: u32 = 9;
}

record! {
    /// Another value of a variable that counts, with which the program has booted to the same state.
    pub struct Alternative {
        /// The variable's name.
        pub name: Text,
        /// Digest of the value, or of what stands behind HOME's; zeros where there is none.
        pub value: [u8; 16],
        /// One of [`alternative_kind`].
        pub kind: u32,
        /// The boots that had it, one bit for each. All that differs in a start has to have been in one of them.
        pub boots: u32,
    }
}

/// What another value of a variable is.
pub mod alternative_kind {
    /// None: it is not set.
    pub const UNSET: u32 = 0;
    /// This one.
    pub const SET: u32 = 1;
    /// A path below HOME.
    pub const BELOW_HOME: u32 = 2;
}

record! {
    /// Something about the machine, the user or the process that the boot read.
    pub struct HostFact {
        /// One of [`fact_kind`].
        pub kind: u32,
        /// Number of the limit, or of the descriptor; 1 for the user where it counts only in starts without HOME; otherwise 0.
        pub of: u32,
        /// What it was, in words that `inputs` chooses.
        pub value: Text,
    }
}

/// What a fact is about.
pub mod fact_kind {
    /// The host's name.
    pub const HOSTNAME: u32 = 1;
    /// Release and version of the kernel, and the machine's architecture.
    pub const KERNEL: u32 = 2;
    /// The CPUs that are there and those that are on.
    pub const CPUS: u32 = 3;
    /// The CPUs that the process may run on.
    pub const AFFINITY: u32 = 4;
    /// The size of the memory.
    pub const MEMORY: u32 = 5;
    /// A limit of the process: RLIMIT_ number `of`.
    pub const LIMIT: u32 = 6;
    /// Real and effective user and group.
    pub const USER: u32 = 7;
    /// The supplementary groups.
    pub const GROUPS: u32 = 8;
    /// The size of the terminal at descriptor `of`.
    pub const WINDOW: u32 = 9;
    /// The current directory.
    pub const CWD: u32 = 10;
    /// A file of the kernel's, below /proc or /sys: its path and what is in it.
    pub const KERNEL_FILE: u32 = 11;
    /// Whether descriptor `of` is a terminal.
    pub const TERMINAL: u32 = 12;
    /// The umask.
    pub const UMASK: u32 = 13;
    /// Where a name is found first along the directories of a variable: `$PATH/git: /usr/bin/git`, or `absent`.
    pub const FOUND: u32 = 14;
    /// Names that no directory of a variable may have, where that has another value than in the boot: `PYTHONPATH DIGEST: json/os/re`.
    pub const SEARCHED: u32 = 15;
}

record! {
    /// A string of a list: an environment name pattern (a final `*` stands for anything) or a guard argument.
    pub struct Item {
        /// The string.
        pub text: Text,
    }
}

/// What the launcher tells the freezer's code in the thawed process; never stored. Its address is in the first argument register when
/// the process goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Handover {
    /// Address of the new environment: pointers, then a null pointer.
    pub environ: u64,
    /// First address of what the launcher leaves behind and the process should unmap.
    pub leftover_start: u64,
    /// Address after it.
    pub leftover_end: u64,
    /// First address of the argument strings: one after the other, each with its NUL.
    pub arguments_start: u64,
    /// Address after them.
    pub arguments_end: u64,
    /// First address of the environment strings, the launcher's note among them.
    pub environment_start: u64,
    /// Address after them.
    pub environment_end: u64,
}
