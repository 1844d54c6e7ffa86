//! Kernel#require, #require_relative and #load over the archive. What it does not know goes the ordinary way, with the absolute
//! path where that is known.
//!
//! There are two requires. The innermost takes the place of Ruby's own (`gem_original_require` where RubyGems is loaded).
//! The outermost stands before RubyGems' and goes around it where that would do nothing: no default gem of that name waits to be
//! activated, and no gem's dependencies are open.
#![allow(unsafe_code)]

use std::ffi::{c_int, CStr, CString};
use std::sync::OnceLock;

use crate::autoloads::{self, Autoloads};
use crate::boot::{Boot, Script, Step};
use crate::code::{self, Code};
use crate::directories::Directories;
use crate::features::Features;
use crate::heap::Heap;
use crate::load_path::LoadPath;
use crate::loading::Loading;
use crate::names::{self, Place};
use crate::ruby::{self, method::Function, Id, Value};
use crate::{events, tracers, BOOT, STORE};

/// What these methods were before: private methods of Kernel.
const BEFORE: &str = "snapboot_require_before";
const RELATIVE_BEFORE: &str = "snapboot_require_relative_before";
const LOAD_BEFORE: &str = "snapboot_load_before";

/// RubyGems, what it knows of gems, and what it is asked.
static GEMS: OnceLock<(Value, Value, [Id; 3])> = OnceLock::new();

/// RubyVM::InstructionSequence.method(:compile_option=), as it was.
static COMPILE_OPTION_BEFORE: OnceLock<Value> = OnceLock::new();

/// Switches it on. Needs an open archive. The answer says why some of it is not on, if so.
pub fn switch_on() -> Result<(), &'static str> {
    // Ruby would warn of each method that is defined again.
    ruby::without_warnings(define)
}

fn define() -> Result<(), &'static str> {
    let version = ruby::constant(ruby::object_class(), ruby::intern("RUBY_VERSION")).map(ruby::bytes);
    let version = version.unwrap_or_default();
    let is_known = matches!(version.get(..4), Some([b'3', b'.', b'0'..=b'4', b'.']));
    ruby::look_up(is_known, version.starts_with(b"3.1."));
    let description = description();
    BOOT.fill(|| {
        STORE.with(|store| {
            Some(Boot {
                directories: Directories::new(store),
                load_path: LoadPath::new(),
                features: Features::new(),
                loading: Loading::default(),
                code: Code::new(store, &description)?,
                heap: Heap::new(store, &description, &version),
                knows_real_paths: !version.starts_with(b"3.0."),
                autoloads: Autoloads::default(),
                wrapped: 0,
            })
        })?
    });
    let Some(class) = BOOT.with(|boot| boot.code.class()) else { return Err("this Ruby has no code that can be kept") };
    keep_setter(class);
    autoloads::watch();
    tracers::watch();
    let kernel = ruby::kernel();
    let is_gems = ruby::has_private_method(kernel, "gem_original_require");
    if ruby::source_of(kernel, if is_gems { "gem_original_require" } else { "require" }).is_some() {
        return Err("somebody else has changed require");
    }
    if is_gems {
        ruby::alias(kernel, BEFORE, "require");
    }
    // Its label in backtraces is `require`, as that of Ruby's own.
    Function::One(inner).define_private(kernel, c"require");
    Function::One(inner).define_singleton(kernel, c"require");
    if is_gems {
        ruby::alias(kernel, "gem_original_require", "require");
        if ruby::source_of(kernel, BEFORE).is_some_and(|file| is_of_gems(&file)) && find_gems() {
            Function::One(outer).define_private(kernel, c"require");
        } else {
            ruby::alias(kernel, "require", BEFORE);
        }
    }
    if ruby::source_of(kernel, "require_relative").is_none() {
        ruby::alias(kernel, RELATIVE_BEFORE, "require_relative");
        Function::One(relative).define_private(kernel, c"require_relative");
        Function::One(relative).define_singleton(kernel, c"require_relative");
    }
    if ruby::source_of(kernel, "load").is_none() {
        ruby::alias(kernel, LOAD_BEFORE, "load");
        Function::Any(load).define_private(kernel, c"load");
        Function::Any(load).define_singleton(kernel, c"load");
    }
    Ok(())
}

/// Whether RubyGems' require comes from that file.
fn is_of_gems(file: &[u8]) -> bool {
    file.strip_suffix(b">").unwrap_or(file).ends_with(b"/rubygems/core_ext/kernel_require.rb")
}

/// What code depends on besides its source.
fn description() -> String {
    let ruby = ruby::constant(ruby::object_class(), ruby::intern("RUBY_DESCRIPTION")).map(ruby::bytes);
    let ruby = String::from_utf8_lossy(&ruby.unwrap_or_default()).replace(" +YJIT", "");
    let class = ruby::constant(ruby::object_class(), ruby::intern("RubyVM"));
    let class = class.and_then(|outer| ruby::constant(outer, ruby::intern("InstructionSequence")));
    let options = class.map(|class| ruby::call(class, ruby::intern("compile_option"), &[]));
    let options = options.map(|options| ruby::bytes(ruby::call(options, ruby::intern("inspect"), &[])));
    format!("{ruby} {}", String::from_utf8_lossy(&options.unwrap_or_default()))
}

/// Finds RubyGems.
fn find_gems() -> bool {
    let Some(gem) = ruby::constant(ruby::object_class(), ruby::intern("Gem")) else { return false };
    let Some(specification) = ruby::constant(gem, ruby::intern("Specification")) else { return false };
    let ids = ["find_unresolved_default_spec", "unresolved_deps", "empty?"].map(ruby::intern);
    let is_known = ruby::responds_to(gem, ids[0]) && ruby::responds_to(specification, ids[1]);
    is_known && GEMS.set((ruby::keep(gem), ruby::keep(specification), ids)).is_ok()
}

/// Notices changes of the compile options.
fn keep_setter(class: Value) {
    let before = ruby::call(class, ruby::intern("method"), &[ruby::symbol("compile_option=")]);
    if COMPILE_OPTION_BEFORE.set(ruby::keep(before)).is_err() {
        return;
    }
    Function::One(set_compile_option).define_singleton(class, c"compile_option=");
}

extern "C-unwind" fn set_compile_option(_: Value, options: Value) -> Value {
    let Some(before) = COMPILE_OPTION_BEFORE.get() else { return options };
    let result = ruby::call(*before, ruby::intern("call"), &[options]);
    let description = description();
    BOOT.with(|boot| STORE.with(|store| boot.code.set_context(store, &description)));
    result
}

extern "C-unwind" fn inner(receiver: Value, name: Value) -> Value {
    require(receiver, name, Level::Inner)
}

extern "C-unwind" fn outer(receiver: Value, name: Value) -> Value {
    if name.is_string() && is_gems_idle(name) {
        require(receiver, name, Level::Outer)
    } else {
        ruby::call(receiver, ruby::intern(BEFORE), &[name])
    }
}

/// Whether RubyGems' require would go straight on to Ruby's own.
fn is_gems_idle(name: Value) -> bool {
    let Some((gem, specification, [default, open, is_empty])) = GEMS.get() else { return false };
    !ruby::call(*gem, *default, &[name]).is_truthy()
        && ruby::call(ruby::call(*specification, *open, &[]), *is_empty, &[]).is_truthy()
}

/// Which require is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    Inner,
    Outer,
}

impl Level {
    /// Goes the way that was there before.
    fn ordinary(self, receiver: Value, name: Value) -> Value {
        match self {
            Level::Inner => ask_ruby(receiver, name),
            Level::Outer => ruby::call(receiver, ruby::intern(BEFORE), &[name]),
        }
    }
}

/// Whether this Ractor, and what is going on, lets the archive be asked.
fn is_ready() -> bool {
    ruby::is_main_ractor() && BOOT.with(|boot| boot.wrapped == 0) == Some(true)
}

fn require(receiver: Value, name: Value, level: Level) -> Value {
    if !is_ready() {
        return level.ordinary(receiver, name);
    }
    let name = ruby::path(name);
    let place = Place::of(ruby::c_bytes(name).to_bytes());
    let feature = if place == Place::Explicit { ruby::expanded(name) } else { name };
    if !names::is_plain(ruby::c_bytes(feature).to_bytes()) {
        return level.ordinary(receiver, name);
    }
    let thread = ruby::current_thread();
    loop {
        if place == Place::LoadPath {
            update_load_path();
        }
        if !update_features() {
            return level.ordinary(receiver, name);
        }
        let step = BOOT.with(|boot| STORE.with(|store| boot.decide(ruby::c_bytes(feature).to_bytes(), thread, store)));
        match step.flatten() {
            Some(Step::Nothing) => return ruby::boolean(false),
            Some(Step::Circular(path)) => {
                ruby::warn_of_circle(&path);
                return ruby::boolean(false);
            }
            Some(Step::Wait(number)) => wait(number, thread),
            Some(Step::Script(script)) => return run(receiver, script, thread),
            Some(Step::Path(path)) => {
                let name = ruby::text(path.to_bytes());
                drop(path);
                return ask_ruby(receiver, name);
            }
            Some(Step::NotFound) if level == Level::Inner && !ruby::is_provided(feature) => ruby::raise_not_found(name),
            Some(Step::NotFound | Step::Ordinary) | None => return level.ordinary(receiver, name),
        }
    }
}

/// Loads a script and makes it a feature.
fn run(receiver: Value, script: Script, thread: Value) -> Value {
    let awaited = events::awaited(&script.path);
    if let Some((objects, pages)) = BOOT.with(|boot| boot.heap.count()).flatten() {
        ruby::make_room(objects, pages);
    }
    let is_free = code::is_free();
    let code = if is_free { look_up(&script) } else { None };
    let Some(code) = code else {
        let name = ruby::text(script.path.to_bytes());
        let ordinary = || ask_ruby(receiver, name);
        let result = if is_free { code::watch(script, ordinary) } else { ordinary() };
        events::loaded(awaited);
        return result;
    };
    let is_awaited = BOOT.with(|boot| boot.autoloads.may_be_for(script.path.to_bytes())) == Some(true);
    if is_awaited && !enter(&script.path) {
        let name = ruby::text(script.path.to_bytes());
        let Script { path, real, .. } = script;
        drop(real);
        let result = code::hand(path, code, || ask_ruby(receiver, name));
        events::loaded(awaited);
        return result;
    }
    let number = BOOT.with(|boot| boot.loading.begin(script.path.to_bytes(), thread)).unwrap_or(0);
    let saved = ruby::error_info();
    ruby::set_error_info(ruby::nil());
    let result = evaluate(code);
    for waiting in BOOT.with(|boot| boot.loading.end(number)).unwrap_or_default() {
        ruby::wake(waiting);
    }
    if let Err(jump) = result {
        if is_awaited {
            leave(receiver, &script.path);
        }
        drop(script);
        jump.resume();
    }
    let Script { path, real, .. } = script;
    drop(real);
    if is_awaited {
        let name = ruby::text(path.to_bytes());
        drop(path);
        // It is in Ruby's table, so this does nothing but make it a feature.
        ask_ruby(receiver, name);
    } else {
        provide(path);
    }
    ruby::set_error_info(saved);
    events::loaded(awaited);
    ruby::boolean(true)
}

/// Has Ruby's own table say that a file is being loaded. `false`: it does not.
fn enter(path: &CStr) -> bool {
    BOOT.with(|boot| boot.features.note_question());
    ruby::enter(path)
}

/// Takes a file that could not be loaded out of Ruby's table. Only a file that becomes a feature leaves it.
fn leave(receiver: Value, path: &CStr) {
    let Some(array) = BOOT.with(|boot| boot.features.array()).filter(|array| !ruby::is_frozen(*array)) else { return };
    ask_ruby(receiver, ruby::text(path.to_bytes()));
    let length = ruby::length(array);
    let last = ruby::entry(array, length.saturating_sub(1));
    if last.is_string() && ruby::c_bytes(last) == path {
        ruby::call(array, ruby::intern("pop"), &[]);
    }
}

fn evaluate(code: Value) -> Result<Value, ruby::Jump> {
    ruby::protect(|| ruby::evaluate(code))
}

/// The code of a script, if the archive has it. May raise what a listener raises.
fn look_up(script: &Script) -> Option<Value> {
    let (event, code) = code::load(script);
    events::tell(event, &script.path);
    code
}

/// Appends to $LOADED_FEATURES, and to its index. May raise where that is frozen.
fn provide(path: CString) {
    let is_current = update_features();
    let (array, is_to_append) =
        BOOT.with(|boot| (boot.features.array(), boot.features.is_to_append())).unwrap_or((ruby::nil(), false));
    if is_current && is_to_append && !ruby::is_frozen(array) {
        let feature = ruby::text(path.as_bytes());
        ruby::push(array, feature);
        BOOT.with(|boot| {
            boot.features.push(path.as_bytes());
            boot.features.finish_appended(feature);
        });
        return;
    }
    let path = &*Box::leak(path.into_boxed_c_str());
    ruby::provide(path);
    if is_current {
        BOOT.with(|boot| {
            boot.features.push(path.to_bytes());
            boot.features.finish();
        });
    }
}

/// Has Ruby's own require look at a feature. May raise.
fn ask_ruby(receiver: Value, name: Value) -> Value {
    BOOT.with(|boot| boot.features.note_question());
    ruby::original_require(receiver, name)
}

/// Looks whether $LOAD_PATH has changed. May raise what the elements' to_path raises.
fn update_load_path() {
    let Some((array, is_current, converted)) =
        BOOT.with(|boot| (boot.load_path.array(), boot.load_path.is_current(), boot.load_path.converted().to_vec()))
    else {
        return;
    };
    let is_same = |(position, path): &(usize, Vec<u8>)| {
        ruby::c_bytes(ruby::path(ruby::entry(array, *position))).to_bytes() == path.as_slice()
    };
    if is_current && converted.iter().all(is_same) {
        return;
    }
    let mut converted = Vec::new();
    let elements: Vec<Vec<u8>> = (0..ruby::length(array))
        .map(|position| {
            let element = ruby::entry(array, position);
            if element.is_string() {
                // As Ruby does: so that it cannot change without the array.
                ruby::freeze(element);
                return ruby::c_bytes(element).to_bytes().to_vec();
            }
            converted.push(position);
            ruby::c_bytes(ruby::path(element)).to_bytes().to_vec()
        })
        .collect();
    BOOT.with(|boot| boot.load_path.set(&elements, &converted, &mut boot.directories));
}

/// Brings the index of $LOADED_FEATURES up to date. Whether that can be done.
fn update_features() -> bool {
    let Some((array, is_current)) = BOOT.with(|boot| (boot.features.array(), boot.features.is_current())) else {
        return false;
    };
    if is_current {
        return true;
    }
    let length = ruby::length(array);
    let Some(start) = BOOT.with(|boot| boot.features.restart(length)) else { return false };
    for position in start..length {
        let feature = ruby::entry(array, position);
        if !feature.is_string() {
            return false;
        }
        let feature = ruby::c_bytes(feature).to_bytes();
        BOOT.with(|boot| boot.features.push(feature));
    }
    BOOT.with(|boot| boot.features.finish()).is_some()
}

/// Waits until another thread has loaded a file, or failed to. May raise what is raised in this thread.
fn wait(number: u64, thread: Value) {
    BOOT.with(|boot| boot.loading.wait(number, thread));
    while let Some(loader) = BOOT.with(|boot| boot.loading.thread(number)).flatten() {
        // A forked child has none of its parent's other threads.
        if !ruby::call(loader, ruby::intern("alive?"), &[]).is_truthy() {
            BOOT.with(|boot| boot.loading.end(number));
            return;
        }
        if let Err(jump) = ruby::protect(|| {
            ruby::sleep();
            ruby::nil()
        }) {
            BOOT.with(|boot| boot.loading.leave(thread));
            jump.resume();
        }
    }
}

extern "C-unwind" fn relative(receiver: Value, name: Value) -> Value {
    // The file of eval'ed code is known to Ruby alone.
    let Some(file) = ruby::caller_file() else {
        return ruby::call(receiver, ruby::intern(RELATIVE_BEFORE), &[name]);
    };
    let path = ruby::beside(name, file);
    require(receiver, path, Level::Inner)
}

/// load(path, wrap = false)
unsafe extern "C-unwind" fn load(count: c_int, arguments: *const Value, receiver: Value) -> Value {
    // SAFETY: as Ruby gave them.
    let arguments = unsafe { ruby::method::arguments(count, arguments) };
    let ordinary = || ruby::call(receiver, ruby::intern(LOAD_BEFORE), arguments);
    match arguments {
        [_, wrap] if wrap.is_truthy() => {
            BOOT.with(|boot| boot.wrapped += 1);
            let result = ruby::protect(ordinary);
            BOOT.with(|boot| boot.wrapped -= 1);
            result.unwrap_or_else(|jump| jump.resume())
        }
        [name] | [name, _] if name.is_string() && is_ready() && code::is_free() => {
            match find_script(ruby::path(*name)) {
                Some(script) => load_script(script, ordinary),
                None => ordinary(),
            }
        }
        _ => ordinary(),
    }
}

/// The file that `load` means.
fn find_script(name: Value) -> Option<Script> {
    let place = Place::of(ruby::c_bytes(name).to_bytes());
    let name = if place == Place::Explicit { ruby::expanded(name) } else { name };
    if !names::is_plain(ruby::c_bytes(name).to_bytes()) {
        return None;
    }
    if place == Place::LoadPath {
        update_load_path();
    }
    let path = ruby::c_bytes(name).to_bytes();
    BOOT.with(|boot| {
        STORE.with(|store| match place {
            Place::LoadPath if path.ends_with(b".rb") => boot.find_script(path, store),
            Place::LoadPath => None,
            _ => boot.script_at(path, store),
        })
    })
    .flatten()
    .flatten()
}

/// compile(path or feature with extension) -> true, or nil where nothing came of it. Has Ruby's own `load` compile a script that the
/// archive does not hold yet. Ruby would run it next: whoever calls this has a TracePoint that throws as soon as it is compiled.
pub extern "C-unwind" fn compile(receiver: Value, name: Value) -> Value {
    let Some(script) = find_script(ruby::path(name)).filter(|_| is_ready()) else { return ruby::nil() };
    if code::is_kept(&script) {
        return ruby::boolean(true);
    }
    let path = ruby::text(script.path.to_bytes());
    code::watch(script, || ruby::call(receiver, ruby::intern(LOAD_BEFORE), &[path]))
}

fn load_script(script: Script, ordinary: impl FnOnce() -> Value) -> Value {
    let Some(code) = look_up(&script) else { return code::watch(script, ordinary) };
    drop(script);
    match evaluate(code) {
        Ok(_) => ruby::boolean(true),
        Err(jump) => jump.resume(),
    }
}
