//! Whom a reader believes. Whoever can write to a remote store could have all its readers run code, so a manifest counts only if a known
//! key has signed it, or, in a directory, if nobody but this user and root can have written it.

use failure::{Failure, Result};

use crate::manifest::{Manifest, Refused, MOST_BYTES};
use crate::signing::{PublicKeys, PUBLIC_KEYS};
use crate::Storage;

/// How manifests are checked.
pub enum Trust {
    /// One of these has signed them.
    Signers(PublicKeys),
    /// Their owners and modes.
    Directory,
}

impl Trust {
    /// What holds for this remote store. Fails if nothing in it could be believed.
    pub fn in_storage(storage: &Storage) -> Result<Trust> {
        match (PublicKeys::from_environment()?, storage.directory()) {
            (Some(keys), _) => Ok(Trust::Signers(keys)),
            (None, Some(_)) => Ok(Trust::Directory),
            (None, None) => Err(Failure::refusal(format!(
                "no image of {} is used: whoever can write there could have this machine run code, and {PUBLIC_KEYS} names no key that signs \
                 them. Name the files of public keys there.",
                storage.name()
            ))),
        }
    }

    /// Whose images are used, in words. Fails if others can write to the directory.
    pub fn check(&self, storage: &Storage) -> Result<&'static str> {
        match (self, storage.directory()) {
            (Trust::Signers(_), _) | (Trust::Directory, None) => {
                Ok("images that a key of SNAPBOOT_REMOTE_KEYS has signed")
            }
            (Trust::Directory, Some(directory)) => match trust::check_directory(directory) {
                Ok(()) => Ok("images that only you or root can have put there"),
                Err(refusal) => Err(Failure::refusal(format!(
                    "{refusal}, so none of its images is used: {PUBLIC_KEYS} names no key that could have signed them."
                ))),
            },
        }
    }

    /// Reads a manifest. Fails if it is there and cannot be believed.
    pub fn read(&self, storage: &Storage, path: &str, key: &str) -> Result<Option<Manifest>> {
        let not_used = |why: String| Failure::refusal(format!("{path} of {} is not used: {why}.", storage.name()));
        let refused = |refused: Refused| not_used(refused.to_string());
        match self {
            Trust::Signers(keys) => {
                let stored = storage.get(path, MOST_BYTES)?;
                stored.map(|stored| Manifest::decode(&stored, key, Some(keys)).map_err(refused)).transpose()
            }
            Trust::Directory => {
                let Some(directory) = storage.directory() else { return Ok(None) };
                let stored = trust::read(&directory.join(path)).map_err(|refusal| {
                    not_used(format!("{refusal}, and {PUBLIC_KEYS} names no key that could have signed it"))
                })?;
                Manifest::decode(&stored, key, None).map(Some).map_err(refused)
            }
        }
    }
}
