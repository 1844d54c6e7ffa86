//! Whether this machine is too busy to make images. [`crate::builder_memory`] decides how much memory an image may take.

use std::fs;
use std::path::Path;

use crate::builder_memory::kilobytes;
use crate::put_off_reason::Delay;

/// At least this much of the memory must be available (percent).
const MIN_AVAILABLE: u64 = 10;
/// At most this much of the last ten seconds may a process have waited for memory (percent).
const MAX_PRESSURE: f64 = 10.0;

/// Why no image is made now; None if one can be made.
pub fn is_busy() -> Option<Delay> {
    if on_battery(Path::new("/sys/class/power_supply")) {
        return Some(Delay::Battery);
    }
    let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
    is_short_of_memory(&text("/proc/meminfo"), &text("/proc/pressure/memory")).then_some(Delay::Pressure)
}

/// See the kernel's Documentation/ABI/testing/sysfs-class-power.
fn on_battery(supplies: &Path) -> bool {
    let supplies: Vec<_> = fs::read_dir(supplies).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    let says = |supply: &Path, name: &str, word: &str| {
        fs::read_to_string(supply.join(name)).is_ok_and(|text| text.trim() == word)
    };
    let mains = supplies.iter().any(|it| !says(it, "type", "Battery") && says(it, "online", "1"));
    // The battery of a mouse has the scope Device.
    let discharges =
        |it: &Path| says(it, "type", "Battery") && says(it, "status", "Discharging") && !says(it, "scope", "Device");
    !mains && supplies.iter().any(|it| discharges(it))
}

/// See proc(5), and Documentation/accounting/psi.rst of the kernel.
fn is_short_of_memory(meminfo: &str, pressure: &str) -> bool {
    let is_short = match (kilobytes(meminfo, "MemAvailable:"), kilobytes(meminfo, "MemTotal:")) {
        (Some(available), Some(total)) => available * 100 < total * MIN_AVAILABLE,
        _ => false,
    };
    let waits = pressure.lines().find_map(|line| line.strip_prefix("some avg10=")?.split(' ').next()?.parse().ok());
    is_short || waits.is_some_and(|waits: f64| waits > MAX_PRESSURE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_battery_counts_where_nothing_else_gives_power() {
        let top = tempfile::tempdir().unwrap();
        let supply = |name: &str, files: &[(&str, &str)]| {
            let folder = top.path().join(name);
            fs::create_dir_all(&folder).unwrap();
            files.iter().for_each(|(file, text)| fs::write(folder.join(file), format!("{text}\n")).unwrap());
        };
        assert!(!on_battery(top.path()));
        supply("mouse", &[("type", "Battery"), ("status", "Discharging"), ("scope", "Device")]);
        assert!(!on_battery(top.path()));
        supply("BAT0", &[("type", "Battery"), ("status", "Discharging")]);
        assert!(on_battery(top.path()));
        supply("AC", &[("type", "Mains"), ("online", "1")]);
        assert!(!on_battery(top.path()));
    }

    #[test]
    fn memory_is_short_when_little_is_left_or_many_wait_for_it() {
        let meminfo = |available: u64| format!("MemTotal:  1000 kB\nMemFree: 1 kB\nMemAvailable: {available} kB\n");
        let pressure = |some: &str| format!("some avg10={some} avg60=0.00 avg300=0.00 total=1\nfull avg10=99.00\n");
        assert!(!is_short_of_memory(&meminfo(100), &pressure("0.00")) && is_short_of_memory(&meminfo(99), ""));
        assert!(is_short_of_memory(&meminfo(500), &pressure("10.50")) && !is_short_of_memory("", ""));
    }
}
