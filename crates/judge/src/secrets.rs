//! Placeholders: the values that a boot gets in place of secrets.
//!
//! A placeholder has the form of the real value: as many characters of the same kinds, and an address stays an address.
//! It is long enough to be found wherever the program keeps it, and differs in each freeze. crates/inputs secret.rs
//! says what is compared of the real value, secret_values.py and secret_values.rb of the front ends find the placeholder and
//! replace it in a thaw, and derived.rs checks whether anything was derived from it.

use std::collections::hash_map::RandomState;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::hash::BuildHasher;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use inputs::secret::{known_prefix, Address};

/// The minimum of random characters in a placeholder, so that it equals no other text.
const SIZE: usize = 12;

/// The form of a placeholder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// That of the real value.
    Same,
    /// Much longer or shorter, and of all kinds of characters, unless it is an address.
    Other,
}

/// The set of placeholders of a boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fiction {
    seed: u64,
    form: Form,
}

/// A secret variable. Its real value stays in this process.
#[derive(Clone)]
pub struct Secret {
    /// The variable.
    pub name: OsString,
    real: OsString,
}

/// Hides the value.
impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secret({:?})", self.name)
    }
}

impl Fiction {
    /// A new set of random placeholders.
    pub fn made_up() -> Fiction {
        Fiction { seed: RandomState::new().hash_one(std::process::id()), form: Form::Same }
    }

    /// Another set, of that form.
    pub fn with_form(self, form: Form) -> Fiction {
        Fiction { seed: self.seed.rotate_left(17) ^ 0x9e37_79b9_7f4a_7c15, form }
    }

    /// The placeholder of a secret.
    pub fn value(self, secret: &Secret) -> OsString {
        let real = secret.real.as_bytes();
        let mut source = Source { seed: self.seed, name: &secret.name, count: 0, left: Vec::new() };
        let Some(address) = Address::parse(real) else {
            return OsString::from_vec(match self.form {
                Form::Same => similar_text(real, &mut source),
                // Short or long enough for a check of the length to fail.
                Form::Other => {
                    let own = source.letters_and_digits(if real.len() > 32 { 21 } else { 71 });
                    [known_prefix(real), &own].concat()
                }
            });
        };
        let more = if self.form == Form::Other { 5 } else { 0 };
        let mut part = |real: &[u8]| -> Vec<u8> {
            if real.is_empty() {
                return Vec::new();
            }
            let mut made = source.letters_and_digits(real.len().clamp(16, 64) + more);
            if real.contains(&b'%') {
                // The one character that everybody must escape there.
                made.splice(7..7, *b"%40");
            }
            made
        };
        let mut all = address.before.to_vec();
        all.extend(part(address.user));
        if let Some(password) = address.password {
            all.push(b':');
            all.extend(part(password));
        }
        all.extend(address.after);
        OsString::from_vec(all)
    }
}

/// A text of the same kinds of characters, in the same order.
fn similar_text(real: &[u8], source: &mut Source<'_>) -> Vec<u8> {
    let scheme = real.windows(3).position(|three| three == b"://").map_or(0, |at| at + 3);
    let prefix = known_prefix(real);
    let start = scheme.max(prefix.len());
    let is_hex = real.len() > 7 && real.iter().all(|byte| byte.is_ascii_hexdigit() || *byte == b'-');
    let last = if is_hex { 6 } else { 26 };
    let mut is_label = false;
    let mut made: Vec<u8> = real[..start].to_vec();
    for (at, &byte) in real.iter().enumerate().skip(start) {
        // The lines around a key, -----BEGIN PRIVATE KEY-----, say what it is, and stay.
        if real[at..].starts_with(b"-----") && (at == 0 || real[at - 1] != b'-') {
            is_label = !is_label;
        }
        made.push(match byte {
            _ if is_label => byte,
            b'0'..=b'9' => source.letter(b'0', 10),
            b'a'..=b'z' => source.letter(b'a', last),
            b'A'..=b'Z' => source.letter(b'A', last),
            byte => byte,
        });
    }
    // A placeholder that is too short to be found is continued.
    let own = |made: &[u8]| made[start..].iter().filter(|byte| byte.is_ascii_alphanumeric()).count();
    while own(&made) < SIZE {
        let pattern: Vec<u8> = real[start..].iter().copied().filter(u8::is_ascii_alphanumeric).collect();
        let like = pattern.get(made.len() % pattern.len().max(1)).copied().unwrap_or(b'a');
        made.push(match like {
            b'0'..=b'9' => source.letter(b'0', 10),
            b'A'..=b'Z' => source.letter(b'A', last),
            _ => source.letter(b'a', last),
        });
    }
    made
}

/// Pseudo-random letters derived from a number and a name.
struct Source<'a> {
    seed: u64,
    name: &'a OsStr,
    count: u64,
    left: Vec<u8>,
}

impl Source<'_> {
    fn next(&mut self) -> u8 {
        if self.left.is_empty() {
            self.count += 1;
            let all = [&self.seed.to_le_bytes(), self.name.as_bytes(), &self.count.to_le_bytes()].concat();
            self.left = image::digest(&all).to_vec();
        }
        self.left.pop().unwrap_or_default()
    }

    fn letter(&mut self, first: u8, count: u8) -> u8 {
        first + self.next() % count
    }

    /// Letters and digits, a letter first.
    fn letters_and_digits(&mut self, size: usize) -> Vec<u8> {
        const ALL: &[u8] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
        (0..size).map(|at| ALL[usize::from(self.next()) % if at == 0 { 52 } else { ALL.len() }]).collect()
    }
}

impl Secret {
    /// The variable of that name, with its real value.
    pub fn new(name: OsString, real: OsString) -> Secret {
        Secret { name, real }
    }

    /// Its entry in a list of real values: the name, `=` and the value.
    pub fn entry(&self) -> Vec<u8> {
        [self.name.as_bytes(), b"=", self.real.as_bytes()].concat()
    }

    /// What an image compares of its value.
    pub fn outline(&self, with_form: bool) -> [u8; 16] {
        inputs::secret::outline(self.real.as_bytes(), with_form)
    }

    /// Whether its placeholder can have the length of the real value.
    pub fn has_room(&self) -> bool {
        Address::parse(self.real.as_bytes()).is_some() || alike_is_as_long(self.real.as_bytes())
    }

    /// The texts that reveal the real value in an image: the value, the secret part of an address, and both in base64
    /// and hexadecimal. Empty for a value that occurs in many images by chance.
    pub fn traces(&self) -> Vec<Vec<u8>> {
        let real = self.real.as_bytes();
        let parts: Vec<&[u8]> = match Address::parse(real) {
            Some(address) => address.password.or(Some(address.user)).into_iter().chain([real]).collect(),
            None => vec![real],
        };
        parts.into_iter().filter(|part| identifies_secret(part)).flat_map(forms).collect()
    }
}

fn alike_is_as_long(real: &[u8]) -> bool {
    let start = known_prefix(real).len();
    real[start..].iter().filter(|byte| byte.is_ascii_alphanumeric()).count() >= SIZE
}

/// Whether a text in an image must come from the variable: it is long or of several kinds of characters, and not a
/// word.
fn identifies_secret(text: &[u8]) -> bool {
    let kinds = [
        u8::is_ascii_digit as fn(&u8) -> bool,
        u8::is_ascii_lowercase,
        u8::is_ascii_uppercase,
        u8::is_ascii_punctuation,
    ];
    let count = kinds.iter().filter(|kind| text.iter().any(kind)).count();
    let distinct = text.iter().collect::<std::collections::BTreeSet<_>>().len();
    distinct > 7 && (text.len() >= 20 || (text.len() >= 12 && count > 1) || (text.len() >= 8 && count > 2))
}

/// A text in plain, hexadecimal and base64 form, the latter after zero, one or two other bytes.
fn forms(text: &[u8]) -> Vec<Vec<u8>> {
    let hex = |upper: bool| -> Vec<u8> {
        text.iter()
            .flat_map(|byte| if upper { format!("{byte:02X}") } else { format!("{byte:02x}") }.into_bytes())
            .collect()
    };
    let mut forms = vec![text.to_vec(), hex(false), hex(true)];
    for before in 0..3 {
        let mut padded = vec![0; before];
        padded.extend(text);
        padded.truncate(padded.len() / 3 * 3);
        // The first letters depend on the bytes before.
        let skipped = [0, 2, 3][before];
        for alphabet in [b"+/", b"-_"] {
            let encoded = base64(&padded, alphabet);
            forms.extend(encoded.get(skipped..).map(<[u8]>::to_vec));
        }
    }
    // UTF-16 and UTF-32, which Python uses for a text with other letters in it.
    forms.extend(
        [2, 4].map(|width| {
            text.iter().flat_map(|&byte| (0..width).map(move |at| if at == 0 { byte } else { 0 })).collect()
        }),
    );
    forms.sort();
    forms.dedup();
    forms
}

fn base64(bytes: &[u8], last: &[u8; 2]) -> Vec<u8> {
    let letter = |index: u32| match index & 63 {
        index @ 0..=25 => b'A' + index as u8,
        index @ 26..=51 => b'a' + (index as u8 - 26),
        index @ 52..=61 => b'0' + (index as u8 - 52),
        62 => last[0],
        _ => last[1],
    };
    let group = |three: &[u8]| three.iter().fold(0, |all, &byte| all << 8 | u32::from(byte));
    bytes.chunks_exact(3).map(group).flat_map(|three| [18, 12, 6, 0].map(|bits| letter(three >> bits))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placeholder(real: &str, fiction: Fiction) -> String {
        fiction.value(&Secret::new("NAME".into(), real.into())).into_string().unwrap()
    }

    #[test]
    fn a_made_up_value_has_the_form_of_the_real_one() {
        let fiction = Fiction::made_up();
        let hex = placeholder("0123456789abcdef0123456789abcdef", fiction);
        assert!(hex.len() == 32 && hex.bytes().all(|byte| byte.is_ascii_hexdigit()), "{hex}");
        assert!(placeholder("ghp_16C7e42F292c6912E7710c838347Ae178B4a", fiction).starts_with("ghp_"));
        assert!(placeholder("x", fiction).len() >= SIZE);
        let base64 = placeholder("Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4+/==", fiction);
        assert!(base64.ends_with("+/==") && base64.len() == 36);
        let key = "-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----\n";
        let pem = placeholder(key, fiction);
        assert!(
            pem.starts_with("-----BEGIN PRIVATE KEY-----\n") && pem.contains("-----END PRIVATE KEY-----\n"),
            "{pem}"
        );
        let address = placeholder("db://me:p%40ss@host:1/name", fiction);
        assert!(
            address.starts_with("db://") && address.ends_with("@host:1/name") && address.contains("%40"),
            "{address}"
        );
        assert!(!address.contains("me:"));
    }

    #[test]
    fn another_boot_has_others_and_the_same_boot_the_same() {
        let fiction = Fiction::made_up();
        for real in ["0123456789abcdef0123456789abcdef", "x", "db://me:pass@host"] {
            assert_eq!(placeholder(real, fiction), placeholder(real, fiction));
            let (same, other) =
                (placeholder(real, fiction.with_form(Form::Same)), placeholder(real, fiction.with_form(Form::Other)));
            assert!(same != placeholder(real, fiction) && other != same && other.len() != same.len(), "{same} {other}");
        }
        assert_ne!(placeholder("x", fiction), placeholder("x", Fiction::made_up()));
    }

    #[test]
    fn a_real_value_is_found_in_other_forms() {
        let secret = Secret::new("NAME".into(), "Correct-Horse-1".into());
        let traces = secret.traces();
        let has = |text: &str| traces.iter().any(|trace| memchr::memmem::find(text.as_bytes(), trace).is_some());
        assert!(has("my Correct-Horse-1.") && has("Q29ycmVjdC1Ib3JzZS0x") && has("436f72726563742d486f7273652d31"));
        assert!(has("eDpDb3JyZWN0LUhvcnNlLTE=") && !has("Correct-Horse"), "base64 of x:Correct-Horse-1");
        assert!(Secret::new("NAME".into(), "development".into()).traces().is_empty());
    }
}
