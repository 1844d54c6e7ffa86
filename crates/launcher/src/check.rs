//! Everything that decides whether the image may be used, before anything is changed.

use image::arch::{self, Architecture};
use image::{
    descriptor_kind, reserved, Descriptor, Head, Item, MappedFile, Section, Tables, TouchedFileRange, TouchedRange,
    MAX_TABLES,
};
use inputs::differences::{self, Difference};
use inputs::environment;
use inputs::system::Check;
use linux_raw_sys::general::{O_CLOEXEC, O_NONBLOCK, O_RDONLY, RLIMIT_STACK};

use crate::argument_block::{Block, Rehearsal};
use crate::facts::Now;
use crate::frozen::Frozen;
use crate::image_file::ImageFile;
use crate::page_digest;
use crate::reason::Reason;
use crate::rotation;
use crate::start::Start;
use crate::starts;
use crate::sys::{self, Errno, Fd, FilePart};
use crate::vdso::Vdso;

/// Checks the file, the machine, the process, the environment and the arguments, cheapest first.
pub fn first(start: &Start, image: &ImageFile, block: &Block) -> Result<Frozen, Reason> {
    let file = image.file?;
    if environment::value_of(b"SNAPBOOT", block.environment()) == Some(b"off") && block.rehearsal().is_none() {
        return Err(Reason::new("SNAPBOOT=off asks for an ordinary start").intended());
    }
    let (image_id, head, tables) = variant(start, image, file, block)?;
    let architecture = Architecture::from_tables(&tables).map_err(Reason::image)?;
    if !architecture.is_here() {
        return Err(Reason::new("the image was made on another architecture").subject(architecture.name().as_bytes()));
    }
    let mut frozen = Frozen {
        file,
        registers: tables.one(arch::SECTION).map_err(Reason::image)?,
        process: tables.one(Section::Process).map_err(Reason::image)?,
        settings: tables.rows(Section::Settings).map_err(Reason::image)?.next().unwrap_or_default(),
        tables,
        vdso: Vdso::default(),
        head,
        image_id,
    };
    guards(&frozen, block)?;
    rotation::check_age(&frozen.settings, image.command.store_count() > 0)?;
    differences::compare_start(&frozen.tables, block.environment(), &Now { block }, &mut First)?;
    process(&mut frozen)?;
    differences::compare_cpu(&frozen.tables, &mut First)?;
    frozen.vdso = Vdso::find(start, &frozen.tables)?;
    Ok(frozen)
}

/// What comes when everything else was found good.
pub fn last(frozen: &Frozen, block: &Block) -> Result<(), Reason> {
    // An image that is being rehearsed has no digest yet.
    if block.rehearsal() != Some(Rehearsal::Thaw) && page_digest::are_to_be_checked(&frozen.settings, block) {
        page_digest::check(frozen.file, &frozen.head)?;
    }
    if block.rehearsal().is_none() {
        rotation::count_thaw(&frozen.settings, frozen.file, frozen.image_id)?;
        starts::count_thaw(frozen.image_id, block);
    }
    Ok(())
}

/// Head and tables of the variant that is to be thawed, and before them the checksum by which files beside the image know it: one for this
/// terminal and locale, and any of these.
fn variant(start: &Start, image: &ImageFile, file: Fd, block: &Block) -> Result<(u64, Head, Tables<'static>), Reason> {
    let status = sys::fstat(file).map_err(|errno| Reason::new("cannot stat the image").errno(errno))?;
    if status.owner != 0 && status.owner != sys::euid() {
        return Err(Reason::new("the image belongs to another user, whose code it would run"));
    }
    if status.mode & 0o022 != 0 {
        return Err(Reason::new("the image can be written by group or others; remove that permission (chmod go-w)"));
    }
    let first = Head::parse(image.area, status.size).map_err(Reason::image)?;
    let (image_id, count) = (first.image_id(), u64::from(first.variants));
    let kinds = u64::from(first.kinds);
    let mut place = reserved::TABLES;
    let mut wrong = None;
    // Those for starts like the freeze itself first.
    let begin = start.random % (count / kinds) * kinds;
    for number in (begin..count).chain(0..begin) {
        let head = Head::parse_variant(number as u32, image.area, status.size).map_err(Reason::image)?;
        if place + head.tables_size > reserved::TABLES + MAX_TABLES {
            break;
        }
        let tables = tables(file, &head, place)?;
        match if count == 1 { Ok(()) } else { is_for_this_start(&tables, block) } {
            Ok(()) => {
                bring_in(file, &head, &tables, block)?;
                return Ok((image_id, head, tables));
            }
            Err(reason) => wrong = wrong.or(Some(reason)),
        }
        // The reason may show what stands in these tables.
        place += head.tables_size.next_multiple_of(image::PAGE);
    }
    Err(wrong.unwrap_or(Reason::new("the tables of its variants are too large")))
}

/// Whether a variant is for starts of this kind.
fn is_for_this_start(tables: &Tables<'static>, block: &Block) -> Result<(), Reason> {
    let difference = differences::first_of_start_kind(tables, block.environment(), &Now { block })?;
    difference.map_or(Ok(()), |difference| Err(Reason::from_difference(&difference)))
}

/// The tables of a variant, mapped at this place.
fn tables(file: Fd, head: &Head, place: u64) -> Result<Tables<'static>, Reason> {
    // Exactly the tables: where they are not in memory a fault would read far around them first.
    sys::will_need(file, head.tables_offset, head.tables_size);
    let part = FilePart::map(place, head.tables_size, file, head.tables_offset)
        .map_err(|errno| Reason::new("cannot map the tables").errno(errno))?;
    let tables = Tables::parse(part.leak(), head).map_err(Reason::image)?;
    image::validate::rows(&tables, head).map_err(Reason::image)?;
    Ok(tables)
}

fn bring_in(file: Fd, head: &Head, tables: &Tables<'_>, block: &Block) -> Result<(), Reason> {
    if block.rehearsal().is_some() {
        // So that the pages which are in memory afterwards are those that a start needs.
        sys::no_read_ahead(file);
        return Ok(());
    }
    prefetch(file, head, tables)
}

/// After a reboot, or when memory was short, the image must come from the disk: what will be used is read in one go, while
/// the other checks run, and not page by page. A few samples tell.
fn prefetch(file: Fd, head: &Head, tables: &Tables<'_>) -> Result<(), Reason> {
    const SAMPLES: usize = 8;
    let touched = tables.rows::<TouchedRange>(Section::Touched).map_err(Reason::image)?;
    let samples = touched.clone().step_by((touched.len() / SAMPLES).max(1)).map(|range| range.offset);
    let mut counts = samples.clone().map(|offset| sys::cached_pages(file, offset, image::PAGE));
    let is_cold = match counts.try_fold(false, |is_cold, pages| Ok::<_, Errno>(is_cold || pages? == 0)) {
        Ok(is_cold) => is_cold,
        Err(_) => is_cold_by_mapping(file, head, samples)?,
    };
    if is_cold {
        touched.for_each(|range| sys::will_need(file, range.offset, range.size));
        prefetch_files(tables)?;
    }
    Ok(())
}

/// What a thaw uses of mapped files, which are as likely not to be in memory. A file that cannot be opened here is told of when it is
/// mapped.
fn prefetch_files(tables: &Tables<'_>) -> Result<(), Reason> {
    let files = tables.rows::<MappedFile>(Section::Files).map_err(Reason::image)?;
    let mut open: Option<(u32, Fd)> = None;
    for range in tables.rows::<TouchedFileRange>(Section::TouchedFiles).map_err(Reason::image)? {
        if open.is_none_or(|(row, _)| row != range.file) {
            if let Some((_, file)) = open.take() {
                sys::close(file);
            }
            let Some(row) = files.get(range.file as usize) else { continue };
            let path = tables.text_with_nul(row.path).map_err(Reason::image)?;
            open = sys::open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC).ok().map(|file| (range.file, file));
        }
        if let Some((_, file)) = open {
            sys::will_need(file, range.offset, range.size);
        }
    }
    if let Some((_, file)) = open {
        sys::close(file);
    }
    Ok(())
}

/// Whether one of these places in the file is not in memory, for kernels that tell so only of mapped files.
fn is_cold_by_mapping(file: Fd, head: &Head, mut places: impl Iterator<Item = u64>) -> Result<bool, Reason> {
    let part = FilePart::map(reserved::PROBE, head.file_size, file, 0)
        .map_err(|errno| Reason::new("cannot map the image").errno(errno))?;
    Ok(places.any(|offset| !sys::is_cached(part.start() + offset)))
}

fn guards(frozen: &Frozen, block: &Block) -> Result<(), Reason> {
    for guard in frozen.rows::<Item>(Section::Guards)? {
        let guard = frozen.tables.text(guard.text).map_err(Reason::image)?;
        if let Some(argument) = block.arguments().find(|argument| environment::matches(guard, argument)) {
            let text =
                "with this argument the program would boot differently, as --guard, --at or a loaded module says";
            return Err(Reason::new(text).subject(argument).guard(guard));
        }
    }
    Ok(())
}

/// The first difference is the reason for the fallback.
struct First;

impl Check<'static> for First {
    type Stop = Reason;

    fn differs(&mut self, difference: Difference<'static, '_>) -> Result<(), Reason> {
        Err(Reason::from_difference(&difference))
    }
}

/// What the new process inherited and the frozen one cannot cope with.
fn process(frozen: &mut Frozen) -> Result<(), Reason> {
    // Past the jump it would be missed too late: front ends read there, and names of files beside the image are found there. The link is
    // the cheapest thing to ask for.
    sys::read_link(b"/proc/self\0", &mut [0; 16])
        .map_err(|errno| Reason::new("there is no /proc/self: /proc is not mounted").errno(errno))?;
    // A runtime that blocks signals around its fork (CRuby) puts the mask of its own past back afterwards; any other keeps
    // the inherited one.
    if sys::blocked_signals() != Ok(0) && frozen.process.signal_mask != 0 {
        return Err(Reason::new("the process was started with blocked signals"));
    }
    let [limit, _] = sys::limit(RLIMIT_STACK).map_err(|errno| Reason::new("cannot read the limits").errno(errno))?;
    if limit > frozen.process.stack_limit {
        return Err(Reason::new("stale: the stack limit is larger than when the image was made"));
    }
    let rows = frozen.rows::<Descriptor>(Section::Descriptors)?;
    for descriptor in rows.filter(|row| row.kind != descriptor_kind::WATCH) {
        if frozen.file.0 == descriptor.number {
            frozen.file = sys::duplicate_above(frozen.file, descriptor.number)
                .map_err(|errno| Reason::new("no descriptor is free").errno(errno))?;
        } else if sys::is_open(descriptor.number) {
            return Err(Reason::new("a descriptor that the frozen process needs is in use by the caller"));
        }
    }
    Ok(())
}
