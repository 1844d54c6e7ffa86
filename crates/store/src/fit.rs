//! Whether an image fits the environment of this start, by checks that cost next to nothing. The image itself checks its other inputs when
//! it is started.

use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use image::{Command, HostFact, Section};
use image_file::this_process::ThisProcess;
use image_file::FirstHead;
use runtime::terminal::Terminal;

/// Whether variables and host facts (the current directory, the terminal, the user ...) have the values of this image.
pub fn fits(image: &Path) -> bool {
    tables(image).is_ok_and(|bytes| {
        let Ok(tables) = image::Tables::parse_unchecked_sum(&bytes) else { return false };
        let Ok(environment) = std::fs::read("/proc/self/environ") else { return false };
        let entries = environment.strip_suffix(b"\0").unwrap_or(&environment).split(|&byte| byte == 0);
        let same = inputs::environment::compare(&tables, entries).is_ok_and(|difference| difference.is_none());
        same && inputs::facts::compare(&tables, &ThisProcess::ITSELF).is_ok_and(|fact| fact.is_none())
    })
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

/// The tables of the first variant.
fn tables(image: &Path) -> io::Result<Vec<u8>> {
    let FirstHead { file, head, .. } = FirstHead::read(image)?;
    let mut tables = vec![0; head.tables_size as usize];
    file.read_exact_at(&mut tables, head.tables_offset)?;
    Ok(tables)
}
