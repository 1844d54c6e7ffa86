//! The archive of this process: look-ups in it, and additions to it.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use archive::{
    Application, Archive, Context, Decoder, Entry, Freshness, Identity, Kind, NewEntry, NewInput, Policy, Scope,
};

use crate::cell::GvlCell;
use crate::queue::{self, Target};

/// The archive of this process.
pub static STORE: GvlCell<Store> = GvlCell::empty();

/// What happened at look-ups, for SNAPBOOT_STATS.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counters {
    pub hits: usize,
    pub misses: usize,
    pub stale: usize,
    pub revalidated: usize,
}

/// The parts of a program's start that this library serves. Ruby code serves the others.
#[derive(Clone, Copy, Debug)]
pub struct Parts {
    /// Compiled code.
    pub code: bool,
    /// The files of features.
    pub lookups: bool,
}

/// The result of a look-up, as an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    Hit,
    Miss,
    Stale,
    Revalidated,
}

/// The settings that are read from the environment.
struct Settings {
    place: Option<PathBuf>,
    policy: Policy,
    is_read_only: bool,
    /// Bytes.
    bound: u64,
}

/// An archive that is open, or will be made.
pub struct Store {
    /// Never unmapped: code and strings may lie in it.
    archive: Option<&'static Archive>,
    path: PathBuf,
    root: PathBuf,
    settings: Settings,
    decoder: Decoder<'static>,
    /// Each context and kind that was looked up.
    scopes: Vec<(Context, Kind, Scope)>,
    pub counters: Counters,
    /// Only these parts are read and written.
    pub parts: Parts,
}

impl Parts {
    fn serve(self, kind: Kind) -> bool {
        match kind {
            Kind::Code => self.code,
            Kind::Directory => self.lookups,
            _ => true,
        }
    }
}

impl Settings {
    fn read() -> Result<Self, String> {
        let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let policy = match variable("SNAPBOOT_ARCHIVE_POLICY") {
            None => Policy::Check,
            Some(name) => Policy::named(name.as_bytes()).ok_or_else(|| {
                format!("SNAPBOOT_ARCHIVE_POLICY is check, content or trust, not {}", name.to_string_lossy())
            })?,
        };
        let bound = archive::bound(variable("SNAPBOOT_ARCHIVE_MAX").as_deref())?;
        let is_read_only = variable("SNAPBOOT_ARCHIVE_READONLY").is_some_and(|value| value != "0");
        Ok(Settings { place: variable("SNAPBOOT_ARCHIVE").map(PathBuf::from), policy, is_read_only, bound })
    }
}

impl Store {
    /// Opens the archive of the program whose main script this is, or prepares to make it. `Err` says why there is none.
    pub fn open(script: Option<&Path>) -> Result<Self, String> {
        let settings = Settings::read()?;
        let variable = |name| std::env::var_os(name);
        let cwd = std::env::current_dir().map_err(|error| format!("there is no working directory: {error}"))?;
        let application = Application::find(variable("BUNDLE_GEMFILE").as_deref(), script, &cwd);
        let path = match &settings.place {
            Some(place) if place.as_os_str() == "off" => return Err("SNAPBOOT_ARCHIVE is off".into()),
            Some(place) => cwd.join(place),
            None => application.place(variable("XDG_CACHE_HOME").as_deref(), variable("HOME").as_deref()).ok_or(
                "there is neither a directory tmp nor XDG_CACHE_HOME or HOME; name a place with SNAPBOOT_ARCHIVE",
            )?,
        };
        let root = application.root;
        let archive = match Archive::open(&path, &root) {
            Ok(archive) => Some(&*Box::leak(Box::new(archive))),
            Err(error) if error.is_absence() => None,
            // It will be replaced by one of this version.
            Err(archive::Error::Version { .. }) => None,
            Err(error) => return Err(error.to_string()),
        };
        if archive.is_none() && settings.is_read_only {
            return Err(format!(
                "there is no archive at {}, and SNAPBOOT_ARCHIVE_READONLY forbids to make it",
                path.display()
            ));
        }
        if !settings.is_read_only {
            queue::open(Target { path: path.clone(), root: root.clone(), bound: settings.bound });
        }
        Ok(Store {
            archive,
            path,
            root,
            settings,
            decoder: archive.map(Archive::decoder).unwrap_or_default(),
            scopes: Vec::new(),
            counters: Counters::default(),
            parts: Parts { code: true, lookups: true },
        })
    }

    /// Where the archive is, or will be.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The application's root.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Whether what is queued will be written.
    pub fn is_written(&self) -> bool {
        !self.settings.is_read_only && queue::is_open()
    }

    pub fn policy(&self) -> Policy {
        self.settings.policy
    }

    /// The number of a kind in a context, for [`Store::find`].
    pub fn scope(&mut self, kind: Kind, context: &str) -> usize {
        let known = self.scopes.iter().position(|known| known.1 == kind && known.0.description == context);
        known.unwrap_or_else(|| {
            let context = Context::new(context);
            let scope = Scope::new(kind, &context);
            self.scopes.push((context, kind, scope));
            self.scopes.len() - 1
        })
    }

    /// The entry of that name, if all its inputs are as they were. `name`: an absolute path, mostly, or any other name. `known`:
    /// the identity of the file at that path, where the caller has just checked it.
    pub fn find(&mut self, scope: usize, name: &[u8], known: Option<&Identity>) -> (Event, Option<Entry<'static>>) {
        if !self.parts.serve(self.scopes[scope].1) {
            return (Event::Miss, None);
        }
        let Some(archive) = self.archive else { return self.miss() };
        let Some(entry) = archive.find(&self.scopes[scope].2, &archive.name(name)) else { return self.miss() };
        match archive.check(&entry, self.settings.policy, known) {
            Freshness::Fresh => {
                self.counters.hits += 1;
                (Event::Hit, Some(entry))
            }
            Freshness::Revalidated => {
                self.counters.revalidated += 1;
                // With the policy `content` times never count, so there is nothing to store.
                if self.settings.policy == Policy::Check && self.is_written() {
                    queue::again(&entry);
                }
                (Event::Revalidated, Some(entry))
            }
            Freshness::Stale => {
                self.counters.stale += 1;
                (Event::Stale, None)
            }
        }
    }

    /// The payload of an entry of Snapboot's own, which no counter counts.
    pub fn recall(&mut self, scope: usize, name: &[u8]) -> Option<&[u8]> {
        let archive = self.archive?;
        let entry = archive.find(&self.scopes[scope].2, &archive.name(name))?;
        self.decoder.decode(&entry)
    }

    fn miss(&mut self) -> (Event, Option<Entry<'static>>) {
        self.counters.misses += 1;
        (Event::Miss, None)
    }

    /// The payload: in the mapping, or in memory that the next call reuses. `None`: damaged.
    pub fn decode(&mut self, entry: &Entry<'static>) -> Option<&[u8]> {
        self.decoder.decode(entry)
    }

    /// Whether an entry that depends on that file alone is going to be stored, and has not been queued already. `path` is its name.
    pub fn wants(&self, scope: usize, path: &[u8], identity: &Identity) -> bool {
        let inputs = [NewInput::File(path.to_vec(), *identity)];
        self.is_written() && identity.is_settled && !queue::has(&self.scopes[scope].2, path, &inputs)
    }

    /// Queues an entry.
    pub fn add(&mut self, scope: usize, name: Vec<u8>, inputs: Vec<NewInput>, payload: Vec<u8>, compress: bool) {
        let (context, kind, _) = &self.scopes[scope];
        if !self.parts.serve(*kind) {
            return;
        }
        queue::add(NewEntry { kind: *kind, context: context.clone(), name, inputs, payload, compress });
    }
}

/// A path of bytes.
pub fn path_of(bytes: Vec<u8>) -> PathBuf {
    PathBuf::from(OsString::from_vec(bytes))
}
