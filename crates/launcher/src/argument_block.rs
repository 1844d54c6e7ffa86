//! The block of the new process, as a kernel would put it on the stack: a copy of the arguments and the environment at a place that stays.
//!
//! The kernel's stack, where they come from, is dropped before the frozen memory is laid out. The block serves the fallback
//! until the jump, and afterwards the thawed process as its environment.
#![allow(unsafe_code)]

use core::ops::Range;
use core::slice;

use image::{reserved, Command, Handover, Process, PAGE};
use linux_raw_sys::general::{PROT_READ, PROT_WRITE};

use crate::image_file::ImageFile;
use crate::link;
use crate::start::{without_nul, Start};
use crate::sys::{self, Errno, MAP_ANONYMOUS, MAP_FIXED_NOREPLACE, MAP_PRIVATE};

/// Room in front of the environment strings for a note to the front end, see [`Block::write_note`].
const NOTE_ROOM: usize = 256;

/// More arguments than a freeze starts its runtime with.
const MAX_ARGUMENTS: u64 = 4096;

/// A null-terminated list of pointers to strings that lie one after the other, each with its NUL.
struct List {
    pointers: *mut *const u8,
    count: usize,
    strings: Range<u64>,
}

impl List {
    /// Copies strings to `strings_at` and writes their addresses to `pointers_at`.
    ///
    /// # Safety
    /// Both places are large enough.
    unsafe fn write<'a>(pointers_at: usize, strings_at: usize, strings: impl Iterator<Item = &'a [u8]>) -> List {
        let pointers = pointers_at as *mut *const u8;
        let (mut count, mut place) = (0, strings_at);
        for string in strings {
            // SAFETY: the caller has measured the same strings.
            unsafe {
                (place as *mut u8).copy_from_nonoverlapping(string.as_ptr(), string.len());
                pointers.add(count).write(place as *const u8);
            }
            place += string.len();
            count += 1;
        }
        // The null pointer at the end is there already: the memory is fresh.
        List { pointers, count, strings: strings_at as u64..place as u64 }
    }

    /// The strings without their NULs.
    fn iter(&self) -> impl Iterator<Item = &'static [u8]> + Clone {
        // SAFETY: `write` filled this range, and the block stays mapped for the life of the launcher.
        let bytes = unsafe {
            slice::from_raw_parts(self.strings.start as *const u8, (self.strings.end - self.strings.start) as usize)
        };
        bytes.split_inclusive(|&byte| byte == 0).map(without_nul)
    }
}

/// A start that runs nothing of the program, and never falls back.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Rehearsal {
    /// `snapboot freeze` finds out what a start needs.
    Thaw,
    /// `snapboot inspect --why` checks whether a start would get as far as the jump, and wants nothing of the image to run.
    Check,
}

/// What stands between the words of the store and the argv of the command: the reason and the program.
const BEHIND_STORE: usize = 2;

/// Arguments and environment of the new process. In memory: [`Handover`], room for pointers to the words of the store and what stands
/// behind them, argv pointers, environment pointers, argv strings, room for a note, environment strings.
pub struct Block {
    argv: List,
    environment: List,
    command_argc: usize,
    note_size: u64,
    named: Option<Named>,
}

/// Names of the process (comm), where the image was started by a link with another name than the script's.
struct Named {
    /// That of a process that was started by the script's name.
    comm: [u8; 16],
    /// That of this process.
    own_comm: [u8; 16],
}

/// Whether the script that the command names by a relative path is not found by it from here, or is another one. When it is not
/// where it was either, the relative path is as good.
fn leads_elsewhere(image: &ImageFile, index: usize, path: &[u8]) -> bool {
    let named = image.command.argv().nth(index).unwrap_or(b"\0");
    match (sys::stat(None, named), sys::stat(None, path)) {
        (Ok(named), Ok(script)) => (named.device, named.inode) != (script.device, script.inode),
        (Err(_), Ok(_)) => true,
        (_, Err(_)) => false,
    }
}

/// The interpreter's name, as `snapboot run` passes it on where it was typed without a path: the command has the path. None where the image was
/// started in another way.
fn typed_name<'s>(start: &'s Start, image: &ImageFile) -> Option<&'s [u8]> {
    let path = image.command.argv().next()?;
    let name = start.arguments().next().filter(|_| image.own_arguments == 1 && start.executed().is_none())?;
    (!name.contains(&b'/') && path.rsplit(|&byte| byte == b'/').next() == Some(name)).then_some(name)
}

impl Block {
    /// Copies the command's argv followed by the arguments that the image was given, and the environment.
    pub fn build(start: &Start, image: &ImageFile) -> Result<Block, Errno> {
        let moved = image.command.anchor().filter(|(index, path)| leads_elsewhere(image, *index, path));
        let path = link::path(start, image);
        let path = path.as_ref().map(link::Path::bytes);
        let last = image.command.argc() - 1;
        let typed = typed_name(start, image);
        let command = || {
            image.command.argv().enumerate().map(move |(index, word)| match (moved, path) {
                (_, Some(path)) if index == last => path,
                _ if index == 0 => typed.unwrap_or(word),
                (Some((script, path)), _) if script == index => path,
                _ => word,
            })
        };
        let arguments = || command().chain(start.arguments().skip(image.own_arguments));
        let measure = |sizes: (usize, usize), string: &[u8]| (sizes.0 + 1, sizes.1 + string.len());
        let (argc, argv_size) = arguments().fold((0, 0), measure);
        let (envc, environment_size) = start.environment().fold((0, 0), measure);

        let in_front = match image.command.store_count() {
            0 => 0,
            count => count + BEHIND_STORE,
        };
        let argv_pointers =
            reserved::ARGUMENT_BLOCK as usize + size_of::<Handover>() + in_front * size_of::<*const u8>();
        let environment_pointers = argv_pointers + (argc + 1) * size_of::<*const u8>();
        let argv_strings = environment_pointers + (envc + 1) * size_of::<*const u8>();
        let environment_strings = argv_strings + argv_size + NOTE_ROOM;
        let end = (environment_strings + environment_size) as u64;

        let size = (end - reserved::ARGUMENT_BLOCK).next_multiple_of(PAGE);
        let flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
        // SAFETY: the place is reserved for the block, and each list is as large as was measured.
        unsafe {
            sys::map(reserved::ARGUMENT_BLOCK, size, PROT_READ | PROT_WRITE, flags, None, 0)?;
            Ok(Block {
                argv: List::write(argv_pointers, argv_strings, arguments()),
                environment: List::write(environment_pointers, environment_strings, start.environment()),
                command_argc: image.command.argc(),
                note_size: 0,
                named: path
                    .zip(image.command.argv().last())
                    .map(|(path, script)| Named { comm: link::comm(script), own_comm: link::comm(path) }),
            })
        }
    }

    /// The arguments that the image was given, without those of the command.
    pub fn arguments(&self) -> impl Iterator<Item = &'static [u8]> {
        self.argv.iter().skip(self.command_argc)
    }

    /// The environment entries.
    pub fn environment(&self) -> impl Iterator<Item = &'static [u8]> + Clone {
        self.environment.iter()
    }

    /// Whether this variable switches something on: it is set, and not to 0.
    pub fn asks_for(&self, name: &[u8]) -> bool {
        inputs::environment::value_of(name, self.environment()).is_some_and(|value| !value.is_empty() && value != b"0")
    }

    /// Which rehearsal this is, if any.
    pub fn rehearsal(&self) -> Option<Rehearsal> {
        inputs::environment::value_of(b"SNAPBOOT_REHEARSE", self.environment()).map(|value| match value {
            b"check" => Rehearsal::Check,
            _ => Rehearsal::Thaw,
        })
    }

    /// The name of the process, where this is the one that the image knows.
    pub fn comm(&self, known: [u8; 16]) -> [u8; 16] {
        self.named.as_ref().filter(|named| named.comm == known).map_or(known, |named| named.own_comm)
    }

    /// The argv list for executing the original command.
    pub fn argv_pointers(&self) -> *const *const u8 {
        self.argv.pointers
    }

    /// The argv list for executing the store's program: its words, the reason and the program in front of that of the original command.
    /// `command`: the one that the block was built for. `reason` ends with a NUL.
    pub fn store_argv(&self, command: &Command<'static>, reason: &[u8]) -> *const *const u8 {
        let count = command.store_count() + BEHIND_STORE;
        let words = command.store_words().chain([reason, command.program()]);
        // SAFETY: `build` has left room for so many pointers in front of the list.
        unsafe {
            let first = self.argv.pointers.sub(count);
            words.enumerate().for_each(|(index, word)| first.add(index).write(word.as_ptr()));
            first
        }
    }

    /// The environment list for executing the original command.
    pub fn environment_pointers(&self) -> *const *const u8 {
        self.environment.pointers
    }

    /// Puts an entry in front of the environment strings, where only readers of /proc/self/environ see it: the front end, which
    /// drops it. The entry is written from `parts`; what does not fit is left out.
    pub fn write_note(&mut self, parts: &[&[u8]]) {
        let size = parts.iter().map(|part| part.len()).sum::<usize>() + 1;
        if size > NOTE_ROOM {
            return;
        }
        let mut place = self.environment.strings.start - size as u64;
        for part in parts {
            // SAFETY: the place lies in the room for the note.
            unsafe { (place as *mut u8).copy_from_nonoverlapping(part.as_ptr(), part.len()) };
            place += part.len() as u64;
        }
        self.note_size = size as u64;
    }

    /// Where the strings of argv and of the environment (with the note) are.
    pub fn strings(&self) -> (Range<u64>, Range<u64>) {
        let environment = self.environment.strings.clone();
        (self.argv.strings.clone(), environment.start - self.note_size..environment.end)
    }

    /// Copies all strings to the frozen process' argv area, one after the other, when they fit. Returns where they are then;
    /// otherwise they stay in the block.
    ///
    /// # Safety
    /// The area is writable memory of the frozen process.
    pub unsafe fn copy_strings_to(&self, area: Range<u64>) -> (Range<u64>, Range<u64>) {
        let (argv, environment) = self.strings();
        let (argv_size, environment_size) = (argv.end - argv.start, environment.end - environment.start);
        if area.end - area.start < argv_size + environment_size {
            return (argv, environment);
        }
        let middle = area.start + argv_size;
        // SAFETY: the caller answers for the area; the sizes were just compared.
        unsafe {
            (area.start as *mut u8).copy_from_nonoverlapping(argv.start as *const u8, argv_size as usize);
            (middle as *mut u8).copy_from_nonoverlapping(environment.start as *const u8, environment_size as usize);
        }
        (area.start..middle, middle..middle + environment_size)
    }

    /// Makes the environment pointers lead to the copy of the strings that ends at `end`. No fallback is possible afterwards.
    pub fn point_environment_to(&mut self, end: u64) {
        let distance = end.wrapping_sub(self.environment.strings.end);
        for index in 0..self.environment.count {
            // SAFETY: the list has `count` entries.
            unsafe {
                let entry = self.environment.pointers.add(index);
                entry.write((entry.read() as u64).wrapping_add(distance) as *const u8);
            }
        }
    }

    /// Makes main's argv, at the start of the stack, lead to the new strings: CRuby looks there for how many bytes a process
    /// title may overwrite. It keeps its length; what has no new string repeats the last one.
    ///
    /// # Safety
    /// [`Self::copy_strings_to`] has copied the strings, and the stack is in place.
    pub unsafe fn point_arguments(&self, process: &Process) {
        let start = process.start_stack as *mut u64;
        if !start.is_aligned() || !(process.start_stack..process.stack_end).contains(&process.arg_start) {
            return;
        }
        // SAFETY: the kernel puts argc and argv at the start of the stack, which frozen code may have overwritten; then it is left
        // alone. The new list has at least one entry.
        unsafe {
            let argc = start.read();
            if argc == 0 || argc > MAX_ARGUMENTS || start.add(1).read() != process.arg_start {
                return;
            }
            let last = self.argv.count - 1;
            for index in 0..argc as usize {
                let string = self.argv.pointers.add(index.min(last)).read() as u64;
                start.add(1 + index).write(string - self.argv.strings.start + process.arg_start);
            }
        }
    }

    /// Writes what the thawed process needs to know, with the places that [`Self::copy_strings_to`] told, and returns where it is.
    pub fn hand_over(&self, leftover: Range<u64>, arguments: Range<u64>, environment: Range<u64>) -> u64 {
        let handover = Handover {
            environ: self.environment.pointers as u64,
            leftover_start: leftover.start,
            leftover_end: leftover.end,
            arguments_start: arguments.start,
            arguments_end: arguments.end,
            environment_start: environment.start,
            environment_end: environment.end,
        };
        // SAFETY: the block starts with room for it.
        unsafe { (reserved::ARGUMENT_BLOCK as *mut Handover).write(handover) };
        reserved::ARGUMENT_BLOCK
    }
}
