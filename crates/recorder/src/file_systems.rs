//! Tells paths of the kernel from ordinary ones by file system, not by name: /dev may hold ordinary files (/dev/shm),
//! and the kernel's file systems may be mounted anywhere.

use std::collections::HashMap;
use std::fs::Metadata;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::statfs;

/// Magic numbers (linux/magic.h) of file systems whose files the kernel generates when they are read.
const OF_THE_KERNEL: [i64; 22] = [
    0x9fa0,      // proc
    0x6265_6572, // sysfs
    0x0027_e0eb, // cgroup
    0x6367_7270, // cgroup2
    0x6462_6720, // debugfs
    0x7472_6163, // tracefs
    0x7363_6673, // securityfs
    0xcafe_4a11, // bpf
    0x6165_676c, // pstore
    0xde5e_81e4, // efivarfs
    0x6265_6570, // configfs
    0x6573_5543, // fusectl
    0x4249_4e4d, // binfmt_misc
    0x1cd1,      // devpts
    0x1980_0202, // mqueue
    0x6e73_6673, // nsfs
    0x0765_5821, // resctrl
    0xf97c_ff8c, // selinuxfs
    0x4341_5d53, // smackfs
    0x5a3c_69f0, // apparmorfs
    0x6759_6969, // rpc_pipefs
    0x6e66_7364, // nfsd
];

/// Classifies file systems and caches the answers.
#[derive(Debug, Default)]
pub(crate) struct FileSystems {
    /// By device number.
    devices: HashMap<u64, bool>,
    /// By directory, for names that do not exist.
    directories: HashMap<PathBuf, bool>,
}

/// The owner of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// An ordinary path.
    Nobody,
    /// The kernel: a file that it generates, or a device below /dev.
    Kernel,
    /// An ordinary link to this file of the kernel.
    LinkTo(PathBuf),
}

impl FileSystems {
    /// The owner of a path, which may be missing.
    pub(crate) fn owner(&mut self, path: &Path) -> Owner {
        let Ok(metadata) = path.symlink_metadata() else {
            return if self.is_above(path) { Owner::Kernel } else { Owner::Nobody };
        };
        if self.is_kernels(path, &metadata) {
            return Owner::Kernel;
        }
        let is_device = |metadata: &Metadata| !metadata.is_dir() && !metadata.is_file() && !metadata.is_symlink();
        let is_below_dev = path.starts_with("/dev");
        if is_below_dev && is_device(&metadata) && !metadata.file_type().is_fifo() {
            return Owner::Kernel;
        }
        let Some(behind) = metadata.is_symlink().then(|| path.metadata().ok()).flatten() else { return Owner::Nobody };
        // Of a link below /dev (/dev/fd, /dev/stdin) only the target matters.
        match self.is_kernels(path, &behind) {
            true if is_below_dev => Owner::Kernel,
            true => target(path).map_or(Owner::Kernel, Owner::LinkTo),
            false if is_below_dev && is_device(&behind) => Owner::Kernel,
            false => Owner::Nobody,
        }
    }

    /// Whether an existing path lies on a file system of the kernel.
    fn is_kernels(&mut self, path: &Path, metadata: &Metadata) -> bool {
        let device = metadata.dev();
        if let Some(known) = self.devices.get(&device) {
            return *known;
        }
        // A link may lie on another file system than its target.
        let of = |path: &Path| statfs(path).is_ok_and(|it| OF_THE_KERNEL.contains(&it.f_type));
        let is = match path.symlink_metadata() {
            Ok(own) if own.is_symlink() && own.dev() == device => path.parent().is_some_and(of),
            _ => of(path),
        };
        self.devices.insert(device, is);
        is
    }

    /// Whether the directory of a missing path is the kernel's.
    fn is_above(&mut self, path: &Path) -> bool {
        let Some(directory) = path.parent() else { return false };
        if let Some(known) = self.directories.get(directory) {
            return *known;
        }
        let is = match directory.metadata() {
            Ok(metadata) => self.is_kernels(directory, &metadata),
            Err(_) => self.is_above(directory),
        };
        self.directories.insert(directory.to_owned(), is);
        is
    }
}

/// The target of a link, one step on.
fn target(link: &Path) -> Option<PathBuf> {
    Some(link.parent()?.join(std::fs::read_link(link).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_system_tells_and_not_the_name() {
        let mut all = FileSystems::default();
        let mut owner = |path: &str| all.owner(Path::new(path));
        for path in
            ["/proc", "/proc/cpuinfo", "/proc/no/such/file", "/sys/kernel", "/dev/null", "/dev/fd", "/dev/stdin"]
        {
            assert_eq!(owner(path), Owner::Kernel, "{path}");
        }
        for path in ["/", "/etc/hostname", "/no/such/place", "/dev", "/dev/no-such-device", "/process"] {
            assert_eq!(owner(path), Owner::Nobody, "{path}");
        }
        let top = tempfile::tempdir_in("/dev/shm").unwrap();
        let file = top.path().join("app.toml");
        std::fs::write(&file, "").unwrap();
        assert_eq!(owner(file.to_str().unwrap()), Owner::Nobody);
        let link = top.path().join("mtab");
        std::os::unix::fs::symlink("/proc/self/mounts", &link).unwrap();
        // Links below /dev that lead to files of the kernel are the kernel's, too.
        assert_eq!(owner(link.to_str().unwrap()), Owner::Kernel);
        let elsewhere = tempfile::tempdir().unwrap();
        let link = elsewhere.path().join("mtab");
        std::os::unix::fs::symlink("/proc/self/mounts", &link).unwrap();
        assert_eq!(owner(link.to_str().unwrap()), Owner::LinkTo("/proc/self/mounts".into()));
    }
}
