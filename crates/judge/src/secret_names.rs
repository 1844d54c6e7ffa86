//! Tells secrets by the words of variables' names and by the form of their values.
//!
//! A secret taken for an ordinary variable ends up in an image. An ordinary variable taken for a secret costs little:
//! the boot has a placeholder. So switches and file paths must be recognised, or a placeholder changes the course of
//! the boot.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use inputs::secret::{known_prefix, Address};

/// Parts of secrets' names, in capitals.
const PARTS: [&str; 8] =
    ["SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "PASSCODE", "CREDENTIAL", "APIKEY", "PRIVATEKEY"];

/// Last words of secrets' names. (TOKENIZERS_PARALLELISM is not a secret.)
const LAST: [&str; 22] = [
    "KEY",
    "KEYS",
    "PAT",
    "AUTH",
    "PWD",
    "PASS",
    "DSN",
    "SALT",
    "PEPPER",
    "PEM",
    "COOKIE",
    "COOKIES",
    "JWT",
    "BEARER",
    "CREDS",
    "TOKENS",
    "OTP",
    "TOTP",
    "PIN",
    "SEED",
    "MNEMONIC",
    "SIGNATURE",
];

/// The end of a word in secrets' names.
const WORD_END: &str = "TOKEN";

/// Whole names of further secrets.
const NAMES: [&str; 4] = ["AWS_ACCESS_KEY_ID", "ACCESS_KEY_ID", "ACCESSKEY", "AUTHORIZATION"];

/// Last words of names that only describe a secret.
const ABOUT: [&str; 43] = [
    "FILE",
    "FILES",
    "PATH",
    "DIR",
    "DIRECTORY",
    "FOLDER",
    "STORE",
    "SOCK",
    "SOCKET",
    "NAME",
    "NAMES",
    "HEADER",
    "PREFIX",
    "TYPE",
    "KIND",
    "ALGORITHM",
    "ALG",
    "TTL",
    "TIMEOUT",
    "EXPIRY",
    "EXPIRES",
    "EXPIRATION",
    "AGE",
    "LIFETIME",
    "LENGTH",
    "SIZE",
    "COUNT",
    "LIMIT",
    "MIN",
    "MAX",
    "ENABLED",
    "DISABLED",
    "REQUIRED",
    "POLICY",
    "MODE",
    "FORMAT",
    "VERSION",
    "ENDPOINT",
    "PARALLELISM",
    "DOMAIN",
    "SAMESITE",
    "SECURE",
    "HTTPONLY",
];

/// Public names that look like secrets.
const PUBLIC: [&str; 4] = ["GPG_KEY", "PYTHONHASHSEED", "RUBY_SEED", "SSH_ORIGINAL_KEY"];

/// Words in the names of public numbers, such as those of a commit or an image.
const FINGERPRINTS: [&str; 16] = [
    "SHA",
    "SHA1",
    "SHA256",
    "COMMIT",
    "HASH",
    "DIGEST",
    "CHECKSUM",
    "REVISION",
    "REV",
    "REF",
    "VERSION",
    "UUID",
    "ID",
    "BUILD",
    "TAG",
    "FINGERPRINT",
];

/// Whether a variable is a secret. No boot gets a secret's value unless `--env` names the variable.
pub fn is_secret(name: &OsStr, value: &OsStr) -> bool {
    let value = value.as_bytes();
    if value.is_empty() || inputs::environment::is_volatile(name.as_bytes()) {
        return false;
    }
    has_secret_form(name.as_bytes(), value) || (is_named_so(name.as_bytes()) && !is_about_it(name.as_bytes(), value))
}

fn words(name: &[u8]) -> Vec<String> {
    let name = String::from_utf8_lossy(name).to_ascii_uppercase();
    name.split(|sign: char| !sign.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// Whether a name says that the value is public, however random it looks.
fn is_public(name: &[u8]) -> bool {
    let capitals = String::from_utf8_lossy(name).to_ascii_uppercase();
    let is_fingerprint = words(name).iter().any(|word| FINGERPRINTS.contains(&word.as_str()));
    is_fingerprint || PUBLIC.contains(&capitals.as_str()) || capitals.contains("PUBLIC")
}

fn is_named_so(name: &[u8]) -> bool {
    let capitals = String::from_utf8_lossy(name).to_ascii_uppercase();
    if PUBLIC.contains(&capitals.as_str()) || capitals.contains("PUBLIC") {
        return false;
    }
    let words = words(name);
    let last = words.last().map_or("", String::as_str);
    if NAMES.contains(&capitals.as_str()) || capitals.ends_with("_ACCESS_KEY_ID") {
        return true;
    }
    if ABOUT.contains(&last) {
        return false;
    }
    PARTS.iter().any(|part| capitals.contains(part))
        || words.iter().any(|word| word.ends_with(WORD_END))
        || LAST.contains(&last)
}

/// Whether a value only describes a secret: a switch, a small number, the path of a file.
fn is_about_it(name: &[u8], value: &[u8]) -> bool {
    let lower = value.to_ascii_lowercase();
    let is_switch =
        [&b"true"[..], b"false", b"yes", b"no", b"on", b"off", b"none", b"null", b"0", b"1"].contains(&&*lower);
    let is_number = value.len() < 6 && value.iter().all(u8::is_ascii_digit);
    let may_be_number = words(name)
        .iter()
        .any(|word| ["PASS", "PWD", "PIN", "OTP", "PASSWORD", "PASSWD", "PASSCODE"].contains(&word.as_str()));
    is_switch || (is_number && !may_be_number) || is_path(value)
}

/// Whether a value is the path of a file rather than base64, which may begin with a slash.
fn is_path(value: &[u8]) -> bool {
    let starts = [&b"/"[..], b"~/", b"./", b"../"].iter().any(|start| value.starts_with(start));
    let is_base64 = value.iter().any(|byte| b"+=".contains(byte))
        || (value.len() >= 32 && !value.iter().any(|byte| b".-_".contains(byte)));
    starts && (!is_base64 || std::path::Path::new(OsStr::from_bytes(value)).exists())
}

fn has_secret_form(name: &[u8], value: &[u8]) -> bool {
    has_password(value)
        || memchr::memmem::find(value, b"PRIVATE KEY-----").is_some()
        || !known_prefix(value).is_empty()
        || is_jwt(value)
        || (is_random(value) && !is_public(name))
}

/// Whether a value contains an address with a password: `postgres://user:password@host`.
fn has_password(value: &[u8]) -> bool {
    if Address::parse(value).is_some_and(|address| address.password.is_some_and(|password| !password.is_empty())) {
        return true;
    }
    memchr::memmem::find_iter(value, b"://").any(|at| {
        let end =
            value[at + 3..].iter().position(|byte| b"/?# \t\n".contains(byte)).map_or(value.len(), |end| at + 3 + end);
        let authority = &value[at + 3..end];
        let user = authority.iter().rposition(|&byte| byte == b'@').map(|end| &authority[..end]);
        user.is_some_and(|user| user.iter().position(|&byte| byte == b':').is_some_and(|colon| colon + 1 < user.len()))
    })
}

/// Whether a value is a JSON web token: two objects of JSON in base64, and a signature.
fn is_jwt(value: &[u8]) -> bool {
    value.starts_with(b"eyJ") && value.split(|&byte| byte == b'.').count() == 3 && value.len() > 40
}

/// Whether a value is a long random text: hexadecimal digits, or base64 without words in it.
fn is_random(value: &[u8]) -> bool {
    const SIZE: usize = 32;
    const BITS: f64 = 4.2;
    if value.len() < SIZE
        || !value.iter().all(|byte| byte.is_ascii_alphanumeric() || b"+/=_-".contains(byte))
        || is_path(value)
    {
        return false;
    }
    let count = |wanted: fn(&u8) -> bool| value.iter().filter(|byte| wanted(byte)).count();
    if value.iter().all(u8::is_ascii_hexdigit) {
        return count(u8::is_ascii_digit) > 3 && count(u8::is_ascii_alphabetic) > 3;
    }
    let is_word = |piece: &[u8]| piece.len() > 2 && piece.iter().all(u8::is_ascii_alphabetic);
    let words = value.split(|byte| b"/_-".contains(byte)).filter(|piece| is_word(piece)).count();
    count(u8::is_ascii_digit) > 1
        && count(u8::is_ascii_lowercase) > 3
        && count(u8::is_ascii_uppercase) > 3
        && words < 3
        && entropy(value) > BITS
}

/// Bits per character, by the frequency of each.
fn entropy(value: &[u8]) -> f64 {
    let mut counts = [0_u32; 256];
    value.iter().for_each(|&byte| counts[usize::from(byte)] += 1);
    let share = |&count: &u32| f64::from(count) / value.len() as f64;
    counts.iter().filter(|count| **count > 0).map(share).map(|share| -share * share.log2()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_secret(name: &str, value: &str) -> bool {
        super::is_secret(OsStr::new(name), OsStr::new(value))
    }

    #[test]
    fn secrets_are_known_by_their_names() {
        let names = "GITHUB_TOKEN AWS_SECRET_ACCESS_KEY AWS_ACCESS_KEY_ID AWS_SESSION_TOKEN PGPASSWORD api_key TOKEN_A RAILS_MASTER_KEY \
            MYSQL_PASSWD MYSQL_PWD DB_PASS SMTP_PASS SENTRY_DSN COOKIE SESSION_COOKIE JWT APP_JWT PASSWORD_SALT SALT TLS_PEM SERVER_PEM \
            SECRET_KEY_BASE SECRET_KEY VAULT_SECRET_ID AUTHTOKEN NPM_AUTH REDIS_PASS PASS ENCRYPTION_KEYS API_TOKENS STRIPE_APIKEY \
            OPENAI_API_KEY GH_PAT HTTP_AUTHORIZATION_BEARER DJANGO_SECRET_KEY FLASK_SECRET_KEY CLIENT_SECRET WALLET_MNEMONIC MY-API-KEY";
        for name in names.split_whitespace() {
            assert!(is_secret(name, "s3cr3t"), "{name}");
        }
        assert!(is_secret("PASSWORD", "12345") && is_secret("ADMIN_PIN", "0420"));
        assert!(is_secret("SECRET_KEY", "/Zx81+abcd/efgh0123=="), "base64, and no path");
        assert!(!is_secret("SECRET_KEY", ""), "an empty one is told apart from others by its value");
    }

    #[test]
    fn everyday_variables_are_none() {
        let all = "NO_COLOR=1 SHELL=/bin/bash KEYBOARD=us XAUTHORITY=/home/me/.Xauthority SSL_CERT_FILE=/etc/ssl/cert.pem \
            TOKENIZERS_PARALLELISM=false PASSWORD_STORE_DIR=/home/me/.password-store SSH_AUTH_SOCK=/tmp/ssh-x/agent.1 \
            SUDO_ASKPASS=/usr/bin/ksshaskpass GIT_ASKPASS=/usr/bin/askpass GOOGLE_APPLICATION_CREDENTIALS=/home/me/key.json \
            SESSION_COOKIE_NAME=sid TOKEN_TTL=3600 MAX_TOKENS=4096 PASSWORD_MIN_LENGTH=12 AUTH_ENABLED=yes DISABLE_AUTH=true \
            GPG_KEY=E3FF2839C048B25C084DEBE9B26995E310250568 SSH_PUBLIC_KEY=AAAAB3NzaC1yc2EAAAADAQABAAABgQ \
            GIT_COMMIT=da39a3ee5e6b4b0d3255bfef95601890afd80709 GITHUB_SHA=da39a3ee5e6b4b0d3255bfef95601890afd80709 \
            IMAGE_DIGEST=e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855 \
            PATH=/usr/local/bin:/usr/bin:/bin HOME=/home/me LANG=de_DE.UTF-8 TERM=xterm-256color EDITOR=vim PAGER=less \
            JAVA_HOME=/usr/lib/jvm/java-17-openjdk-amd64 GOPATH=/home/me/go XDG_RUNTIME_DIR=/run/user/1000 \
            DBUS_SESSION_BUS_ADDRESS=unix:path=/run/user/1000/bus PYTHONHASHSEED=0 COMPASS=north BYPASS=1 KEYMAP=de MONKEY=1 \
            VIRTUAL_ENV=/home/me/some/Long1Name/that-Goes-On-4ever/venv REPOSITORY=ssh://git@host:22/x \
            http_proxy=http://proxy:3128 API_URL=https://api.example.com/v1?x=1 DATABASE_URL=postgres://localhost/app \
            INVOCATION_ID=0123456789abcdef0123456789abcdef HOSTNAME=ip-10-0-0-1 CI_JOB_NAME=Build-And-Test-Everything-2-Times-Or-More \
            PYTEST_CURRENT_TEST=tests/test_Something.py COMPOSE_PROJECT_NAME=app MAILTO=me@example.com LESS=-R TZ=Europe/Berlin \
            NIX_PROFILES=/nix/var/nix/profiles/default KUBERNETES_SERVICE_HOST=10.96.0.1 ENABLE_PASSWORD_LOGIN=0";
        for pair in all.split_whitespace() {
            let (name, value) = pair.split_once('=').unwrap();
            assert!(!is_secret(name, value), "{pair}");
        }
        assert!(!is_secret("JAVA_OPTS", "-Xmx512m -Dfile.encoding=UTF-8 -XX:+UseG1GC"));
        assert!(!is_secret("LS_COLORS", "rs=0:di=01;34:ln=01;36:mh=00:pi=40;33:so=01;35:do=01;35"));
    }

    #[test]
    fn secrets_are_known_by_the_form_of_their_values() {
        for value in [
            "postgres://me:pass@host/db",
            "http://a:b@c",
            "amqp://a:b@c,amqp://a:b@d",
            "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----",
            "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
            "xoxb-2345678901-abcdefghijklm",
            "sk-proj-abcdefghijklmnopqrstuvwx",
            "AKIAIOSFODNN7EXAMPLE",
            "hf_abcdefghijklmnopqrstuvwxyz",
            "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N",
            "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY9",
            "6f1ed002ab5595859014ebf0951522d9e2b4a7c0b6f1ed002ab5595859014ebf",
            "https://hooks.slack.com/services/T00000000/B00000000/XXXXXXXXXXXX",
        ] {
            assert!(is_secret("ANYTHING", value), "{value}");
        }
        for value in ["http://me:@host", "ssh://git@host:22/x", "http://host:80/a@b", "sk-short", "AKIA", "hello-world"]
        {
            assert!(!is_secret("ANYTHING", value), "{value}");
        }
    }
}
