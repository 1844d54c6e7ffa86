//! Files that the whole machine shares: a program's look-ups in them, and the digests of the answers. Installing a
//! package or adding a user changes such a file, but hardly ever an answer.
//!
//! If a file is damaged or has an unknown form, a look-up has no answer, and the whole content counts.

use image::{lookup_kind, ContentDigest};

/// Tables in which the C library looks up lines. It opens them anew for each look-up.
pub const TABLES: [&str; 4] = ["/etc/passwd", "/etc/group", "/etc/services", "/etc/protocols"];

/// The archive in which the C library looks for a locale before it looks for a directory of that name.
pub const LOCALE_ARCHIVE: &str = "/usr/lib/locale/locale-archive";

/// The digest of a look-up's answer in this content. None if the content has an unknown form.
pub fn answer(kind: u32, lookup: &[u8], content: &[u8]) -> Option<[u8; 16]> {
    match kind {
        lookup_kind::LIBRARY => LoaderCache::parse(content)?.answer(lookup),
        lookup_kind::NAME => Some(lines(content, |fields| fields.next() == Some(lookup))),
        lookup_kind::LOCALE => locale(content, lookup),
        lookup_kind::NUMBER => Some(lines(content, |fields| is_number(fields.nth(2), lookup))),
        lookup_kind::ENTRY => Some(entries(content, lookup)),
        _ => None,
    }
}

/// The message about a changed answer; the text that was looked up follows.
pub fn change_message(kind: u32) -> &'static str {
    match kind {
        lookup_kind::LIBRARY => {
            "stale: the dynamic loader now finds this library elsewhere, or no longer, or for the first time"
        }
        lookup_kind::LOCALE => "stale: the archive of locales now contains this locale, which came from a directory",
        lookup_kind::ENTRY => "stale: the entry of this service or protocol has changed",
        _ => "stale: the entry of this user or group has changed",
    }
}

/// The digest of the lines that count in a table like /etc/passwd. Order matters: the first match is found.
fn lines<'a>(content: &'a [u8], counts: impl Fn(&mut dyn Iterator<Item = &'a [u8]>) -> bool) -> [u8; 16] {
    let mut digest = ContentDigest::default();
    for line in content.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii_start) {
        // A line that starts with + or - refers to other sources.
        if counts(&mut line.split(|&byte| byte == b':')) || matches!(line.first(), Some(b'+' | b'-')) {
            digest.update(line);
            digest.update(b"\n");
        }
    }
    digest.finish()
}

/// The digest of the lines in a table like /etc/services (services(5), protocols(5)) that contain this name, alias or
/// number. Order matters: the first match is found.
fn entries(content: &[u8], wanted: &[u8]) -> [u8; 16] {
    let mut digest = ContentDigest::default();
    for line in content.split(|&byte| byte == b'\n') {
        let entry = line.split(|&byte| byte == b'#').next().unwrap_or_default();
        let mut words = entry.split(|byte| byte.is_ascii_whitespace() || matches!(byte, b'/' | b','));
        if words.any(|word| without_zeros(word) == without_zeros(wanted)) {
            digest.update(entry);
            digest.update(b"\n");
        }
    }
    digest.finish()
}

/// Whether a field is the wanted number, or is malformed, so that it may be read as any.
fn is_number(field: Option<&[u8]>, wanted: &[u8]) -> bool {
    let Some(field) = field else { return false };
    field.is_empty() || !field.iter().all(u8::is_ascii_digit) || without_zeros(field) == wanted
}

/// A number without leading zeros. Any other text has none.
fn without_zeros(text: &[u8]) -> &[u8] {
    let zeros = text.iter().take_while(|&&byte| byte == b'0').count().min(text.len().saturating_sub(1));
    &text[zeros..]
}

/// The digest of the names under which a locale archive (glibc's locarchive.h) has a locale. An empty content stands
/// for a missing archive.
fn locale(content: &[u8], wanted: &[u8]) -> Option<[u8; 16]> {
    const MAGIC: usize = 0xde02_0109;
    /// Size of an entry (bytes), and the position in it of the name's offset, which is 0 for a free entry.
    const ENTRY: usize = 12;
    const NAME: usize = 4;
    let mut digest = ContentDigest::default();
    if content.is_empty() {
        return Some(digest.finish());
    }
    let (start, count) = (number(content, 8)?, number(content, 16)?);
    let end = count.checked_mul(ENTRY)?.checked_add(start)?;
    let entries = content.get(start..end).filter(|_| number(content, 0) == Some(MAGIC))?;
    for entry in entries.chunks_exact(ENTRY) {
        let place = number(entry, NAME)?;
        if place != 0 {
            let rest = content.get(place..)?;
            let name = &rest[..rest.iter().position(|&byte| byte == 0)?];
            if is_locale(name, wanted) {
                digest.update(name);
                digest.update(b"\0");
            }
        }
    }
    Some(digest.finish())
}

/// Whether two names may mean the same locale, such as `C.UTF-8` and `C.utf8`. Only letters and digits count, without
/// case, so this matches more names than the C library tries.
fn is_locale(one: &[u8], other: &[u8]) -> bool {
    let letters = |name: &[u8], place: usize| {
        name.iter().filter(|byte| byte.is_ascii_alphanumeric()).nth(place).map(u8::to_ascii_lowercase)
    };
    (0..=one.len().max(other.len())).all(|place| letters(one, place) == letters(other, place))
}

/// The cache in which the dynamic loader looks up libraries, as glibc's ldconfig writes it (dl-cache.h): alone, or
/// behind a cache of the older form.
pub struct LoaderCache<'a> {
    /// The cache from its header on; offsets are relative to the header.
    bytes: &'a [u8],
    /// Number of entries.
    count: usize,
}

const OLD_MAGIC: &[u8] = b"ld.so-1.7.0\0";
/// Sizes of the old header and of its entries (bytes).
const OLD_HEAD: usize = 16;
const OLD_ENTRY: usize = 12;
const MAGIC: &[u8] = b"glibc-ld.so.cache1.1";
/// Sizes of the header and of an entry (bytes).
const HEAD: usize = 48;
const ENTRY: usize = 24;
/// A bit of an entry's hwcap: the rest is the number of a name that is also part of the path.
const EXTENSION: u64 = 1 << 62;

/// An entry for a library. A library may have several, for several kinds of machines.
pub struct Entry<'a> {
    /// The name that is looked up.
    pub name: &'a [u8],
    /// The path of the library.
    pub path: &'a [u8],
    flags: [u8; 4],
    version: [u8; 4],
    hwcap: u64,
}

impl<'a> LoaderCache<'a> {
    /// Parses a cache. None if it is not one, or has another byte order.
    pub fn parse(bytes: &'a [u8]) -> Option<LoaderCache<'a>> {
        let bytes = match bytes.starts_with(OLD_MAGIC) {
            true => {
                let end = number(bytes, 12)?.checked_mul(OLD_ENTRY)?.checked_add(OLD_HEAD)?;
                bytes.get(end.checked_next_multiple_of(8)?..)?
            }
            false => bytes,
        };
        // 0: written before this mark existed; 2: little endian.
        let is_known = bytes.starts_with(MAGIC) && matches!(bytes.get(28)? & 3, 0 | 2);
        let count = number(bytes, 20)?;
        let end = count.checked_mul(ENTRY)?.checked_add(HEAD)?;
        (is_known && end <= bytes.len()).then_some(LoaderCache { bytes, count })
    }

    /// All entries, in the order in which the loader tries them; None for a damaged one.
    pub fn entries(&self) -> impl Iterator<Item = Option<Entry<'a>>> + '_ {
        (0..self.count).map(|index| {
            let entry = &self.bytes[HEAD + index * ENTRY..][..ENTRY];
            Some(Entry {
                name: self.string(number(entry, 4)?)?,
                path: self.string(number(entry, 8)?)?,
                flags: entry[..4].try_into().ok()?,
                version: entry[12..16].try_into().ok()?,
                hwcap: u64::from_le_bytes(entry[16..].try_into().ok()?),
            })
        })
    }

    fn answer(&self, name: &[u8]) -> Option<[u8; 16]> {
        let mut digest = ContentDigest::default();
        for entry in self.entries() {
            let entry = entry?;
            if entry.name == name {
                let hwcap = if entry.hwcap & EXTENSION == 0 { entry.hwcap } else { EXTENSION };
                for part in [&entry.flags[..], &entry.version, &hwcap.to_le_bytes(), entry.path, b"\0"] {
                    digest.update(part);
                }
            }
        }
        Some(digest.finish())
    }

    fn string(&self, start: usize) -> Option<&'a [u8]> {
        let rest = self.bytes.get(start..)?;
        Some(&rest[..rest.iter().position(|&byte| byte == 0)?])
    }
}

fn number(bytes: &[u8], place: usize) -> Option<usize> {
    let bytes = bytes.get(place..place.checked_add(4)?)?;
    usize::try_from(u32::from_le_bytes(bytes.try_into().ok()?)).ok()
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::vec::Vec;

    use super::*;

    /// A cache of these entries: name, path and hwcap.
    fn cache(entries: &[(&str, &str, u64)]) -> Vec<u8> {
        let mut strings: Vec<u8> = Vec::new();
        let mut rows: Vec<u8> = Vec::new();
        let start = HEAD + entries.len() * ENTRY;
        for (name, path, hwcap) in entries {
            let place = start + strings.len();
            rows.extend(0x303u32.to_le_bytes());
            rows.extend((place as u32).to_le_bytes());
            rows.extend(((place + name.len() + 1) as u32).to_le_bytes());
            rows.extend(0u32.to_le_bytes());
            rows.extend(hwcap.to_le_bytes());
            for text in [name, path] {
                strings.extend(text.as_bytes());
                strings.push(0);
            }
        }
        let mut bytes = MAGIC.to_vec();
        bytes.extend((entries.len() as u32).to_le_bytes());
        bytes.extend((strings.len() as u32).to_le_bytes());
        bytes.resize(HEAD, 0);
        bytes.extend(rows);
        bytes.extend(strings);
        bytes
    }

    const SSL: (&str, &str, u64) = ("libssl.so.3", "/lib/libssl.so.3", 0);
    const ZLIB: (&str, &str, u64) = ("libz.so.1", "/lib/libz.so.1", 0);
    const FAST: (&str, &str, u64) = ("libz.so.1", "/lib/glibc-hwcaps/x86-64-v3/libz.so.1", EXTENSION | 1);

    fn asked(cache: &[u8], name: &str) -> Option<[u8; 16]> {
        answer(lookup_kind::LIBRARY, name.as_bytes(), cache)
    }

    #[test]
    fn other_libraries_do_not_change_the_answer_for_one() {
        let alone = asked(&cache(&[ZLIB]), "libz.so.1").unwrap();
        assert_eq!(asked(&cache(&[SSL, ZLIB, ("liba.so", "/liba.so", 7)]), "libz.so.1"), Some(alone));
        assert_ne!(asked(&cache(&[("libz.so.1", "/opt/libz.so.1", 0)]), "libz.so.1"), Some(alone));
        assert_ne!(asked(&cache(&[("libz.so.1", "/lib/libz.so.1", 1)]), "libz.so.1"), Some(alone));
        assert_ne!(asked(&cache(&[FAST, ZLIB]), "libz.so.1"), Some(alone));
        let none = asked(&cache(&[SSL]), "libz.so.1").unwrap();
        assert_ne!(none, alone);
        assert_eq!(asked(&cache(&[]), "libz.so.1"), Some(none));
        let renumbered = ("libz.so.1", FAST.1, EXTENSION | 2);
        assert_eq!(asked(&cache(&[FAST]), "libz.so.1"), asked(&cache(&[renumbered]), "libz.so.1"));
    }

    #[test]
    fn the_new_form_is_found_behind_the_old_one() {
        let new = cache(&[SSL]);
        let mut both = OLD_MAGIC.to_vec();
        both.extend(3u32.to_le_bytes());
        both.resize((OLD_HEAD + 3 * OLD_ENTRY).next_multiple_of(8), 1);
        both.extend(&new);
        assert_eq!(asked(&both, "libssl.so.3"), asked(&new, "libssl.so.3"));
    }

    #[test]
    fn what_is_damaged_has_no_answer() {
        let whole = cache(&[SSL, ZLIB, FAST]);
        assert!((0..whole.len()).all(|size| asked(&whole[..size], "libz.so.1").is_none()));
        // Arbitrary bytes give an answer or none, and never a panic.
        let mut random = fastrand(7);
        for _ in 0..20_000 {
            let mut spoilt = whole.clone();
            for _ in 0..3 {
                let place = random() as usize % spoilt.len();
                spoilt[place] = random() as u8;
            }
            asked(&spoilt, "libz.so.1");
        }
        let mut of_another_order = whole.clone();
        of_another_order[28] = 3;
        assert_eq!(asked(&of_another_order, "libz.so.1"), None);
        assert_eq!(asked(&[0; 100], "x"), None);
        assert_eq!(answer(99, b"", &whole), None);
    }

    /// An archive of locales with these names.
    fn archive(names: &[&str]) -> Vec<u8> {
        let start = 56;
        let mut bytes: Vec<u8> = Vec::new();
        for number in [0xde02_0109, 0, start, names.len() as u32 + 1, names.len() as u32 + 1] {
            bytes.extend(u32::to_le_bytes(number));
        }
        bytes.resize(start as usize + 12, 0);
        let mut place = start as usize + 12 * (names.len() + 1);
        for name in names {
            bytes.extend([7, place as u32, 99].map(u32::to_le_bytes).concat());
            place += name.len() + 1;
        }
        names.iter().for_each(|name| bytes.extend([name.as_bytes(), b"\0"].concat()));
        bytes
    }

    #[test]
    fn of_an_archive_of_locales_the_names_count_that_were_asked_for() {
        let asked = |name: &str, archive: &[u8]| answer(lookup_kind::LOCALE, name.as_bytes(), archive);
        let none = asked("C.UTF-8", b"").unwrap();
        for others in [&["de_DE.utf8", "german"][..], &[], &["C", "CUTF88", "C.utf"]] {
            assert_eq!(asked("C.UTF-8", &archive(others)), Some(none), "{others:?}");
        }
        for own in ["C.utf8", "C.UTF-8"] {
            assert_ne!(asked("C.UTF-8", &archive(&["de_DE.utf8", own])), Some(none), "{own}");
        }
        let whole = archive(&["de_DE.utf8", "german"]);
        assert!((1..whole.len() - 1).all(|size| asked("C.UTF-8", &whole[..size]).is_none()));
        assert_eq!(asked("C.UTF-8", b"anything else, and long enough to hold a head"), None);
    }

    /// Pseudorandom numbers.
    fn fastrand(mut seed: u64) -> impl FnMut() -> u64 {
        move || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            seed >> 33
        }
    }

    #[test]
    fn of_a_table_the_lines_count_that_were_asked_for() {
        let of = |kind, lookup: &str, table: &str| answer(kind, lookup.as_bytes(), table.as_bytes()).unwrap();
        let (name, number) = (lookup_kind::NAME, lookup_kind::NUMBER);
        let old = "root:x:0:0::/root:/bin/sh\nann:x:7:7::/home/ann:/bin/sh\n";
        let more = "root:x:0:0::/root:/bin/sh\nbob:x:8:8::/home/bob:/bin/sh\nann:x:7:7::/home/ann:/bin/sh\n";
        for (kind, lookup) in [(name, "ann"), (number, "7"), (name, "nobody")] {
            assert_eq!(of(kind, lookup, old), of(kind, lookup, more), "{lookup}");
        }
        for (kind, lookup) in [(name, "bob"), (number, "8")] {
            assert_ne!(of(kind, lookup, old), of(kind, lookup, more), "{lookup}");
        }
        assert_ne!(of(name, "ann", old), of(name, "ann", &old.replace("/home/ann", "/srv/ann")));
        assert_ne!(of(name, "ann", old), of(name, "ann", &["+::::::\n", old].concat()));
        // The C library accepts these.
        for odd in [" ann:x:8:8::/:", "ann:x:8:8::/:"] {
            assert_ne!(of(name, "ann", old), of(name, "ann", &[odd, "\n", old].concat()), "{odd}");
        }
        for odd in ["bob:x:007:7::/:", "bob:x: 7:7::/:", "bob:x::7::/:", " bob:x:7:7::/:"] {
            assert_ne!(of(number, "7", old), of(number, "7", &[odd, "\n", old].concat()), "{odd}");
        }
        assert_eq!(of(number, "0", old), of(number, "0", &["bob:x:8:8::/:\nbob\n#\n", old].concat()));
        assert_ne!(of(number, "0", old), of(number, "0", &["bob:x:000:8::/:\n", old].concat()));
    }
}
