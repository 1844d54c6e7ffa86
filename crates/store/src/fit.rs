//! Whether an image fits the environment of this start, by checks that cost next to nothing. The image itself checks its other inputs when
//! it is started.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::Path;

use image::{Command, Head, HostFact, Item, Section};
use image_file::this_process::ThisProcess;
use image_file::FirstHead;
use inputs::differences::{self, Difference};
use inputs::environment;
use inputs::system::Check;
use runtime::terminal::Terminal;

/// Whether variables and host facts (the current directory, the terminal, the user ...) have the values of one of the image's variants.
pub fn fits(image: &Path) -> bool {
    fits_start(image, &ThisProcess::ITSELF)
}

/// Does the same for a start for which this process answers.
pub(crate) fn fits_start(image: &Path, start: &ThisProcess) -> bool {
    let Ok(FirstHead { file, area, head }) = FirstHead::read(image) else { return false };
    let Ok(size) = file.metadata().map(|metadata| metadata.len()) else { return false };
    let Ok(environment) = std::fs::read("/proc/self/environ") else { return false };
    let environment = environment.strip_suffix(b"\0").unwrap_or(&environment);
    (0..head.variants).any(|number| {
        let head = Head::parse_variant(number, &area, size);
        head.is_ok_and(|head| read_tables(&file, &head).is_ok_and(|tables| is_of_start(&tables, environment, start)))
    })
}

/// Whether tables are those of an image for this start. `environment`: entries with NUL between.
fn is_of_start(tables: &[u8], environment: &[u8], start: &ThisProcess) -> bool {
    let Ok(tables) = image::Tables::parse_unchecked_sum(tables) else { return false };
    let entries = environment.split(|&byte| byte == 0);
    differences::compare_start(&tables, entries, start, &mut Any).is_ok()
}

/// Stops at the first difference, whatever it is.
struct Any;

/// Something differs, or nobody can tell.
struct Differs;

impl From<image::Error> for Differs {
    fn from(_: image::Error) -> Self {
        Differs
    }
}

impl<'t> Check<'t> for Any {
    type Stop = Differs;

    fn differs(&mut self, _: Difference<'t, '_>) -> Result<(), Differs> {
        Err(Differs)
    }
}

/// The terminal that an image is for, as far as its boot has read it; None if unknown.
pub fn terminal(image: &Path) -> Option<Terminal> {
    let bytes = tables(image).ok()?;
    let tables = image::Tables::parse_unchecked_sum(&bytes).ok()?;
    let mut terminal = Terminal { streams: [false; 3], columns: 80, rows: 24 };
    for fact in tables.rows::<HostFact>(Section::Facts).ok()? {
        let is_about_terminals = inputs::facts::is_of_terminal(fact.kind);
        let value =
            tables.text(fact.value).ok().filter(|value| is_about_terminals && *value != inputs::facts::NO_TERMINAL);
        let (Some(value), Some(stream)) = (value, terminal.streams.get_mut(fact.of as usize)) else { continue };
        *stream = true;
        let size = std::str::from_utf8(value).ok().and_then(|value| value.split_once('x'));
        if let Some((Ok(columns), Ok(rows))) = size.map(|(columns, rows)| (columns.parse(), rows.parse())) {
            (terminal.columns, terminal.rows) = (columns, rows);
        }
    }
    terminal.streams.contains(&true).then_some(terminal)
}

/// How many words of an image's argv come from its command; None if it cannot be read.
pub fn own_words(image: &Path) -> Option<usize> {
    let FirstHead { area, head, .. } = FirstHead::read(image).ok()?;
    Some(Command::parse(&area, &head).ok()?.argc())
}

/// Whether one of these arguments is a guard of an image. False if the image cannot be read.
pub fn is_guarded(image: &Path, arguments: &[OsString]) -> bool {
    let Ok(tables) = tables(image) else { return false };
    let Ok(tables) = image::Tables::parse_unchecked_sum(&tables) else { return false };
    let guards =
        tables.rows::<Item>(Section::Guards).into_iter().flatten().filter_map(|guard| tables.text(guard.text).ok());
    guards.into_iter().any(|guard| arguments.iter().any(|argument| environment::matches(guard, argument.as_bytes())))
}

/// The tables of the first variant.
fn tables(image: &Path) -> io::Result<Vec<u8>> {
    let FirstHead { file, head, .. } = FirstHead::read(image)?;
    read_tables(&file, &head)
}

fn read_tables(file: &File, head: &Head) -> io::Result<Vec<u8>> {
    let mut tables = vec![0; head.tables_size as usize];
    file.read_exact_at(&mut tables, head.tables_offset)?;
    Ok(tables)
}
