//! What the boot looked up in files that the whole machine shares.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use image::lookup_kind;
use inputs::lookups::{self, LoaderCache};
use recorder::{Accesses, Identity, State, LOADER_CACHE};

/// A look-up in such a file: kind, text, and digest of the answer.
pub type Lookup = (u32, Vec<u8>, [u8; 16]);

/// glibc's archive of locales, if the boot looked something up in it without opening it: the freezer answers such look-ups. It may be missing.
pub fn beside(accesses: &Accesses) -> Option<(PathBuf, Identity)> {
    let path = Path::new(lookups::LOCALE_ARCHIVE);
    let access = accesses.places.get(path).filter(|access| !access.read_whole && !access.lookups.is_empty())?;
    match access.target_state() {
        State::File(identity) => Some((path.to_owned(), *identity)),
        _ => Some((path.to_owned(), Identity::ABSENT)),
    }
}

/// What the boot looked up in a file; empty if it read the whole file, or if that is unknown.
pub fn lookups(path: &Path, accesses: &Accesses) -> Vec<Lookup> {
    let Some(access) = accesses.places.get(path).filter(|access| !access.read_whole) else { return Vec::new() };
    let is_cache = path == Path::new(LOADER_CACHE);
    if !is_cache && access.lookups.is_empty() {
        return Vec::new();
    }
    let content = trust::look::read(path).unwrap_or_default();
    let lookups = if is_cache {
        let names = libraries(&content, accesses).unwrap_or_default();
        names.into_iter().map(|name| (lookup_kind::LIBRARY, name)).collect()
    } else {
        access.lookups.clone()
    };
    let answered = |(kind, text): (u32, Vec<u8>)| {
        let answer = lookups::answer(kind, &text, &content)?;
        Some((kind, text, answer))
    };
    // If one look-up has no answer, the whole content counts.
    lookups.into_iter().map(answered).collect::<Option<_>>().unwrap_or_default()
}

/// The names of all libraries that the loader may have looked up in its cache. A library that the cache lists was
/// opened at that path; for others the loader searched its own directories, which the cache lists for other libraries.
fn libraries(content: &[u8], accesses: &Accesses) -> Option<BTreeSet<Vec<u8>>> {
    let cache = LoaderCache::parse(content)?;
    let entries = cache.entries().collect::<Option<Vec<_>>>()?;
    let path = |bytes| Path::new(OsStr::from_bytes(bytes));
    let directories: BTreeSet<&Path> = entries.iter().filter_map(|entry| path(entry.path).parent()).collect();
    let own = ["/lib", "/lib64", "/usr/lib", "/usr/lib64"].map(Path::new);
    let is_one = |directory: &Path| directories.contains(directory) || own.contains(&directory);
    let found = entries.iter().filter(|entry| accesses.places.contains_key(path(entry.path))).map(|entry| entry.name);
    let sought = accesses.places.keys().filter(|place| place.parent().is_some_and(is_one));
    let sought = sought.filter_map(|place| place.file_name()).map(OsStr::as_bytes);
    Some(found.chain(sought).map(<[u8]>::to_vec).collect())
}
