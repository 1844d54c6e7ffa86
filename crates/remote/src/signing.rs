//! Signatures of manifests: ed25519, with keys in the files that OpenSSL writes and reads (PEM).

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use ed25519_dalek::pkcs8::spki::der::pem::LineEnding;
use ed25519_dalek::pkcs8::{DecodePrivateKey, DecodePublicKey, EncodePrivateKey, EncodePublicKey, KeypairBytes};
use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};
use failure::{Failure, Result};

use crate::chunks::hex;
use crate::variable;

/// The variable that names the file of the secret key, with which manifests are signed.
pub const SECRET_KEY: &str = "SNAPBOOT_REMOTE_SECRET_KEY";
/// The variable that names files of public keys, with `:` between. What one of them has signed is believed.
pub const PUBLIC_KEYS: &str = "SNAPBOOT_REMOTE_KEYS";
/// How long a signature is (bytes).
pub const SIGNATURE_BYTES: usize = 64;
/// How to get such files.
const MAKE_ONE: &str = "snapboot remote key FILE makes a pair: the secret key in FILE, the public one in FILE.pub.";

/// A secret key.
pub struct SecretKey(SigningKey);

impl SecretKey {
    /// The key that the environment names; None if it names none. Fails if others can read or exchange it.
    pub fn from_environment() -> Result<Option<SecretKey>> {
        variable(SECRET_KEY).map(|path| SecretKey::read(&path)).transpose()
    }

    /// Whether the environment names one.
    pub fn is_named() -> bool {
        variable(SECRET_KEY).is_some()
    }

    /// Reads a key.
    pub fn read(path: &Path) -> Result<SecretKey> {
        let text = read_trusted(path)?;
        let mode = path.metadata().map_err(|error| Failure::io("read", path, &error))?.mode();
        if mode & 0o077 != 0 {
            return Err(Failure::refusal(format!(
                "{} should be readable by its owner alone, and has mode {:04o}: whoever has this key can have all readers run code. chmod 600 it.",
                path.display(),
                mode & 0o7777
            )));
        }
        let key = SigningKey::from_pkcs8_pem(&text).map_err(|_| no_key(path, "a secret"))?;
        Ok(SecretKey(key))
    }

    /// A new one.
    pub fn make() -> Result<SecretKey> {
        let mut seed = [0; 32];
        getrandom::fill(&mut seed)
            .map_err(|error| Failure::failed(format!("cannot get random numbers from the kernel: {error}.")))?;
        Ok(SecretKey(SigningKey::from_bytes(&seed)))
    }

    /// Writes it to a new file, and its public key to one beside it. Returns the path of that.
    pub fn keep(&self, path: &Path) -> Result<PathBuf> {
        let unwritable = |_| Failure::failed("cannot encode a key.");
        let mut public = path.to_owned().into_os_string();
        public.push(".pub");
        let public = PathBuf::from(public);
        // Without the public key, which older versions of OpenSSL do not expect there.
        let pair = KeypairBytes { secret_key: self.0.to_bytes(), public_key: None };
        let text = pair.to_pkcs8_pem(LineEnding::LF).map_err(unwritable)?;
        write_new(path, text.as_bytes(), 0o600)?;
        let text = self
            .0
            .verifying_key()
            .to_public_key_pem(LineEnding::LF)
            .map_err(|_| Failure::failed("cannot encode a key."))?;
        write_new(&public, text.as_bytes(), 0o644)?;
        Ok(public)
    }

    /// The signature of these bytes, in hexadecimal digits.
    pub fn sign(&self, content: &[u8]) -> String {
        hex(&self.0.sign(content).to_bytes())
    }

    /// Its public key.
    pub fn public(&self) -> PublicKeys {
        PublicKeys(vec![self.0.verifying_key()])
    }
}

/// The public keys of those who are believed.
#[derive(Clone, Debug)]
pub struct PublicKeys(Vec<VerifyingKey>);

impl PublicKeys {
    /// The keys that the environment names; None if it names none.
    pub fn from_environment() -> Result<Option<PublicKeys>> {
        let Some(named) = variable(PUBLIC_KEYS) else { return Ok(None) };
        let paths: Vec<PathBuf> = std::env::split_paths(&named).filter(|path| !path.as_os_str().is_empty()).collect();
        paths.iter().map(|path| read_public(path)).collect::<Result<_>>().map(|keys| Some(PublicKeys(keys)))
    }

    /// Whether one of them has made this signature of these bytes. `signature`: in hexadecimal digits.
    pub fn have_signed(&self, content: &[u8], signature: &str) -> bool {
        let Some(signature) = bytes(signature).and_then(|bytes| Signature::from_slice(&bytes).ok()) else {
            return false;
        };
        self.0.iter().any(|key| key.verify_strict(content, &signature).is_ok())
    }
}

fn read_public(path: &Path) -> Result<VerifyingKey> {
    VerifyingKey::from_public_key_pem(&read_trusted(path)?).map_err(|_| no_key(path, "a public"))
}

/// A file that only this user or root can have put there.
fn read_trusted(path: &Path) -> Result<String> {
    let content = trust::read(path)
        .map_err(|refusal| Failure::refusal(format!("{refusal}, so the key in it cannot be relied on. {MAKE_ONE}")))?;
    Ok(String::from_utf8_lossy(&content).into_owned())
}

fn no_key(path: &Path, kind: &str) -> Failure {
    Failure::refusal(format!("{} should hold {kind} key for ed25519 in PEM, and does not. {MAKE_ONE}", path.display()))
}

fn write_new(path: &Path, content: &[u8], mode: u32) -> Result<()> {
    let made = OpenOptions::new().write(true).create_new(true).mode(mode).open(path);
    made.and_then(|mut file| file.write_all(content)).map_err(|error| Failure::io("write", path, &error))
}

/// The bytes of hexadecimal digits.
fn bytes(digits: &str) -> Option<Vec<u8>> {
    let pairs = digits.as_bytes().chunks(2);
    pairs
        .map(|pair| {
            std::str::from_utf8(pair)
                .ok()
                .filter(|pair| pair.len() == 2)
                .and_then(|pair| u8::from_str_radix(pair, 16).ok())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_signs_what_its_public_key_verifies() {
        let (one, other) = (SecretKey::make().unwrap(), SecretKey::make().unwrap());
        let signature = one.sign(b"text");
        assert!(one.public().have_signed(b"text", &signature));
        assert!(!one.public().have_signed(b"texT", &signature));
        assert!(!other.public().have_signed(b"text", &signature));
        for damaged in ["", "zz", &signature[1..], &signature[2..], &format!("{signature}00")] {
            assert!(!one.public().have_signed(b"text", damaged), "{damaged}");
        }
    }

    #[test]
    fn keys_are_files_for_their_owner() {
        let top = tempfile::tempdir().unwrap();
        let path = top.path().join("key");
        let key = SecretKey::make().unwrap();
        let public = key.keep(&path).unwrap();
        assert!(key.keep(&path).is_err(), "a key is never overwritten");
        let signature = SecretKey::read(&path).unwrap().sign(b"text");
        assert!(PublicKeys(vec![read_public(&public).unwrap()]).have_signed(b"text", &signature));
        assert!(SecretKey::read(&public).is_err_and(|failure| failure.message.contains("mode 0644")));
        assert!(read_public(&path).is_err_and(|failure| failure.message.contains("should hold a public key")));
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o640)).unwrap();
        assert!(SecretKey::read(&path).is_err_and(|failure| failure.message.contains("chmod 600")));
    }
}
