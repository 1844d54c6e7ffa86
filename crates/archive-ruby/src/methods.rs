//! Snapboot::Archive::Native: the archive, for Ruby code. `ruby/lib/snapboot/archive/native.rb` documents which methods are for whom. There
//! is no archive in a Ractor other than the main one.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use archive::session::{Counters, Event, Parts, Session};
use archive::{Identity, Kind, NewInput, Policy, Tree};

use crate::ruby::{Method, Protected, Ruby, Value};
use crate::session::{self, SESSION};
use crate::{boot, code, document, events, exits, require};

/// Smaller payloads (bytes) are stored as they are.
const WORTH_PACKING: usize = 256;

/// Defines the methods.
pub fn define(ruby: Ruby<'_>) -> Protected<()> {
    let archive = ruby.module_under(ruby.module(c"Snapboot")?, c"Archive")?;
    let native = ruby.keep(ruby.module_under(archive, c"Native")?)?;
    let methods = [
        (c"open", Method::two(open)),
        (c"identity", Method::one(identity)),
        (c"list_tree", Method::two(list_tree)),
        (c"tree_state", Method::one(tree_state)),
        (c"fetch", Method::any(fetch)),
        (c"store", Method::any(store)),
        (c"flush", Method::none(flush)),
        (c"counters", Method::none(counters)),
        (c"place", Method::none(|ruby| path_in_session(ruby, Session::path))),
        (c"root", Method::none(|ruby| path_in_session(ruby, Session::root))),
        (c"switch_on", Method::two(switch_on)),
        (c"keeps_code?", Method::none(keeps_code)),
        (c"compile", Method::one(require::compile)),
        (c"tell_look_ups", Method::none(tell_look_ups)),
        (c"await_file", Method::one(await_file)),
        (c"document", Method::one(document::document)),
        (c"frames", Method::none(|ruby| ruby.frames())),
    ];
    methods.into_iter().try_for_each(|(name, method)| ruby.define_singleton(native, name, method))
}

/// Passes the archive to `work`. `None`: there is none, or none in this Ractor.
fn with_session<R>(ruby: Ruby<'_>, work: impl FnOnce(&mut Session) -> R) -> Option<R> {
    ruby.main().and_then(|ruby| SESSION.with(ruby, work))
}

/// open(script or nil, folder or nil) -> nil, or a String that says why there is no archive. folder: the program's initial directory, if it
/// differs from the working directory.
fn open<'r>(ruby: Ruby<'r>, _: Value<'r>, script: Value<'r>, folder: Value<'r>) -> Protected<Value<'r>> {
    let Some(ruby) = ruby.main() else { return ruby.text(b"there is an archive only in the main Ractor") };
    let path = |value: Value<'r>| if value.is_nil() { Ok(None) } else { ruby.bytes(value).map(path_of).map(Some) };
    let (script, folder) = (path(script)?, path(folder)?);
    let mut reason = None;
    SESSION.fill(ruby, || session::open(script.as_deref(), folder.clone()).map_err(|error| reason = Some(error)).ok());
    if let Some(reason) = reason {
        return ruby.text(reason.to_string().as_bytes());
    }
    if SESSION.with(ruby, |session| session.is_written()) == Some(true) {
        exits::watch(*ruby)?;
    }
    Ok(ruby.nil())
}

/// identity(path) -> frozen String, or nil if there is neither a file nor a directory.
fn identity<'r>(ruby: Ruby<'r>, _: Value<'r>, path: Value<'r>) -> Protected<Value<'r>> {
    match Identity::stat(ruby.c_bytes(ruby.path(path)?)?.as_c_str()) {
        Ok(identity) => ruby.freeze(ruby.binary(&identity.to_bytes())?),
        Err(_) => Ok(ruby.nil()),
    }
}

/// list_tree([path, ...], with links) -> [paths, state], frozen Strings, or nil if nothing of it can be stored.
fn list_tree<'r>(ruby: Ruby<'r>, _: Value<'r>, roots: Value<'r>, links: Value<'r>) -> Protected<Value<'r>> {
    let is_written = with_session(ruby, |session| session.is_written() && session.policy() != Policy::Content);
    if is_written != Some(true) {
        return Ok(ruby.nil());
    }
    let root = |at| Ok(path_of(ruby.bytes(ruby.entry_of(roots, at))?));
    let roots: Vec<PathBuf> = (0..ruby.length(roots)?).map(root).collect::<Protected<_>>()?;
    let tree = Tree::list(roots.iter().map(PathBuf::as_path), links.is_truthy()).ok().flatten();
    let Some(Tree { paths, state }) = tree else { return Ok(ruby.nil()) };
    let pair = [ruby.freeze(ruby.binary(&paths)?)?, ruby.freeze(ruby.binary(&state)?)?];
    ruby.array_of(&pair)
}

/// tree_state(paths) -> frozen String, or nil if it has not settled, or times never count.
fn tree_state<'r>(ruby: Ruby<'r>, _: Value<'r>, paths: Value<'r>) -> Protected<Value<'r>> {
    if with_session(ruby, |session| session.policy()) == Some(Policy::Content) {
        return Ok(ruby.nil());
    }
    match ruby.with_bytes(paths, archive::tree_state)? {
        Some(state) => ruby.freeze(ruby.binary(&state)?),
        None => Ok(ruby.nil()),
    }
}

/// fetch(kind number, name, context description) -> [event, payload]; the payload is a frozen String or nil.
fn fetch<'r>(ruby: Ruby<'r>, _: Value<'r>, arguments: &[Value<'r>]) -> Protected<Value<'r>> {
    let [kind, name, context] = arguments else { return Ok(ruby.nil()) };
    let Some(kind) = kind_of(ruby, *kind)? else { return Ok(ruby.nil()) };
    let (name, context) = (ruby.bytes(*name)?, ruby.bytes(*context)?);
    let found = with_session(ruby, |session| {
        let scope = session.scope(kind, &String::from_utf8_lossy(&context));
        let (event, entry) = session.find(scope, &name, None);
        let payload = entry.and_then(|entry| match entry.plain() {
            Some(plain) => Some(ruby.binary_static(plain)),
            None => session.decode(&entry).map(|payload| ruby.binary(payload)),
        });
        (event, payload)
    });
    let (event, payload) = found.unwrap_or((Event::Miss, None));
    let payload = payload.transpose()?.map_or(Ok(ruby.nil()), |payload| ruby.freeze(payload))?;
    ruby.array_of(&[ruby.number(event as usize), payload])
}

/// store(kind number, name, inputs, payload, context description) -> nil. Inputs as Snapboot::Archive.store takes them.
fn store<'r>(ruby: Ruby<'r>, _: Value<'r>, arguments: &[Value<'r>]) -> Protected<Value<'r>> {
    let [kind, name, inputs, payload, context] = arguments else { return Ok(ruby.nil()) };
    let Some(kind) = kind_of(ruby, *kind)? else { return Ok(ruby.nil()) };
    let mut new_inputs = Vec::new();
    for at in 0..ruby.length(*inputs)? {
        let Some(input) = input(ruby, ruby.entry_of(*inputs, at))? else { return Ok(ruby.nil()) };
        new_inputs.push(input);
    }
    let (name, payload, context) = (ruby.bytes(*name)?, ruby.bytes(*payload)?, ruby.bytes(*context)?);
    let is_packed = payload.len() >= WORTH_PACKING && names_this_ruby(ruby, &context)?;
    with_session(ruby, |session| {
        let scope = session.scope(kind, &String::from_utf8_lossy(&context));
        session.add(scope, name, new_inputs, payload, is_packed);
    });
    Ok(ruby.nil())
}

/// Whether a context is one of CRuby alone. Entries that other runtimes may read are stored uncompressed, since they have no decoder.
fn names_this_ruby(ruby: Ruby<'_>, context: &[u8]) -> Protected<bool> {
    let name = [b"ruby ", ruby.version()?.as_slice()].concat();
    Ok(context.windows(name.len()).any(|part| part == name))
}

/// The input of [number of its kind, path or name, identity or value]; `None` if a file had no identity.
fn input(ruby: Ruby<'_>, row: Value<'_>) -> Protected<Option<NewInput>> {
    let (name, third) = (ruby.bytes(ruby.entry_of(row, 1))?, ruby.entry_of(row, 2));
    let third = if third.is_nil() { None } else { Some(ruby.bytes(third)?) };
    let identity = third.as_deref().and_then(Identity::from_bytes);
    Ok(match ruby.integer(ruby.entry_of(row, 0))? {
        0 => identity.map(|identity| NewInput::File(name, identity)),
        1 => identity.map(|identity| NewInput::Directory(name, identity)),
        2 => Some(NewInput::Absent(name)),
        _ => Some(NewInput::Variable(name, third)),
    })
}

/// flush -> nil, or a String that says why nothing was written.
fn flush(ruby: Ruby<'_>) -> Protected<Value<'_>> {
    if let Some(ruby) = ruby.main() {
        boot::record_heap(ruby);
    }
    match archive::session::flush() {
        Err(error) => ruby.text(error.to_string().as_bytes()),
        Ok(()) => Ok(ruby.nil()),
    }
}

/// counters -> [hits, misses, stale, revalidated]
fn counters(ruby: Ruby<'_>) -> Protected<Value<'_>> {
    let Counters { hits, misses, stale, revalidated } =
        with_session(ruby, |session| session.counters).unwrap_or_default();
    ruby.array_of(&[hits, misses, stale, revalidated].map(|number| ruby.number(number)))
}

/// A path of the session (place: the archive's, root: the application's root), or nil.
fn path_in_session(ruby: Ruby<'_>, path: fn(&Session) -> &Path) -> Protected<Value<'_>> {
    let text = with_session(ruby, |session| ruby.text(path(session).as_os_str().as_bytes()));
    text.unwrap_or_else(|| Ok(ruby.nil()))
}

/// switch_on(code, lookups) -> nil, or a String that says what is not switched on.
fn switch_on<'r>(ruby: Ruby<'r>, _: Value<'r>, code: Value<'r>, lookups: Value<'r>) -> Protected<Value<'r>> {
    let Some(ruby) = ruby.main() else { return ruby.text(b"there is an archive only in the main Ractor") };
    let parts = Parts { code: code.is_truthy(), lookups: lookups.is_truthy() };
    SESSION.with(ruby, |session| session.parts = parts);
    match require::switch_on(ruby, parts)? {
        Err(off) => ruby.text(off.words().as_bytes()),
        Ok(()) => Ok(ruby.nil()),
    }
}

/// keeps_code? -> whether code gets into the archive: this Ruby can store code, and only Snapboot defines load_iseq.
fn keeps_code(ruby: Ruby<'_>) -> Protected<Value<'_>> {
    let keeps_code = ruby.main().map_or(Ok(false), code::owns_load_iseq)?;
    Ok(ruby.boolean(keeps_code))
}

/// tell_look_ups -> nil
fn tell_look_ups(ruby: Ruby<'_>) -> Protected<Value<'_>> {
    if let Some(ruby) = ruby.main() {
        events::tell_look_ups(ruby);
    }
    Ok(ruby.nil())
}

/// await_file(name) -> nil
fn await_file<'r>(ruby: Ruby<'r>, _: Value<'r>, name: Value<'r>) -> Protected<Value<'r>> {
    if let Some(ruby) = ruby.main() {
        events::await_file(ruby, ruby.bytes(name)?);
    }
    Ok(ruby.nil())
}

/// A path of bytes.
fn path_of(bytes: Vec<u8>) -> PathBuf {
    PathBuf::from(OsString::from_vec(bytes))
}

fn kind_of(ruby: Ruby<'_>, number: Value<'_>) -> Protected<Option<Kind>> {
    let number = ruby.integer(number)?;
    Ok(Kind::ALL.into_iter().find(|kind| *kind as i64 == number))
}
