//! How a secret variable is compared: never by its value, only by whether it is set, and by the parts of an address
//! that are not secret.
//!
//! The boot had a placeholder for the secret, and a thaw puts the real value in its place. So any value of the same
//! form fits: an address is compared without its user and password, which are replaced one by one.

/// An address with a user and maybe a password: `BEFORE://USER:PASSWORD@AFTER`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address<'a> {
    /// The scheme, with `://`.
    pub before: &'a [u8],
    /// The user; may be empty if there is a password.
    pub user: &'a [u8],
    /// The password, if there is one.
    pub password: Option<&'a [u8]>,
    /// The rest, from the `@` on.
    pub after: &'a [u8],
}

/// Words in the query of an address that indicate another secret.
const IN_QUERY: [&[u8]; 5] = [b"pass", b"pwd", b"token", b"secret", b"key="];

/// Prefixes of tokens that name their issuer, and the minimum length of such a token.
const PREFIXES: [(&str, usize); 34] = [
    ("ghp_", 20),
    ("gho_", 20),
    ("ghu_", 20),
    ("ghs_", 20),
    ("ghr_", 20),
    ("github_pat_", 30),
    ("glpat-", 20),
    ("gldt-", 20),
    ("glrt-", 20),
    ("xoxb-", 20),
    ("xoxa-", 20),
    ("xoxp-", 20),
    ("xoxs-", 20),
    ("xapp-", 20),
    ("sk-", 24),
    ("sk_live_", 16),
    ("sk_test_", 16),
    ("rk_live_", 16),
    ("whsec_", 20),
    ("hf_", 24),
    ("AKIA", 20),
    ("ASIA", 20),
    ("AIza", 35),
    ("ya29.", 24),
    ("SG.", 40),
    ("pypi-", 40),
    ("npm_", 30),
    ("dop_v1_", 40),
    ("hvs.", 24),
    ("AGE-SECRET-KEY-", 40),
    ("shpat_", 30),
    ("dckr_pat_", 20),
    ("django-insecure-", 20),
    ("https://hooks.slack.com/services/", 40),
];

/// The prefix of a token that names its issuer. A placeholder starts with the same prefix.
pub fn known_prefix(value: &[u8]) -> &'static [u8] {
    let fits = |(prefix, size): &&(&str, usize)| value.starts_with(prefix.as_bytes()) && value.len() >= *size;
    PREFIXES.iter().find(fits).map_or(b"", |(prefix, _)| prefix.as_bytes())
}

impl<'a> Address<'a> {
    /// Parses an address. None if the value is not an address, has no user, or contains a second secret.
    pub fn parse(value: &'a [u8]) -> Option<Address<'a>> {
        let slashes = value.windows(3).position(|three| three == b"://")?;
        let is_scheme = |byte: &u8| byte.is_ascii_alphanumeric() || b"+.-".contains(byte);
        if slashes == 0 || !value[..slashes].iter().all(is_scheme) {
            return None;
        }
        let (before, rest) = value.split_at(slashes + 3);
        let end = rest.iter().position(|byte| b"/?#".contains(byte)).unwrap_or(rest.len());
        let at = rest[..end].iter().rposition(|&byte| byte == b'@')?;
        let (login, after) = rest.split_at(at);
        let has_more = after.windows(3).any(|three| three == b"://")
            || login.contains(&b'@')
            || IN_QUERY.iter().any(|word| after.windows(word.len()).any(|part| part.eq_ignore_ascii_case(word)));
        let (user, password) = match login.iter().position(|&byte| byte == b':') {
            Some(colon) => (&login[..colon], Some(&login[colon + 1..])),
            None => (login, None),
        };
        let is_empty = user.is_empty() && password.is_none_or(<[u8]>::is_empty);
        (!has_more && !is_empty).then_some(Address { before, user, password, after })
    }

    /// User and password, without those that are missing or empty.
    pub fn parts(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        [Some(self.user), self.password].into_iter().flatten().filter(|part| !part.is_empty())
    }
}

/// The digest of the parts that are compared. `with_form` includes the length and the kinds of characters.
pub fn outline(value: &[u8], with_form: bool) -> [u8; 16] {
    let mut digest = image::ContentDigest::default();
    match Address::parse(value) {
        Some(address) => {
            digest.update(b"address");
            digest.update(address.before);
            for part in [Some(address.user), address.password] {
                // A program that parses the address decodes escaped characters.
                digest.update(match part {
                    None => b"-",
                    Some([]) => b"0",
                    Some(part) if part.contains(&b'%') => b"%",
                    Some(_) => b"+",
                });
            }
            digest.update(address.after);
        }
        None if value.is_empty() => digest.update(b"empty"),
        None => {
            digest.update(b"text");
            digest.update(known_prefix(value));
        }
    }
    if with_form {
        digest.update(&(value.len() as u64).to_le_bytes());
        digest.update(&[form(value)]);
    }
    digest.finish()
}

/// The kinds of characters in a value, one bit each.
fn form(value: &[u8]) -> u8 {
    let kind = |byte: &u8| match byte {
        b'0'..=b'9' => 1,
        b'a'..=b'f' => 2,
        b'A'..=b'F' => 4,
        b'g'..=b'z' => 8,
        b'G'..=b'Z' => 16,
        b'+' | b'/' | b'=' => 32,
        b'-' | b'_' | b'.' => 64,
        _ => 128,
    };
    value.iter().map(kind).fold(0, |all, kind| all | kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alike(one: &str, other: &str) -> bool {
        outline(one.as_bytes(), false) == outline(other.as_bytes(), false)
    }

    #[test]
    fn any_text_is_like_any_other_but_the_empty_one() {
        assert!(alike("abc", "0123456789abcdef") && alike("x", "-----BEGIN"));
        assert!(!alike("sk_live_0123456789", "sk_test_0123456789"), "who reads a key may go by its beginning");
        assert!(!alike("abc", "") && !alike("abc", "db://u:p@h"));
    }

    #[test]
    fn an_address_is_compared_without_user_and_password() {
        assert!(alike("db://u:p@h:1/n?x=1", "db://other:longer-one@h:1/n?x=1"));
        for other in [
            "db://u:p@h:2/n?x=1",
            "pg://u:p@h:1/n?x=1",
            "db://u@h:1/n?x=1",
            "db://:p@h:1/n?x=1",
            "db://u:%40@h:1/n?x=1",
        ] {
            assert!(!alike("db://u:p@h:1/n?x=1", other), "{other}");
        }
        assert_eq!(Address::parse(b"db://h/n"), None);
        assert_eq!(Address::parse(b"db://u:p@h/n?sslpassword=x"), None, "all of it is taken for a secret");
        assert_eq!(Address::parse(b"db://u:p@h,db://u:p@i"), None);
        assert_eq!(Address::parse(b"https://key@host/1").unwrap().parts().count(), 1);
    }

    #[test]
    fn a_form_has_a_length_and_kinds_of_characters() {
        let outline = |value: &str| super::outline(value.as_bytes(), true);
        assert_eq!(outline("00ab"), outline("f00d"));
        assert!(outline("00ab") != outline("00abc") && outline("00ab") != outline("00xy"));
    }
}
