//! Code from the archive: what Ruby compiled in an earlier start, loaded without a look at the source.
//!
//! Ruby asks `RubyVM::InstructionSequence.load_iseq` for the code of each file that it is about to load, whoever loads it. What the
//! archive does not have Ruby compiles next, and that is noted as soon as it has done so.
//!
//! An entry's payload is what RubyVM::InstructionSequence#to_binary gave, then the path and the real path that are in it, then
//! the sizes of the two (four bytes each). The highest bit of the first says that the source itself holds its path, so that the
//! code cannot be given another; the next one, that there is nothing in it to be run.

use std::borrow::Cow;
use std::ffi::{c_void, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use archive::{Entry, Kind, NewInput};

use crate::boot::Script;
use crate::names;
use crate::relocate::relocate;
use crate::ruby::{self, method::Function, Id, Protected, Value};
use crate::store::{Event, Store};
use crate::{events, tracers, warnings, BOOT, STORE};

/// Of the size of the path: the source holds its path.
const IS_FIXED: u32 = 1 << 31;

/// Likewise: the source has no code.
const IS_EMPTY: u32 = 1 << 30;

/// Code that does nothing takes fewer bytes than this, besides its paths.
const MAX_EMPTY: usize = 512;

/// How code gets from and into the archive.
pub struct Code {
    /// RubyVM::InstructionSequence.
    class: Value,
    ruby_vm: Value,
    /// The method `load_iseq`, as it is while nobody else wants to be asked.
    load_iseq: Value,
    compile_option_before: Value,
    scopes: Scopes,
    tracer: Value,
    /// A script that Ruby is about to ask for, and what the archive has of it.
    expected: Option<(Script, Known)>,
    /// The script whose code is waited for: Ruby is about to compile it.
    awaited: Option<Script>,
    ids: Ids,
}

/// Where code is in the archive.
#[derive(Clone, Copy)]
struct Scopes {
    /// Code of which Ruby has not warned.
    usual: usize,
    /// Code of which it was not to warn.
    quiet: usize,
}

impl Scopes {
    fn new(store: &mut Store, description: &str) -> Self {
        let quiet = format!("{description} quiet");
        Scopes { usual: store.scope(Kind::Code, description), quiet: store.scope(Kind::Code, &quiet) }
    }

    /// That of the code that is compiled now.
    fn of_new(self) -> usize {
        if ruby::is_quiet() {
            self.quiet
        } else {
            self.usual
        }
    }

    /// The entry of a script.
    fn find(self, script: &Script, store: &mut Store) -> (Event, Option<Entry<'static>>) {
        let found = store.find(self.usual, script.path.to_bytes(), Some(&script.identity));
        if found.1.is_some() || !ruby::is_quiet() {
            return found;
        }
        store.find(self.quiet, script.path.to_bytes(), Some(&script.identity))
    }
}

#[derive(Clone, Copy)]
struct Ids {
    load_from_binary: Id,
    /// Of RubyVM, from Ruby 3.1 on.
    keep_script_lines: Option<Id>,
    script_lines: Id,
    method: Id,
    is_equal: Id,
}

impl Code {
    /// Takes the place of `load_iseq`. `None` where Ruby has no such code, or somebody else gives it code.
    pub fn switch_on(store: &mut Store, description: &str) -> Protected<Option<Self>> {
        let Some(ruby_vm) = ruby::find_constant(ruby::object_class(), "RubyVM")? else { return Ok(None) };
        let Some(class) = ruby::find_constant(ruby_vm, "InstructionSequence")? else { return Ok(None) };
        if ruby::responds_to(class, ruby::intern("load_iseq")?)? {
            return Ok(None);
        }
        let keep_script_lines = ruby::intern("keep_script_lines")?;
        let has_keep = ruby::responds_to(ruby_vm, keep_script_lines)?;
        Function::One(load_iseq).define_singleton(class, c"load_iseq")?;
        let compile_option_before = ruby::keep(ruby::own_method(class, "compile_option=")?)?;
        Function::One(set_compile_option).define_singleton(class, c"compile_option=")?;
        Ok(Some(Code {
            class,
            ruby_vm,
            load_iseq: ruby::keep(ruby::own_method(class, "load_iseq")?)?,
            compile_option_before,
            scopes: Scopes::new(store, description),
            tracer: ruby::keep(ruby::compile_tracer(compiled)?)?,
            expected: None,
            awaited: None,
            ids: Ids {
                load_from_binary: ruby::intern("load_from_binary")?,
                keep_script_lines: Some(keep_script_lines).filter(|_| has_keep),
                script_lines: ruby::intern("SCRIPT_LINES__")?,
                method: ruby::intern("method")?,
                is_equal: ruby::intern("==")?,
            },
        }))
    }
}

/// Gives what is known of code to `work`, which does not run Ruby code. `None`: code is not kept.
fn with_code<R>(work: impl FnOnce(&mut Code) -> R) -> Option<R> {
    BOOT.with(|boot| boot.code.as_mut().map(work)).flatten()
}

/// What code depends on besides its source.
pub fn description() -> Protected<String> {
    let object = ruby::object_class();
    let mut parts = Vec::new();
    if let Some(ruby) = ruby::find_constant(object, "RUBY_DESCRIPTION")? {
        parts.push(String::from_utf8_lossy(&ruby::bytes(ruby)?).replace(" +YJIT", ""));
    }
    let outer = ruby::find_constant(object, "RubyVM")?;
    let class = outer.map(|outer| ruby::find_constant(outer, "InstructionSequence")).transpose()?.flatten();
    if let Some(class) = class {
        let options = ruby::send(ruby::send(class, "compile_option", &[])?, "inspect", &[])?;
        parts.push(String::from_utf8_lossy(&ruby::bytes(options)?).into_owned());
    }
    // Paths in code are in that encoding.
    if let Some(class) = ruby::find_constant(object, "Encoding")? {
        let encoding = ruby::send(class, "find", &[ruby::text(b"filesystem")?])?;
        parts.push(String::from_utf8_lossy(&ruby::bytes(ruby::send(encoding, "name", &[])?)?).into_owned());
    }
    Ok(parts.join(" "))
}

/// RubyVM::InstructionSequence.compile_option = options
extern "C-unwind" fn set_compile_option(_: Value, options: Value) -> Value {
    ruby::entry(|| {
        let Some(before) = with_code(|code| code.compile_option_before) else {
            return Ok(options);
        };
        let result = ruby::send(before, "call", &[options])?;
        let description = description()?;
        // Other options hold from now on.
        with_code(|code| STORE.with(|store| code.scopes = Scopes::new(store, &description)));
        Ok(result)
    })
}

/// Whether nobody wants to see how code is compiled: coverage, debuggers, parser warnings.
pub fn is_free() -> Protected<bool> {
    let Some((ruby_vm, ids)) = with_code(|code| (code.ruby_vm, code.ids)) else { return Ok(false) };
    if tracers::is_compiling_traced() || ruby::is_verbose() || ruby::is_debugging() || ruby::has_coverage() {
        return Ok(false);
    }
    if let Some(keep_script_lines) = ids.keep_script_lines {
        if ruby::call(ruby_vm, keep_script_lines, &[])?.is_truthy() {
            return Ok(false);
        }
    }
    Ok(ruby::constant(ruby::object_class(), ids.script_lines)?.is_none())
}

/// Whether nobody else wants to be asked for code.
pub fn is_asked_alone() -> Protected<bool> {
    let Some((class, load_iseq, ids)) = with_code(|code| (code.class, code.load_iseq, code.ids)) else {
        return Ok(false);
    };
    let now = ruby::call(class, ids.method, &[ruby::symbol("load_iseq")?])?;
    Ok(ruby::call(load_iseq, ids.is_equal, &[now])?.is_truthy())
}

/// What the archive has of a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    Code(Value),
    /// There is no code in it.
    Empty,
    Nothing,
}

/// What the archive has of a script. Listeners are told.
pub fn find(script: &Script) -> Protected<Known> {
    let known = with_code(|code| (code.class, code.ids.load_from_binary, code.scopes));
    let Some((class, load_from_binary, scopes)) = known else { return Ok(Known::Nothing) };
    let before = ruby::error_info();
    let found = STORE.with(|store| {
        let (event, entry) = scopes.find(script, store);
        let Some(entry) = entry else { return (event, Known::Nothing) };
        let payload = store.decode(&entry);
        if payload.is_some_and(is_empty) {
            return (event, Known::Empty);
        }
        let binary = payload.and_then(|payload| binary_for(script, payload));
        // Loading runs no Ruby code.
        let code = binary.map(|binary| {
            ruby::with_binary(&binary, |binary| ruby::call(class, load_from_binary, &[binary]))
                .map_err(|jump| jump.forget(before))
        });
        match code {
            Some(Ok(code)) => (event, Known::Code(code)),
            _ => (Event::Stale, Known::Nothing),
        }
    });
    let (event, known) = found.unwrap_or((Event::Miss, Known::Nothing));
    events::tell(event, &script.path)?;
    Ok(known)
}

/// Whether the script of a payload has no code.
fn is_empty(payload: &[u8]) -> bool {
    payload.split_last_chunk::<8>().is_some_and(|(_, sizes)| u64::from_le_bytes(*sizes) as u32 & IS_EMPTY != 0)
}

/// Whether the archive has the code of a script.
pub fn is_kept(script: &Script) -> bool {
    let Some(scopes) = with_code(|code| code.scopes) else { return false };
    let found = STORE.with(|store| {
        let (_, entry) = scopes.find(script, store);
        entry.is_some_and(|entry| store.decode(&entry).is_some_and(|payload| binary_for(script, payload).is_some()))
    });
    found == Some(true)
}

/// The code in a payload for a script at that path: as it is, or with other paths.
fn binary_for<'a>(script: &Script, payload: &'a [u8]) -> Option<Cow<'a, [u8]>> {
    let (rest, sizes) = payload.split_last_chunk::<8>()?;
    let sizes = u64::from_le_bytes(*sizes);
    let (path_size, real_size) = (sizes as u32 & !IS_FIXED & !IS_EMPTY, (sizes >> 32) as u32);
    let (rest, old_real) = rest.split_at_checked(rest.len().checked_sub(real_size as usize)?)?;
    let (binary, old) = rest.split_at_checked(rest.len().checked_sub(path_size as usize)?)?;
    let (path, real) = (script.path.to_bytes(), script.real_path());
    if (path, real) == (old, old_real) {
        return Some(binary.into());
    }
    // A path that is the real one is noted once.
    if sizes as u32 & IS_FIXED != 0 || (old == old_real) != (path == real) {
        return None;
    }
    relocate(binary, &[(old, path), (old_real, real)]).map(Cow::Owned)
}

/// Ruby is going to ask for a script of which the archive has that. Whoever calls this keeps the code.
pub fn expect(script: Script, known: Known) {
    with_code(|code| code.expected = Some((script, known)));
}

/// Ruby is not going to ask for what was expected.
pub fn expect_nothing() {
    with_code(|code| code.expected = None);
}

/// RubyVM::InstructionSequence.load_iseq(path) -> the code of the file that Ruby is about to load, or nil: then it compiles it.
extern "C-unwind" fn load_iseq(_: Value, path: Value) -> Value {
    ruby::entry(|| {
        if !ruby::is_main_ractor() || !path.is_string() {
            return Ok(ruby::nil());
        }
        // A syntax error may have kept Ruby from saying that it has compiled something.
        warnings::stop()?;
        let path = ruby::bytes_in_place(path)?;
        let expected = with_code(|code| code.expected.take()).flatten();
        if let Some((script, known)) = expected.filter(|(script, _)| script.path.as_bytes() == path) {
            return answer(script, known);
        }
        if !names::is_plain(path) || !path.starts_with(b"/") || !is_free()? {
            return Ok(ruby::nil());
        }
        let script = BOOT.with(|boot| STORE.with(|store| boot.script_at(path, store)));
        let Some(script) = script.flatten().flatten() else { return Ok(ruby::nil()) };
        let known = find(&script)?;
        answer(script, known)
    })
}

fn answer(script: Script, known: Known) -> Protected {
    match known {
        Known::Code(code) => Ok(code),
        Known::Empty => Ok(ruby::nil()),
        Known::Nothing => wait_for(script),
    }
}

/// Has the code that Ruby is going to compile noted.
fn wait_for(script: Script) -> Protected {
    let wanted = |scope| STORE.with(|store| store.wants(scope, script.path.as_bytes(), &script.identity));
    if with_code(|code| wanted(code.scopes.of_new())).flatten() != Some(true) {
        return Ok(ruby::nil());
    }
    warnings::listen()?;
    let tracer = with_code(|code| {
        code.awaited = Some(script);
        code.tracer
    });
    tracer.map_or(Ok(()), ruby::enable)?;
    Ok(ruby::nil())
}

/// Ruby has compiled something.
extern "C-unwind" fn compiled(tracepoint: Value, _: *mut c_void) {
    let before = ruby::error_info();
    // The program has nothing to do with what fails here.
    note(tracepoint).unwrap_or_else(|jump| jump.forget(before));
}

/// Notes what was compiled, if it was waited for.
fn note(tracepoint: Value) -> Protected<()> {
    let known = with_code(|code| (code.tracer, code.scopes.of_new(), code.awaited.take()));
    let Some((tracer, scope, awaited)) = known else { return Ok(()) };
    // Before the code runs: what it loads is waited for in its turn.
    ruby::disable(tracer)?;
    warnings::stop()?;
    let Some(script) = awaited.filter(|_| !warnings::were_heard()) else { return Ok(()) };
    let iseq = ruby::send(tracepoint, "instruction_sequence", &[])?;
    let path = ruby::send(iseq, "path", &[])?;
    let real = ruby::send(iseq, "absolute_path", &[])?;
    let is_it = |value: Value, path: &[u8]| Ok(value.is_string() && ruby::bytes_in_place(value)? == path);
    if !is_it(path, script.path.as_bytes())? || !is_it(real, script.real_path())? {
        return Ok(());
    }
    // Some code has no binary form.
    let binary = ruby::send(iseq, "to_binary", &[])?;
    let mut payload = ruby::bytes(binary)?;
    let is_small = payload.len() < MAX_EMPTY + script.path.as_bytes().len() + script.real_path().len();
    let is_empty = is_small && has_no_code(iseq)?;
    if is_empty {
        // From a syntax error Ruby makes empty code, too, and raises it when that has run. Here it raises it at once.
        let class = with_code(|code| code.class).unwrap_or(iseq);
        ruby::send(class, "compile_file", &[path])?;
    }
    ruby::clear(binary)?;
    let (path, real) = (script.path.as_bytes(), script.real_path());
    payload.extend_from_slice(path);
    payload.extend_from_slice(real);
    let fixed = if holds(path) { IS_FIXED } else { 0 };
    let empty = if is_empty { IS_EMPTY } else { 0 };
    payload.extend_from_slice(&(path.len() as u32 | fixed | empty).to_le_bytes());
    payload.extend_from_slice(&(real.len() as u32).to_le_bytes());
    let input = NewInput::File(path.to_vec(), script.identity);
    STORE.with(|store| store.add(scope, path.to_vec(), vec![input], payload, true));
    Ok(())
}

/// Whether code does nothing but return nil.
fn has_no_code(iseq: Value) -> Protected<bool> {
    let parts = ruby::send(iseq, "to_a", &[])?;
    let body = ruby::entry_of(parts, ruby::length(parts)?.saturating_sub(1));
    let mut expected = [ruby::symbol("putnil")?, ruby::symbol("leave")?].into_iter();
    for position in 0..ruby::length(body)? {
        let instruction = ruby::entry_of(body, position);
        // Others are labels, events and numbers of lines.
        if ruby::is_array(instruction) && Some(ruby::entry_of(instruction, 0)) != expected.next() {
            return Ok(false);
        }
    }
    Ok(expected.next().is_none())
}

/// Whether a source of the application holds its own path, as others might not after a move. Only these can move along.
fn holds(path: &[u8]) -> bool {
    let is_own = STORE.with(|store| path.starts_with(store.root().as_os_str().as_bytes())) == Some(true);
    let source = is_own.then(|| std::fs::read(Path::new(OsStr::from_bytes(path))).ok()).flatten();
    source.is_none_or(|source| source.windows(path.len()).any(|part| part == path))
}
