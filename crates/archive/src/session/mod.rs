//! The boot of a process with an archive: look-ups in it, additions to it, and the contents of directories. Any runtime keeps its
//! [`Session`] where only one thread at a time can reach it.
//!
//! A thread of the session writes its additions, as do hooks before the process ends or forks. The runtime calls [`flush`] if its end
//! bypasses its exit handlers.

mod absence;
mod calm;
mod directories;
mod process;
mod queue;

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::batch::{NewEntry, NewInput};
use crate::entry::Entry;
use crate::error::Error;
use crate::freshness::{Freshness, Policy};
use crate::identity::Identity;
use crate::key::{Context, Kind, Scope};
use crate::location::Application;
use crate::pack::Decoder;
use crate::Archive;

pub use absence::Absence;
pub use calm::{go_on, let_work, stir, when_calm, Work};
pub use directories::{real_path, Directories, DirectoryId, LookUp, NoRealPath, Share};
pub use queue::{flush, flush_at_exit};
use queue::{Queue, Target};

/// Counts of look-ups by result, for SNAPBOOT_STATS.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counters {
    /// Entries that hold.
    pub hits: usize,
    /// Names without an entry.
    pub misses: usize,
    /// Entries that do not hold any more.
    pub stale: usize,
    /// Entries whose inputs have other times and the same content.
    pub revalidated: usize,
}

/// Parts of a program's start that are served besides look-ups by the program itself.
#[derive(Clone, Copy, Debug)]
pub struct Parts {
    /// Compiled code.
    pub code: bool,
    /// The files of features.
    pub lookups: bool,
}

/// The result of a look-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The entry holds.
    Hit,
    /// There is none.
    Miss,
    /// It does not hold any more.
    Stale,
    /// It holds: its inputs have other times and the same content.
    Revalidated,
}

/// How the user wants archives to be used.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The archive's path, relative to the working directory; `off` for none. `None`: the path of [`Application::place`].
    pub place: Option<PathBuf>,
    /// How inputs are compared.
    pub policy: Policy,
    /// Nothing is stored.
    pub is_read_only: bool,
    /// The largest size of the archive (bytes).
    pub bound: u64,
}

/// An archive that is open, or will be made.
pub struct Session {
    /// Never unmapped: code and strings may lie in it.
    archive: Option<&'static Archive>,
    path: PathBuf,
    root: PathBuf,
    policy: Policy,
    /// `None`: nothing is stored.
    queue: Option<&'static Queue>,
    decoder: Decoder<'static>,
    /// Each context and kind that was looked up.
    scopes: Vec<(Context, Kind, Scope)>,
    /// Counts so far.
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
    /// Reads them from the environment.
    pub fn read() -> Result<Self, Absence> {
        let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let policy = match variable("SNAPBOOT_ARCHIVE_POLICY") {
            None => Policy::Check,
            Some(name) => Policy::named(name.as_bytes()).ok_or(Absence::Policy(name))?,
        };
        let bound = crate::bound(variable("SNAPBOOT_ARCHIVE_MAX").as_deref())?;
        let is_read_only = variable("SNAPBOOT_ARCHIVE_READONLY").is_some_and(|value| value != "0");
        Ok(Settings { place: variable("SNAPBOOT_ARCHIVE").map(PathBuf::from), policy, is_read_only, bound })
    }
}

impl Session {
    /// Opens the archive of an application that starts in the working directory `cwd`, or prepares to create it.
    pub fn open(settings: Settings, application: Application, cwd: &Path) -> Result<Self, Absence> {
        let variable = |name| std::env::var_os(name);
        let path = match &settings.place {
            Some(place) if place.as_os_str() == "off" => return Err(Absence::Off),
            Some(place) => cwd.join(place),
            None => application
                .place(variable("XDG_CACHE_HOME").as_deref(), variable("HOME").as_deref())
                .ok_or(Absence::NoPlace)?,
        };
        let root = application.root;
        // Users who can change the program's own directory can execute code in it anyway.
        let place =
            if root == Path::new("/") { trust::check_place(&path) } else { trust::check_place_below(&root, &path) };
        place.map_err(Absence::Untrusted)?;
        let archive = match Archive::open(&path, &root) {
            Ok(archive) => Some(&*Box::leak(Box::new(archive))),
            Err(error) if error.is_absence() => None,
            // It will be replaced by one of this version.
            Err(Error::Version { .. }) => None,
            Err(error) => return Err(Absence::Unusable(error)),
        };
        if archive.is_none() && settings.is_read_only {
            return Err(Absence::ReadOnly(path));
        }
        let target = || Target { path: path.clone(), root: root.clone(), bound: settings.bound };
        let queue = (!settings.is_read_only).then(|| Queue::open(target()));
        Ok(Session {
            archive,
            path,
            root,
            policy: settings.policy,
            queue,
            decoder: archive.map(Archive::decoder).unwrap_or_default(),
            scopes: Vec::new(),
            counters: Counters::default(),
            parts: Parts { code: true, lookups: true },
        })
    }

    /// The path of the archive.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Drops the archive's pages from this process' memory. They are read again on demand.
    pub fn release(&self) {
        if let Some(archive) = self.archive {
            archive.release();
        }
    }

    /// The application's root.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Whether additions will be written.
    pub fn is_written(&self) -> bool {
        self.open_queue().is_some()
    }

    /// The queue, if it will be written.
    fn open_queue(&self) -> Option<&'static Queue> {
        self.queue.filter(|queue| queue.is_open())
    }

    /// How inputs are compared.
    pub fn policy(&self) -> Policy {
        self.policy
    }

    /// The number of a kind in a context, for [`Session::find`].
    pub fn scope(&mut self, kind: Kind, context: &str) -> usize {
        let known = self.scopes.iter().position(|known| known.1 == kind && known.0.description == context);
        known.unwrap_or_else(|| {
            let context = Context::new(context);
            let scope = Scope::new(kind, &context);
            self.scopes.push((context, kind, scope));
            self.scopes.len() - 1
        })
    }

    /// The entry of that name, if all its inputs are unchanged. `name`: mostly an absolute path. `known`: the identity of the file at that
    /// path, if the caller has just checked it.
    pub fn find(&mut self, scope: usize, name: &[u8], known: Option<&Identity>) -> (Event, Option<Entry<'static>>) {
        if !self.parts.serve(self.scopes[scope].1) {
            return (Event::Miss, None);
        }
        let Some(archive) = self.archive else { return self.miss() };
        let Some(entry) = archive.find(&self.scopes[scope].2, &archive.name(name)) else { return self.miss() };
        match archive.check(&entry, self.policy, known) {
            Freshness::Fresh => {
                self.counters.hits += 1;
                (Event::Hit, Some(entry))
            }
            Freshness::Revalidated => {
                self.counters.revalidated += 1;
                // With the policy `content`, times never count, so there is nothing to store.
                if self.policy == Policy::Check {
                    if let Some(queue) = self.open_queue() {
                        queue.again(&entry);
                    }
                }
                (Event::Revalidated, Some(entry))
            }
            Freshness::Stale => {
                self.counters.stale += 1;
                (Event::Stale, None)
            }
        }
    }

    /// The payload of an entry of Snapboot's own, which is not counted.
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

    /// Whether an entry that depends on that file alone should be stored, and has not been queued already. `path` is its name.
    pub fn wants(&self, scope: usize, path: &[u8], identity: &Identity) -> bool {
        let inputs = [NewInput::File(path.to_vec(), *identity)];
        let queue = self.open_queue().filter(|_| identity.is_settled);
        queue.is_some_and(|queue| !queue.has(&self.scopes[scope].2, path, &inputs))
    }

    /// Queues an entry.
    pub fn add(&mut self, scope: usize, name: Vec<u8>, inputs: Vec<NewInput>, payload: Vec<u8>, compress: bool) {
        let (context, kind, _) = &self.scopes[scope];
        if !self.parts.serve(*kind) {
            return;
        }
        if let Some(queue) = self.queue {
            queue.add(NewEntry { kind: *kind, context: context.clone(), name, inputs, payload, compress });
        }
    }
}
