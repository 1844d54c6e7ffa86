//! Who may start an image that was fetched: whoever could start it if it had been made here, and so nobody who could not read each file
//! that its boot has read.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use failure::Result;
use freeze::Readers;
use image_file::this_process::umask;
use image_file::ImageFile;
use rustix::process::getegid;

use crate::forbidden::files;

/// The permissions of a program, and those that its owner needs.
const PROGRAM: u32 = 0o755;
const OWNER: u32 = 0o500;
/// The same of a file of data.
const DATA: u32 = 0o644;
const DATA_OWNER: u32 = 0o600;

/// The permissions of an image, as far as the umask allows.
pub fn mode(image: &ImageFile) -> Result<u32> {
    let mut readers = Readers::new(getegid().as_raw());
    for variant in &image.variants {
        files(&variant.tables())?.iter().for_each(|path| readers.add(Path::new(OsStr::from_bytes(path))));
    }
    Ok(readers.permitted_bits(PROGRAM & !umask()) | OWNER)
}

/// The permissions of an archive for those readers, as far as the umask allows; its owner writes it.
pub fn archive_mode(readers: &Readers) -> u32 {
    readers.permitted_bits(DATA & !umask()) | DATA_OWNER
}
