//! A manifest: what a reader must know of an image before it fetches any of it. One line with the signature, then JSON.

use std::fmt;

use failure::{Failure, Result};
use serde::{Deserialize, Serialize};

use crate::chunks::{hex_digest, Chunked};
use crate::difference::Difference;
use crate::sign_command::Sign;
use crate::signing::PublicKeys;

/// The most bytes that a manifest may have: the list of chunks of an image of 40 GB.
pub const MOST_BYTES: usize = 12 << 20;
/// The first word of a manifest.
const MAGIC: &str = "snapboot-manifest-1";
/// Stands in the place of a signature that nobody has made.
const UNSIGNED: &str = "unsigned";
/// How many digits of its digest stand in the name of a manifest.
const DIGITS: usize = 16;

/// An image in the remote store.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// Its key: a manifest that was moved to another key is no candidate there.
    pub key: String,
    /// The name of its program, for people.
    pub name: String,
    /// Its runtime, for people.
    pub runtime: String,
    /// When it was made (seconds since 1970).
    pub created: u64,
    /// Identifies the image in a store: see [`identity`](crate::difference::identity).
    #[serde(default)]
    pub identity: String,
    /// The hash seed of its boot, which the next image should have, too; None if it has one of its own.
    #[serde(default)]
    pub hash_seed: Option<u32>,
    /// All of it.
    #[serde(flatten)]
    pub image: Chunked,
    /// What makes it of the image before, if that is less.
    #[serde(default)]
    pub difference: Option<Difference>,
}

/// Why a manifest is no candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// It is not what a manifest looks like.
    NoManifest,
    /// Nobody has signed it.
    Unsigned,
    /// None of the known keys has signed it, or it was changed since.
    Signature,
    /// It belongs to another key.
    Moved,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Refused::NoManifest => "it should be a manifest of an image, and is damaged or of another version",
            Refused::Unsigned => "it is not signed: whoever pushes needs SNAPBOOT_REMOTE_SECRET_KEY",
            Refused::Signature => "none of the keys in SNAPBOOT_REMOTE_KEYS has signed it, or it was changed since",
            Refused::Moved => "it was signed for another program or machine",
        })
    }
}

impl Manifest {
    /// Its name in the folder of its key: later ones sort behind earlier ones, and the same image has the same end.
    pub fn id(&self) -> String {
        format!("{:012}-{}", self.created, self.content())
    }

    /// Identifies the content of its image.
    pub fn content(&self) -> String {
        hex_digest(self.image.chunks.join(" ").as_bytes())[..DIGITS].to_owned()
    }

    /// The digests of all chunks that it names.
    pub fn chunks(&self) -> impl Iterator<Item = &String> {
        self.contents().flat_map(|content| &content.chunks)
    }

    /// What it names.
    pub fn contents(&self) -> impl Iterator<Item = &Chunked> {
        std::iter::once(&self.image).chain(self.difference.iter().flat_map(Difference::parts))
    }

    /// As it is stored.
    pub fn encode(&self, key: Option<&dyn Sign>) -> Result<Vec<u8>> {
        let body =
            serde_json::to_vec(self).map_err(|error| Failure::failed(format!("cannot encode a manifest: {error}.")))?;
        let signature = key.map_or_else(|| Ok(UNSIGNED.to_owned()), |key| key.signature(&body))?;
        Ok([format!("{MAGIC} {signature}\n").as_bytes(), &body].concat())
    }

    /// Reads what is stored under a key. `signers`: who must have signed it; None where that does not count.
    pub fn decode(stored: &[u8], key: &str, signers: Option<&PublicKeys>) -> std::result::Result<Manifest, Refused> {
        let end = stored.iter().take(512).position(|&byte| byte == b'\n').ok_or(Refused::NoManifest)?;
        let (first, body) = (&stored[..end], &stored[end + 1..]);
        let first = std::str::from_utf8(first).map_err(|_| Refused::NoManifest)?;
        let signature = first.strip_prefix(MAGIC).and_then(|rest| rest.strip_prefix(' ')).ok_or(Refused::NoManifest)?;
        match signers {
            Some(_) if signature == UNSIGNED => return Err(Refused::Unsigned),
            Some(signers) if !signers.have_signed(body, signature) => return Err(Refused::Signature),
            _ => {}
        }
        let manifest: Manifest = serde_json::from_slice(body).map_err(|_| Refused::NoManifest)?;
        if !manifest.contents().all(Chunked::is_consistent) {
            return Err(Refused::NoManifest);
        }
        if manifest.key != key {
            return Err(Refused::Moved);
        }
        Ok(manifest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunks::{Chunk, SIZE};
    use crate::signing::SecretKey;

    fn manifest() -> Manifest {
        let chunks = vec![hex_digest(b"1"), hex_digest(b"2")];
        let image = Chunked { size: SIZE as u64 + 9, chunks };
        Manifest { key: "k".to_owned(), name: "tool".to_owned(), created: 5, image, ..Manifest::default() }
    }

    #[test]
    fn a_manifest_is_believed_if_one_of_the_keys_has_signed_it_as_it_is() {
        let (own, other) = (SecretKey::make().unwrap(), SecretKey::make().unwrap());
        let stored = manifest().encode(Some(&own)).unwrap();
        let decode = |stored: &[u8], key: &str, by: &SecretKey| Manifest::decode(stored, key, Some(&by.public()));
        assert_eq!(decode(&stored, "k", &own), Ok(manifest()));
        assert_eq!(decode(&stored, "k", &other), Err(Refused::Signature));
        assert_eq!(decode(&stored, "other", &own), Err(Refused::Moved));
        assert_eq!(decode(&manifest().encode(None).unwrap(), "k", &own), Err(Refused::Unsigned));
        assert_eq!(Manifest::decode(&manifest().encode(None).unwrap(), "k", None), Ok(manifest()));
        // Each takes a while without optimization.
        for at in (0..stored.len()).step_by(5) {
            let mut damaged = stored.clone();
            damaged[at] ^= 1;
            assert!(decode(&damaged, "k", &own).is_err(), "byte {at}");
            assert!(decode(&stored[..at], "k", &own).is_err(), "{at} bytes");
        }
    }

    #[test]
    fn a_manifest_names_nothing_but_chunks_and_all_of_them() {
        let refused = |change: fn(&mut Manifest)| {
            let mut changed = manifest();
            change(&mut changed);
            Manifest::decode(&changed.encode(None).unwrap(), "k", None)
        };
        assert_eq!(refused(|it| it.image.chunks[0] = "../../key".to_owned()), Err(Refused::NoManifest));
        assert_eq!(refused(|it| it.image.chunks.truncate(1)), Err(Refused::NoManifest));
        assert_eq!(refused(|it| it.image.size *= 2), Err(Refused::NoManifest));
        assert_eq!(refused(|it| it.image = Chunked::default()), Err(Refused::NoManifest));
        let wrong = Difference { rest: Chunked { size: 1, chunks: vec!["..".to_owned()] }, ..Difference::default() };
        let mut with = manifest();
        with.difference = Some(wrong);
        assert_eq!(Manifest::decode(&with.encode(None).unwrap(), "k", None), Err(Refused::NoManifest));
        let all = manifest();
        let chunks: Vec<Chunk<'_>> = all.image.iter().collect();
        assert_eq!(
            chunks.iter().map(|chunk| (chunk.offset, chunk.length)).collect::<Vec<_>>(),
            [(0, SIZE), (SIZE as u64, 9)]
        );
    }

    #[test]
    fn later_images_sort_behind_earlier_ones() {
        let of = |created| Manifest { created, ..manifest() }.id();
        assert!(of(9) < of(10) && of(999_999_999) < of(1_000_000_000));
        assert!(of(9).ends_with(&manifest().content()));
    }
}
