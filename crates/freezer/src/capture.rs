//! The freeze itself: the child of the fork appends itself to `image` in the control directory, after the launcher, and
//! ends.
//!
//! Data pages come first, page-aligned, then the tables, then a trailer with the place of both. `snapboot freeze`
//! completes the image.

use image::arch::{self, Registers};
use image::{mapping_kind, Record, Section, Trailer, PAGE};
use image_writer::TablesWriter;

use crate::captured_memory::MemoryLayout;
use crate::findings::{decimal, Findings, Kind};
use crate::pages::{PageMap, PageWriter};
use crate::sys::{self, File};
use crate::{descriptors, kernel, maps, standard_streams};

/// Exit statuses of the child, as `snapboot freeze` expects them.
const WRITTEN: i32 = 0;
const REFUSED: i32 = 3;
const FAILED: i32 = 4;

/// Freezes the process that resumes at `registers`. Never returns.
pub fn run(registers: Registers) -> ! {
    let directory = sys::events::stop();
    let mut findings = Findings::kept();
    let status = match write(&directory, &registers, &mut findings) {
        Ok(()) if findings.refuse() => REFUSED,
        Ok(()) => WRITTEN,
        Err((what, errno)) => {
            let number = decimal(errno.unsigned_abs().into());
            findings.add(Kind::Internal, &[what, b" failed (errno ", &number, b")"]);
            // On a full disk, free space for the findings.
            let _ =
                File::open(&sys::c_path(&[&directory, b"/image"]), libc::O_WRONLY).and_then(|image| image.set_size(0));
            FAILED
        }
    };
    if !findings.bytes().is_empty() {
        let path = sys::c_path(&[&directory, b"/findings"]);
        let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_TRUNC;
        // Without the file the exit status still says that there were findings.
        let _ = File::open(&path, flags).and_then(|file| file.write_at(findings.bytes(), 0));
    }
    sys::exit(status)
}

type Failure = (&'static [u8], i32);

/// Kills the process with SIGKILL if the file `fault` of the control directory names this point, so that tests see what
/// a killed freezer leaves behind.
fn fault_point(directory: &[u8], name: &[u8]) {
    if sys::read_file(&sys::c_path(&[directory, b"/fault"])) == name {
        sys::kill_self();
    }
}

fn write(directory: &[u8], registers: &Registers, findings: &mut Findings) -> Result<(), Failure> {
    let failed = |what: &'static [u8]| move |errno: i32| (what, errno);
    let mut tables = TablesWriter::new();
    standard_streams::inspect(findings);
    descriptors::add(&mut tables, findings);

    let image =
        File::open(&sys::c_path(&[directory, b"/image"]), libc::O_RDWR).map_err(failed(b"opening the image"))?;
    let page_map = PageMap::open().map_err(failed(b"opening /proc/self/pagemap"))?;
    let pages_offset = image.status().map_err(failed(b"reading the image's size"))?.size.next_multiple_of(PAGE);

    let areas = maps::read();
    let stack_end = areas.iter().find(|area| area.name == b"[stack]").map_or(0, |area| area.end);
    let mut layout = MemoryLayout::new(&page_map, &mut tables, findings, pages_offset, registers.resume_at().0);
    layout.add_all(&areas).map_err(failed(b"reading /proc/self/pagemap"))?;
    let (rows, pages_size, vdso) = (layout.rows, layout.pages_size, layout.vdso);

    kernel::add(&mut tables, findings, registers.thread_pointer(), stack_end, vdso.map(|(_, range)| range));
    if findings.refuse() {
        return Ok(());
    }
    tables.push(arch::SECTION, registers);
    sys::image_memory::remember(
        rows.iter().filter(|row| row.kind == mapping_kind::IMAGE).map(|row| row.start..row.end),
    );

    fault_point(directory, b"freezer-before-pages");
    let mut writer = PageWriter::new(&image).map_err(failed(b"opening /proc/self/mem"))?;
    for row in rows.iter().filter(|row| row.has_pages()) {
        writer.write(row.start..row.end, row.offset).map_err(failed(b"writing memory to the image"))?;
    }
    fault_point(directory, b"freezer-after-pages");
    for row in &rows {
        tables.push(Section::Mappings, row);
    }
    let tables_offset = pages_offset + pages_size;
    let tables = tables.finish();
    let trailer =
        Trailer { magic: Trailer::MAGIC, pages_offset, pages_size, tables_offset, tables_size: tables.len() as u64 };
    let mut trailer_bytes = [0; Trailer::SIZE];
    trailer.encode(&mut trailer_bytes);
    let end = tables_offset + tables.len() as u64;
    image.write_at(&tables, tables_offset).map_err(failed(b"writing the tables"))?;
    fault_point(directory, b"freezer-before-trailer");
    image.write_at(&trailer_bytes, end).map_err(failed(b"writing the trailer"))?;
    image.set_size(end + Trailer::SIZE as u64).map_err(failed(b"setting the image's size"))
}
