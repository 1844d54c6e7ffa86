//! Files, directories, links and descriptors of the process.

use alloc::vec;
use alloc::vec::Vec;
use core::ffi::c_int;

/// The C library's errno after a failed call.
pub fn errno() -> i32 {
    // SAFETY: always valid in a thread.
    unsafe { *libc::__errno_location() }
}

/// A path with the final NUL that the C library requires.
pub fn c_path(parts: &[&[u8]]) -> Vec<u8> {
    let mut path = parts.concat();
    path.push(0);
    path
}

/// An open file of the freezer; closed when dropped.
pub struct File(c_int);

impl Drop for File {
    fn drop(&mut self) {
        // SAFETY: the descriptor is this value's own.
        unsafe { libc::close(self.0) };
    }
}

impl File {
    /// Opens a file; `path` ends with a NUL; `flags` are O_ flags, to which O_CLOEXEC is added. New files get mode
    /// 0600.
    pub fn open(path: &[u8], flags: c_int) -> Result<File, i32> {
        debug_assert!(path.last() == Some(&0));
        // SAFETY: `path` is NUL-terminated.
        let fd = unsafe { libc::open(path.as_ptr().cast(), flags | libc::O_CLOEXEC, 0o600 as libc::c_uint) };
        if fd < 0 {
            Err(errno())
        } else {
            Ok(File(fd))
        }
    }

    /// Makes it the current directory.
    pub fn enter(&self) -> Result<(), i32> {
        // SAFETY: no memory is involved.
        match unsafe { libc::fchdir(self.0) } {
            0 => Ok(()),
            _ => Err(errno()),
        }
    }

    /// Reads at an offset; returns how many bytes were read.
    pub fn read_at(&self, into: &mut [u8], offset: u64) -> Result<usize, i32> {
        // SAFETY: the buffer is as long as said.
        let count = unsafe { libc::pread(self.0, into.as_mut_ptr().cast(), into.len(), offset as libc::off_t) };
        usize::try_from(count).map_err(|_| errno())
    }

    /// Writes all bytes at an offset.
    pub fn write_at(&self, mut bytes: &[u8], mut offset: u64) -> Result<(), i32> {
        while !bytes.is_empty() {
            // SAFETY: the buffer is as long as said.
            let count = unsafe { libc::pwrite(self.0, bytes.as_ptr().cast(), bytes.len(), offset as libc::off_t) };
            match usize::try_from(count) {
                Ok(0) => return Err(libc::ENOSPC),
                Ok(count) => {
                    bytes = &bytes[count..];
                    offset += count as u64;
                }
                Err(_) if errno() == libc::EINTR => {}
                Err(_) => return Err(errno()),
            }
        }
        Ok(())
    }

    /// Sets the size of the file.
    pub fn set_size(&self, size: u64) -> Result<(), i32> {
        // SAFETY: no memory is involved.
        match unsafe { libc::ftruncate(self.0, size as libc::off_t) } {
            0 => Ok(()),
            _ => Err(errno()),
        }
    }

    /// Status of the file.
    pub fn status(&self) -> Result<Status, i32> {
        status_of(self.0)
    }

    /// The names in a directory, without `.` and `..`.
    pub fn names(&self) -> Vec<Vec<u8>> {
        /// Offsets in the kernel's linux_dirent64: d_reclen and d_name.
        const RECORD_LENGTH: usize = 16;
        const NAME: usize = 19;
        let mut names = Vec::new();
        let mut buffer = [0u8; 4096];
        loop {
            // SAFETY: the buffer is as long as said.
            let count = unsafe { libc::syscall(libc::SYS_getdents64, self.0, buffer.as_mut_ptr(), buffer.len()) };
            let Some(mut entries) =
                usize::try_from(count).ok().filter(|&count| count > 0).map(|count| &buffer[..count])
            else {
                return names;
            };
            while entries.len() > NAME {
                let length = usize::from(u16::from_le_bytes([entries[RECORD_LENGTH], entries[RECORD_LENGTH + 1]]));
                let name = entries[NAME..length].split(|&byte| byte == 0).next().unwrap_or(b"");
                if name != b"." && name != b".." {
                    names.push(name.to_vec());
                }
                entries = &entries[length..];
            }
        }
    }

    /// Its number.
    pub fn number(&self) -> u32 {
        self.0 as u32
    }
}

/// Identity, kind, size and times of a file.
#[derive(Clone, Copy)]
pub struct Status {
    /// st_mode.
    pub mode: u32,
    /// st_nlink.
    pub links: u64,
    /// st_dev.
    pub device: u64,
    /// st_ino.
    pub inode: u64,
    /// Bytes.
    pub size: u64,
    /// ns since 1970.
    pub mtime: i64,
    /// ns since 1970.
    pub ctime: i64,
}

impl Status {
    fn new(stat: &libc::stat) -> Status {
        Status {
            mode: stat.st_mode,
            links: stat.st_nlink as _,
            device: stat.st_dev,
            inode: stat.st_ino,
            size: stat.st_size as u64,
            mtime: stat.st_mtime * 1_000_000_000 + stat.st_mtime_nsec,
            ctime: stat.st_ctime * 1_000_000_000 + stat.st_ctime_nsec,
        }
    }
}

fn status_of(number: c_int) -> Result<Status, i32> {
    let mut stat = core::mem::MaybeUninit::<libc::stat>::zeroed();
    // SAFETY: the kernel fills in the structure, which is the C library's, too, and for which zeros are valid.
    unsafe {
        // Not by `fstat`, which is a symbol of glibc only since 2.33.
        match libc::syscall(libc::SYS_fstat, number, stat.as_mut_ptr()) {
            0 => Ok(Status::new(&stat.assume_init())),
            _ => Err(errno()),
        }
    }
}

/// Status of a descriptor of the process.
pub fn descriptor_status(number: u32) -> Result<Status, i32> {
    status_of(number as c_int)
}

/// One of the fcntl calls without a pointer argument (F_GETFD, F_GETFL, F_GETPIPE_SZ).
pub fn descriptor_fact(number: u32, command: c_int) -> i32 {
    // SAFETY: these commands involve no memory.
    unsafe { libc::fcntl(number as c_int, command) }
}

/// Whether this number still refers to the file that the epoll instance registered under `watched`; true if the kernel
/// cannot tell.
pub fn watches_descriptor(epoll: u32, watched: u32) -> bool {
    const KCMP_EPOLL_TFD: c_int = 7;
    // Instance, number, and an index among the files registered under the same number.
    let slot = [epoll, watched, 0u32];
    // SAFETY: getpid has no preconditions; the kernel reads the slot.
    let order = unsafe {
        let pid = libc::getpid();
        libc::syscall(libc::SYS_kcmp, pid, pid, KCMP_EPOLL_TFD, watched as usize, slot.as_ptr())
    };
    order <= 0
}

/// How much can be read from a pipe or socket (bytes); -1 if the kernel does not say.
pub fn bytes_waiting(number: u32) -> i32 {
    let mut count: c_int = 0;
    // SAFETY: the kernel writes an int.
    match unsafe { libc::ioctl(number as c_int, libc::FIONREAD, &raw mut count) } {
        0 => count,
        _ => -1,
    }
}

/// The content of a file of /proc (any file that is read to its end); empty if it cannot be read.
pub fn read_file(path: &[u8]) -> Vec<u8> {
    let Ok(file) = File::open(path, libc::O_RDONLY) else { return Vec::new() };
    let mut content = vec![0; 64 * 1024];
    let mut length = 0;
    loop {
        if content.len() - length < 32 * 1024 {
            content.resize(content.len() * 2, 0);
        }
        match file.read_at(&mut content[length..], length as u64) {
            Ok(0) | Err(_) => break,
            Ok(count) => length += count,
        }
    }
    content.truncate(length);
    content
}

/// The target of a symbolic link of /proc.
pub fn read_link(path: &[u8]) -> Vec<u8> {
    let mut target = [0u8; 4096];
    // SAFETY: `path` is NUL-terminated (see `c_path`), the buffer as long as said.
    let count = unsafe { libc::readlink(path.as_ptr().cast(), target.as_mut_ptr().cast(), target.len()) };
    target[..usize::try_from(count).unwrap_or(0)].to_vec()
}
