//! Open descriptors: those that a thaw can re-create go into the image, the others are findings.

use alloc::vec::Vec;

use image::{descriptor_kind, Descriptor, Section};
use image_writer::TablesWriter;

use crate::findings::{decimal, Findings};
use crate::maps;
use crate::sys::{self, File};

/// Descriptors that `snapboot freeze` fills with /dev/null, so that the runtime's own get higher numbers and do not
/// collide with those that callers pass to an image.
const FILLERS: core::ops::Range<u32> = 3..100;

/// Devices that behave the same after being reopened.
const PLAIN_DEVICES: [&[u8]; 5] = [b"/dev/null", b"/dev/zero", b"/dev/full", b"/dev/random", b"/dev/urandom"];

/// One end of a pipe whose other end is not known yet.
struct PipeEnd {
    inode: u64,
    number: u32,
    flags: u32,
}

/// Writes the descriptors section.
pub fn add(tables: &mut TablesWriter, findings: &mut Findings) {
    let Ok(directory) = File::open(b"/proc/self/fd\0", libc::O_RDONLY | libc::O_DIRECTORY) else { return };
    let mut numbers: Vec<u32> = directory.names().iter().map(|name| maps::decimal(name) as u32).collect();
    numbers.retain(|&number| number > 2 && number != directory.number());
    numbers.sort_unstable();
    let mut pipes: Vec<PipeEnd> = Vec::new();
    let mut watched: Vec<(u32, Watched)> = Vec::new();
    for number in numbers {
        let name = file_of(number);
        let info = Info::read(number);
        let Ok(status) = sys::descriptor_status(number) else { continue };
        if FILLERS.contains(&number) && name == b"/dev/null" && info.flags & libc::O_CLOEXEC as u32 == 0 {
            continue;
        }
        let mut push = |kind: u32, value: u64, path: &[u8]| {
            let path = tables.text(path);
            tables.push(Section::Descriptors, &Descriptor { number, kind, flags: info.flags, peer: 0, value, path });
        };
        // A file with several names does not say which one was used.
        let is_named = status.links > 0 && !name.ends_with(b" (deleted)");
        match status.kind() {
            libc::S_IFREG if is_named && name.starts_with(b"/") => {
                // Flags that apply only to the first open.
                let once = (libc::O_CREAT | libc::O_EXCL | libc::O_TRUNC) as u32;
                let path = tables.text(&name);
                let flags = info.flags & !once;
                let (kind, value) = (descriptor_kind::FILE, info.position);
                tables.push(Section::Descriptors, &Descriptor { number, kind, flags, peer: 0, value, path });
            }
            libc::S_IFDIR if is_named => push(descriptor_kind::FILE, 0, &name),
            libc::S_IFCHR if PLAIN_DEVICES.contains(&name.as_slice()) => push(descriptor_kind::FILE, 0, &name),
            libc::S_IFIFO if name.starts_with(b"pipe:") => {
                pipes.push(PipeEnd { inode: status.inode, number, flags: info.flags });
            }
            _ if name == b"anon_inode:[eventfd]" => push(descriptor_kind::EVENTFD, info.count, b""),
            _ if name == b"anon_inode:[eventpoll]" && info.watches.iter().all(|it| it.is_of(number)) => {
                push(descriptor_kind::EPOLL, 0, b"");
                watched.extend(info.watches.iter().map(|&it| (number, it)));
            }
            kind => refuse(findings, number, kind, &name),
        }
    }
    add_pipes(tables, findings, &pipes);
    let path = tables.text(b"");
    for (number, Watched { peer, events, data, .. }) in watched {
        let kind = descriptor_kind::WATCH;
        tables.push(Section::Descriptors, &Descriptor { number, kind, flags: events, peer, value: data, path });
    }
}

/// What a descriptor refers to: a path, or the kernel's name for a file without one.
pub fn file_of(number: u32) -> Vec<u8> {
    sys::read_link(&sys::c_path(&[b"/proc/self/fd/", &decimal(number.into())]))
}

/// A descriptor that an epoll instance watches, by its number at registration.
#[derive(Clone, Copy)]
struct Watched {
    peer: u32,
    events: u32,
    data: u64,
    inode: u64,
}

impl Watched {
    /// Parses `tfd: 5 events: 19 data: 5  pos:0 ino:2c sdev:f`, a line of fdinfo.
    fn parse(line: &[u8]) -> Watched {
        let mut words = line.split(|byte| byte.is_ascii_whitespace() || *byte == b':').filter(|word| !word.is_empty());
        let mut after = |key: &[u8]| {
            words.find(|word| *word == key);
            words.next().unwrap_or(b"")
        };
        let peer = maps::decimal(after(b"tfd")) as u32;
        let mut hexadecimal = |key| maps::hexadecimal(after(key)).unwrap_or(0);
        let (events, data, inode) = (hexadecimal(b"events") as u32, hexadecimal(b"data"), hexadecimal(b"ino"));
        Watched { peer, events, data, inode }
    }

    /// Whether a thaw can register it again: the number still refers to the file that the instance `epoll` watches, and
    /// is not a standard stream, which belongs to the new process.
    fn is_of(&self, epoll: u32) -> bool {
        self.peer > 2
            && sys::descriptor_status(self.peer).is_ok_and(|status| status.inode == self.inode)
            && sys::watches_descriptor(epoll, self.peer)
    }
}

/// Re-creates empty pipes of which each end is open in this process once.
fn add_pipes(tables: &mut TablesWriter, findings: &mut Findings, pipes: &[PipeEnd]) {
    let writes = |end: &PipeEnd| end.flags & libc::O_ACCMODE as u32 == libc::O_WRONLY as u32;
    let path = tables.text(b"");
    for end in pipes {
        let same: Vec<&PipeEnd> = pipes.iter().filter(|other| other.inode == end.inode).collect();
        let complete = matches!(same.as_slice(), [a, b] if writes(a) != writes(b));
        if !complete {
            findings.add_descriptor(end.number, &[
                b"is one end of a pipe whose other end is in another process (or which was duplicated); close it in a before_freeze hook",
            ]);
            continue;
        }
        if writes(end) {
            continue;
        }
        if sys::bytes_waiting(end.number) != 0 {
            findings.add_descriptor(end.number, &[b"is a pipe with unread bytes in it; read them before the freeze"]);
            continue;
        }
        let peer = if same[0].number == end.number { same[1] } else { same[0] };
        let capacity = sys::descriptor_fact(end.number, libc::F_GETPIPE_SZ).max(0) as u64;
        let read = Descriptor {
            number: end.number,
            kind: descriptor_kind::PIPE_READ,
            flags: end.flags,
            peer: peer.number,
            value: capacity,
            path,
        };
        tables.push(Section::Descriptors, &read);
        let write = Descriptor {
            number: peer.number,
            kind: descriptor_kind::PIPE_WRITE,
            flags: peer.flags,
            peer: 0,
            value: 0,
            path,
        };
        tables.push(Section::Descriptors, &write);
    }
}

/// The fields of /proc/self/fdinfo.
struct Info {
    flags: u32,
    position: u64,
    count: u64,
    watches: Vec<Watched>,
}

impl Info {
    fn read(number: u32) -> Info {
        let text = sys::read_file(&sys::c_path(&[b"/proc/self/fdinfo/", &decimal(number.into())]));
        let mut info = Info { flags: 0, position: 0, count: 0, watches: Vec::new() };
        for line in text.split(|&byte| byte == b'\n') {
            let Some(colon) = line.iter().position(|&byte| byte == b':') else { continue };
            let (key, value) = (&line[..colon], line[colon + 1..].trim_ascii());
            match key {
                b"pos" => info.position = maps::decimal(value),
                b"flags" => info.flags = octal(value),
                b"eventfd-count" => info.count = maps::hexadecimal(value).unwrap_or(0),
                b"tfd" => info.watches.push(Watched::parse(line)),
                _ => {}
            }
        }
        info
    }
}

fn octal(digits: &[u8]) -> u32 {
    core::str::from_utf8(digits).ok().and_then(|digits| u32::from_str_radix(digits, 8).ok()).unwrap_or(0)
}

fn refuse(findings: &mut Findings, number: u32, kind: u32, name: &[u8]) {
    let remedy = b"; close it in a before_freeze hook, or open it after the freeze point";
    let anonymous = name.strip_prefix(b"anon_inode:").unwrap_or(b"").trim_ascii();
    match kind {
        libc::S_IFSOCK => {
            let socket = describe_socket(number);
            findings.add_descriptor(number, &[b"is ", &socket, remedy]);
        }
        libc::S_IFREG => findings.add_descriptor(number, &[b"is a file that has no name any more: ", name, remedy]),
        libc::S_IFIFO => findings.add_descriptor(number, &[b"is a named pipe: ", name, remedy]),
        libc::S_IFCHR => findings.add_descriptor(number, &[b"is a terminal or another device: ", name, remedy]),
        libc::S_IFBLK => findings.add_descriptor(number, &[b"is a block device: ", name, remedy]),
        _ if anonymous == b"[eventpoll]" => {
            let what =
                b"is an epoll instance that watches standard streams, or what was closed here and is open elsewhere";
            findings.add_descriptor(number, &[what, remedy]);
        }
        _ => findings.add_descriptor(number, &[b"is a kernel object that cannot be made again: ", name, remedy]),
    }
}

/// `a connected TCP socket (127.0.0.1:6379)` and the like.
fn describe_socket(number: u32) -> Vec<u8> {
    let (kind, own, peer) = sys::socket_names(number);
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
        None if sys::is_listening(number) => b"a listening ",
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
