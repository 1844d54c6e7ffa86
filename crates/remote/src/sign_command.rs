//! A command that signs, so that the secret key need not be a file on the machine that pushes: it gets the message on its standard input, and
//! prints the signature (ed25519), as 64 bytes, in hexadecimal digits or in base64.

use std::ffi::OsString;
use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use failure::{Failure, Result};

use crate::chunks::hex;
use crate::signing::{PublicKeys, SecretKey, PUBLIC_KEYS, SIGNATURE_BYTES};
use crate::variable;

/// The variable that holds the command, for a shell.
pub const SIGN_COMMAND: &str = "SNAPBOOT_REMOTE_SIGN_COMMAND";
/// How long it may take.
const LIMIT: Duration = Duration::from_secs(30);

/// Whoever signs manifests.
pub trait Sign {
    /// The signature of these bytes, in hexadecimal digits.
    fn signature(&self, content: &[u8]) -> Result<String>;
}

impl Sign for SecretKey {
    fn signature(&self, content: &[u8]) -> Result<String> {
        Ok(self.sign(content))
    }
}

/// Whoever signs for this machine: the command that the environment names, or else the key. None if it names neither.
pub fn signer() -> Result<Option<Box<dyn Sign>>> {
    if let Some(command) = variable(SIGN_COMMAND) {
        let keys = PublicKeys::from_environment()?;
        return Ok(Some(Box::new(SignCommand { command: command.into_os_string(), keys })));
    }
    Ok(SecretKey::from_environment()?.map(|key| Box::new(key) as Box<dyn Sign>))
}

/// Whether the environment names a key or a command.
pub fn is_named() -> bool {
    SecretKey::is_named() || variable(SIGN_COMMAND).is_some()
}

struct SignCommand {
    command: OsString,
    /// What it signs has to be signed by one of these, if any are named.
    keys: Option<PublicKeys>,
}

impl Sign for SignCommand {
    fn signature(&self, content: &[u8]) -> Result<String> {
        let signature = decoded(&self.printed(content)?)
            .ok_or_else(|| failed("should print a signature of ed25519 (64 bytes, hexadecimal digits or base64), and prints something else"))?;
        match &self.keys {
            Some(keys) if !keys.have_signed(content, &signature) => {
                Err(failed(&format!("has printed a signature that no key of {PUBLIC_KEYS} has made")))
            }
            _ => Ok(signature),
        }
    }
}

impl SignCommand {
    /// What it prints for a message.
    fn printed(&self, content: &[u8]) -> Result<Vec<u8>> {
        let cannot = |error: std::io::Error| failed(&format!("cannot be executed ({})", failure::reason(&error)));
        let mut command = Command::new("/bin/sh");
        command.arg("-c").arg(&self.command).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(cannot)?;
        let (input, content) = (child.stdin.take(), content.to_vec());
        // It need not read all before it prints, or at all. Its status says whether that was right.
        thread::spawn(move || input.map(|mut input| input.write_all(&content)));
        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || sender.send(child.wait_with_output()));
        // This process ends soon, and with it what is left of the command's input and output.
        let done =
            receiver.recv_timeout(LIMIT).map_err(|_| failed(&format!("has not ended within {} s", LIMIT.as_secs())))?;
        let done = done.map_err(cannot)?;
        match done.status.success() {
            true => Ok(done.stdout),
            false => Err(failed(&format!("has failed ({})", done.status))),
        }
    }
}

fn failed(what: &str) -> Failure {
    Failure::failed(format!("the command of {SIGN_COMMAND} {what}, so nothing is pushed."))
}

/// A signature in hexadecimal digits, however it was printed.
fn decoded(printed: &[u8]) -> Option<String> {
    if printed.len() == SIGNATURE_BYTES {
        return Some(hex(printed));
    }
    let text = std::str::from_utf8(printed).ok()?.trim();
    match text.len() == 2 * SIGNATURE_BYTES && text.bytes().all(|it| it.is_ascii_hexdigit()) {
        true => Some(text.to_ascii_lowercase()),
        false => from_base64(text).filter(|bytes| bytes.len() == SIGNATURE_BYTES).map(|bytes| hex(&bytes)),
    }
}

/// The bytes of a text in base64, with or without the signs at its end.
fn from_base64(text: &str) -> Option<Vec<u8>> {
    const SIGNS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let (mut bytes, mut bits, mut held) = (Vec::new(), 0_u32, 0);
    for sign in text.trim_end_matches('=').bytes() {
        let value = SIGNS.iter().position(|known| *known == sign)?;
        (bits, held) = (bits << 6 | value as u32, held + 6);
        if held >= 8 {
            held -= 8;
            bytes.push((bits >> held) as u8);
            bits &= (1 << held) - 1;
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_counts_in_each_of_its_forms() {
        let bytes: Vec<u8> = (0..64).map(|number| number * 4 + 3).collect();
        let digits = hex(&bytes);
        let base64 = "AwcLDxMXGx8jJysvMzc7P0NHS09TV1tfY2drb3N3e3+Dh4uPk5ebn6Onq6+zt7u/w8fLz9PX29/j5+vv8/f7/w==";
        assert_eq!(decoded(&bytes), Some(digits.clone()));
        assert_eq!(decoded(format!("{}\n", digits.to_uppercase()).as_bytes()), Some(digits.clone()));
        assert_eq!(decoded(base64.as_bytes()), Some(digits));
        assert_eq!(from_base64("QUJD"), Some(b"ABC".to_vec()));
        assert_eq!(from_base64("QUI="), Some(b"AB".to_vec()));
        for other in [&b""[..], b"no signature", &bytes[1..], b"QUJD"] {
            assert_eq!(decoded(other), None);
        }
    }

    #[test]
    fn what_a_command_prints_is_checked() {
        let key = SecretKey::make().unwrap();
        let signed = key.sign(b"message");
        let sign = |command: String, keys| SignCommand { command: command.into(), keys }.signature(b"message");
        let prints = format!("cat > /dev/null; echo {signed}");
        assert_eq!(sign(prints.clone(), Some(key.public())).unwrap(), signed);
        assert_eq!(sign(format!("echo {signed}"), None).unwrap(), signed, "it need not read");
        let other = SecretKey::make().unwrap().public();
        assert!(
            sign(prints, Some(other)).is_err_and(|failure| failure.message.contains("no key of SNAPBOOT_REMOTE_KEYS"))
        );
        assert!(sign("echo hello".into(), None).is_err_and(|failure| failure.message.contains("prints something else")));
        assert!(sign("exit 3".into(), None).is_err_and(|failure| failure.message.contains("has failed")));
    }
}
