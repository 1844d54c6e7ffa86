//! timerfd_create(2), as long as the timer does not run: a thaw can come at any time.

use image::{descriptor_kind, Descriptor};
use linux_raw_sys::general::{O_CLOEXEC, O_NONBLOCK};

use crate::open::{parse, Open};
use crate::{Captured, Kernel, Result, WriteRow};

pub fn capture(open: &Open<'_>, write: &mut WriteRow<'_>) -> Captured {
    if !open.is_anonymous("[timerfd]") {
        return None;
    }
    let is_idle =
        open.field("ticks") == b"0" && ["it_value", "it_interval"].iter().all(|key| open.field(key) == b"(0, 0)");
    let clock = parse(open.field("clockid"), 10).filter(|_| is_idle);
    Some(match clock {
        Some(clock) => {
            write(open.row(descriptor_kind::TIMERFD, clock), b"");
            Ok(())
        }
        None => Err("is a timer that runs or has expired; disarm it in a before_freeze hook, or start it after the freeze point"),
    })
}

pub fn restore<K: Kernel>(row: &Descriptor, kernel: &K) -> Result<K::Fd> {
    kernel.timerfd(row.value as u32, row.flags & (O_NONBLOCK | O_CLOEXEC))
}
