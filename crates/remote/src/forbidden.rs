//! What keeps an image on its machine: secrets that it may hold.

use std::ffi::{OsStr, OsString};
use std::fs::Metadata;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use failure::{Failure, Result};
use image::{Input, MappedFile, Section, Tables, Variable};
use image_file::ImageFile;
use judge::secret_names::is_secret;

/// Permission of group and others to read.
const OTHERS_READ: u32 = 0o044;
/// Stands for the value of a variable that is not set here: of no special form, so only the name counts.
const SOME_VALUE: &str = "value";

/// Fails if an image may hold a secret: the value of a variable, or the content of a file that only its owner can read.
pub fn check(image: &ImageFile) -> Result<()> {
    let stays = |why: String| Err(Failure::refusal(format!("{} stays on this machine: {why}.", image.path.display())));
    for variant in &image.variants {
        let tables = variant.tables();
        if let Some(name) = secret_variable(&tables)? {
            return stays(format!("it depends on the value of {}, which looks like a secret", name.to_string_lossy()));
        }
        for path in files(&tables)? {
            let path = Path::new(OsStr::from_bytes(&path)).to_owned();
            match path.metadata() {
                Ok(status) => {
                    if let Some(mode) = private_mode(&status) {
                        return stays(format!(
                            "its boot has read {}, which nobody but the owner may read (mode {mode:04o})",
                            path.display()
                        ));
                    }
                }
                Err(error) => {
                    let (path, reason) = (path.display(), failure::reason(&error));
                    return stays(format!(
                        "its boot has read {path}, and nobody can tell any more who may read that ({reason})"
                    ));
                }
            }
        }
    }
    Ok(())
}

/// The mode of a file that only its owner can read; None for any other.
pub(crate) fn private_mode(status: &Metadata) -> Option<u32> {
    let mode = status.mode() & 0o7777;
    (status.is_file() && mode & OTHERS_READ == 0).then_some(mode)
}

/// Whether a variable looks like a secret.
pub(crate) fn is_secret_variable(name: &OsStr) -> bool {
    is_secret(name, &std::env::var_os(name).unwrap_or_else(|| SOME_VALUE.into()))
}

/// A secret variable whose value the boot had. Of one that was withheld, it had a made-up value.
fn secret_variable(tables: &Tables<'_>) -> Result<Option<OsString>> {
    for row in tables.rows::<Variable>(Section::Variables)? {
        let name = OsStr::from_bytes(tables.text(row.name)?);
        if [image::presence::SET, image::presence::RENEWED].contains(&row.present) && is_secret_variable(name) {
            return Ok(Some(name.to_owned()));
        }
    }
    Ok(None)
}

/// The paths of all files that the boot has read or mapped.
pub fn files(tables: &Tables<'_>) -> Result<Vec<Vec<u8>>> {
    /// Of a file that was missing.
    const NO_DIGEST: [u8; 16] = [0; 16];
    let inputs = tables.rows::<Input>(Section::Inputs)?.filter(|row| row.digest != NO_DIGEST).map(|row| row.path);
    let mapped = tables.rows::<MappedFile>(Section::Files)?.map(|row| row.path);
    inputs.chain(mapped).map(|path| Ok(tables.text(path)?.to_vec())).collect()
}
