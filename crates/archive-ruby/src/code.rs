//! Code from the archive: compiled by Ruby in an earlier start, loaded without reading the source.
//!
//! Before Ruby loads a file it calls `RubyVM::InstructionSequence.load_iseq`, if defined, for its code. If the archive has no code for the
//! file, Ruby compiles it next, and a TracePoint then stores its code.
//!
//! An entry's payload is the result of RubyVM::InstructionSequence#to_binary, then the path and the real path in it, then the sizes of the
//! two (four bytes each). The highest bit of the first size says that the source itself contains its path, so that the code cannot be given
//! another.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::OnceLock;

use archive::session::{Event, Session};
use archive::{Entry, Kind, NewInput};

use crate::boot::BOOT;
use crate::cell::GvlCell;
use crate::events::Finder;
use crate::relocate::relocate;
use crate::ruby::{Id, Main, Method, Protected, Root, Ruby, Value};
use crate::script::Script;
use crate::session::SESSION;
use crate::{events, names, warnings};

/// In the size of the path: the source contains its path.
const IS_FIXED: u32 = 1 << 31;

/// Code that does nothing takes fewer bytes than this, besides its paths.
const MAX_EMPTY: usize = 512;

/// The code of this process. Empty: this Ruby has no code that can be stored, or another library provides it.
static CODE: GvlCell<Code> = GvlCell::empty();

/// The original RubyVM::InstructionSequence.method(:compile_option=).
static COMPILE_OPTION_BEFORE: OnceLock<Value<'static>> = OnceLock::new();

/// How code gets from and into the archive.
struct Code {
    /// RubyVM::InstructionSequence.
    class: Value<'static>,
    ruby_vm: Value<'static>,
    /// Our method `load_iseq`, which shows when another library replaces it.
    load_iseq: Value<'static>,
    scopes: Scopes,
    tracer: Value<'static>,
    /// The script that Ruby loads next, and the archive's answer for it without the code itself.
    expected: Option<(Script, Known<()>)>,
    expected_code: Root,
    /// The script that Ruby compiles next, whose code will be stored.
    awaited: Option<Script>,
    ids: Ids,
}

/// The scopes of code in the archive.
#[derive(Clone, Copy)]
struct Scopes {
    /// Code that was compiled with warnings on, and gave none.
    usual: usize,
    /// Code that was compiled with warnings off.
    quiet: usize,
}

impl Scopes {
    fn new(session: &mut Session, description: &str) -> Self {
        let quiet = format!("{description} quiet");
        Scopes { usual: session.scope(Kind::Code, description), quiet: session.scope(Kind::Code, &quiet) }
    }

    /// The scope of code that is compiled now.
    fn of_new(self, ruby: Ruby<'_>) -> usize {
        if ruby.is_quiet() {
            self.quiet
        } else {
            self.usual
        }
    }

    /// The entry of a script.
    fn find(self, ruby: Ruby<'_>, script: &Script, session: &mut Session) -> (Event, Option<Entry<'static>>) {
        let found = session.find(self.usual, script.path.to_bytes(), Some(&script.identity));
        if found.1.is_some() || !ruby.is_quiet() {
            return found;
        }
        session.find(self.quiet, script.path.to_bytes(), Some(&script.identity))
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

/// Replaces `load_iseq`. Returns whether code is stored from now on: not if this Ruby has no such code, or another library provides it.
pub fn switch_on(ruby: Main<'_>, description: &str) -> Protected<bool> {
    let Some(ruby_vm) = ruby.find_constant(ruby.object_class(), "RubyVM")? else { return Ok(false) };
    let Some(class) = ruby.find_constant(ruby_vm, "InstructionSequence")? else { return Ok(false) };
    if ruby.responds_to(class, ruby.intern("load_iseq")?)? {
        return Ok(false);
    }
    let keep_script_lines = ruby.intern("keep_script_lines")?;
    let has_keep = ruby.responds_to(ruby_vm, keep_script_lines)?;
    let Some(scopes) = SESSION.with(ruby, |session| Scopes::new(session, description)) else { return Ok(false) };
    ruby.define_singleton(class, c"load_iseq", Method::one(load_iseq))?;
    let compile_option_before = ruby.keep(ruby.own_method(class, "compile_option=")?)?;
    COMPILE_OPTION_BEFORE.get_or_init(|| compile_option_before);
    ruby.define_singleton(class, c"compile_option=", Method::one(set_compile_option))?;
    let code = Code {
        class: ruby.keep(class)?,
        ruby_vm: ruby.keep(ruby_vm)?,
        load_iseq: ruby.keep(ruby.own_method(class, "load_iseq")?)?,
        scopes,
        tracer: ruby.keep(ruby.compile_tracer(compiled)?)?,
        expected: None,
        expected_code: Root::new(ruby)?,
        awaited: None,
        ids: Ids {
            load_from_binary: ruby.intern("load_from_binary")?,
            keep_script_lines: Some(keep_script_lines).filter(|_| has_keep),
            script_lines: ruby.intern("SCRIPT_LINES__")?,
            method: ruby.intern("method")?,
            is_equal: ruby.intern("==")?,
        },
    };
    CODE.fill(ruby, || Some(code));
    Ok(true)
}

/// What code depends on besides its source.
pub fn description(ruby: Ruby<'_>) -> Protected<String> {
    let text = |value: Value<'_>| ruby.bytes(value).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let object = ruby.object_class();
    let mut parts = Vec::new();
    if let Some(description) = ruby.find_constant(object, "RUBY_DESCRIPTION")? {
        parts.push(text(description)?.replace(" +YJIT", ""));
    }
    let outer = ruby.find_constant(object, "RubyVM")?;
    let class = outer.map(|outer| ruby.find_constant(outer, "InstructionSequence")).transpose()?.flatten();
    if let Some(class) = class {
        parts.push(text(ruby.send(ruby.send(class, "compile_option", &[])?, "inspect", &[])?)?);
    }
    // Paths in code have that encoding.
    if let Some(class) = ruby.find_constant(object, "Encoding")? {
        let encoding = ruby.send(class, "find", &[ruby.text(b"filesystem")?])?;
        parts.push(text(ruby.send(encoding, "name", &[])?)?);
    }
    Ok(parts.join(" "))
}

/// RubyVM::InstructionSequence.compile_option = options
fn set_compile_option<'r>(ruby: Ruby<'r>, _: Value<'r>, options: Value<'r>) -> Protected<Value<'r>> {
    let Some(before) = COMPILE_OPTION_BEFORE.get() else { return Ok(options) };
    let result = ruby.send(*before, "call", &[options])?;
    if let Some(ruby) = ruby.main() {
        let description = description(*ruby)?;
        // Other options apply from now on.
        CODE.with(ruby, |code| SESSION.with(ruby, |session| code.scopes = Scopes::new(session, &description)));
    }
    Ok(result)
}

/// Whether code from the archive may replace compiling: coverage and parser warnings need the compiler itself.
pub fn is_usable(ruby: Main<'_>) -> Protected<bool> {
    let Some((ruby_vm, ids)) = CODE.with(ruby, |code| (code.ruby_vm, code.ids)) else { return Ok(false) };
    if ruby.is_verbose() || ruby.is_debugging() || ruby.has_coverage() {
        return Ok(false);
    }
    if let Some(keep_script_lines) = ids.keep_script_lines {
        if ruby.call(ruby_vm, keep_script_lines, &[])?.is_truthy() {
            return Ok(false);
        }
    }
    Ok(ruby.constant(ruby.object_class(), ids.script_lines)?.is_none())
}

/// Whether `load_iseq` is still ours: no other library provides code.
pub fn owns_load_iseq(ruby: Main<'_>) -> Protected<bool> {
    let known = CODE.with(ruby, |code| (code.class, code.load_iseq, code.ids));
    let Some((class, load_iseq, ids)) = known else { return Ok(false) };
    let now = ruby.call(class, ids.method, &[ruby.symbol("load_iseq")?])?;
    Ok(ruby.call(load_iseq, ids.is_equal, &[now])?.is_truthy())
}

/// The archive's answer for a script. `C` is its code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known<C> {
    Code(C),
    Nothing,
}

impl<C> Known<C> {
    fn map<D>(self, change: impl FnOnce(C) -> D) -> Known<D> {
        match self {
            Known::Code(code) => Known::Code(change(code)),
            Known::Nothing => Known::Nothing,
        }
    }
}

/// Looks up a script, and tells listeners. `finder`: who has found the script.
pub fn find<'r>(ruby: Main<'r>, script: &Script, finder: Finder) -> Protected<Known<Value<'r>>> {
    let known = CODE.with(ruby, |code| (code.class, code.ids.load_from_binary, code.scopes));
    let Some((class, load_from_binary, scopes)) = known else { return Ok(Known::Nothing) };
    let before = ruby.error_info();
    let begun = events::begin(ruby);
    let found = SESSION.with(ruby, |session| {
        let (event, entry) = scopes.find(*ruby, script, session);
        let Some(entry) = entry else { return (event, Known::Nothing) };
        let payload = session.decode(&entry);
        let binary = payload.and_then(|payload| binary_for(script, payload));
        // Loading runs no Ruby code.
        let code = binary.map(|binary| {
            ruby.with_binary(&binary, |binary| ruby.call(class, load_from_binary, &[binary]))
                .map_err(|jump| ruby.forget(jump, before))
        });
        match code {
            Some(Ok(code)) => (event, Known::Code(code)),
            _ => (Event::Stale, Known::Nothing),
        }
    });
    let (event, known) = found.unwrap_or((Event::Miss, Known::Nothing));
    events::report_look_up(ruby, event, &script.path, finder, begun)?;
    Ok(known)
}

/// Whether the archive has the code of a script.
pub fn is_stored(ruby: Main<'_>, script: &Script) -> bool {
    let Some(scopes) = CODE.with(ruby, |code| code.scopes) else { return false };
    let found = SESSION.with(ruby, |session| {
        let (_, entry) = scopes.find(*ruby, script, session);
        entry.is_some_and(|entry| session.decode(&entry).is_some_and(|payload| binary_for(script, payload).is_some()))
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
    // If path and real path are equal, the code has the string once.
    if sizes as u32 & IS_FIXED != 0 || (old == old_real) != (path == real) {
        return None;
    }
    relocate(binary, &[(old, path), (old_real, real)]).map(Cow::Owned)
}

/// Calls `load`, which makes Ruby load a script. `load_iseq` then answers without another look-up.
pub fn expecting<'r, T>(ruby: Main<'r>, script: Script, known: Known<Value<'r>>, load: impl FnOnce() -> T) -> T {
    CODE.with(ruby, |code| {
        let known = known.map(|value| code.expected_code.set(ruby, value));
        code.expected = Some((script, known));
    });
    let loaded = load();
    // Ruby may not have called it.
    take_expected(ruby);
    loaded
}

fn take_expected(ruby: Main<'_>) -> Option<(Script, Known<Value<'_>>)> {
    let taken = CODE.with(ruby, |code| {
        let (script, known) = code.expected.take()?;
        Some((script, known.map(|()| code.expected_code.take(ruby))))
    });
    taken.flatten()
}

/// RubyVM::InstructionSequence.load_iseq(path) -> the code of the file that Ruby loads next, or nil: then Ruby compiles it.
fn load_iseq<'r>(ruby: Ruby<'r>, _: Value<'r>, path: Value<'r>) -> Protected<Value<'r>> {
    let Some(ruby) = ruby.main().filter(|_| ruby.is_string(path)) else { return Ok(ruby.nil()) };
    // A syntax error may have prevented the event for compiled code.
    warnings::stop(*ruby)?;
    let path = ruby.bytes(path)?;
    if let Some((script, known)) = take_expected(ruby).filter(|(script, _)| script.path.as_bytes() == path) {
        return answer(ruby, script, known);
    }
    if !names::is_plain(&path) || !path.starts_with(b"/") || !is_usable(ruby)? {
        return Ok(ruby.nil());
    }
    let script = BOOT.with(ruby, |boot| SESSION.with(ruby, |session| boot.script_at(&path, session)));
    let Some(script) = script.flatten().flatten() else { return Ok(ruby.nil()) };
    let known = find(ruby, &script, Finder::Ruby)?;
    answer(ruby, script, known)
}

fn answer<'r>(ruby: Main<'r>, script: Script, known: Known<Value<'r>>) -> Protected<Value<'r>> {
    match known {
        Known::Code(code) => return Ok(code),
        Known::Nothing => await_code(ruby, script)?,
    }
    Ok(ruby.nil())
}

/// Marks the script whose code will be stored when Ruby has compiled it.
fn await_code(ruby: Main<'_>, script: Script) -> Protected<()> {
    let wanted = |scope| SESSION.with(ruby, |session| session.wants(scope, script.path.as_bytes(), &script.identity));
    if CODE.with(ruby, |code| wanted(code.scopes.of_new(*ruby))).flatten() != Some(true) {
        return Ok(());
    }
    warnings::listen(*ruby)?;
    let tracer = CODE.with(ruby, |code| {
        code.awaited = Some(script);
        code.tracer
    });
    tracer.map_or(Ok(()), |tracer| ruby.enable(tracer))
}

/// Called when Ruby has compiled something.
fn compiled(ruby: Ruby<'_>, tracepoint: Value<'_>) {
    let Some(ruby) = ruby.main() else { return };
    let before = ruby.error_info();
    // A failure here does not concern the program.
    store_compiled(ruby, tracepoint).unwrap_or_else(|jump| ruby.forget(jump, before));
}

/// Stores what was compiled, if it was awaited.
fn store_compiled(ruby: Main<'_>, tracepoint: Value<'_>) -> Protected<()> {
    let known = CODE.with(ruby, |code| (code.class, code.tracer, code.scopes.of_new(*ruby), code.awaited.take()));
    let Some((class, tracer, scope, awaited)) = known else { return Ok(()) };
    // Before the code runs: the files that it loads are awaited in turn.
    ruby.disable(tracer)?;
    warnings::stop(*ruby)?;
    if let Some(script) = &awaited {
        events::tell_compiled(ruby, &script.path)?;
    }
    let Some(script) = awaited.filter(|_| !warnings::were_heard()) else { return Ok(()) };
    let iseq = ruby.send(tracepoint, "instruction_sequence", &[])?;
    let path = ruby.send(iseq, "path", &[])?;
    let real = ruby.send(iseq, "absolute_path", &[])?;
    let is_it = |value, path: &[u8]| Ok(ruby.is_string(value) && ruby.is_bytes(value, path)?);
    if !is_it(path, script.path.as_bytes())? || !is_it(real, script.real_path())? {
        return Ok(());
    }
    // Some code has no binary form.
    let binary = ruby.send(iseq, "to_binary", &[])?;
    let mut payload = ruby.bytes(binary)?;
    let is_small = payload.len() < MAX_EMPTY + script.path.as_bytes().len() + script.real_path().len();
    if is_small && has_no_code(*ruby, iseq)? {
        // For a file with a syntax error, Ruby also makes empty code, and raises the error when that has run. This call raises it at once.
        ruby.send(class, "compile_file", &[path])?;
    }
    ruby.clear(binary)?;
    let (path, real) = (script.path.as_bytes(), script.real_path());
    payload.extend_from_slice(path);
    payload.extend_from_slice(real);
    let fixed = if is_fixed(ruby, path) { IS_FIXED } else { 0 };
    payload.extend_from_slice(&(path.len() as u32 | fixed).to_le_bytes());
    payload.extend_from_slice(&(real.len() as u32).to_le_bytes());
    let input = NewInput::File(path.to_vec(), script.identity);
    SESSION.with(ruby, |session| session.add(scope, path.to_vec(), vec![input], payload, true));
    Ok(())
}

/// Whether code does nothing but return nil.
fn has_no_code(ruby: Ruby<'_>, iseq: Value<'_>) -> Protected<bool> {
    let parts = ruby.send(iseq, "to_a", &[])?;
    let body = ruby.entry_of(parts, ruby.length(parts)?.saturating_sub(1));
    let mut expected = [ruby.symbol("putnil")?, ruby.symbol("leave")?].into_iter();
    for position in 0..ruby.length(body)? {
        let instruction = ruby.entry_of(body, position);
        // Other elements are labels, events and line numbers.
        if ruby.is_array(instruction) && Some(ruby.entry_of(instruction, 0)) != expected.next() {
            return Ok(false);
        }
    }
    Ok(expected.next().is_none())
}

/// Whether the code cannot be given another path: its source contains the path, or lies outside of the application, which alone can move.
fn is_fixed(ruby: Main<'_>, path: &[u8]) -> bool {
    let is_own = SESSION.with(ruby, |session| path.starts_with(session.root().as_os_str().as_bytes())) == Some(true);
    let source = is_own.then(|| std::fs::read(Path::new(OsStr::from_bytes(path))).ok()).flatten();
    source.is_none_or(|source| source.windows(path.len()).any(|part| part == path))
}
