//! Open descriptors: those that a thaw can make again go into the image, see crates/descriptors; the others are findings.

use alloc::vec::Vec;

use descriptors::{Open, Process};
use image::{Descriptor, Section};
use image_writer::TablesWriter;

use crate::findings::{decimal, Findings};
use crate::maps;
use crate::sys::{self, File};

/// Descriptors that `snapboot freeze` fills with /dev/null, so that the runtime's own get higher numbers and do not
/// collide with those that callers pass to an image.
const FILLERS: core::ops::Range<u32> = 3..100;

/// What one descriptor refers to, as the kernel tells of it.
struct Described {
    number: u32,
    name: Vec<u8>,
    info: Vec<u8>,
    status: sys::Status,
}

impl Described {
    /// None for a descriptor that is not open.
    fn read(number: u32) -> Option<Described> {
        let status = sys::descriptor_status(number).ok()?;
        let info = sys::read_file(&sys::c_path(&[b"/proc/self/fdinfo/", &decimal(number.into())]));
        Some(Described { number, name: file_of(number), info, status })
    }

    fn as_open(&self) -> Open<'_> {
        let Described { number, name, info, status } = self;
        let (mode, links, inode) = (status.mode, status.links, status.inode);
        Open { number: *number, name, mode, links, inode, info }
    }

    fn is_filler(&self) -> bool {
        let is_passed_on = self.as_open().flags() & libc::O_CLOEXEC as u32 == 0;
        FILLERS.contains(&self.number) && self.name == b"/dev/null" && is_passed_on
    }
}

/// This process.
struct Itself;

impl Process for Itself {
    fn bytes_waiting(&self, number: u32) -> Option<u32> {
        u32::try_from(sys::bytes_waiting(number)).ok()
    }

    fn pipe_capacity(&self, number: u32) -> u64 {
        sys::descriptor_fact(number, libc::F_GETPIPE_SZ).max(0) as u64
    }

    fn is_watched(&self, epoll: u32, watched: u32) -> bool {
        sys::watches_descriptor(epoll, watched)
    }

    fn booted_pid(&self) -> u64 {
        sys::booted_pid() as u64
    }

    fn socket_peer(&self, inode: u64) -> Option<u64> {
        sys::sockets::peer(inode)
    }

    fn as_new_socket(&self, number: u32) -> Option<[u32; 3]> {
        sys::sockets::as_new(number)
    }

    fn is_unused_socket(&self, number: u32) -> bool {
        sys::sockets::is_unused(number)
    }
}

/// Writes the descriptors section.
pub fn add(tables: &mut TablesWriter, findings: &mut Findings) {
    let Ok(directory) = File::open(b"/proc/self/fd\0", libc::O_RDONLY | libc::O_DIRECTORY) else { return };
    let mut numbers: Vec<u32> = directory.names().iter().map(|name| maps::decimal(name) as u32).collect();
    numbers.retain(|&number| number > 2 && number != directory.number());
    numbers.sort_unstable();
    let mut described: Vec<Described> = numbers.into_iter().filter_map(Described::read).collect();
    described.retain(|it| !it.is_filler());
    let all: Vec<Open<'_>> = described.iter().map(Described::as_open).collect();
    let mut write = |row: Descriptor, path: &[u8]| {
        let path = tables.text(path);
        tables.push(Section::Descriptors, &Descriptor { path, ..row });
    };
    descriptors::capture(&all, &Itself, &mut write, &mut |open, obstacle| match obstacle {
        Some(obstacle) => findings.add_descriptor(open.number, &[obstacle.as_bytes()]),
        None => refuse(findings, open),
    });
}

/// What a descriptor refers to: a path, or the kernel's name for a file without one.
pub fn file_of(number: u32) -> Vec<u8> {
    sys::read_link(&sys::c_path(&[b"/proc/self/fd/", &decimal(number.into())]))
}

/// Says of an object that no module knows what it is.
fn refuse(findings: &mut Findings, open: &Open<'_>) {
    let (number, name) = (open.number, open.name);
    let remedy = b"; close it in a before_freeze hook, or open it after the freeze point";
    match open.file_type() {
        libc::S_IFSOCK => {
            let socket = describe_socket(number);
            findings.add_descriptor(number, &[b"is ", &socket, remedy]);
        }
        libc::S_IFREG => findings.add_descriptor(number, &[b"is a file that has no name any more: ", name, remedy]),
        libc::S_IFIFO => findings.add_descriptor(number, &[b"is a named pipe: ", name, remedy]),
        libc::S_IFCHR => findings.add_descriptor(number, &[b"is a terminal or another device: ", name, remedy]),
        libc::S_IFBLK => findings.add_descriptor(number, &[b"is a block device: ", name, remedy]),
        _ => findings.add_descriptor(number, &[b"is a kernel object that cannot be made again: ", name, remedy]),
    }
}

/// `a connected TCP socket (127.0.0.1:6379)` and the like.
fn describe_socket(number: u32) -> Vec<u8> {
    let (kind, [own, peer]) = (sys::sockets::kind(number), sys::sockets::addresses(number));
    let family = own.as_deref().filter(|name| name.len() >= 2).map_or(0, |name| i32::from(name[0]));
    let protocol: &[u8] = match (family, kind) {
        (libc::AF_INET | libc::AF_INET6, libc::SOCK_STREAM) => b"TCP",
        (libc::AF_INET | libc::AF_INET6, libc::SOCK_DGRAM) => b"UDP",
        (libc::AF_UNIX, _) => b"unix",
        (libc::AF_NETLINK, _) => b"netlink",
        _ => b"network",
    };
    let state: &[u8] = match peer {
        Some(_) => b"a connected ",
        None if sys::sockets::is_listening(number) => b"a listening ",
        None => b"a ",
    };
    let mut text = [state, protocol, b" socket"].concat();
    if let Some(name) = peer.or(own).and_then(|name| describe_address(&name)) {
        text.extend_from_slice(&[b" (", name.as_slice(), b")"].concat());
    }
    text
}

fn describe_address(name: &[u8]) -> Option<Vec<u8>> {
    match i32::from(*name.first()?) {
        libc::AF_INET if name.len() >= 8 => {
            let port = u16::from_be_bytes([name[2], name[3]]);
            Some(alloc::format!("{}.{}.{}.{}:{port}", name[4], name[5], name[6], name[7]).into_bytes())
        }
        libc::AF_INET6 if name.len() >= 24 => {
            let mut address = [0; 16];
            address.copy_from_slice(&name[8..24]);
            let port = u16::from_be_bytes([name[2], name[3]]);
            Some(alloc::format!("[{}]:{port}", core::net::Ipv6Addr::from(address)).into_bytes())
        }
        libc::AF_UNIX => {
            let path = name.get(2..)?;
            let path = path.strip_prefix(b"\0").unwrap_or(path).split(|&byte| byte == 0).next()?;
            (!path.is_empty()).then(|| path.to_vec())
        }
        _ => None,
    }
}
