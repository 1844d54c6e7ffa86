//! Kernel#require and #require_relative over the archive. It finds the file and passes its absolute path to Ruby's own require, which does
//! the rest: only Ruby knows which features are loaded, and which thread is loading one. If the archive has no answer, the original require
//! runs.
//!
//! There are two requires. The inner one replaces Ruby's own (`gem_original_require` if RubyGems is loaded). The outer one replaces
//! RubyGems', and skips it if that would do nothing.

use std::ffi::CString;
use std::sync::OnceLock;

use archive::session::{Directories, LookUp, Parts, Share};

use crate::boot::{self, Boot, BOOT};
use crate::code::{self, Known};
use crate::events::Finder;
use crate::heap::Heap;
use crate::load_path::LoadPath;
use crate::names::{self, Extension, Place};
use crate::ruby::{Main, Method, Protected, Provided, Ruby, Value};
use crate::script::Script;
use crate::session::SESSION;
use crate::{events, gems, linked_in};

/// The name under which the original require remains: a private method of Kernel.
const BEFORE: &str = "snapboot_require_before";

/// The original Kernel.method(:require_relative).
static RELATIVE_BEFORE: OnceLock<Value<'static>> = OnceLock::new();

/// Why some of it stays off.
#[derive(Clone, Copy, Debug)]
pub enum Off {
    /// Another library has replaced require.
    Require,
    /// Compiled code cannot be stored.
    Code,
}

impl Off {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Off::Require => "another library has replaced require",
            Off::Code => "this Ruby cannot store compiled code, or another library provides it",
        }
    }
}

/// Switches it on. Needs an open archive.
pub fn switch_on(ruby: Main<'_>, parts: Parts) -> Protected<Result<(), Off>> {
    // Ruby would warn of each method that is redefined.
    ruby.without_warnings(|| define(ruby, parts))
}

fn define(ruby: Main<'_>, parts: Parts) -> Protected<Result<(), Off>> {
    let version = ruby.version()?;
    let description = code::description(*ruby)?;
    let has_code = parts.code && code::switch_on(ruby, &description)?;
    let load_path = LoadPath::new(*ruby)?;
    let tells_given_name = ruby.tells_given_name()?;
    let boot = SESSION.with(ruby, |session| {
        Ok(Boot {
            directories: Directories::new(session, Share::Unheard),
            load_path,
            heap: Heap::new(*ruby, session, &description, &version)?,
            tells_given_name,
        })
    });
    let boot = boot.transpose()?;
    BOOT.fill(ruby, || boot);
    if let Err(off) = define_require(*ruby)? {
        return Ok(Err(off));
    }
    Ok(if has_code || !parts.code { Ok(()) } else { Err(Off::Code) })
}

/// Replaces require and require_relative.
fn define_require(ruby: Ruby<'_>) -> Protected<Result<(), Off>> {
    let kernel = ruby.kernel();
    let has_gems = ruby.has_private_method(kernel, "gem_original_require")?;
    if ruby.source_of(kernel, if has_gems { "gem_original_require" } else { "require" })?.is_some() {
        return Ok(Err(Off::Require));
    }
    let is_own = replace_own(ruby, kernel, || ruby.define_private(kernel, c"require", Method::one(inner)))?;
    if !is_own && ruby.source_of(kernel, "require")?.is_some_and(|file| gems::is_require(&file)) && gems::find(ruby)? {
        ruby.define_private(kernel, c"require", Method::one(outer))?;
    }
    let singleton = ruby.send(kernel, "singleton_class", &[])?;
    replace_own(ruby, singleton, || ruby.define_singleton(kernel, c"require", Method::one(inner)))?;
    if ruby.source_of(kernel, "require_relative")?.is_none() {
        let before = ruby.keep(ruby.own_method(kernel, "require_relative")?)?;
        RELATIVE_BEFORE.get_or_init(|| before);
        ruby.define_private(kernel, c"require_relative", Method::one(relative))?;
        ruby.define_singleton(kernel, c"require_relative", Method::one(relative))?;
    }
    Ok(Ok(()))
}

/// Replaces Ruby's own require in a class, under all names that it has there: RubyGems and Zeitwerk keep it under others. `define`: makes
/// ours `require`, whose label in backtraces is then that of Ruby's own. Returns whether `require` was Ruby's own, as it is again once
/// Bundler has removed RubyGems'; if not, it stays, and has the name [`BEFORE`], too.
fn replace_own(ruby: Ruby<'_>, class: Value<'_>, define: impl FnOnce() -> Protected<()>) -> Protected<bool> {
    let names = ruby.names_of_c_method(class, "require")?;
    let is_own = names.iter().any(|name| name == "require");
    if !is_own {
        ruby.alias(class, BEFORE, "require")?;
    }
    define()?;
    for name in names.iter().filter(|name| *name != "require") {
        ruby.alias(class, name, "require")?;
    }
    if !is_own {
        ruby.alias(class, "require", BEFORE)?;
    }
    Ok(is_own)
}

/// Ruby's own require(name).
fn inner<'r>(ruby: Ruby<'r>, receiver: Value<'r>, name: Value<'r>) -> Protected<Value<'r>> {
    match ruby.main() {
        // Only Ruby knows how often other objects must be asked for their name.
        Some(main) if ruby.is_string(name) => require(main, receiver, name, Level::Inner),
        _ => Level::Inner.original(ruby, receiver, name),
    }
}

/// RubyGems' require(name).
fn outer<'r>(ruby: Ruby<'r>, receiver: Value<'r>, name: Value<'r>) -> Protected<Value<'r>> {
    match ruby.main() {
        Some(main) if ruby.is_string(name) && gems::are_idle(ruby, name)? => {
            require(main, receiver, name, Level::Outer)
        }
        _ => Level::Outer.original(ruby, receiver, name),
    }
}

/// require_relative(name)
fn relative<'r>(ruby: Ruby<'r>, receiver: Value<'r>, name: Value<'r>) -> Protected<Value<'r>> {
    let main = ruby.main();
    let file = main.map(|_| ruby.caller_file()).transpose()?.flatten();
    match (main.zip(file), RELATIVE_BEFORE.get()) {
        (Some((main, file)), _) => require(main, receiver, ruby.beside(name, file)?, Level::Inner),
        // Only Ruby knows the file of eval'ed code. It skips frames that pass their block on.
        (None, Some(before)) => ruby.call_with_block(*before, ruby.intern("call")?, &[name]),
        (None, None) => Ok(ruby.nil()),
    }
}

/// Which require was called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    Inner,
    Outer,
}

impl Level {
    /// Calls the method that this one replaced.
    fn original<'r>(self, ruby: Ruby<'r>, receiver: Value<'r>, name: Value<'r>) -> Protected<Value<'r>> {
        match self {
            Level::Inner => ruby.original_require(receiver, name),
            Level::Outer => ruby.send(receiver, BEFORE, &[name]),
        }
    }
}

/// The result of a look-up of a feature.
#[derive(Debug)]
enum Step {
    /// It is loaded.
    Loaded,
    /// Ruby knows it, as loaded or being loaded.
    Known,
    Script(Script),
    /// An extension library at that path.
    Library(CString),
    NotFound,
    /// The archive has no answer.
    Unknown,
}

/// `given`: a String.
fn require<'r>(ruby: Main<'r>, receiver: Value<'r>, given: Value<'r>, level: Level) -> Protected<Value<'r>> {
    let name = ruby.path(given)?;
    let feature = ruby.c_bytes(name)?;
    let feature = feature.as_bytes();
    let awaited = events::awaited(ruby, feature);
    let loaded = match decide(ruby, feature)? {
        Step::Loaded => ruby.boolean(false),
        Step::Known => ruby.original_require(receiver, name)?,
        Step::Script(script) => load(ruby, receiver, script)?,
        Step::Library(path) => ruby.original_require(receiver, ruby.file_name(path.to_bytes())?)?,
        Step::NotFound if level == Level::Inner => {
            let tells_given = BOOT.with(ruby, |boot| boot.tells_given_name) == Some(true);
            ruby.not_found(if tells_given { given } else { name })?
        }
        Step::NotFound | Step::Unknown => level.original(*ruby, receiver, given)?,
    };
    if let Some(awaited) = awaited.filter(|_| loaded.is_truthy()) {
        events::loaded(ruby, &awaited)?;
    }
    Ok(loaded)
}

/// Looks a feature up.
fn decide(ruby: Main<'_>, feature: &[u8]) -> Protected<Step> {
    let place = Place::in_feature(feature);
    let has_lookups = SESSION.with(ruby, |session| session.parts.lookups) == Some(true);
    if !has_lookups
        || place == Place::Explicit
        || !names::is_plain(feature)
        || (place == Place::LoadPath && !boot::update_load_path(ruby)?)
    {
        return Ok(Step::Unknown);
    }
    let extension = Extension::in_feature(feature);
    let is_known = match extension {
        Extension::None => provided(ruby, &[feature, b".rb"].concat())?,
        Extension::Script | Extension::Library => provided(ruby, feature)?,
    };
    if is_known != Provided::No {
        return Ok(Step::Known);
    }
    let step = look_up(ruby, feature, extension)?;
    // After the outer require, RubyGems calls the inner one with the same feature.
    if !matches!(step, Step::NotFound) || BOOT.with(ruby, |boot| boot.directories.was_missing(feature)) == Some(true) {
        return Ok(step);
    }
    // The file may have been created a moment ago.
    BOOT.with(ruby, |boot| boot.directories.begin_round());
    let step = look_up(ruby, feature, extension)?;
    if matches!(step, Step::NotFound) {
        BOOT.with(ruby, |boot| boot.directories.note_missing(feature));
    }
    Ok(step)
}

/// Looks up a feature that is not loaded.
fn look_up(ruby: Main<'_>, feature: &[u8], extension: Extension) -> Protected<Step> {
    let stem = extension.stem(feature);
    let find =
        |ending: &[u8]| BOOT.with(ruby, |boot| SESSION.with(ruby, |session| boot.find(stem, ending, session)))?;
    if extension != Extension::Library {
        match find(b".rb") {
            Some(LookUp::Found(script)) => return Ok(Step::Script(script)),
            Some(LookUp::NotFound) if extension == Extension::Script => return Ok(Step::NotFound),
            Some(LookUp::NotFound) => {}
            Some(LookUp::Unknown) | None => return Ok(Step::Unknown),
        }
        // As a library, or under a name without any extension.
        match provided(ruby, feature)? {
            Provided::No => {}
            Provided::Yes => return Ok(Step::Loaded),
            Provided::Loading => return Ok(Step::Known),
        }
    }
    Ok(match find(b".so") {
        Some(LookUp::Found(library)) => Step::Library(library.path),
        Some(LookUp::NotFound) if extension == Extension::None && linked_in::may_have(ruby, stem)? => Step::Unknown,
        // Ruby would also look for `x.so.rb`.
        Some(LookUp::NotFound) if extension == Extension::None => Step::NotFound,
        _ => Step::Unknown,
    })
}

/// Ruby's own state of a feature.
fn provided(ruby: Main<'_>, feature: &[u8]) -> Protected<Provided> {
    match CString::new(feature) {
        Ok(feature) => ruby.provided(&feature),
        Err(_) => Ok(Provided::No),
    }
}

/// Loads a script and makes it a feature.
fn load<'r>(ruby: Main<'r>, receiver: Value<'r>, script: Script) -> Protected<Value<'r>> {
    if let Some((slots, pages)) = BOOT.with(ruby, |boot| boot.heap.count(ruby)).transpose()?.flatten() {
        ruby.make_room(&slots, pages)?;
    }
    if !code::is_usable(ruby)? {
        return load_source(ruby, receiver, &script);
    }
    let known = code::find(ruby, &script, Finder::Archive)?;
    load_with_code(ruby, receiver, script, known)
}

/// Lets Ruby compile and run it.
fn load_source<'r>(ruby: Main<'r>, receiver: Value<'r>, script: &Script) -> Protected<Value<'r>> {
    ruby.original_require(receiver, ruby.file_name(script.path.to_bytes())?)
}

/// Lets Ruby run the code from the archive, or compile the file and store its code.
fn load_with_code<'r>(
    ruby: Main<'r>,
    receiver: Value<'r>,
    script: Script,
    known: Known<Value<'r>>,
) -> Protected<Value<'r>> {
    let name = ruby.file_name(script.path.to_bytes())?;
    code::expecting(ruby, script, known, || ruby.original_require(receiver, name))
}

/// compile(path or feature with extension) -> true, or nil if that failed. Lets Ruby compile a script that the archive does not have yet.
/// Ruby would run it next: the caller has a TracePoint that throws as soon as it is compiled.
pub fn compile<'r>(ruby: Ruby<'r>, receiver: Value<'r>, name: Value<'r>) -> Protected<Value<'r>> {
    let Some(ruby) = ruby.main() else { return Ok(ruby.nil()) };
    let feature = ruby.c_bytes(ruby.path(name)?)?;
    let Some(script) = find_script(ruby, feature.as_bytes())? else { return Ok(ruby.nil()) };
    if code::is_stored(ruby, &script) {
        return Ok(ruby.boolean(true));
    }
    let path = ruby.file_name(script.path.to_bytes())?;
    code::expecting(ruby, script, Known::Nothing, || ruby.send(receiver, "load", &[path]))
}

/// The script of that path or feature.
fn find_script(ruby: Main<'_>, feature: &[u8]) -> Protected<Option<Script>> {
    if !names::is_plain(feature) || !feature.ends_with(b".rb") {
        return Ok(None);
    }
    if !feature.starts_with(b"/") && !boot::update_load_path(ruby)? {
        return Ok(None);
    }
    let stem = names::without_extension(feature);
    match BOOT.with(ruby, |boot| SESSION.with(ruby, |session| boot.find(stem, b".rb", session))).flatten() {
        Some(LookUp::Found(script)) => Ok(Some(script)),
        _ => Ok(None),
    }
}
