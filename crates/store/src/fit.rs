//! Whether an image is one for the environment of this start: a look at what costs next to nothing. What else it depends on, it finds
//! out itself when it is started.

use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use image::Command;
use image_file::this_process::ThisProcess;
use image_file::FirstHead;

/// Whether variables and host facts (the current directory, the terminal, the user ...) are what they were for this image.
pub fn fits(image: &Path) -> bool {
    tables(image).is_ok_and(|bytes| {
        let Ok(tables) = image::Tables::parse_unchecked_sum(&bytes) else { return false };
        let Ok(environment) = std::fs::read("/proc/self/environ") else { return false };
        let entries = environment.strip_suffix(b"\0").unwrap_or(&environment).split(|&byte| byte == 0);
        let same = inputs::environment::compare(&tables, entries).is_ok_and(|difference| difference.is_none());
        same && inputs::facts::compare(&tables, &ThisProcess { is_for_boot: false }).is_ok_and(|fact| fact.is_none())
    })
}

/// How many words of its argv an image has from its command; None where it cannot be read.
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
