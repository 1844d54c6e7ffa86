//! Code from the archive: what Ruby compiled in an earlier start, loaded without a look at the source.
//!
//! An entry's payload is what RubyVM::InstructionSequence#to_binary gave, then the path and the real path that are in it, then
//! the sizes of the two (four bytes each). The highest bit of the first says that the source itself holds its path, so that the
//! code cannot be given another.

use std::borrow::Cow;
use std::ffi::{c_void, CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use archive::{Kind, NewInput};

use crate::boot::Script;
use crate::relocate::relocate;
use crate::ruby::{self, method::Function, Id, Value};
use crate::store::{Event, Store};
use crate::{tracers, BOOT, STORE};

/// Of the size of the path: the source holds its path.
const IS_FIXED: u32 = 1 << 31;

/// How code gets from and into the archive.
pub struct Code {
    /// RubyVM::InstructionSequence.
    class: Value,
    ruby_vm: Value,
    scope: usize,
    tracer: Value,
    /// The script whose code is waited for: Ruby is about to compile it.
    awaited: Option<Script>,
    /// Entries for scripts that are being loaded: paths and payloads.
    made: Vec<(CString, Vec<u8>)>,
    /// The path of a script that Ruby is about to load, and its code.
    handed: Option<(CString, Value)>,
    ids: Ids,
}

#[derive(Clone, Copy)]
struct Ids {
    load_iseq: Id,
    load_from_binary: Id,
    keep_script_lines: Id,
    script_lines: Id,
}

impl Code {
    /// `None` where Ruby has no such code.
    pub fn new(store: &mut Store, description: &str) -> Option<Self> {
        let ruby_vm = ruby::constant(ruby::object_class(), ruby::intern("RubyVM"))?;
        let class = ruby::constant(ruby_vm, ruby::intern("InstructionSequence"))?;
        Some(Code {
            class,
            ruby_vm,
            scope: store.scope(Kind::Code, description),
            tracer: ruby::keep(ruby::compile_tracer(compiled)),
            awaited: None,
            made: Vec::new(),
            handed: None,
            ids: Ids {
                load_iseq: ruby::intern("load_iseq"),
                load_from_binary: ruby::intern("load_from_binary"),
                keep_script_lines: ruby::intern("keep_script_lines"),
                script_lines: ruby::intern("SCRIPT_LINES__"),
            },
        })
    }

    pub fn class(&self) -> Value {
        self.class
    }

    /// Other compile options hold from now on.
    pub fn set_context(&mut self, store: &mut Store, description: &str) {
        self.scope = store.scope(Kind::Code, description);
    }
}

/// Whether nobody wants to see, or to change, how code is compiled: coverage, debuggers, other caches, parser warnings.
pub fn is_free() -> bool {
    let Some((class, ruby_vm, ids)) = BOOT.with(|boot| (boot.code.class, boot.code.ruby_vm, boot.code.ids)) else {
        return false;
    };
    let is_wanted = tracers::is_compiling_traced()
        || ruby::is_verbose()
        || ruby::has_coverage()
        || ruby::responds_to(class, ids.load_iseq)
        || ruby::constant(ruby::object_class(), ids.script_lines).is_some()
        || (ruby::responds_to(ruby_vm, ids.keep_script_lines)
            && ruby::call(ruby_vm, ids.keep_script_lines, &[]).is_truthy());
    !is_wanted
}

/// The code of a script, if the archive has it.
pub fn load(script: &Script) -> (Event, Option<Value>) {
    let Some((class, id, scope)) = BOOT.with(|boot| (boot.code.class, boot.code.ids.load_from_binary, boot.code.scope))
    else {
        return (Event::Miss, None);
    };
    let loaded = STORE.with(|store| {
        let (event, entry) = store.find(scope, script.path.to_bytes(), Some(&script.identity));
        let code = entry.and_then(|entry| {
            let payload = store.decode(&entry)?;
            let binary = binary_for(script, payload)?;
            // Loading runs no Ruby code; what it may raise stays here.
            let loaded = ruby::protect(|| ruby::with_binary(&binary, |binary| ruby::call(class, id, &[binary])));
            loaded.map_err(ruby::Jump::forget).ok()
        });
        if entry.is_some() && code.is_none() {
            (Event::Stale, None)
        } else {
            (event, code)
        }
    });
    loaded.unwrap_or((Event::Miss, None))
}

/// Whether the archive has the code of a script.
pub fn is_kept(script: &Script) -> bool {
    let Some(scope) = BOOT.with(|boot| boot.code.scope) else { return false };
    let found = STORE.with(|store| {
        let (_, entry) = store.find(scope, script.path.to_bytes(), Some(&script.identity));
        entry.is_some_and(|entry| store.decode(&entry).is_some_and(|payload| binary_for(script, payload).is_some()))
    });
    found == Some(true)
}

/// The code in a payload for a script at that path: as it is, or with other paths.
fn binary_for<'a>(script: &Script, payload: &'a [u8]) -> Option<Cow<'a, [u8]>> {
    let (rest, sizes) = payload.split_last_chunk::<8>()?;
    let sizes = u64::from_le_bytes(*sizes);
    let (path_size, real_size) = (sizes as u32 & !IS_FIXED, (sizes >> 32) as u32);
    let (rest, old_real) = rest.split_at_checked(rest.len().checked_sub(real_size as usize)?)?;
    let (binary, old) = rest.split_at_checked(rest.len().checked_sub(path_size as usize)?)?;
    let path = script.path.to_bytes();
    let real = script.real.as_deref().unwrap_or(path);
    if (path, real) == (old, old_real) {
        return Some(binary.into());
    }
    // A path that is the real one is noted once.
    if sizes as u32 & IS_FIXED != 0 || (old == old_real) != (path == real) {
        return None;
    }
    relocate(binary, &[(old, path), (old_real, real)]).map(Cow::Owned)
}

/// Lets `run` have Ruby compile and run the script, and keeps the code. May raise what `run` raises.
pub fn watch(script: Script, run: impl FnOnce() -> Value) -> Value {
    let wanted = |store: &mut Store, scope| store.wants(scope, script.path.as_bytes(), &script.identity);
    let is_kept = BOOT.with(|boot| STORE.with(|store| wanted(store, boot.code.scope))).flatten() == Some(true);
    let (path, identity) = (script.path.clone(), script.identity);
    let Some(tracer) = BOOT.with(|boot| {
        boot.code.awaited = Some(script).filter(|_| is_kept);
        boot.code.tracer
    }) else {
        return run();
    };
    if !is_kept {
        return run();
    }
    ruby::enable(tracer);
    let result = ruby::protect(run);
    forget();
    // From a syntax error Ruby makes empty code.
    let is_code = result.as_ref().map_or_else(|jump| !jump.is_syntax_error(), |_| true);
    BOOT.with(|boot| {
        let Some(at) = boot.code.made.iter().rposition(|(made, _)| *made == path) else { return };
        let (path, payload) = boot.code.made.swap_remove(at);
        if is_code {
            let input = NewInput::File(path.as_bytes().to_vec(), identity);
            STORE.with(|store| store.add(boot.code.scope, path.into_bytes(), vec![input], payload, true));
        }
    });
    drop(path);
    result.unwrap_or_else(|jump| jump.resume())
}

/// Lets `run` have Ruby load the script with that code. May raise what `run` raises.
pub fn hand(path: CString, code: Value, run: impl FnOnce() -> Value) -> Value {
    let Some(class) = BOOT.with(|boot| {
        boot.code.handed = Some((path, code));
        boot.code.class
    }) else {
        return run();
    };
    Function::One(load_iseq).define_singleton(class, c"load_iseq");
    let result = ruby::protect(run);
    // Kept by this frame until here.
    std::hint::black_box(code);
    if take_handed(None).is_some() {
        // Ruby did not ask for it: somebody else has loaded the script.
        ruby::remove_singleton(class, c"load_iseq");
    }
    result.unwrap_or_else(|jump| jump.resume())
}

fn take_handed(path: Option<Value>) -> Option<Value> {
    BOOT.with(|boot| {
        let is_it = |handed: &mut (CString, Value)| path.is_none_or(|path| ruby::c_bytes(path) == handed.0.as_c_str());
        boot.code.handed.take_if(is_it).map(|(_, code)| code)
    })?
}

/// RubyVM::InstructionSequence.load_iseq(path), which Ruby calls where it would compile. Defined only while it is waited for.
extern "C-unwind" fn load_iseq(class: Value, path: Value) -> Value {
    let code = ruby::is_main_ractor().then(|| take_handed(Some(path))).flatten();
    if code.is_some() {
        ruby::remove_singleton(class, c"load_iseq");
    }
    code.unwrap_or_else(ruby::nil)
}

/// Nothing is waited for any more. Answers what was.
fn forget() -> Option<Script> {
    let (tracer, awaited) = BOOT.with(|boot| (boot.code.tracer, boot.code.awaited.take()))?;
    if awaited.is_some() {
        ruby::disable(tracer);
    }
    awaited
}

/// Ruby has compiled something.
extern "C-unwind" fn compiled(tracepoint: Value, _: *mut c_void) {
    let iseq = ruby::call(tracepoint, ruby::intern("instruction_sequence"), &[]);
    let path = ruby::call(iseq, ruby::intern("path"), &[]);
    if !path.is_string() {
        return;
    }
    let is_awaited = BOOT
        .with(|boot| boot.code.awaited.as_ref().is_some_and(|script| script.path.as_c_str() == ruby::c_bytes(path)));
    if is_awaited != Some(true) {
        return;
    }
    // Before the code runs: what it loads is watched in its turn.
    let Some(script) = forget() else { return };
    // Some code has no binary form.
    let binary = ruby::protect(|| ruby::call(iseq, ruby::intern("to_binary"), &[]));
    let Ok(binary) = binary.map_err(ruby::Jump::forget) else { return };
    let real = ruby::call(iseq, ruby::intern("absolute_path"), &[]);
    let real = if real.is_string() { ruby::c_bytes(real).to_bytes() } else { b"" };
    let path = script.path.as_bytes();
    if real != script.real.as_deref().unwrap_or(path) {
        return;
    }
    let mut payload = ruby::bytes(binary);
    ruby::clear(binary);
    payload.extend_from_slice(path);
    payload.extend_from_slice(real);
    let fixed = if holds(path) { IS_FIXED } else { 0 };
    payload.extend_from_slice(&(path.len() as u32 | fixed).to_le_bytes());
    payload.extend_from_slice(&(real.len() as u32).to_le_bytes());
    BOOT.with(|boot| boot.code.made.push((script.path, payload)));
}

/// Whether a source of the application holds its own path, as others might not after a move. Only these can move along.
fn holds(path: &[u8]) -> bool {
    let is_own = STORE.with(|store| path.starts_with(store.root().as_os_str().as_bytes())) == Some(true);
    let source = is_own.then(|| std::fs::read(Path::new(OsStr::from_bytes(path))).ok()).flatten();
    source.is_none_or(|source| source.windows(path.len()).any(|part| part == path))
}
