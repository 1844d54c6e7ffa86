//! What the kernel gave the new process: arguments, environment, auxiliary vector.
#![allow(unsafe_code)]

use core::ffi::CStr;
use core::marker::PhantomData;

use linux_raw_sys::auxvec::{AT_EXECFN, AT_RANDOM, AT_SECURE, AT_SYSINFO_EHDR};

/// Arguments, environment and auxiliary vector of the new process, as they lie on the kernel's stack.
///
/// They may be used until that stack is unmapped, which [`crate::argument_block::Block`] prepares for by copying them.
pub struct Start {
    argc: usize,
    argv: *const *const u8,
    envp: *const *const u8,
    /// The path that was executed; null when the kernel does not tell.
    executed: *const u8,
    /// Address of the vdso, 0 when there is none.
    pub vdso: u64,
    /// Whether the kernel raised privileges for this program (set-uid, file capabilities).
    pub secure: bool,
    /// A number that the kernel drew for this process; 0 when it did not.
    pub random: u64,
}

impl Start {
    /// # Safety
    /// `stack` is the stack pointer with which the kernel started the process.
    pub unsafe fn from_stack(stack: *const usize) -> Start {
        // SAFETY: the ABI puts argc, argv with a null pointer, envp with a null pointer and auxv pairs one after the other.
        unsafe {
            let argc = *stack;
            let argv = stack.add(1).cast::<*const u8>();
            let envp = argv.add(argc + 1);
            let mut end = envp;
            while !(*end).is_null() {
                end = end.add(1);
            }
            let mut start = Start { argc, argv, envp, executed: core::ptr::null(), vdso: 0, secure: false, random: 0 };
            let mut entry = end.add(1).cast::<usize>();
            while *entry != 0 {
                let (kind, value) = (*entry, *entry.add(1));
                if kind == AT_SYSINFO_EHDR as usize {
                    start.vdso = value as u64;
                } else if kind == AT_SECURE as usize {
                    start.secure = value != 0;
                } else if kind == AT_RANDOM as usize {
                    // 16 random bytes, for whatever a process wants to do with them.
                    start.random = (value as *const u64).read_unaligned();
                } else if kind == AT_EXECFN as usize {
                    start.executed = value as *const u8;
                }
                entry = entry.add(2);
            }
            start
        }
    }

    /// The path that was executed, with its NUL, as it was given: it may be relative, and lead elsewhere by now. None where a descriptor was
    /// executed, for which the kernel makes up a path in /dev/fd (execveat(2)): that is closed, or another file's.
    pub fn executed(&self) -> Option<&[u8]> {
        // SAFETY: the kernel has put a C string there, on the stack.
        let path =
            (!self.executed.is_null()).then(|| unsafe { CStr::from_ptr(self.executed.cast()).to_bytes_with_nul() });
        path.filter(|path| !path.starts_with(b"/dev/fd/"))
    }

    /// The arguments, each with the NUL that ends it; the first is the name under which the image was run.
    pub fn arguments(&self) -> Strings<'_> {
        Strings { next: self.argv, left: self.argc, _stack: PhantomData }
    }

    /// The environment entries, each with the NUL that ends it.
    pub fn environment(&self) -> Strings<'_> {
        Strings { next: self.envp, left: usize::MAX, _stack: PhantomData }
    }
}

/// Iterates over a list of C strings that ends with a null pointer.
#[derive(Clone)]
pub struct Strings<'a> {
    next: *const *const u8,
    left: usize,
    _stack: PhantomData<&'a Start>,
}

impl<'a> Iterator for Strings<'a> {
    type Item = &'a [u8];
    fn next(&mut self) -> Option<&'a [u8]> {
        if self.left == 0 {
            return None;
        }
        // SAFETY: `next` points into a list that ends with a null pointer, whose entries are C strings (see `Start::from_stack`).
        unsafe {
            let string = *self.next;
            if string.is_null() {
                return None;
            }
            self.next = self.next.add(1);
            self.left -= 1;
            Some(CStr::from_ptr(string.cast()).to_bytes_with_nul())
        }
    }
}

/// An entry without its NUL.
pub fn without_nul(string: &[u8]) -> &[u8] {
    &string[..string.len() - 1]
}
