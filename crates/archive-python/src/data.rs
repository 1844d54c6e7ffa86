//! Parsed data files: the results of parsing texts of files that the program has read.
//!
//! An entry is found by the path of a file that was opened a moment ago, and holds only for the exact text, which is compared by its
//! SHA-256: whatever the program has done to the file's content, or got from elsewhere, it gets the result of parsing. A text that is not
//! the content of a file is never stored. For that reason, and because of a limit on futile look-ups, a program that parses a million
//! answers from a network neither fills its archive nor waits for it.
//!
//! The payload: SHA-256, bytes of the text, the end of its document (both 8 bytes), and the document (see [`crate::notation`]).

use std::collections::VecDeque;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use archive::{Identity, Kind, NewInput};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use sha2::{Digest, Sha256};

use crate::audit;
use crate::boot;
use crate::document;
use crate::listener;
use crate::notation;

/// After so many look-ups without a result, the process looks up and stores no more texts: such a program probably reads other files at
/// each start.
const VAIN: usize = 128;
/// The number of opened files that are remembered.
const OPENED: usize = 8;
/// Longer texts (bytes) are parsed at each start.
const LONGEST: usize = 32 << 20;
/// The size of the payload's head before the document (bytes).
const HEAD: usize = 48;

/// Whether texts are looked up.
static IS_ON: AtomicBool = AtomicBool::new(false);

struct State {
    /// The files that were opened last, the newest first.
    opened: VecDeque<String>,
    /// How many more futile look-ups are allowed.
    left: usize,
}

static STATE: Mutex<State> = Mutex::new(State { opened: VecDeque::new(), left: VAIN });

static PAUSE: OnceLock<Py<PyTuple>> = OnceLock::new();

/// Held only briefly, and never while Python code runs.
fn state() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether texts are still looked up.
pub fn is_on() -> bool {
    IS_ON.load(Ordering::Relaxed)
}

/// Starts looking texts up. pause: (isenabled, disable, enable) of the module `gc`.
pub fn begin(pause: &Bound<'_, PyTuple>) {
    if PAUSE.set(pause.clone().unbind()).is_ok() {
        IS_ON.store(true, Ordering::Relaxed);
        audit::listen_to_reads(pause.py(), note_opened);
    }
}

/// Reads a document, without garbage collections: none of its objects is garbage.
fn read<'py>(python: Python<'py>, document: &[u8]) -> Option<Bound<'py, PyAny>> {
    let [is_enabled, disable, enable] = PAUSE.get()?.bind(python).extract::<[Bound<'_, PyAny>; 3]>().ok()?;
    let collects = is_enabled.call0().ok()?.is_truthy().ok()?;
    disable.call0().ok()?;
    let object = document::read(python, document);
    if collects {
        enable.call0().ok()?;
    }
    object
}

/// The program opens a file to read it.
fn note_opened(path: &str) {
    if !is_on() {
        return;
    }
    // Skips files that the import system reads.
    if [".pyc", ".py", ".so"].iter().any(|ending| path.ends_with(ending)) {
        return;
    }
    let path = match path.strip_prefix('/') {
        Some(_) => path.to_owned(),
        None => match std::env::current_dir().map(|cwd| cwd.join(path).into_os_string().into_string()) {
            Ok(Ok(path)) => path,
            _ => return,
        },
    };
    let mut state = state();
    state.opened.retain(|known| *known != path);
    state.opened.truncate(OPENED - 1);
    state.opened.push_front(path);
}

/// The result of a look-up of a text.
pub enum Known<'py> {
    /// The parsed object, and the end of the document.
    Parsed(Bound<'py, PyAny>, u64),
    /// Not found, but it may be stored.
    Unknown,
    /// Not found, and must not be stored.
    Ignored,
}

/// Looks up the result of parsing that text. context: everything besides the text that the result depends on.
pub fn look_up<'py>(python: Python<'py>, context: &str, text: &[u8]) -> Known<'py> {
    if !is_on() || text.len() > LONGEST {
        return Known::Ignored;
    }
    let begun = listener::begin();
    let opened = state().opened.clone();
    let mut digest = None;
    for path in &opened {
        let payload: Option<&'static [u8]> = {
            let mut held = boot::hold();
            let Some(boot) = held.as_mut() else { return Known::Ignored };
            let scope = boot.session.scope(Kind::Data, context);
            let (_, entry) = boot.session.find(scope, path.as_bytes(), None);
            entry.and_then(|entry| entry.plain())
        };
        let Some((head, document)) = payload.and_then(|payload| payload.split_first_chunk::<HEAD>()) else { continue };
        if number(&head[32..]) == text.len() as u64
            && head[..32] == digest.get_or_insert_with(|| Sha256::digest(text))[..]
        {
            if let Some(object) = read(python, document) {
                listener::report(python, path, begun);
                return Known::Parsed(object, number(&head[40..]));
            }
        }
    }
    let mut state = state();
    state.left = state.left.saturating_sub(1);
    if state.left == 0 {
        state.opened.clear();
        IS_ON.store(false, Ordering::Relaxed);
    }
    if opened.is_empty() {
        Known::Ignored
    } else {
        Known::Unknown
    }
}

/// Stores the result of parsing that text, if a file holds it. end: the end of its document.
pub fn keep(context: &str, text: &[u8], object: &Bound<'_, PyAny>, end: u64) {
    let opened = state().opened.clone();
    let Some((path, identity)) =
        opened.into_iter().find_map(|path| identity_if_holds(&path, text).map(|identity| (path, identity)))
    else {
        return;
    };
    let path = path.into_bytes();
    {
        let mut held = boot::hold();
        let Some(boot) = held.as_mut() else { return };
        let scope = boot.session.scope(Kind::Data, context);
        if !boot.session.wants(scope, &path, &identity) {
            return;
        }
    }
    // Writing may run Python code.
    let Some(document) = notation::write(object) else { return };
    let mut payload = Sha256::digest(text).to_vec();
    payload.extend((text.len() as u64).to_le_bytes());
    payload.extend(end.to_le_bytes());
    payload.extend(document);
    if let Some(boot) = boot::hold().as_mut() {
        let scope = boot.session.scope(Kind::Data, context);
        boot.session.add(scope, path.clone(), vec![NewInput::File(path, identity)], payload, false);
    }
}

/// The state of the file, if it contains that text: as it is, after a byte order mark, or compressed by gzip.
fn identity_if_holds(path: &str, text: &[u8]) -> Option<Identity> {
    let mut file = std::fs::File::open(path).ok()?;
    let about = file.metadata().ok().filter(|about| about.is_file())?;
    let identity = Identity::stat(path).ok()?;
    let size = about.size();
    if path.ends_with(".gz") {
        let mut end = [0; 4];
        file.seek(SeekFrom::End(-4)).ok()?;
        file.read_exact(&mut end).ok()?;
        return (u32::from_le_bytes(end) as usize == text.len()).then_some(identity);
    }
    if size < text.len() as u64 || size > text.len() as u64 + 3 {
        return None;
    }
    let mut content = Vec::new();
    file.read_to_end(&mut content).ok()?;
    (content.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&content) == text || content == text).then_some(identity)
}

fn number(bytes: &[u8]) -> u64 {
    bytes.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}
