//! The memory layout of an image: the mapping rows that rebuild the process' memory, and findings about memory that
//! cannot be frozen.

use alloc::vec::Vec;
use core::ops::Range;

use image::{mapping_flag, mapping_kind, MappedFile, Mapping, Section, NO_FILE, PAGE, RESERVED_END, RESERVED_START};
use image_writer::TablesWriter;

use crate::findings::{hexadecimal, Findings, Kind};
use crate::maps::{Area, DELETED, SHARED_FOLDER};
use crate::pages::{PageMap, ANONYMOUS_GAP, FILE_GAP};
use crate::sys::{self, File};

/// Zero-initialised data of a library is hardly larger than this; a larger mapping after a library is something else
/// (bytes). Only `snapboot inspect` uses the distinction.
const LIBRARY_ZEROS: u64 = 128 * 1024;

/// Code and constants of a library up to this size are mapped together (bytes). Runtimes are larger: debuggers and
/// profilers find a runtime by the mapping of its code.
const SMALL_LIBRARY: u64 = 1 << 20;

/// Maximum address space for the main thread's stack if its limit is higher or absent.
const STACK_SPACE: u64 = 128 << 20;

/// Why a mapping of a device is refused.
const OF_DEVICE: &[u8] = b"a mapping of a device; close the device in a before_freeze hook";

/// Why memory that others may have is refused.
const OF_OTHERS: &[u8] =
    b"shared memory, which another process may change (named, memfd or SysV); release it in a before_freeze hook";

/// Address space kept free between the stack and the mapping below it.
const STACK_DISTANCE: u64 = 1 << 20;

/// The layout while it is being computed.
pub struct MemoryLayout<'a> {
    /// The mapping table.
    pub rows: Vec<Mapping>,
    /// Bytes of data pages.
    pub pages_size: u64,
    /// Start of the vvar and vdso group, and the range of the vdso.
    pub vdso: Option<(u64, Range<u64>)>,
    pages_offset: u64,
    page_map: &'a PageMap,
    tables: &'a mut TablesWriter,
    findings: &'a mut Findings,
    paths: Vec<Vec<u8>>,
    forced: Range<u64>,
    stack_pointer: u64,
}

impl<'a> MemoryLayout<'a> {
    /// The layout of an image whose data pages start at `pages_offset`, for a thread that resumes at `stack_pointer`.
    pub fn new(
        page_map: &'a PageMap,
        tables: &'a mut TablesWriter,
        findings: &'a mut Findings,
        pages_offset: u64,
        stack_pointer: u64,
    ) -> Self {
        let (rows, paths, vdso, forced) = (Vec::new(), Vec::new(), None, sys::own_range());
        MemoryLayout {
            rows,
            pages_size: 0,
            vdso,
            pages_offset,
            page_map,
            tables,
            findings,
            paths,
            forced,
            stack_pointer,
        }
    }

    /// Adds all memory of the process. Fails only if /proc cannot be read.
    pub fn add_all(&mut self, areas: &[Area]) -> Result<(), i32> {
        let mut below = 0;
        for area in areas {
            let name = area.name.as_slice();
            if name == b"[vsyscall]" || sys::arena::contains(area.start) {
                continue;
            }
            if name == b"[vdso]" || name.starts_with(b"[vvar") {
                self.add_vdso(area);
            } else if let Some(problem) = problem(area, areas) {
                self.refuse(area, problem);
            } else if name == b"[stack]" {
                self.add_stack(area, below)?;
            } else if area.is_nameless_shared() {
                self.add_nameless_shared(area);
            } else if area.shared {
                self.add_shared(area);
            } else {
                self.add_private(area)?;
            }
            below = area.end;
        }
        Ok(())
    }

    /// Adds the guard pages of an area and the memory between them.
    fn add_private(&mut self, area: &Area) -> Result<(), i32> {
        let mut next = area.start;
        for guard in self.page_map.guards(area.start..area.end)? {
            self.add_part(&area.part(next..guard.start))?;
            next = guard.end;
            let row = anonymous(area, guard);
            self.push(Mapping { flags: row.flags | mapping_flag::GUARD, ..row });
        }
        self.add_part(&area.part(next..area.end))
    }

    fn add_part(&mut self, area: &Area) -> Result<(), i32> {
        if area.start == area.end {
            Ok(())
        } else if area.inode != 0 && !self.forced.contains(&area.start) {
            self.add_file(area)
        } else {
            self.add_anonymous(area)
        }
    }

    fn refuse(&mut self, area: &Area, problem: &[u8]) {
        let (start, end) = (hexadecimal(area.start), hexadecimal(area.end));
        self.findings.add(Kind::Memory, &[b"memory ", &start, b"-", &end, b" ", &area.name, b" is ", problem]);
    }

    fn add_vdso(&mut self, area: &Area) {
        let group = self.vdso.as_ref().map_or(area.start, |(group, _)| *group);
        self.push(Mapping {
            start: area.start,
            end: area.end,
            offset: area.start - group,
            protection: area.protection,
            kind: mapping_kind::VDSO,
            file: NO_FILE,
            flags: 0,
        });
        self.vdso = Some((group, area.start..area.end));
        if area.name == b"[vdso]" {
            let offset = self.take_pages(area.end - area.start);
            let row = self.rows[self.rows.len() - 1];
            self.push(Mapping { offset, kind: mapping_kind::VDSO_COPY, ..row });
        }
    }

    fn add_stack(&mut self, area: &Area, below: u64) -> Result<(), i32> {
        let space = sys::attributes::stack_limit_at_start().min(STACK_SPACE) & !(PAGE - 1);
        let start = area.end.saturating_sub(space).max(below + STACK_DISTANCE).min(area.start);
        let stack = Mapping {
            start,
            end: area.end,
            offset: 0,
            protection: area.protection,
            kind: mapping_kind::STACK,
            file: NO_FILE,
            flags: flags(area),
        };
        self.push(stack);
        // Below the stack pointer only the red zone of the ABI is in use.
        let alive = if area.start < self.stack_pointer && self.stack_pointer < area.end {
            (self.stack_pointer - 128) & !(PAGE - 1)
        } else {
            area.start
        };
        for run in self.page_map.written(alive..area.end, ANONYMOUS_GAP)? {
            let offset = self.take_pages(run.end - run.start);
            let (start, end) = (run.start, run.end);
            self.push(Mapping { start, end, offset, kind: mapping_kind::COPY, flags: 0, ..stack });
        }
        Ok(())
    }

    fn add_shared(&mut self, area: &Area) {
        if let Some(file) = self.file(area) {
            let row = self.file_row(area, area.start..area.end, file);
            self.push(Mapping { flags: row.flags | mapping_flag::SHARED, ..row });
        }
    }

    /// Adds shared memory that this process alone has (children are refused): each thaw gets its own, with this content, and
    /// shares that with the children that it has then.
    fn add_nameless_shared(&mut self, area: &Area) {
        let row = anonymous(area, area.start..area.end);
        self.push(Mapping { flags: row.flags | mapping_flag::SHARED, ..row });
        // Pages that only a child has written are not among those that this process has mapped, so all are stored.
        let offset = self.take_pages(area.end - area.start);
        self.push(Mapping { offset, kind: mapping_kind::COPY, flags: mapping_flag::SHARED, ..row });
    }

    fn add_file(&mut self, area: &Area) -> Result<(), i32> {
        let Some(file) = self.file(area) else { return Ok(()) };
        let mut next = area.start;
        for run in self.page_map.written(area.start..area.end, FILE_GAP)? {
            if run.start > next {
                let row = self.file_row(area, next..run.start, file);
                self.push(row);
            }
            next = run.end;
            self.push_stored(area, run, file);
        }
        if next < area.end {
            let row = self.file_row(area, next..area.end, file);
            self.push(row);
        }
        Ok(())
    }

    fn add_anonymous(&mut self, area: &Area) -> Result<(), i32> {
        if area.has_flag(b"wf") || area.has_flag(b"dp") {
            // Such memory is meant to vanish: a fork child and a thaw find zeros.
            self.push(anonymous(area, area.start..area.end));
            return Ok(());
        }
        let runs = if self.forced.start < area.end && area.start < self.forced.end {
            // The freezer itself: stored completely, because it writes to its own data meanwhile and must not depend on
            // where it was installed. Where its segments are aligned to more than a page, gaps between them show the file and
            // may lie behind its end.
            if area.protection == 0 {
                Vec::new()
            } else {
                alloc::vec![area.start..area.end]
            }
        } else {
            self.page_map.written(area.start..area.end, ANONYMOUS_GAP)?
        };
        let runs = with_small_ends(runs, area.start..area.end);
        // The zero-initialised data right after a library's data belongs to it.
        let behind =
            |row: &&Mapping| row.end == area.start && area.inode == 0 && area.end - area.start <= LIBRARY_ZEROS;
        let file = self.rows.last().filter(behind).map_or(NO_FILE, |row| row.file);
        let mut next = area.start;
        for run in runs {
            if run.start > next {
                self.push(anonymous(area, next..run.start));
            }
            next = run.end;
            self.push_stored(area, run, file);
        }
        if next < area.end {
            self.push(anonymous(area, next..area.end));
        }
        Ok(())
    }

    fn push_stored(&mut self, area: &Area, run: Range<u64>, file: u32) {
        let offset = self.take_pages(run.end - run.start);
        self.push(Mapping {
            start: run.start,
            end: run.end,
            offset,
            protection: area.protection,
            kind: mapping_kind::IMAGE,
            file,
            flags: flags(area),
        });
    }

    fn file_row(&self, area: &Area, range: Range<u64>, file: u32) -> Mapping {
        Mapping {
            start: range.start,
            end: range.end,
            offset: area.offset + (range.start - area.start),
            protection: area.protection,
            kind: mapping_kind::FILE,
            file,
            flags: flags(area),
        }
    }

    fn take_pages(&mut self, size: u64) -> u64 {
        let offset = self.pages_offset + self.pages_size;
        self.pages_size += size;
        offset
    }

    /// Adds a row, merged into the last row if it continues that.
    fn push(&mut self, row: Mapping) {
        if let Some(last) = self.rows.last_mut() {
            let alike = (last.end, last.kind, last.flags, last.file) == (row.start, row.kind, row.flags, row.file)
                && (last.protection == row.protection || are_of_small_library(last, &row));
            let continues = match row.kind {
                mapping_kind::ANONYMOUS => true,
                mapping_kind::IMAGE | mapping_kind::FILE => last.offset + (last.end - last.start) == row.offset,
                _ => false,
            };
            if alike && continues {
                last.end = row.end;
                last.protection |= row.protection;
                return;
            }
        }
        self.rows.push(row);
    }

    /// The row of the area's file in the files section; None, with a finding, if the file no longer exists.
    fn file(&mut self, area: &Area) -> Option<u32> {
        if let Some(index) = self.paths.iter().position(|path| *path == area.name) {
            return Some(index as u32);
        }
        let status = File::open(&sys::c_path(&[&area.name]), libc::O_RDONLY).and_then(|file| file.status());
        let Some(status) = status.ok().filter(|status| status.inode == area.inode || area.inode == 0) else {
            self.refuse(area, b"a mapping of a file that was replaced or deleted meanwhile; start the freeze again");
            return None;
        };
        let path = self.tables.text(&area.name);
        let row = MappedFile { path, size: status.size, mtime: status.mtime, ctime: status.ctime, digest: [0; 16] };
        self.tables.push(Section::Files, &row);
        self.paths.push(area.name.clone());
        Some(self.paths.len() as u32 - 1)
    }
}

/// Extends runs over zeros at the ends of an area that are too short for a mapping of their own.
fn with_small_ends(mut runs: Vec<Range<u64>>, area: Range<u64>) -> Vec<Range<u64>> {
    if let Some(first) = runs.first_mut().filter(|first| first.start - area.start <= FILE_GAP) {
        first.start = area.start;
    }
    if let Some(last) = runs.last_mut().filter(|last| area.end - last.end <= FILE_GAP) {
        last.end = area.end;
    }
    runs
}

/// Whether two mappings are code and constants of one small library. A linker puts them into three mappings, so that
/// constants are not executable. Programs have dozens of extension modules, and each mapping costs every thaw two
/// microseconds, so these get one mapping, as older linkers made it.
fn are_of_small_library(first: &Mapping, second: &Mapping) -> bool {
    let constant = |row: &Mapping| {
        row.kind == mapping_kind::FILE && row.protection & !(libc::PROT_EXEC as u32) == libc::PROT_READ as u32
    };
    constant(first) && constant(second) && second.end - first.start <= SMALL_LIBRARY
}

fn anonymous(area: &Area, range: Range<u64>) -> Mapping {
    Mapping {
        start: range.start,
        end: range.end,
        offset: 0,
        protection: area.protection,
        kind: mapping_kind::ANONYMOUS,
        file: NO_FILE,
        flags: flags(area),
    }
}

/// The kernel's two-letter flags that a mapping keeps.
fn flags(area: &Area) -> u32 {
    [
        (b"nr", mapping_flag::NORESERVE),
        (b"dd", mapping_flag::DONTDUMP),
        (b"hg", mapping_flag::HUGEPAGE),
        (b"nh", mapping_flag::NOHUGEPAGE),
        (b"wf", mapping_flag::WIPEONFORK),
        (b"dp", mapping_flag::DROPPABLE),
        (b"mg", mapping_flag::MERGEABLE),
    ]
    .into_iter()
    .filter(|(name, _)| area.has_flag(name))
    .fold(0, |sum, (_, flag)| sum | flag)
}

/// Why this memory cannot be frozen. `areas`: all of the process.
fn problem(area: &Area, areas: &[Area]) -> Option<&'static [u8]> {
    let name = area.name.as_slice();
    let writable = area.protection & libc::PROT_WRITE as u32 != 0;
    if area.start < RESERVED_END && area.end > RESERVED_START {
        Some(b"in the range that the launcher needs")
    } else if area.is_nameless_shared() {
        problem_by_flags(area).or_else(|| problem_of_nameless_shared(area, areas))
    } else if name.starts_with(b"/memfd:") || name.starts_with(b"/SYSV") || name.starts_with(SHARED_FOLDER) {
        Some(OF_OTHERS)
    } else if name.starts_with(b"/[aio]") || name.starts_with(b"anon_inode:") {
        Some(b"memory of a kernel facility (AIO, io_uring, perf, userfaultfd) whose state cannot be made again; close it in a before_freeze hook")
    } else if let Some(problem) = problem_by_flags(area) {
        Some(problem)
    } else if name.starts_with(b"/dev/") {
        Some(OF_DEVICE)
    } else if area.shared && writable {
        Some(b"a shared mapping that can be written, so other processes may see or change it; close it in a before_freeze hook")
    } else if area.inode != 0 && name.ends_with(DELETED) {
        Some(b"a mapping of a file that was deleted or replaced while the program booted; start the freeze again")
    } else {
        None
    }
}

/// Why no memory with these properties can be frozen, whatever its name is.
fn problem_by_flags(area: &Area) -> Option<&'static [u8]> {
    if area.has_flag(b"ht") {
        Some(b"in huge pages of hugetlbfs; allocate it after the freeze point")
    } else if area.has_flag(b"um") || area.has_flag(b"uw") || area.has_flag(b"ui") {
        Some(b"watched by a userfaultfd; close it in a before_freeze hook")
    } else if area.has_flag(b"io") || area.has_flag(b"pf") {
        Some(OF_DEVICE)
    } else if area.has_flag(b"ss") {
        Some(b"a shadow stack; start the runtime without it (GLIBC_TUNABLES=glibc.cpu.x86_shstk=off)")
    } else if area.key != 0 {
        Some(b"under a protection key; release it in a before_freeze hook")
    } else {
        None
    }
}

/// Why shared memory without a name cannot be frozen.
fn problem_of_nameless_shared(area: &Area, areas: &[Area]) -> Option<&'static [u8]> {
    const BOTH: u32 = (libc::PROT_READ | libc::PROT_WRITE) as u32;
    let end = |area: &Area| area.offset + (area.end - area.start);
    let overlaps = |other: &&Area| {
        let (one, two) = (area.offset..end(area), other.offset..end(other));
        other.start != area.start && other.inode == area.inode && one.start < two.end && two.start < one.end
    };
    if areas.iter().any(|other| overlaps(&other)) {
        Some(b"shared memory that is mapped twice, which a thaw cannot make again; release it in a before_freeze hook")
    } else if area.protection & BOTH != BOTH {
        Some(b"shared memory that cannot be read or written, which a thaw cannot fill; release it in a before_freeze hook")
    } else if has_another_name(area) {
        Some(OF_OTHERS)
    } else {
        None
    }
}

/// Whether a file in the folder of shared memory is this one. The C library opens a semaphore under a first name, links it to
/// its own and removes the first, which the kernel goes on to show.
fn has_another_name(area: &Area) -> bool {
    if !area.name.starts_with(SHARED_FOLDER) {
        return false;
    }
    // What is there is nothing that the program has looked at. This process, a fork of it, only writes itself to the image.
    sys::channel::send_to_recorder(channel::Request::Aside, &[]);
    let folder = sys::c_path(&[SHARED_FOLDER]);
    let Ok(names) = File::open(&folder, libc::O_RDONLY | libc::O_DIRECTORY).map(|folder| folder.names()) else {
        return false;
    };
    let inode = |name: &Vec<u8>| {
        File::open(&sys::c_path(&[SHARED_FOLDER, name]), libc::O_PATH | libc::O_NOFOLLOW).and_then(|file| file.status())
    };
    names.iter().any(|name| inode(name).is_ok_and(|status| status.inode == area.inode))
}
