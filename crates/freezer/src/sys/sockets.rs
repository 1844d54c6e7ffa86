//! Sockets of the process: what they are like, and which of them socketpair(2) has made together. The kernel tells that
//! nobody but a caller with a netlink socket, so the C library's function is interposed, see [`super::libc_hooks`].

use alloc::vec::Vec;
use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use super::descriptor_status;
use super::events::is_on;
use super::libc_hooks::Next;

/// How many pairs of a boot are remembered; older ones count as sockets of other processes.
const CAPACITY: usize = 64;
static PAIRS: [[AtomicU64; 2]; CAPACITY] = [const { [AtomicU64::new(0), AtomicU64::new(0)] }; CAPACITY];
static MADE: AtomicUsize = AtomicUsize::new(0);

static SOCKETPAIR: Next = Next::new("socketpair\0");

/// Resolves it now, so that a thawed process need not.
pub fn bind() {
    SOCKETPAIR.address();
}

/// The C library's function of this name, see the module's description.
///
/// # Safety
/// As for the function of the C library.
#[no_mangle]
pub unsafe extern "C" fn socketpair(family: c_int, kind: c_int, protocol: c_int, ends: *mut c_int) -> c_int {
    type Function = unsafe extern "C" fn(c_int, c_int, c_int, *mut c_int) -> c_int;
    // SAFETY: the type is that of the C library's function; the arguments are the caller's.
    let result = unsafe { SOCKETPAIR.get::<Function>()(family, kind, protocol, ends) };
    if is_on() && result == 0 {
        // SAFETY: a successful call has written two descriptors there.
        let ends = unsafe { [*ends, *ends.add(1)] };
        let place = &PAIRS[MADE.fetch_add(1, Relaxed) % CAPACITY];
        for (end, inode) in ends.into_iter().zip(place) {
            inode.store(descriptor_status(end as u32).map_or(0, |status| status.inode), Relaxed);
        }
    }
    result
}

/// The inode of the socket that was made together with the socket of this inode.
pub fn peer(inode: u64) -> Option<u64> {
    PAIRS.iter().map(|pair| [pair[0].load(Relaxed), pair[1].load(Relaxed)]).find_map(|[one, other]| match inode {
        0 => None,
        inode if inode == one => Some(other),
        inode if inode == other => Some(one),
        _ => None,
    })
}

/// Options by level that change by themselves, tell of the peer, or do something when they are read.
const PASSED_OVER: &[(c_int, &[c_int])] = &[
    (
        libc::SOL_SOCKET,
        &[
            libc::SO_ERROR,
            libc::SO_PEERCRED,
            libc::SO_PEERNAME,
            libc::SO_PEERSEC,
            libc::SO_INCOMING_CPU,
            libc::SO_MEMINFO,
            libc::SO_INCOMING_NAPI_ID,
            libc::SO_COOKIE,
            libc::SO_PEERGROUPS,
            SO_NETNS_COOKIE,
            SO_PEERPIDFD,
        ],
    ),
    (libc::IPPROTO_IP, &[]),
    (libc::IPPROTO_IPV6, &[]),
    (libc::IPPROTO_TCP, &[libc::TCP_INFO, libc::TCP_TIMESTAMP, TCP_ZEROCOPY_RECEIVE]),
];
/// Constants of asm-generic/socket.h and linux/tcp.h that not every version of the C library's bindings has.
const SO_NETNS_COOKIE: c_int = 71;
const SO_PEERPIDFD: c_int = 77;
const TCP_ZEROCOPY_RECEIVE: c_int = 35;

/// Options from 64 on are the packet filter's on the levels of protocols.
const LAST_OPTION: c_int = 63;
const LAST_OF_SOCKETS: c_int = 100;

/// Family, type and protocol of a socket whose every option has the value that it has in a new socket.
pub fn as_new(number: u32) -> Option<[u32; 3]> {
    let of = |option| number_option(number, option).ok();
    let kinds = [of(libc::SO_DOMAIN)?, of(libc::SO_TYPE)?, of(libc::SO_PROTOCOL)?];
    // SAFETY: plain numbers.
    let new = unsafe { libc::socket(kinds[0], kinds[1] | libc::SOCK_CLOEXEC, kinds[2]) };
    if new < 0 {
        return None;
    }
    let is_same = PASSED_OVER.iter().all(|&(level, passed_over)| {
        let last = if level == libc::SOL_SOCKET { LAST_OF_SOCKETS } else { LAST_OPTION };
        (1..=last)
            .filter(|option| !passed_over.contains(option))
            .all(|option| option_value(number, level, option) == option_value(new as u32, level, option))
    });
    // SAFETY: it was opened above.
    unsafe { libc::close(new) };
    is_same.then_some(kinds.map(|kind| kind as u32))
}

/// Whether a socket of a common family has neither an address nor a peer, and does not listen.
pub fn is_unused(number: u32) -> bool {
    const FAMILIES: [c_int; 4] = [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];
    let (family, [own, peer]) = (number_option(number, libc::SO_DOMAIN), addresses(number));
    let has_no_address =
        own.is_some_and(|address| address.iter().skip(size_of::<libc::sa_family_t>()).all(|&byte| byte == 0));
    family.is_ok_and(|family| FAMILIES.contains(&family)) && has_no_address && peer.is_none() && !is_listening(number)
}

/// The type of a socket (SOCK_STREAM ...).
pub fn kind(number: u32) -> c_int {
    number_option(number, libc::SO_TYPE).unwrap_or(0)
}

/// The address of a socket and of its peer, as the kernel returns them.
pub fn addresses(number: u32) -> [Option<Vec<u8>>; 2] {
    type Get = unsafe extern "C" fn(c_int, *mut libc::sockaddr, *mut libc::socklen_t) -> c_int;
    [libc::getsockname as Get, libc::getpeername as Get].map(|get| {
        let mut bytes = [0u8; 128];
        let mut length = bytes.len() as libc::socklen_t;
        // SAFETY: the buffer is as long as said.
        let status = unsafe { get(number as c_int, bytes.as_mut_ptr().cast(), &raw mut length) };
        (status == 0).then(|| bytes[..(length as usize).min(bytes.len())].to_vec())
    })
}

/// Whether a socket listens for connections.
pub fn is_listening(number: u32) -> bool {
    number_option(number, libc::SO_ACCEPTCONN).is_ok_and(|listens| listens != 0)
}

/// An option of SOL_SOCKET that is a number.
fn number_option(number: u32, option: c_int) -> Result<c_int, c_int> {
    let (size, bytes) = option_value(number, libc::SOL_SOCKET, option)?;
    match bytes.first_chunk() {
        Some(bytes) if size == size_of::<c_int>() => Ok(c_int::from_ne_bytes(*bytes)),
        _ => Err(libc::EINVAL),
    }
}

/// The size of an option's value, and its first bytes. Err: the error number.
fn option_value(number: u32, level: c_int, option: c_int) -> Result<(usize, [u8; 64]), c_int> {
    let mut value = [0u8; 64];
    let mut length = value.len() as libc::socklen_t;
    let place = value.as_mut_ptr().cast::<c_void>();
    // SAFETY: the buffer is as long as said.
    match unsafe { libc::getsockopt(number as c_int, level, option, place, &raw mut length) } {
        0 => Ok((length as usize, value)),
        _ => Err(super::errno()),
    }
}
