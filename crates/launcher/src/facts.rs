//! The system calls behind [`inputs::facts`].
#![allow(unsafe_code)]

use core::mem::MaybeUninit;

use inputs::facts::{Content, Kernel};
use linux_raw_sys::{errno, general as raw};

use crate::argument_block::Block;
use crate::content;
use crate::sys::{self, call};
use crate::system;

/// This process.
pub struct Now<'a> {
    /// Where its environment is.
    pub block: &'a Block,
}

impl Kernel for Now<'_> {
    fn uname(&self, write: &mut dyn FnMut([&[u8]; 4])) {
        /// The kernel's new_utsname: six fields of 65 bytes.
        const FIELD: usize = 65;
        let mut names = [0u8; 6 * FIELD];
        // SAFETY: the kernel fills in the fields. It cannot fail.
        let _ = unsafe { call(raw::__NR_uname, &[names.as_mut_ptr() as usize]) };
        let field = |number: usize| {
            let field = &names[number * FIELD..(number + 1) * FIELD];
            field.split(|&byte| byte == 0).next().unwrap_or(field)
        };
        write([1, 2, 3, 4].map(field));
    }

    fn read(&self, path: &[u8], buffer: &mut [u8]) -> Option<usize> {
        let file = sys::open(path, raw::O_RDONLY | raw::O_CLOEXEC).ok()?;
        let size = sys::read_at(file, buffer, 0).ok();
        sys::close(file);
        size
    }

    fn content(&self, path: &[u8]) -> Content {
        // Some would wait for something to happen.
        let file = match sys::open(path, raw::O_RDONLY | raw::O_NONBLOCK | raw::O_CLOEXEC) {
            Ok(file) => file,
            Err(sys::Errno(errno::ENOENT | errno::ENOTDIR)) => return Content::Absent,
            Err(_) => return Content::Unreadable,
        };
        let digest = content::sieved(path, file);
        sys::close(file);
        match digest {
            Ok(digest) => Content::Digest(digest),
            Err(sys::Errno(errno::EISDIR)) => Content::Directory,
            Err(_) => Content::Unreadable,
        }
    }

    fn affinity(&self, mask: &mut [u8]) -> Option<usize> {
        // SAFETY: the kernel writes to the mask only.
        unsafe { call(raw::__NR_sched_getaffinity, &[0, mask.len(), mask.as_mut_ptr() as usize]) }.ok()
    }

    fn memory(&self) -> Option<u64> {
        let mut info = MaybeUninit::<linux_raw_sys::system::sysinfo>::zeroed();
        // SAFETY: the kernel fills in the structure, for which zeros are valid too.
        let info = unsafe {
            call(raw::__NR_sysinfo, &[info.as_mut_ptr() as usize]).ok()?;
            info.assume_init()
        };
        Some(info.totalram.wrapping_mul(info.mem_unit.into()))
    }

    fn limit(&self, number: u32) -> Option<(u64, u64)> {
        sys::limit(number).ok().map(|[soft, hard]| (soft, hard))
    }

    fn user(&self) -> [u32; 4] {
        let calls = [raw::__NR_getuid, raw::__NR_geteuid, raw::__NR_getgid, raw::__NR_getegid];
        // SAFETY: these cannot fail, and involve no memory.
        calls.map(|number| unsafe { call(number, &[]) }.unwrap_or(0) as u32)
    }

    fn groups(&self, write: &mut dyn FnMut(u32)) -> Option<()> {
        let mut groups = [0u32; 1024];
        // SAFETY: the kernel writes as many numbers as there is room for, or none.
        let count = unsafe { call(raw::__NR_getgroups, &[groups.len(), groups.as_mut_ptr() as usize]) }.ok()?;
        groups[..count].iter().copied().for_each(write);
        Some(())
    }

    fn window(&self, descriptor: u32) -> Option<(u16, u16)> {
        // Rows, columns, and a size in pixels.
        let mut size = [0u16; 4];
        let place = size.as_mut_ptr() as usize;
        // SAFETY: the kernel writes the four numbers of a winsize.
        unsafe { call(raw::__NR_ioctl, &[descriptor as usize, linux_raw_sys::ioctl::TIOCGWINSZ as usize, place]) }
            .ok()?;
        Some((size[1], size[0]))
    }

    fn cwd(&self, buffer: &mut [u8]) -> Option<usize> {
        // SAFETY: the kernel writes to the buffer only. It counts the NUL.
        let size = unsafe { call(raw::__NR_getcwd, &[buffer.as_mut_ptr() as usize, buffer.len()]) }.ok()?;
        size.checked_sub(1)
    }

    fn umask(&self) -> Option<u32> {
        // Only setting it tells it.
        // SAFETY: these cannot fail, and involve no memory.
        let mask = unsafe { call(raw::__NR_umask, &[0]) }.ok()?;
        // SAFETY: as above.
        let _ = unsafe { call(raw::__NR_umask, &[mask]) };
        Some(mask as u32)
    }

    fn variable(&self, name: &[u8], buffer: &mut [u8]) -> Option<usize> {
        let value = inputs::environment::value_of(name, self.block.environment())?;
        buffer.get_mut(..value.len())?.copy_from_slice(value);
        Some(value.len())
    }

    fn with_variable(&self, name: &[u8], see: &mut dyn FnMut(&[u8])) {
        inputs::environment::value_of(name, self.block.environment()).into_iter().for_each(see);
    }

    fn names(&self, path: &[u8], each: &mut dyn FnMut(&[u8])) -> Option<bool> {
        let directory = match sys::open(path, raw::O_RDONLY | raw::O_DIRECTORY | raw::O_CLOEXEC) {
            Ok(directory) => directory,
            Err(sys::Errno(errno::ENOENT)) => return Some(false),
            Err(_) => return None,
        };
        let listed = system::list_open(directory, each);
        sys::close(directory);
        listed.ok().map(|()| true)
    }

    fn is_there(&self, path: &[u8]) -> Option<bool> {
        match sys::stat(None, path) {
            Ok(_) => Some(true),
            Err(sys::Errno(errno::ENOENT | errno::ENOTDIR | errno::ENAMETOOLONG)) => Some(false),
            Err(_) => None,
        }
    }
}
