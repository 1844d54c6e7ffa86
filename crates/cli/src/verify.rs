//! `snapboot verify`: checks every byte of an image that is ever used.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::{fmt, io};

use failure::{Failure, Result};
use image::{Directory, Input, Item, MappedFile, Section, Tables, Variable};
use image_file::{digest_pages, ImageFile, Variant};

use crate::arguments::Verify;
use crate::human;
use crate::render;
use crate::spinner::Spinner;

/// Runs the subcommand; fails with exit status 1 if something is wrong.
pub fn main(arguments: &Verify) -> Result<u8> {
    let image = ImageFile::open(&arguments.image)?;
    let wrong = |what: String| Failure::failed(format!("{}: {what}", arguments.image.display()));
    let spinner = Spinner::start(arguments.verbosity.quiet);
    spinner.phase(format!("reading {}", arguments.image.display()));
    let (mut tables, mut answers, mut pages) = (0, 0, 0);
    for Variant { head, .. } in &image.variants {
        if image.size != head.file_size {
            return Err(wrong(format!(
                "the head says {} bytes, and the file has {}: something was appended to it. Freeze again.",
                head.file_size, image.size
            )));
        }
        (tables, pages) = (tables + head.tables_size, pages + head.pages_size);
        answers += head.answers_size;
    }
    for variant in &image.variants {
        check_texts(&variant.tables()).map_err(|error| wrong(format!("{error}.")))?;
        for directory in variant.tables().rows::<Directory>(Section::Directories)? {
            variant.answers(&directory).map_err(|error| wrong(error.message))?;
        }
        let head = &variant.head;
        let digest = digest_pages(&image.file, head.pages_offset, head.pages_size)
            .map_err(|error| Failure::io("read", &arguments.image, &error))?;
        if digest != head.pages_digest {
            let error = image::Error::Damaged { what: "data pages" };
            return Err(wrong(format!("{error}.")));
        }
    }
    check_owner(&image).map_err(|untrusted| wrong(untrusted.to_string()))?;
    spinner.stop();
    if arguments.verbosity.quiet {
        return Ok(0);
    }
    render::print(&format!(
        "{}: whole (head, tables {}, answers of directories {}, data pages {})\n",
        arguments.image.display(),
        human::size(tables),
        human::size(answers),
        human::size(pages)
    ))?;
    Ok(0)
}

/// Follows every string of every row.
fn check_texts(tables: &Tables<'_>) -> std::result::Result<(), image::Error> {
    for row in tables.rows::<MappedFile>(Section::Files)? {
        tables.text(row.path)?;
    }
    for row in tables.rows::<Input>(Section::Inputs)? {
        tables.text(row.path)?;
    }
    for row in tables.rows::<Directory>(Section::Directories)? {
        tables.text(row.path)?;
    }
    for row in tables.rows::<Variable>(Section::Variables)? {
        tables.text(row.name)?;
    }
    for section in [Section::Patterns, Section::Guards] {
        for row in tables.rows::<Item>(section)? {
            tables.text(row.text)?;
        }
    }
    Ok(())
}

/// Why an image is not trusted: it is code of its owner, and anyone else who can write to it can run code in the owner's name.
enum Untrusted {
    Unknown(io::Error),
    Mode(u32),
    Owner { owner: u32, own: u32 },
}

impl fmt::Display for Untrusted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Untrusted::Unknown(error) => write!(f, "cannot look at its mode: {error}."),
            Untrusted::Mode(mode) => write!(
                f,
                "users other than its owner may write to it (mode {mode:04o}), so it is not trusted. If nobody has changed it, run chmod \
                 go-w on it."
            ),
            Untrusted::Owner { owner, own } => {
                write!(f, "it belongs to user {owner}, and you are user {own}: an image of somebody else is not trusted.")
            }
        }
    }
}

fn check_owner(image: &ImageFile) -> std::result::Result<(), Untrusted> {
    let metadata = image.file.metadata().map_err(Untrusted::Unknown)?;
    let mode = metadata.permissions().mode() & 0o7777;
    if mode & 0o022 != 0 {
        return Err(Untrusted::Mode(mode));
    }
    let (owner, own) = (metadata.uid(), rustix::process::geteuid().as_raw());
    match owner == own || owner == 0 {
        true => Ok(()),
        false => Err(Untrusted::Owner { owner, own }),
    }
}
