//! The remote store as a tree of small objects, whatever kind of storage keeps it. Everything here ends at a deadline, and fails with words
//! that hold no credentials: of the library's own errors only the kind is shown, since the rest quotes requests and answers.

use std::cell::Cell;
use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use failure::{Failure, Result};
use futures::{stream, StreamExt, TryStreamExt};
use opendal::layers::TimeoutLayer;
use opendal::{Error, ErrorKind, Operator, Writer};
use tokio::runtime::Runtime;

use crate::CHUNKS;

/// The variable that names the remote store.
pub const VARIABLE: &str = "SNAPBOOT_REMOTE";
/// The variable that says how long an image may take on its way (seconds), and how long without it.
pub const TIMEOUT: &str = "SNAPBOOT_REMOTE_TIMEOUT";
/// The variable that keeps this machine from writing there, if it is 1.
pub const READ_ONLY: &str = "SNAPBOOT_REMOTE_READ_ONLY";
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);
/// How long one request may take.
const REQUEST: Duration = Duration::from_secs(10);
/// How many requests are under way at once.
const AT_ONCE: usize = 16;
/// Where a directory has files that are being written. They get their names when they are whole.
pub(crate) const DRAFTS: &str = ".drafts/";
/// How the URL of a directory begins.
const DIRECTORY: &str = "file://";
/// Forms that people know.
const FORMS: &str = "file:///DIRECTORY, s3://BUCKET/PREFIX?region=REGION, gcs://BUCKET/PREFIX, azblob://CONTAINER/PREFIX?endpoint=URL, \
                     webdav://HOST/PATH, and others that docs/reference.md lists";

/// What the library says where it finds no credentials, and of an answer that asks for some.
const UNSIGNED: [&str; 2] = ["reqsign::", "to sign http request"];
const UNAUTHORIZED: &str = "status: 401";

/// A remote store.
pub struct Storage {
    operator: Operator,
    /// The same, for objects that are written only where none is: in a directory without a draft, whose renaming could replace one.
    creator: Operator,
    runtime: Runtime,
    /// Its URL without what may be secret.
    name: String,
    directory: Option<PathBuf>,
    /// Why nothing can be written there, if that is known: a directory in which no drafts can be.
    unwritable: Option<String>,
    deadline: Instant,
    traffic: Cell<Traffic>,
}

/// What went there and back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// How many requests were made.
    pub requests: u64,
    /// The bytes of all objects that were fetched.
    pub received: u64,
    /// The bytes of all objects that were written.
    pub sent: u64,
    /// How many of these objects are chunks.
    pub chunks_received: u64,
    /// How many of those are.
    pub chunks_sent: u64,
}

/// What an object is called, and when it was written, if the storage says so.
pub struct Object {
    /// Its path.
    pub path: String,
    /// The last part of that.
    pub name: String,
    /// When it was written.
    pub written: Option<SystemTime>,
    /// Its size (bytes).
    pub size: u64,
}

impl Storage {
    /// The remote store that the environment names; None if it names none.
    pub fn from_environment() -> Result<Option<Storage>> {
        let Some(url) = crate::variable(VARIABLE) else { return Ok(None) };
        let seconds = crate::variable(TIMEOUT).and_then(|text| text.to_str()?.parse().ok());
        Storage::open(&url.to_string_lossy(), seconds.map_or(DEFAULT_TIMEOUT, Duration::from_secs)).map(Some)
    }

    /// Opens the one of this URL, for as long.
    pub fn open(url: &str, limit: Duration) -> Result<Storage> {
        let directory = url.strip_prefix(DIRECTORY).map(PathBuf::from);
        let name = harmless(url);
        let refused = |why: &str| {
            Failure::refusal(format!(
                "{VARIABLE} should be the URL of a store, and {name} is none: {why}. Forms: {FORMS}."
            ))
        };
        if directory.as_ref().is_some_and(|path| !path.is_absolute()) {
            return Err(refused("the path of a directory should be absolute"));
        }
        // Whoever makes it decides who may write there, so it is never made on the way.
        if let Some(Err(error)) = directory.as_ref().map(std::fs::read_dir) {
            let reason = failure::reason(&error);
            return Err(Failure::passing(format!(
                "cannot use {name}: {reason}. It should be a directory that machines share."
            )));
        }
        opendal::install_default();
        let no_drafts = |path: &PathBuf| std::fs::create_dir(path.join(DRAFTS)).err();
        let no_drafts =
            directory.as_ref().and_then(no_drafts).filter(|error| error.kind() != io::ErrorKind::AlreadyExists);
        let unwritable = no_drafts.map(|error| failure::reason(&error));
        let drafts: Vec<_> = directory
            .iter()
            .filter(|_| unwritable.is_none())
            .map(|path| ("atomic_write_dir", path.join(DRAFTS).to_string_lossy().into_owned()))
            .collect();
        let operator = |options: Vec<(&str, String)>| -> Result<Operator> {
            let operator = Operator::from_uri((url, options)).map_err(|error| refused(&words(&error)))?;
            Ok(operator.layer(TimeoutLayer::new().with_timeout(REQUEST).with_io_timeout(REQUEST)))
        };
        let (operator, creator) = (operator(drafts)?, operator(Vec::new())?);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| Failure::failed(format!("cannot speak with {name}: {}.", failure::reason(&error))))?;
        Ok(Storage {
            operator,
            creator,
            runtime,
            name,
            directory,
            unwritable,
            deadline: Instant::now() + limit,
            traffic: Cell::default(),
        })
    }

    /// Its URL without what may be secret.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The directory, if it is one.
    pub fn directory(&self) -> Option<&Path> {
        self.directory.as_deref()
    }

    /// Whether it can say what it has. Caches of keys and values cannot.
    pub fn lists(&self) -> bool {
        self.operator.info().capability().list
    }

    /// Whether this machine is to write nothing there.
    pub fn is_read_only(&self) -> bool {
        crate::variable(READ_ONLY).is_some_and(|value| value.as_os_str() == "1")
    }

    /// What went there and back since the last call.
    pub fn take_traffic(&self) -> Traffic {
        self.traffic.take()
    }

    /// Counts a request, and the object that it has fetched or written.
    fn count(&self, path: &str, received: usize, sent: usize) {
        let (mut traffic, is_chunk) = (self.traffic.get(), path.starts_with(CHUNKS));
        traffic.requests += 1;
        (traffic.received, traffic.sent) = (traffic.received + received as u64, traffic.sent + sent as u64);
        traffic.chunks_received += u64::from(is_chunk && received > 0);
        traffic.chunks_sent += u64::from(is_chunk && sent > 0);
        self.traffic.set(traffic);
    }

    /// The content of an object of at most so many bytes; None if there is none.
    pub fn get(&self, path: &str, most: usize) -> Result<Option<Vec<u8>>> {
        let content = self.wait("read", path, read(&self.operator, path, most));
        self.count(path, content.as_ref().map_or(0, |content| content.as_ref().map_or(0, Vec::len)), 0);
        content
    }

    /// The contents of objects of at most so many bytes, in any order. Fails with the first that is not there, or that `each` refuses.
    pub fn get_all(
        &self,
        wanted: &[(String, usize)],
        mut each: impl FnMut(usize, Vec<u8>) -> Result<()>,
    ) -> Result<()> {
        let reads = wanted
            .iter()
            .enumerate()
            .map(|(number, (path, most))| async move { (number, read(&self.operator, path, *most).await) });
        let all = async {
            let mut contents = stream::iter(reads).buffer_unordered(AT_ONCE);
            while let Some((number, content)) = contents.next().await {
                let path = &wanted[number].0;
                let content = content.map_err(|error| self.failure("read", path, &words(&error)))?;
                self.count(path, content.as_ref().map_or(0, Vec::len), 0);
                each(number, content.ok_or_else(|| self.failure("read", path, "it is not there any more"))?)?;
            }
            Ok(())
        };
        self.wait_for(all)
    }

    /// Writes objects, unless they are there already. Returns how many were written, and their bytes.
    pub fn add_all(&self, objects: Vec<(String, Vec<u8>)>, renew: Duration) -> Result<(usize, u64)> {
        if let Some((path, _)) = objects.first() {
            self.check_is_writable(path)?;
        }
        // After a failure none is begun, and those that are under way take their drafts away.
        let has_failed = &Cell::new(false);
        let writes = objects.into_iter().map(|(path, content)| async move {
            if has_failed.get() {
                return Ok(None);
            }
            let written = self.add(&path, content, renew).await;
            has_failed.set(has_failed.get() || written.is_err());
            written.map_err(|error| self.failure("write", &path, &words(&error)))
        });
        let all = async { Ok(stream::iter(writes).buffer_unordered(AT_ONCE).collect::<Vec<_>>().await) };
        let written: Vec<Option<u64>> = self.wait_for(all)?.into_iter().collect::<Result<_>>()?;
        let sizes: Vec<u64> = written.into_iter().flatten().collect();
        Ok((sizes.len(), sizes.iter().sum()))
    }

    /// `renew`: how old an object may be that counts as there: `snapboot remote prune` removes what is old and in no manifest, as those of
    /// an image are that is on its way.
    async fn add(&self, path: &str, content: Vec<u8>, renew: Duration) -> opendal::Result<Option<u64>> {
        self.count(path, 0, 0);
        let is_there = match self.operator.stat(path).await {
            Ok(found) => {
                let age = found.last_modified().and_then(|time| SystemTime::from(time).elapsed().ok());
                age.is_none_or(|age| age < renew)
            }
            Err(error) if error.kind() == ErrorKind::NotFound => false,
            Err(error) => return Err(error),
        };
        if is_there {
            return Ok(None);
        }
        let size = content.len();
        write(self.operator.writer(path).await?, content).await?;
        self.count(path, 0, size);
        Ok(Some(size as u64))
    }

    /// Writes an object.
    pub fn put(&self, path: &str, content: Vec<u8>) -> Result<()> {
        self.check_is_writable(path)?;
        self.count(path, 0, content.len());
        self.wait("write", path, async { write(self.operator.writer(path).await?, content).await })
    }

    /// Writes an object where none is; what is there stays. Storages without conditions may replace what another machine is just writing.
    pub fn create(&self, path: &str, content: Vec<u8>) -> Result<()> {
        self.check_is_writable(path)?;
        self.count(path, 0, content.len());
        let writes = async {
            if self.creator.info().capability().write_with_if_not_exists {
                let written = write(self.creator.writer_with(path).if_not_exists(true).await?, content).await;
                let is_there = |error: &Error| error.kind() == ErrorKind::ConditionNotMatch;
                // Half a file of this machine would keep others waiting.
                if self.directory.is_some() && !written.as_ref().err().is_none_or(is_there) {
                    let _ = self.creator.delete(path).await;
                }
                return written;
            }
            match self.creator.stat(path).await {
                Err(error) if error.kind() == ErrorKind::NotFound => self.creator.write(path, content).await.map(drop),
                there => there.map(drop),
            }
        };
        self.wait("write", path, async {
            match writes.await {
                Err(error) if error.kind() == ErrorKind::ConditionNotMatch => Ok(()),
                written => written,
            }
        })
    }

    fn check_is_writable(&self, path: &str) -> Result<()> {
        self.unwritable.as_ref().map_or(Ok(()), |why| Err(self.failure("write", path, why)))
    }

    /// Removes an object, if it is there.
    pub fn remove(&self, path: &str) -> Result<()> {
        self.count(path, 0, 0);
        self.wait("remove", path, self.operator.delete(path))
    }

    /// All objects in a folder and below.
    pub fn list(&self, folder: &str) -> Result<Vec<Object>> {
        let entries = self.wait("list", folder, async {
            match self.operator.list_with(folder).recursive(true).await {
                Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
                found => found,
            }
        })?;
        self.count(folder, 0, 0);
        let files = entries.into_iter().filter(|entry| entry.metadata().is_file());
        Ok(files
            .map(|entry| Object {
                path: entry.path().to_owned(),
                name: entry.name().to_owned(),
                written: entry.metadata().last_modified().map(SystemTime::from),
                size: entry.metadata().content_length(),
            })
            .collect())
    }

    fn wait<T>(&self, doing: &str, path: &str, request: impl Future<Output = opendal::Result<T>>) -> Result<T> {
        self.wait_for(async { request.await.map_err(|error| self.failure(doing, path, &words(&error))) })
    }

    fn wait_for<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        let ended = self.runtime.block_on(async { tokio::time::timeout(left, work).await });
        ended.unwrap_or_else(|_| {
            Err(Failure::passing(format!(
                "{} has not answered in time. {TIMEOUT} says how long an image may take (seconds; {} where it is not set).",
                self.name,
                DEFAULT_TIMEOUT.as_secs()
            )))
        })
    }

    fn failure(&self, doing: &str, path: &str, why: &str) -> Failure {
        Failure::passing(format!("cannot {doing} {path} of {}: {why}.", self.name))
    }
}

/// Writes all of an object, or leaves no draft of it.
async fn write(mut writer: Writer, content: Vec<u8>) -> opendal::Result<()> {
    let written = async { writer.write(content).await.and(writer.close().await) }.await;
    if written.is_err() {
        let _ = writer.abort().await;
    }
    written.map(drop)
}

/// Reads no more than `most` bytes: whoever writes to the store cannot fill the memory of readers.
async fn read(operator: &Operator, path: &str, most: usize) -> opendal::Result<Option<Vec<u8>>> {
    let all = async {
        let mut parts = operator.reader(path).await?.into_stream(..).await?;
        let mut content = Vec::new();
        while let Some(part) = parts.try_next().await? {
            if content.len() + part.len() > most {
                return Err(Error::new(ErrorKind::RangeNotSatisfied, "too large"));
            }
            content.extend(part.to_vec());
        }
        Ok(content)
    };
    match all.await {
        Ok(content) => Ok(Some(content)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// What is wrong, without what the request or the answer held.
fn words(error: &Error) -> String {
    // The library has no kinds for these. Its own words stay here.
    let own = error.to_string();
    if UNSIGNED.iter().any(|words| own.contains(words)) {
        return "there are no credentials for it".to_owned();
    }
    if own.contains(UNAUTHORIZED) {
        return "it is forbidden (401): credentials are missing or wrong".to_owned();
    }
    let system = std::error::Error::source(error).and_then(|source| source.downcast_ref::<std::io::Error>());
    if let Some(system) = system.filter(|system| system.raw_os_error().is_some()) {
        return failure::reason(system);
    }
    match error.kind() {
        ErrorKind::NotFound => "there is no such object or bucket (404)".to_owned(),
        ErrorKind::PermissionDenied => "it is forbidden (403): credentials are missing or do not suffice".to_owned(),
        ErrorKind::RateLimited => "there are too many requests (429)".to_owned(),
        ErrorKind::ConfigInvalid => {
            "a part of the URL, such as the bucket, the region or the endpoint, is missing or wrong".to_owned()
        }
        ErrorKind::Unsupported => "this kind of storage is not supported, or cannot do that".to_owned(),
        ErrorKind::RangeNotSatisfied => "it is larger than it should be".to_owned(),
        ErrorKind::Unexpected if error.is_temporary() => "the storage cannot be reached, or failed (5xx)".to_owned(),
        kind => format!("an unexpected answer ({kind})"),
    }
}

/// A URL without user, password and parameters.
fn harmless(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return "what it holds".to_owned() };
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = authority.rsplit('@').next().unwrap_or_default();
    format!("{scheme}://{host}{path}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_name_no_credentials() {
        for (url, name) in [
            ("webdav://user:pass@host:1/2?password=x", "webdav://host:1/2"),
            ("s3://bucket/a/b?access_key_id=A&secret_access_key=B", "s3://bucket/a/b"),
            ("webdav://u:p@@host", "webdav://host"),
            ("s3://bucket?x=/@y", "s3://bucket"),
            ("secret", "what it holds"),
        ] {
            assert_eq!(harmless(url), name);
            assert!(Storage::open(&format!("x{url}"), REQUEST).is_err_and(|failure| !failure.message.contains("pass@")));
        }
    }

    #[test]
    fn an_object_is_there_whole_or_not_at_all_and_is_never_larger_than_expected() {
        let top = tempfile::tempdir().unwrap();
        let storage = Storage::open(&format!("file://{}", top.path().display()), REQUEST).unwrap();
        assert_eq!(storage.get("v1/a/b", 9).unwrap(), None);
        assert!(storage.list("v1/").unwrap().is_empty());
        storage.put("v1/a/b", b"content".to_vec()).unwrap();
        assert_eq!(storage.get("v1/a/b", 7).unwrap().as_deref(), Some(&b"content"[..]));
        assert!(storage.get("v1/a/b", 6).is_err_and(|failure| failure.message.contains("larger than it should be")));
        let names: Vec<String> = storage.list("v1/").unwrap().into_iter().map(|object| object.path).collect();
        assert_eq!(names, ["v1/a/b"]);
        let again = vec![("v1/a/b".to_owned(), b"other".to_vec()), ("v1/c".to_owned(), b"new".to_vec())];
        assert_eq!(storage.add_all(again.clone(), REQUEST).unwrap(), (1, 3));
        assert_eq!(storage.get("v1/a/b", 7).unwrap().as_deref(), Some(&b"content"[..]));
        assert_eq!(storage.add_all(again, Duration::ZERO).unwrap(), (2, 8), "old objects are written again");
        storage.remove("v1/c").unwrap();
        assert_eq!(storage.get("v1/c", 9).unwrap(), None);
        storage.take_traffic();
        storage.add_all(vec![("v1/chunks/1".to_owned(), b"chunk".to_vec())], REQUEST).unwrap();
        storage.get("v1/chunks/1", 9).unwrap();
        let traffic = Traffic { requests: 3, received: 5, sent: 5, chunks_received: 1, chunks_sent: 1 };
        assert_eq!((storage.take_traffic(), storage.take_traffic()), (traffic, Traffic::default()));
        assert_eq!(std::fs::read_dir(top.path().join(DRAFTS)).unwrap().count(), 0);
    }

    #[test]
    fn a_store_that_does_not_answer_is_left_at_the_deadline() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("webdav:///?endpoint=http://{}", listener.local_addr().unwrap());
        let storage = Storage::open(&url, Duration::from_millis(50)).unwrap();
        assert!(storage.get("v1/a", 9).is_err_and(|failure| failure.message.contains("has not answered in time")));
    }
}
