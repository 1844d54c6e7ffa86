//! Kernel#require and #require_relative over the archive. It finds the file; Ruby's own require, which gets its absolute path, does
//! all the rest: only Ruby knows what is loaded, what is being loaded and by whom. What the archive does not know goes the
//! ordinary way.
//!
//! There are two requires. The innermost takes the place of Ruby's own (`gem_original_require` where RubyGems is loaded).
//! The outermost stands before RubyGems' and goes around it where that would do nothing: no default gem of that name waits to be
//! activated, and no gem's dependencies are open.

use std::collections::HashSet;
use std::ffi::CString;
use std::sync::OnceLock;

use crate::boot::{Boot, Script};
use crate::code::{self, Code, Known};
use crate::directories::{real_path, Answer, Directories};
use crate::heap::Heap;
use crate::load_path::LoadPath;
use crate::names::{self, Extension, Place};
use crate::ruby::{self, method::Function, Id, Protected, Provided, Value};
use crate::store::Parts;
use crate::{events, tracers, BOOT, STORE};

/// What require was before: a private method of Kernel.
const BEFORE: &str = "snapboot_require_before";

/// Kernel.method(:require_relative), as it was.
static RELATIVE_BEFORE: OnceLock<Value> = OnceLock::new();

/// RubyGems, what it knows of gems, and what it is asked.
static GEMS: OnceLock<(Value, Value, [Id; 3])> = OnceLock::new();

/// Switches it on. Needs an open archive. The answer says why some of it is not on, if so.
pub fn switch_on(parts: Parts) -> Protected<Result<(), &'static str>> {
    // Ruby would warn of each method that is defined again.
    ruby::without_warnings(|| define(parts))
}

fn define(parts: Parts) -> Protected<Result<(), &'static str>> {
    let version = ruby::find_constant(ruby::object_class(), "RUBY_VERSION")?.map(ruby::bytes).transpose()?;
    let version = version.unwrap_or_default();
    let is_known = matches!(version.get(..4), Some([b'3', b'.', b'0'..=b'4', b'.']));
    ruby::look_up(is_known)?;
    tracers::watch()?;
    let description = code::description()?;
    let code = STORE.with(|store| parts.code.then(|| Code::switch_on(store, &description))).flatten();
    let code = code.transpose()?.flatten();
    let has_code = code.is_some();
    let load_path = LoadPath::new()?;
    let boot = STORE.with(|store| {
        Ok(Boot {
            directories: Directories::new(store),
            load_path,
            code,
            heap: Heap::new(store, &description, &version)?,
            lasting: HashSet::new(),
            has_links: None,
        })
    });
    let boot = boot.transpose()?;
    BOOT.fill(|| boot);
    if let Err(reason) = define_require()? {
        return Ok(Err(reason));
    }
    Ok(if has_code || !parts.code {
        Ok(())
    } else {
        Err("this Ruby has no code that can be kept, or gets it from somebody else")
    })
}

/// Takes the place of require and require_relative.
fn define_require() -> Protected<Result<(), &'static str>> {
    let kernel = ruby::kernel();
    let is_gems = ruby::has_private_method(kernel, "gem_original_require")?;
    if ruby::source_of(kernel, if is_gems { "gem_original_require" } else { "require" })?.is_some() {
        return Ok(Err("somebody else has changed require"));
    }
    if is_gems {
        ruby::alias(kernel, BEFORE, "require")?;
    }
    // Its label in backtraces is `require`, as that of Ruby's own.
    Function::One(inner).define_private(kernel, c"require")?;
    Function::One(inner).define_singleton(kernel, c"require")?;
    if is_gems {
        ruby::alias(kernel, "gem_original_require", "require")?;
        if ruby::source_of(kernel, BEFORE)?.is_some_and(|file| is_of_gems(&file)) && find_gems()? {
            Function::One(outer).define_private(kernel, c"require")?;
        } else {
            ruby::alias(kernel, "require", BEFORE)?;
        }
    }
    if ruby::source_of(kernel, "require_relative")?.is_none() {
        let before = ruby::keep(ruby::own_method(kernel, "require_relative")?)?;
        RELATIVE_BEFORE.get_or_init(|| before);
        Function::One(relative).define_private(kernel, c"require_relative")?;
        Function::One(relative).define_singleton(kernel, c"require_relative")?;
    }
    Ok(Ok(()))
}

/// Whether RubyGems' require comes from that file.
fn is_of_gems(file: &[u8]) -> bool {
    file.strip_suffix(b">").unwrap_or(file).ends_with(b"/rubygems/core_ext/kernel_require.rb")
}

/// Finds RubyGems.
fn find_gems() -> Protected<bool> {
    let Some(gem) = ruby::find_constant(ruby::object_class(), "Gem")? else { return Ok(false) };
    let Some(specification) = ruby::find_constant(gem, "Specification")? else { return Ok(false) };
    let ids =
        [ruby::intern("find_unresolved_default_spec")?, ruby::intern("unresolved_deps")?, ruby::intern("empty?")?];
    let is_known = ruby::responds_to(gem, ids[0])? && ruby::responds_to(specification, ids[1])?;
    Ok(is_known && GEMS.set((ruby::keep(gem)?, ruby::keep(specification)?, ids)).is_ok())
}

extern "C-unwind" fn inner(receiver: Value, name: Value) -> Value {
    ruby::entry(|| require(receiver, name, Level::Inner))
}

extern "C-unwind" fn outer(receiver: Value, name: Value) -> Value {
    ruby::entry(|| {
        if ruby::is_main_ractor() && name.is_string() && is_gems_idle(name)? {
            require(receiver, name, Level::Outer)
        } else {
            Level::Outer.ordinary(receiver, name)
        }
    })
}

/// Whether RubyGems' require would go straight on to Ruby's own.
fn is_gems_idle(name: Value) -> Protected<bool> {
    let Some((gem, specification, [default, open, is_empty])) = GEMS.get() else { return Ok(false) };
    Ok(names::is_plain(ruby::bytes_in_place(name)?)
        && !ruby::call(*gem, *default, &[name])?.is_truthy()
        && ruby::call(ruby::call(*specification, *open, &[])?, *is_empty, &[])?.is_truthy())
}

/// require_relative(name)
extern "C-unwind" fn relative(receiver: Value, name: Value) -> Value {
    ruby::entry(|| {
        let file = if ruby::is_main_ractor() { ruby::caller_file()? } else { None };
        match (file, RELATIVE_BEFORE.get()) {
            (Some(file), _) => require(receiver, ruby::beside(name, file)?, Level::Inner),
            // The file of eval'ed code is known to Ruby alone. It looks behind frames that pass their block on.
            (None, Some(before)) => ruby::call_with_block(*before, ruby::intern("call")?, &[name]),
            (None, None) => Ok(ruby::nil()),
        }
    })
}

/// Which require is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    Inner,
    Outer,
}

impl Level {
    /// Goes the way that was there before.
    fn ordinary(self, receiver: Value, name: Value) -> Protected {
        match self {
            Level::Inner => ruby::original_require(receiver, name),
            Level::Outer => ruby::send(receiver, BEFORE, &[name]),
        }
    }
}

/// What is to be done for a feature.
#[derive(Debug)]
enum Step {
    /// Nothing: it is loaded.
    Nothing,
    /// Ask Ruby, which knows it: as loaded, or being loaded.
    Known,
    /// Have Ruby load a script.
    Script(Script),
    /// Have Ruby load an extension library.
    Library(CString),
    /// Say that it is nowhere.
    NotFound,
    /// Let Ruby see to it.
    Ordinary,
}

fn require(receiver: Value, name: Value, level: Level) -> Protected {
    if !ruby::is_main_ractor() {
        return level.ordinary(receiver, name);
    }
    let name = ruby::path(name)?;
    let feature = ruby::c_bytes(name)?.to_bytes();
    let awaited = events::awaited(feature);
    let loaded = match decide(feature)? {
        Step::Nothing => ruby::boolean(false),
        Step::Known => ruby::original_require(receiver, name)?,
        Step::Script(script) => load(receiver, script)?,
        Step::Library(path) => ruby::original_require(receiver, ruby::file_name(path.to_bytes())?)?,
        Step::NotFound if level == Level::Inner => ruby::not_found(name)?,
        Step::NotFound | Step::Ordinary => level.ordinary(receiver, name)?,
    };
    if let Some(awaited) = awaited.filter(|_| loaded.is_truthy()) {
        events::loaded(&awaited)?;
    }
    Ok(loaded)
}

/// What a feature leads to.
fn decide(feature: &[u8]) -> Protected<Step> {
    let place = Place::of(feature);
    let has_lookups = STORE.with(|store| store.parts.lookups) == Some(true);
    if !has_lookups
        || place == Place::Explicit
        || !names::is_plain(feature)
        || (place == Place::LoadPath && !update_load_path()?)
    {
        return Ok(Step::Ordinary);
    }
    let extension = Extension::of(feature);
    let is_known = match extension {
        Extension::None => provided(&[feature, b".rb"].concat())?,
        Extension::Script | Extension::Library => provided(feature)?,
    };
    if is_known != Provided::No {
        return Ok(Step::Known);
    }
    let step = look(feature, extension)?;
    // RubyGems asks for it once more right after the outermost require.
    if !matches!(step, Step::NotFound) || BOOT.with(|boot| boot.directories.was_missing(feature)) == Some(true) {
        return Ok(step);
    }
    // It may have been put there just now.
    BOOT.with(|boot| boot.directories.begin_round());
    let step = look(feature, extension)?;
    if matches!(step, Step::NotFound) {
        BOOT.with(|boot| boot.directories.note_missing(feature));
    }
    Ok(step)
}

/// What a feature that is not loaded leads to.
fn look(feature: &[u8], extension: Extension) -> Protected<Step> {
    let stem = extension.stem(feature);
    let find = |ending: &[u8]| BOOT.with(|boot| STORE.with(|store| boot.find(stem, ending, store)))?;
    if extension != Extension::Library {
        match find(b".rb") {
            Some(Answer::There(script)) => return Ok(Step::Script(script)),
            Some(Answer::NotThere) if extension == Extension::Script => return Ok(Step::NotFound),
            Some(Answer::NotThere) => {}
            Some(Answer::Unknown) | None => return Ok(Step::Ordinary),
        }
        // As a library, or under a name without any extension.
        match provided(feature)? {
            Provided::No => {}
            Provided::Yes => return Ok(Step::Nothing),
            Provided::Loading => return Ok(Step::Known),
        }
    }
    Ok(match find(b".so") {
        Some(Answer::There(library)) => Step::Library(library.path),
        // Ruby goes on with `x.so.rb`.
        Some(Answer::NotThere) if extension == Extension::None => Step::NotFound,
        _ => Step::Ordinary,
    })
}

/// What Ruby knows of a feature.
fn provided(feature: &[u8]) -> Protected<Provided> {
    match CString::new(feature) {
        Ok(feature) => ruby::provided(&feature),
        Err(_) => Ok(Provided::No),
    }
}

/// Has Ruby load a script and make it a feature.
fn load(receiver: Value, script: Script) -> Protected {
    if let Some((objects, pages)) = BOOT.with(|boot| boot.heap.count()).transpose()?.flatten() {
        ruby::make_room(objects, pages)?;
    }
    let name = ruby::file_name(script.path.to_bytes())?;
    let is_free = code::is_free()?;
    let known = if is_free { code::find(&script)? } else { Known::Nothing };
    if known == Known::Empty && can_provide(&script)? {
        let path = BOOT.with(|boot| boot.lasting(script.path)).unwrap_or_default();
        ruby::provide(path)?;
        return Ok(ruby::boolean(true));
    }
    if is_free {
        code::expect(script, known);
    }
    let loaded = ruby::original_require(receiver, name);
    // Ruby may not have asked for it, and nobody keeps it from here on.
    code::expect_nothing();
    std::hint::black_box(known);
    loaded
}

/// Whether a script without any code can be made a feature just so. There is nothing to be run, so nobody can ask for it meanwhile.
/// But Ruby would note its real path, too, and ask others for its code.
fn can_provide(script: &Script) -> Protected<bool> {
    if BOOT.with(|boot| boot.has_links) == Some(None) {
        let has_links = loads_through_links()?;
        BOOT.with(|boot| boot.has_links = Some(has_links));
    }
    Ok(BOOT.with(|boot| boot.has_links) == Some(Some(false))
        && ruby::provided(&script.path)? == Provided::No
        && code::is_asked_alone()?)
}

/// Whether one of the features has been loaded by a path that is not its real one.
fn loads_through_links() -> Protected<bool> {
    let features = ruby::global(c"$LOADED_FEATURES")?;
    for position in 0..ruby::length(features)? {
        let feature = ruby::entry_of(features, position);
        let path = if feature.is_string() { ruby::bytes_in_place(feature)? } else { b"" };
        if path.starts_with(b"/") && real_path(path).is_none_or(|real| real != path) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Looks whether $LOAD_PATH has changed. Whether its directories are known.
fn update_load_path() -> Protected<bool> {
    let known = BOOT.with(|boot| (boot.load_path.array(), boot.load_path.is_current()));
    let Some((array, is_current)) = known else { return Ok(false) };
    if !is_current? {
        let elements = load_path_elements(array)?;
        BOOT.with(|boot| boot.load_path.set(elements, &mut boot.directories)).transpose()?;
    }
    Ok(BOOT.with(|boot| boot.load_path.roots().is_some()) == Some(true))
}

/// The elements of $LOAD_PATH, if all are strings.
fn load_path_elements(array: Value) -> Protected<Option<Vec<Vec<u8>>>> {
    let mut elements = Vec::new();
    for position in 0..ruby::length(array)? {
        let element = ruby::entry_of(array, position);
        if !element.is_string() {
            return Ok(None);
        }
        // As Ruby does: so that it cannot change without the array.
        ruby::freeze(element)?;
        elements.push(ruby::c_bytes(ruby::path(element)?)?.to_bytes().to_vec());
    }
    Ok(Some(elements))
}

/// compile(path or feature with extension) -> true, or nil where nothing came of it. Has Ruby compile a script that the archive does
/// not hold yet. Ruby would run it next: whoever calls this has a TracePoint that throws as soon as it is compiled.
pub extern "C-unwind" fn compile(receiver: Value, name: Value) -> Value {
    ruby::entry(|| {
        let Some(script) = find_script(ruby::path(name)?)? else { return Ok(ruby::nil()) };
        if code::is_kept(&script) {
            return Ok(ruby::boolean(true));
        }
        let path = ruby::file_name(script.path.to_bytes())?;
        code::expect(script, Known::Nothing);
        ruby::send(receiver, "load", &[path])
    })
}

/// The script of that path or feature.
fn find_script(name: Value) -> Protected<Option<Script>> {
    let feature = ruby::c_bytes(name)?.to_bytes();
    if !names::is_plain(feature) || !feature.ends_with(b".rb") {
        return Ok(None);
    }
    if !feature.starts_with(b"/") && !update_load_path()? {
        return Ok(None);
    }
    let stem = names::without_extension(feature);
    let found = BOOT.with(|boot| STORE.with(|store| boot.find(stem, b".rb", store))).flatten();
    Ok(found.and_then(|found| if let Answer::There(script) = found { Some(script) } else { None }))
}
