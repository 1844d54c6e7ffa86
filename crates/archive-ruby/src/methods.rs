//! Snapboot::Archive::Native: the archive, for Ruby code. `ruby/lib/snapboot/archive/native.rb` says what is for whom.
#![allow(unsafe_code)]

use std::ffi::c_int;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use archive::{Identity, Kind, NewInput, Policy, Tree};

use crate::ruby::{self, method::Function, Protected, Value};
use crate::store::{self, Event, Parts, Store};
use crate::{code, document, endings, events, queue, require, BOOT, STORE};

/// Smaller payloads (bytes) are stored as they are.
const WORTH_PACKING: usize = 256;

/// Defines the methods.
pub fn define() -> Protected {
    let archive = ruby::module_under(ruby::module(c"Snapboot")?, c"Archive")?;
    let native = ruby::keep(ruby::module_under(archive, c"Native")?)?;
    Function::One(open).define_singleton(native, c"open")?;
    Function::One(identity).define_singleton(native, c"identity")?;
    Function::Two(list_tree).define_singleton(native, c"list_tree")?;
    Function::One(tree_state).define_singleton(native, c"tree_state")?;
    Function::Any(fetch).define_singleton(native, c"fetch")?;
    Function::Any(store).define_singleton(native, c"store")?;
    Function::None(flush).define_singleton(native, c"flush")?;
    Function::None(counters).define_singleton(native, c"counters")?;
    Function::None(place).define_singleton(native, c"place")?;
    Function::None(root).define_singleton(native, c"root")?;
    Function::Two(switch_on).define_singleton(native, c"switch_on")?;
    Function::None(keeps_code).define_singleton(native, c"keeps_code?")?;
    Function::One(require::compile).define_singleton(native, c"compile")?;
    Function::None(tell_look_ups).define_singleton(native, c"tell_look_ups")?;
    Function::One(await_file).define_singleton(native, c"await_file")?;
    Function::One(document::document).define_singleton(native, c"document")?;
    Ok(native)
}

/// open(script or nil) -> nil, or a String that says why there is no archive.
extern "C-unwind" fn open(_: Value, script: Value) -> Value {
    ruby::entry(|| {
        let script = if script.is_nil() { None } else { Some(store::path_of(ruby::bytes(script)?)) };
        let mut reason = None;
        STORE.fill(|| Store::open(script.as_deref()).map_err(|error| reason = Some(error)).ok());
        if let Some(reason) = reason {
            return ruby::text(reason.as_bytes());
        }
        if STORE.with(|store| store.is_written()) == Some(true) {
            endings::watch()?;
        }
        Ok(ruby::nil())
    })
}

/// identity(path) -> frozen String, or nil where there is neither a file nor a directory.
extern "C-unwind" fn identity(_: Value, path: Value) -> Value {
    ruby::entry(|| match Identity::of(ruby::c_bytes(ruby::path(path)?)?) {
        Ok(identity) => ruby::freeze(ruby::binary(&identity.to_bytes())?),
        Err(_) => Ok(ruby::nil()),
    })
}

/// list_tree([path, ...], with links) -> [paths, state], frozen Strings, or nil where nothing can be remembered of it.
extern "C-unwind" fn list_tree(_: Value, roots: Value, links: Value) -> Value {
    ruby::entry(|| {
        let is_written = STORE.with(|store| store.is_written() && store.policy() != Policy::Content);
        if is_written != Some(true) {
            return Ok(ruby::nil());
        }
        let root = |at| Ok(store::path_of(ruby::bytes(ruby::entry_of(roots, at))?));
        let roots: Vec<PathBuf> = (0..ruby::length(roots)?).map(root).collect::<Protected<_>>()?;
        let tree = Tree::list(roots.iter().map(PathBuf::as_path), links.is_truthy()).ok().flatten();
        let Some(Tree { paths, state }) = tree else { return Ok(ruby::nil()) };
        let pair = [ruby::freeze(ruby::binary(&paths)?)?, ruby::freeze(ruby::binary(&state)?)?];
        ruby::array_of(&pair)
    })
}

/// tree_state(paths) -> frozen String, or nil where it has not settled, or times never count.
extern "C-unwind" fn tree_state(_: Value, paths: Value) -> Value {
    ruby::entry(|| {
        if STORE.with(|store| store.policy()) == Some(Policy::Content) {
            return Ok(ruby::nil());
        }
        match archive::tree_state(ruby::bytes_in_place(paths)?) {
            Some(state) => ruby::freeze(ruby::binary(&state)?),
            None => Ok(ruby::nil()),
        }
    })
}

/// fetch(kind number, name, context description) -> [event, payload]; the payload is a frozen String or nil.
unsafe extern "C-unwind" fn fetch(count: c_int, arguments: *const Value, _: Value) -> Value {
    // SAFETY: as Ruby gave them.
    let arguments = unsafe { ruby::method::arguments(count, arguments) };
    ruby::entry(|| {
        let [kind, name, context] = arguments else { return Ok(ruby::nil()) };
        let Some(kind) = kind_of(*kind)? else { return Ok(ruby::nil()) };
        let (name, context) = (ruby::bytes(*name)?, ruby::bytes(*context)?);
        let found = STORE.with(|store| {
            let scope = store.scope(kind, &String::from_utf8_lossy(&context));
            let (event, entry) = store.find(scope, &name, None);
            let payload = entry.and_then(|entry| match entry.plain() {
                Some(plain) => Some(ruby::binary_static(plain)),
                None => store.decode(&entry).map(ruby::binary),
            });
            (event, payload)
        });
        let (event, payload) = found.unwrap_or((Event::Miss, None));
        let payload = payload.transpose()?.map_or_else(|| Ok(ruby::nil()), ruby::freeze)?;
        ruby::array_of(&[ruby::number(event as usize), payload])
    })
}

/// store(kind number, name, inputs, payload, context description) -> nil. Inputs as Snapboot::Archive.store takes them.
unsafe extern "C-unwind" fn store(count: c_int, arguments: *const Value, _: Value) -> Value {
    // SAFETY: as Ruby gave them.
    let arguments = unsafe { ruby::method::arguments(count, arguments) };
    ruby::entry(|| {
        let [kind, name, inputs, payload, context] = arguments else { return Ok(ruby::nil()) };
        let Some(kind) = kind_of(*kind)? else { return Ok(ruby::nil()) };
        let mut new_inputs = Vec::new();
        for at in 0..ruby::length(*inputs)? {
            let Some(input) = input(ruby::entry_of(*inputs, at))? else { return Ok(ruby::nil()) };
            new_inputs.push(input);
        }
        let (name, payload, context) = (ruby::bytes(*name)?, ruby::bytes(*payload)?, ruby::bytes(*context)?);
        let is_packed = payload.len() >= WORTH_PACKING && names_this_ruby(&context)?;
        STORE.with(|store| {
            let scope = store.scope(kind, &String::from_utf8_lossy(&context));
            store.add(scope, name, new_inputs, payload, is_packed);
        });
        Ok(ruby::nil())
    })
}

/// Whether a context is one of CRuby alone. What other runtimes may read has to be as it is, since they have no decoder.
fn names_this_ruby(context: &[u8]) -> Protected<bool> {
    let version = ruby::find_constant(ruby::object_class(), "RUBY_VERSION")?.map(ruby::bytes).transpose()?;
    let name = [b"ruby ", version.unwrap_or_default().as_slice()].concat();
    Ok(context.windows(name.len()).any(|part| part == name))
}

/// The input of [number of its kind, path or name, identity or value]; `None` when there was nothing to be looked at.
fn input(row: Value) -> Protected<Option<NewInput>> {
    let (name, third) = (ruby::bytes(ruby::entry_of(row, 1))?, ruby::entry_of(row, 2));
    let third = if third.is_nil() { None } else { Some(ruby::bytes(third)?) };
    let identity = third.as_deref().and_then(Identity::from_bytes);
    Ok(match ruby::integer(ruby::entry_of(row, 0))? {
        0 => identity.map(|identity| NewInput::File(name, identity)),
        1 => identity.map(|identity| NewInput::Directory(name, identity)),
        2 => Some(NewInput::Absent(name)),
        _ => Some(NewInput::Variable(name, third)),
    })
}

/// flush -> nil, or a String that says why nothing was written.
extern "C-unwind" fn flush(_: Value) -> Value {
    note_heap();
    ruby::entry(|| match queue::flush() {
        Err(reason) => ruby::text(reason.as_bytes()),
        Ok(()) => Ok(ruby::nil()),
    })
}

/// Queues what this boot was like.
pub fn note_heap() {
    BOOT.with(|boot| STORE.with(|store| boot.heap.note(store)));
}

/// counters -> [hits, misses, stale, revalidated]
extern "C-unwind" fn counters(_: Value) -> Value {
    let counters = STORE.with(|store| store.counters).unwrap_or_default();
    let numbers = [counters.hits, counters.misses, counters.stale, counters.revalidated].map(ruby::number);
    ruby::entry(|| ruby::array_of(&numbers))
}

/// place -> the archive's path, or nil
extern "C-unwind" fn place(_: Value) -> Value {
    path_in_store(Store::path)
}

/// root -> the application's root, or nil
extern "C-unwind" fn root(_: Value) -> Value {
    path_in_store(Store::root)
}

fn path_in_store(path: fn(&Store) -> &Path) -> Value {
    ruby::entry(|| {
        let text = STORE.with(|store| ruby::text(path(store).as_os_str().as_bytes()));
        text.unwrap_or_else(|| Ok(ruby::nil()))
    })
}

/// switch_on(code, lookups) -> nil, or a String that says what is not switched on.
extern "C-unwind" fn switch_on(_: Value, code: Value, lookups: Value) -> Value {
    let parts = Parts { code: code.is_truthy(), lookups: lookups.is_truthy() };
    STORE.with(|store| store.parts = parts);
    ruby::entry(|| match require::switch_on(parts)? {
        Err(reason) => ruby::text(reason.as_bytes()),
        Ok(()) => Ok(ruby::nil()),
    })
}

/// keeps_code? -> whether code gets into the archive: this Ruby has such code, and nobody else gives it any.
extern "C-unwind" fn keeps_code(_: Value) -> Value {
    ruby::entry(|| code::is_asked_alone().map(ruby::boolean))
}

/// tell_look_ups -> nil
extern "C-unwind" fn tell_look_ups(_: Value) -> Value {
    events::tell_look_ups();
    ruby::nil()
}

/// await_file(name) -> nil
extern "C-unwind" fn await_file(_: Value, name: Value) -> Value {
    ruby::entry(|| {
        events::await_file(ruby::bytes(name)?);
        Ok(ruby::nil())
    })
}

fn kind_of(number: Value) -> Protected<Option<Kind>> {
    let number = ruby::integer(number)?;
    Ok(Kind::ALL.into_iter().find(|kind| *kind as i64 == number))
}
