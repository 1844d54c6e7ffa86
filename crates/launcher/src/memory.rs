//! The address space: dropping the one that the kernel made, laying out the frozen one.
#![allow(unsafe_code)]

use image::validate::ADDRESS_END;
use image::{
    mapping_flag, mapping_kind, trained_kind, HotRange, MappedFile, Mapping, Rows, Section, TrainedStart, RESERVED_END,
    RESERVED_START,
};
use inputs::files::{self, Recorded, Role};
use inputs::Difference;
use linux_raw_sys::general::{
    MADV_DONTDUMP, MADV_GUARD_INSTALL, MADV_HUGEPAGE, MADV_MERGEABLE, MADV_NOHUGEPAGE, MADV_POPULATE_WRITE,
    MADV_WIPEONFORK, O_CLOEXEC, O_RDONLY, PROT_EXEC, PROT_READ, PROT_WRITE,
};

use crate::arch;
use crate::content;
use crate::files::Files;
use crate::frozen::Frozen;
use crate::helper_process::HelperProcess;
use crate::reason::Reason;
use crate::start::without_nul;
use crate::steps::Steps;
use crate::sys::{
    self, Errno, Fd, Part, MAP_ANONYMOUS, MAP_FIXED, MAP_GROWSDOWN, MAP_NORESERVE, MAP_PRIVATE, MAP_SHARED, MAP_STACK,
};
use crate::vdso::Vdso;

/// MAP_DROPPABLE of linux/mman.h (Linux 6.11), which replaces MAP_PRIVATE.
const MAP_DROPPABLE: u32 = 0x08;

/// Replaces everything outside of the launcher's own range by the frozen process' memory. Returns what has become of the vdso.
///
/// `inputs` is used, and waited for, only for a library whose times have changed. `first_argument`: empty where there is none.
pub fn lay_out(
    frozen: &Frozen,
    inputs: &mut HelperProcess<'_, Files<'_>>,
    first_argument: &[u8],
    steps: &mut Steps,
) -> Result<Vdso, Reason> {
    steps.next("mapping mapping memory and libraries");
    let mut vdso = frozen.vdso;
    drop_old(frozen, &mut vdso)?;
    let mut library = Library { index: image::NO_FILE, file: Fd(0), inputs };
    let files = frozen.rows::<MappedFile>(Section::Files)?;
    let laps = steps.files(files.len() + 2);
    let mut lap = files.len() + 1;
    for mapping in frozen.rows::<Mapping>(Section::Mappings)? {
        let next = mapping.timed_as(files.len());
        if next != lap {
            laps.end(lap);
            lap = next;
        }
        make(frozen, &mapping, &files, &mut library, &mut vdso)?;
    }
    library.close();
    laps.end(lap);
    steps.next("faults pages that every start writes to");
    populate(hot(frozen, first_argument)?)?;
    Ok(vdso)
}

/// The pages that a start with this first argument surely writes to: what every start does, and what the training runs like it did.
fn hot(frozen: &Frozen, first_argument: &[u8]) -> Result<impl Iterator<Item = HotRange>, Reason> {
    let rows = frozen.rows::<HotRange>(Section::Hot)?;
    let trained = frozen.rows::<TrainedStart>(Section::Trained)?;
    let every = rows.len() - trained.clone().map(|start| start.hot as usize).sum::<usize>();
    let (mut at, mut count) = (every, 0);
    for start in trained {
        let is_it = match start.kind {
            trained_kind::ARGUMENT => without_nul(frozen.text(start.argument)?) == first_argument,
            kind => kind == TrainedStart::kind_of(first_argument),
        };
        if is_it {
            count = start.hot as usize;
            break;
        }
        at += start.hot as usize;
    }
    Ok(rows.clone().take(every).chain(rows.skip(at).take(count)))
}

/// Takes the page faults that a start has anyway all at once, which is cheaper than one by one. The kernel may not know
/// how (before Linux 5.14), or not for many ranges in one call (before 6.15); then they come when they come, or call by call.
fn populate(mut hot: impl Iterator<Item = HotRange>) -> Result<(), Reason> {
    let mut can_batch = true;
    loop {
        let mut batch = [Part { start: 0, size: 0 }; 128];
        let count = batch
            .iter_mut()
            .zip(&mut hot)
            .map(|(part, hot)| *part = Part { start: hot.start, size: hot.end - hot.start })
            .count();
        let batch = &batch[..count];
        if batch.is_empty() {
            return Ok(());
        }
        // SAFETY: only brings in what a write to these pages would bring in.
        unsafe {
            can_batch = can_batch && sys::advise_all(batch, MADV_POPULATE_WRITE).is_ok();
            if !can_batch && !batch.iter().all(|part| sys::advise(part.start, part.size, MADV_POPULATE_WRITE).is_ok()) {
                return Ok(());
            }
        }
    }
}

/// Unmaps what the kernel made, but for the vvar and vdso group, which stays where it is, or moves to the reserved range when memory of the
/// frozen process comes there.
fn drop_old(frozen: &Frozen, vdso: &mut Vdso) -> Result<(), Reason> {
    vdso.make_way(frozen.rows::<Mapping>(Section::Mappings)?)?;
    let drop = |start: u64, end: u64| {
        // SAFETY: code, data and stack of the launcher, the tables and the block are in the reserved range; arguments and
        // environment were copied there.
        unsafe { sys::unmap(start, end - start) }
            .map_err(|errno| Reason::new("cannot drop the memory that the process started with").errno(errno))
    };
    drop(0, RESERVED_START)?;
    match vdso.range() {
        (start, end) if start >= RESERVED_END => {
            drop(RESERVED_END, start)?;
            drop(end, ADDRESS_END)
        }
        _ => drop(RESERVED_END, ADDRESS_END),
    }
}

/// The file that the last file mapping came from: mappings of one file follow each other.
struct Library<'a, 'b, 'c> {
    index: u32,
    file: Fd,
    inputs: &'a mut HelperProcess<'b, Files<'c>>,
}

impl Library<'_, '_, '_> {
    fn open(&mut self, frozen: &Frozen, files: &Rows<'static, MappedFile>, index: u32) -> Result<Fd, Reason> {
        if self.index == index {
            return Ok(self.file);
        }
        self.close();
        let file = files.get(index as usize).ok_or(Reason::new("the image is damaged: no such file"))?;
        let path = frozen.text(file.path)?;
        let (role, recorded) = (Role::Library, Recorded::from(file));
        let gone = |errno| Reason::from_difference(&Difference::File(files::Difference::Gone { path, role, errno }));
        self.file = sys::open(path, O_RDONLY | O_CLOEXEC).map_err(gone)?;
        self.index = index;
        let now = sys::fstat(self.file).map_err(gone)?;
        let difference = match files::unchanged_by_metadata(frozen.settings.policy, &now, &recorded) {
            Some(true) => None,
            Some(false) => Some(files::Difference::Changed { path, role, recorded, now }),
            None => {
                let (file, inputs) = (self.file, self.inputs.finish());
                files::compare_content(path, role, &now, &recorded, || content::digest(file), inputs)
            }
        };
        difference.map_or(Ok(self.file), |difference| Err(Reason::from_difference(&Difference::File(difference))))
    }

    fn close(&mut self) {
        if self.index != image::NO_FILE {
            sys::close(self.file);
            self.index = image::NO_FILE;
        }
    }
}

fn make(
    frozen: &Frozen,
    mapping: &Mapping,
    files: &Rows<'static, MappedFile>,
    library: &mut Library<'_, '_, '_>,
    vdso: &mut Vdso,
) -> Result<(), Reason> {
    let failed = |errno| Reason::new("cannot map the frozen process' memory").errno(errno);
    let size = mapping.end - mapping.start;
    let flag = |flag: u32, value: u32| if mapping.flags & flag != 0 { value } else { 0 };
    let private = MAP_PRIVATE | MAP_FIXED | flag(mapping_flag::NORESERVE, MAP_NORESERVE);
    // SAFETY: the address space was emptied; rows lie outside of the reserved range (checked), so only memory of the
    // frozen process is made or replaced.
    unsafe {
        let map = |protection, flags, file, offset| sys::map(mapping.start, size, protection, flags, file, offset);
        match mapping.kind {
            mapping_kind::IMAGE => match map(mapping.protection, private, Some(frozen.file), mapping.offset) {
                // A file system mounted noexec: executable pages are copied instead.
                Err(Errno(linux_raw_sys::errno::EPERM)) if mapping.protection & PROT_EXEC != 0 => {
                    map(PROT_READ | PROT_WRITE, private | MAP_ANONYMOUS, None, 0).map_err(failed)?;
                    sys::read_into(frozen.file, mapping.start, size, mapping.offset).map_err(failed)?;
                    arch::code_was_written(core::slice::from_raw_parts(mapping.start as *const u8, size as usize));
                    sys::protect(mapping.start, size, mapping.protection).map_err(failed)?;
                }
                result => result.map_err(failed)?,
            },
            mapping_kind::FILE => {
                let file = library.open(frozen, files, mapping.file)?;
                let flags = if mapping.flags & mapping_flag::SHARED != 0 { MAP_SHARED | MAP_FIXED } else { private };
                map(mapping.protection, flags, Some(file), mapping.offset).map_err(failed)?;
            }
            mapping_kind::ANONYMOUS if mapping.flags & mapping_flag::DROPPABLE != 0 => {
                // Linux before 6.11 does not know such memory. A process that forks finds zeros in private memory as well (it has that advice, too),
                // and the kernel may not drop it, which nobody can rely on.
                map(mapping.protection, MAP_DROPPABLE | MAP_ANONYMOUS | MAP_FIXED, None, 0)
                    .or_else(|_| map(mapping.protection, private | MAP_ANONYMOUS, None, 0))
                    .map_err(failed)?;
            }
            mapping_kind::ANONYMOUS => {
                let flags = if mapping.flags & mapping_flag::SHARED != 0 { MAP_SHARED | MAP_FIXED } else { private };
                map(mapping.protection, flags | MAP_ANONYMOUS, None, 0).map_err(failed)?;
            }
            mapping_kind::STACK => {
                let flags = private | MAP_ANONYMOUS | MAP_GROWSDOWN | MAP_STACK | MAP_NORESERVE;
                map(mapping.protection, flags, None, 0).map_err(failed)?;
            }
            mapping_kind::COPY => {
                sys::read_into(frozen.file, mapping.start, size, mapping.offset).map_err(failed)?;
            }
            mapping_kind::VDSO_COPY => return vdso.copy(frozen.file, mapping),
            _ => return vdso.bring(mapping),
        }
        for (flag, advice) in ADVICE {
            if mapping.flags & flag != 0 {
                sys::advise(mapping.start, size, advice).map_err(failed)?;
            }
        }
    }
    Ok(())
}

/// What `madvise` is told for each flag of a mapping.
const ADVICE: [(u32, u32); 6] = [
    (mapping_flag::DONTDUMP, MADV_DONTDUMP),
    (mapping_flag::HUGEPAGE, MADV_HUGEPAGE),
    (mapping_flag::NOHUGEPAGE, MADV_NOHUGEPAGE),
    (mapping_flag::WIPEONFORK, MADV_WIPEONFORK),
    (mapping_flag::MERGEABLE, MADV_MERGEABLE),
    (mapping_flag::GUARD, MADV_GUARD_INSTALL),
];
