//! The records in the tables. All addresses are virtual addresses of the frozen process; all sizes are in bytes.

use crate::Text;
use record::record;

record! {
    /// A range of memory. The launcher maps the rows in order.
    pub struct Mapping {
        /// First address, a multiple of the page size.
        pub start: u64,
        /// Address after the last byte, a multiple of the page size.
        pub end: u64,
        /// Offset in the image or in the mapped file; 0 for zeroed memory.
        pub offset: u64,
        /// Protection: the kernel's PROT_ bits.
        pub protection: u32,
        /// One of [`mapping_kind`].
        pub kind: u32,
        /// Row in the files section for [`mapping_kind::FILE`] and, if known, for modified pages of a file; otherwise
        /// [`NO_FILE`].
        pub file: u32,
        /// Sum of [`mapping_flag`].
        pub flags: u32,
    }
}

impl Mapping {
    /// The index of its time for `snapboot explain`: a row of the files section, `files` for the image, and `files + 1`
    /// for all other mappings.
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

/// `Mapping::file` of memory without a file.
pub const NO_FILE: u32 = u32::MAX;

/// The source of a mapping's bytes.
pub mod mapping_kind {
    /// Private pages of the image.
    pub const IMAGE: u32 = 1;
    /// Pages of a file of the files section.
    pub const FILE: u32 = 2;
    /// Zeros.
    pub const ANONYMOUS: u32 = 3;
    /// Bytes of the image copied into memory that an earlier row mapped (the stack: a file cannot be mapped there).
    pub const COPY: u32 = 4;
    /// A part of the kernel's vvar and vdso group, moved from the address that the kernel chose. `offset` is the
    /// distance from the group's first byte.
    pub const VDSO: u32 = 5;
    /// The main thread's stack: zeros, with room to grow to the limit.
    pub const STACK: u32 = 6;
    /// A copy of the vdso at its recorded address. Made only if the running kernel has another vdso; its functions then
    /// lead there.
    pub const VDSO_COPY: u32 = 7;
}

/// Properties of a mapping besides its protection.
pub mod mapping_flag {
    /// A shared mapping: of a file, read-only, or of memory without a name, which each thaw has for itself and its children.
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
    /// MADV_GUARD_INSTALL: an access raises SIGSEGV, whatever the protection is.
    pub const GUARD: u32 = 256;
}

record! {
    /// A mapped file, and its identity when the process was frozen.
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
    /// The action for a signal, if not the default.
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
    /// The kernel's state of the process besides its memory.
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
        /// mm: initial stack address.
        pub start_stack: u64,
        /// Where argv strings start; the new argv and environment go here.
        pub arg_start: u64,
        /// Where the environment strings end, padding included.
        pub env_end: u64,
        /// Where the main thread's stack mapping ended.
        pub stack_end: u64,
        /// Space for the stack (bytes): the limit when the process was frozen.
        pub stack_limit: u64,
        /// Name of the thread (comm), NUL-padded.
        pub comm: [u8; 16],
    }
}

/// Properties of the process as a whole.
pub mod process_flag {
    /// The runtime moved its environment out of the argv area, as programs that set process titles do. So the new
    /// environment must not lie there either.
    pub const ENVIRONMENT_MOVED: u32 = 1;
}

record! {
    /// The kernel's vdso. If the running kernel has another, the process calls it through the copy
    /// ([`mapping_kind::VDSO_COPY`]).
    pub struct Platform {
        /// Digest of the vdso's bytes.
        pub vdso: [u8; 16],
        /// Size of the vdso.
        pub vdso_size: u64,
    }
}

record! {
    /// The required answer of a CPUID leaf: each register under its mask.
    pub struct CpuLeaf {
        /// Number of the leaf; [`CpuLeaf::XCR0`] stands for that register, its low half in eax and its high half in
        /// edx.
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
    /// Stands for XCR0, the register states that the kernel has enabled. No CPU has a leaf of this number.
    pub const XCR0: u32 = u32::MAX;
}

record! {
    /// Words in which a library keeps what the CPU can do, for a level ([`CpuLeaf`]). A thaw lets the library's own
    /// function fill them for the CPU that is there.
    pub struct Capabilities {
        /// Address of the words, 32 bits each.
        pub words: u64,
        /// How many bytes the function may write there; a thaw restores them if their content makes no sense.
        pub size: u64,
        /// Address of the function. It gets the address of the words, stores the third and all that follow, and returns
        /// the first two.
        pub function: u64,
        /// Bits of the first two words that the library sets itself.
        pub always: u64,
    }
}

impl Capabilities {
    /// The least and the greatest size of the words (bytes).
    pub const SIZES: (u64, u64) = (16, 64);
}

record! {
    /// How a thaw checks the image.
    pub struct Settings {
        /// One of [`policy`].
        pub policy: u32,
        /// Sum of [`settings_flag`].
        pub flags: u32,
        /// When the image was made (ns since 1970).
        pub made: i64,
        /// Its maximum age (ns); 0 for none.
        pub max_age: u64,
        /// Its maximum number of thaws; 0 for none.
        pub max_thaws: u64,
    }
}

/// Further checks of a thaw.
pub mod settings_flag {
    /// Digest the data pages before using them.
    pub const CHECK_PAGES: u32 = 1;
}

/// When a file counts as unchanged.
pub mod policy {
    /// If size and times are equal; if only times differ, if the content is equal. The default for an image without
    /// settings.
    pub const CHECK: u32 = 0;
    /// If size and content are equal, whatever the times.
    pub const CONTENT: u32 = 1;
    /// Always, for loaded files; if the size is equal, for mapped files.
    pub const TRUST: u32 = 2;
}

record! {
    /// Pages that every start writes to, as observed in a thaw of the finished image. Those of a [`TrainedStart`] are
    /// written to by starts like some training runs.
    pub struct HotRange {
        /// First address, a multiple of the page size.
        pub start: u64,
        /// Address after the last byte, a multiple of the page size.
        pub end: u64,
    }
}

record! {
    /// Starts like some training runs, with the hot ranges that only they write to. The first matching row counts.
    pub struct TrainedStart {
        /// Their first argument; empty if they have none, and for starts of a kind.
        pub argument: Text,
        /// One of [`trained_kind`].
        pub kind: u32,
        /// Number of their hot ranges. The hot ranges of these rows follow the ranges of every start, in order.
        pub hot: u32,
    }
}

/// Which starts a [`TrainedStart`] describes.
pub mod trained_kind {
    /// Starts with this first argument.
    pub const ARGUMENT: u32 = 0;
    /// Starts whose first argument is an option.
    pub const OPTION: u32 = 1;
    /// Starts whose first argument is not an option, and starts without arguments.
    pub const OTHER: u32 = 2;
}

impl TrainedStart {
    /// The kind of a start with this first argument, which is empty if there is none.
    pub fn kind_of(argument: &[u8]) -> u32 {
        if argument.starts_with(b"-") {
            trained_kind::OPTION
        } else {
            trained_kind::OTHER
        }
    }
}

record! {
    /// A part of the data pages that every start reads or writes, as observed in a thaw. If the image is not in memory,
    /// the launcher reads these ahead.
    pub struct TouchedRange {
        /// Offset in the image, a multiple of the page size.
        pub offset: u64,
        /// Size in bytes.
        pub size: u64,
    }
}

record! {
    /// A part of a mapped file that a thaw had in its memory, as observed. If the image is not in memory, the launcher reads these
    /// ahead, too.
    pub struct TouchedFileRange {
        /// Offset in the file, a multiple of the page size.
        pub offset: u64,
        /// Size in bytes.
        pub size: u64,
        /// Row of the files section.
        pub file: u32,
        /// Always 0.
        pub reserved: u32,
    }
}

record! {
    /// An environment variable whose value the boot depended on.
    pub struct Variable {
        /// Its name. Several names separated by `:` mean the first of them that is not empty.
        pub name: Text,
        /// Digest of its value.
        pub value: [u8; 16],
        /// One of [`presence`].
        pub present: u32,
        /// Always 0.
        pub reserved: u32,
    }
}

/// What is required of a variable.
pub mod presence {
    /// It is unset, as it was during the boot.
    pub const UNSET: u32 = 0;
    /// It has the recorded value.
    pub const SET: u32 = 1;
    /// Nothing, even if a pattern matches it: the user has excluded it.
    pub const ANY: u32 = 2;
    /// It is set to a value with the recorded outline. The variable is a secret, for which the boot had a placeholder.
    pub const SECRET: u32 = 3;
    /// As [`SECRET`], and the outline includes the value's form and length.
    pub const SECRET_OF_FORM: u32 = 4;
    /// Of LC_CTYPE's locale: it is C, or its name says UTF-8. A thaw renews the rest.
    pub const LOCALE_OF_UTF8_OR_C: u32 = 5;
    /// As [`LOCALE_OF_UTF8_OR_C`], but without C.
    pub const LOCALE_OF_UTF8: u32 = 6;
    /// The locale is C, whichever variable sets it.
    pub const LOCALE_C: u32 = 7;
    /// It is set and not empty. A thaw puts its value where the boot's value was.
    pub const RENEWED: u32 = 8;
    /// Of all variables together: their total size in bytes, each with `=` and a NUL, is at most the recorded number.
    pub const AT_MOST: u32 = 9;
}

record! {
    /// Another value of an input variable, with which the program booted to the same state.
    pub struct Alternative {
        /// The variable's name.
        pub name: Text,
        /// Digest of the value, or of the part after HOME's value; zeros if it is unset.
        pub value: [u8; 16],
        /// One of [`alternative_kind`].
        pub kind: u32,
        /// The boots that had it, one bit each. All differences of a start must have occurred in one boot together.
        pub boots: u32,
    }
}

/// The kinds of alternative values.
pub mod alternative_kind {
    /// The variable is unset.
    pub const UNSET: u32 = 0;
    /// The variable has this value.
    pub const SET: u32 = 1;
    /// A path below HOME.
    pub const BELOW_HOME: u32 = 2;
}

record! {
    /// A fact about the machine, the user or the process that the boot read.
    pub struct HostFact {
        /// One of `fact_kind` in the crate `inputs`.
        pub kind: u32,
        /// Number of the limit or of the descriptor; 1 for the user if it counts only in starts without HOME; otherwise
        /// 0.
        pub of: u32,
        /// Its value, as the crate `inputs` writes it.
        pub value: Text,
    }
}

record! {
    /// A string of a list: a pattern of variable names (a final `*` matches anything) or a guard argument.
    pub struct Item {
        /// The string.
        pub text: Text,
    }
}

/// What the launcher passes to the freezer's code in the thawed process. Never stored. Its address is in the first
/// argument register when the process continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Handover {
    /// Address of the new environment: pointers, then a null pointer.
    pub environ: u64,
    /// First address of the launcher's leftovers, which the process should unmap.
    pub leftover_start: u64,
    /// Address after it.
    pub leftover_end: u64,
    /// First address of the argument strings, each with its NUL.
    pub arguments_start: u64,
    /// Address after them.
    pub arguments_end: u64,
    /// First address of the environment strings, the launcher's own variable among them.
    pub environment_start: u64,
    /// Address after them.
    pub environment_end: u64,
}
