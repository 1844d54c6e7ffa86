//! Code from the archive: what Ruby compiled in an earlier start, loaded without a look at the source.
//!
//! Ruby asks `RubyVM::InstructionSequence.load_iseq` for the code of each file that it is about to load, whoever loads it. What the
//! archive does not have Ruby compiles next, and that is noted as soon as it has done so.
//!
//! An entry's payload is what RubyVM::InstructionSequence#to_binary gave, then the path and the real path that are in it, then
//! the sizes of the two (four bytes each). The highest bit of the first says that the source itself holds its path, so that the
//! code cannot be given another.

use std::borrow::Cow;
use std::ffi::{c_void, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use archive::{Kind, NewInput};

use crate::boot::Script;
use crate::names;
use crate::relocate::relocate;
use crate::ruby::{self, method::Function, Id, Protected, Value};
use crate::store::{Event, Store};
use crate::{events, tracers, BOOT, STORE};

/// Of the size of the path: the source holds its path.
const IS_FIXED: u32 = 1 << 31;

/// How code gets from and into the archive.
pub struct Code {
    /// RubyVM::InstructionSequence.
    class: Value,
    ruby_vm: Value,
    /// The method `load_iseq`, as it is while nobody else wants to be asked.
    load_iseq: Value,
    compile_option_before: Value,
    scope: usize,
    tracer: Value,
    /// A script that Ruby is about to ask for, and that the archive does not have.
    missed: Option<Script>,
    /// The script whose code is waited for: Ruby is about to compile it. And the exception that was being handled before.
    awaited: Option<(Script, Value)>,
    ids: Ids,
}

#[derive(Clone, Copy)]
struct Ids {
    load_from_binary: Id,
    keep_script_lines: Id,
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
        Function::One(load_iseq).define_singleton(class, c"load_iseq")?;
        let compile_option_before = ruby::keep(ruby::own_method(class, "compile_option=")?)?;
        Function::One(set_compile_option).define_singleton(class, c"compile_option=")?;
        Ok(Some(Code {
            class,
            ruby_vm,
            load_iseq: ruby::keep(ruby::own_method(class, "load_iseq")?)?,
            compile_option_before,
            scope: store.scope(Kind::Code, description),
            tracer: ruby::keep(ruby::compile_tracer(compiled)?)?,
            missed: None,
            awaited: None,
            ids: Ids {
                load_from_binary: ruby::intern("load_from_binary")?,
                keep_script_lines: ruby::intern("keep_script_lines")?,
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
        with_code(|code| STORE.with(|store| code.scope = store.scope(Kind::Code, &description)));
        Ok(result)
    })
}

/// Whether nobody wants to see, or to change, how code is compiled: coverage, debuggers, other caches, parser warnings.
pub fn is_free() -> Protected<bool> {
    let known = with_code(|code| (code.class, code.ruby_vm, code.load_iseq, code.ids));
    let Some((class, ruby_vm, load_iseq, ids)) = known else { return Ok(false) };
    if tracers::is_compiling_traced() || ruby::is_verbose() || ruby::has_coverage() {
        return Ok(false);
    }
    let now = ruby::call(class, ids.method, &[ruby::symbol("load_iseq")?])?;
    Ok(ruby::call(load_iseq, ids.is_equal, &[now])?.is_truthy()
        && ruby::constant(ruby::object_class(), ids.script_lines)?.is_none()
        && !(ruby::responds_to(ruby_vm, ids.keep_script_lines)?
            && ruby::call(ruby_vm, ids.keep_script_lines, &[])?.is_truthy()))
}

/// The code of a script, if the archive has it. Listeners are told.
pub fn find(script: &Script) -> Protected<Option<Value>> {
    let known = with_code(|code| (code.class, code.ids.load_from_binary, code.scope));
    let Some((class, load_from_binary, scope)) = known else { return Ok(None) };
    let before = ruby::error_info();
    let found = STORE.with(|store| {
        let (event, entry) = store.find(scope, script.path.to_bytes(), Some(&script.identity));
        let Some(entry) = entry else { return (event, None) };
        let binary = store.decode(&entry).and_then(|payload| binary_for(script, payload));
        // Loading runs no Ruby code.
        let code = binary.map(|binary| {
            ruby::with_binary(&binary, |binary| ruby::call(class, load_from_binary, &[binary]))
                .map_err(|jump| jump.forget(before))
        });
        match code {
            Some(Ok(code)) => (event, Some(code)),
            _ => (Event::Stale, None),
        }
    });
    let (event, code) = found.unwrap_or((Event::Miss, None));
    events::tell(event, &script.path)?;
    Ok(code)
}

/// Whether the archive has the code of a script.
pub fn is_kept(script: &Script) -> bool {
    let Some(scope) = with_code(|code| code.scope) else { return false };
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

/// Ruby is going to ask for a script that the archive does not have, and that may be kept when it is compiled.
pub fn expect(script: Script) {
    with_code(|code| code.missed = Some(script));
}

/// RubyVM::InstructionSequence.load_iseq(path) -> the code of the file that Ruby is about to load, or nil: then it compiles it.
extern "C-unwind" fn load_iseq(_: Value, path: Value) -> Value {
    ruby::entry(|| {
        if !ruby::is_main_ractor() || !path.is_string() {
            return Ok(ruby::nil());
        }
        let path = ruby::bytes_in_place(path)?;
        let missed = with_code(|code| code.missed.take()).flatten();
        if let Some(script) = missed.filter(|script| script.path.as_bytes() == path) {
            return wait_for(script);
        }
        if !names::is_plain(path) || !path.starts_with(b"/") || !is_free()? {
            return Ok(ruby::nil());
        }
        let script = BOOT.with(|boot| STORE.with(|store| boot.script_at(path, store)));
        let Some(script) = script.flatten().flatten() else { return Ok(ruby::nil()) };
        match find(&script)? {
            Some(code) => Ok(code),
            None => wait_for(script),
        }
    })
}

/// Has the code that Ruby is going to compile noted.
fn wait_for(script: Script) -> Protected {
    let is_kept = STORE.with(|store| store.is_written()) == Some(true) && script.identity.is_settled;
    let before = ruby::error_info();
    if !is_kept {
        return Ok(ruby::nil());
    }
    let tracer = with_code(|code| {
        code.awaited = Some((script, before));
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
    let Some((tracer, scope, awaited)) = with_code(|code| (code.tracer, code.scope, code.awaited.take())) else { return Ok(()) };
    // Before the code runs: what it loads is waited for in its turn.
    ruby::disable(tracer)?;
    let Some((script, before)) = awaited else { return Ok(()) };
    // From a syntax error Ruby makes empty code, and raises it when that has run.
    if ruby::error_info() != before {
        return Ok(());
    }
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
    ruby::clear(binary)?;
    let (path, real) = (script.path.as_bytes(), script.real_path());
    payload.extend_from_slice(path);
    payload.extend_from_slice(real);
    let fixed = if holds(path) { IS_FIXED } else { 0 };
    payload.extend_from_slice(&(path.len() as u32 | fixed).to_le_bytes());
    payload.extend_from_slice(&(real.len() as u32).to_le_bytes());
    let input = NewInput::File(path.to_vec(), script.identity);
    STORE.with(|store| store.add(scope, path.to_vec(), vec![input], payload, true));
    Ok(())
}

/// Whether a source of the application holds its own path, as others might not after a move. Only these can move along.
fn holds(path: &[u8]) -> bool {
    let is_own = STORE.with(|store| path.starts_with(store.root().as_os_str().as_bytes())) == Some(true);
    let source = is_own.then(|| std::fs::read(Path::new(OsStr::from_bytes(path))).ok()).flatten();
    source.is_none_or(|source| source.windows(path.len()).any(|part| part == path))
}
