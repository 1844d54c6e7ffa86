//! Events for Ruby code: each look-up of code, and each awaited file that was loaded.

use std::ffi::CStr;
use std::time::Instant;

use archive::session::Event;

use crate::cell::GvlCell;
use crate::ruby::{Main, Protected, Value};

/// The events that Ruby code has subscribed to.
#[derive(Default)]
struct Subscriptions {
    /// Whether it wants every look-up of code.
    look_ups: bool,
    /// Names of files that are reported once they are loaded.
    names: Vec<Vec<u8>>,
}

/// Who has found the file of a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finder {
    Archive,
    Ruby,
}

static SUBSCRIPTIONS: GvlCell<Subscriptions> = GvlCell::empty();

/// Reports every look-up of code to Snapboot::Archive from now on.
pub fn tell_look_ups(ruby: Main<'_>) {
    SUBSCRIPTIONS.fill(ruby, || Some(Subscriptions::default()));
    SUBSCRIPTIONS.with(ruby, |subscriptions| subscriptions.look_ups = true);
}

/// Will report the load of a file of that name to Snapboot::Archive.
pub fn await_file(ruby: Main<'_>, name: Vec<u8>) {
    SUBSCRIPTIONS.fill(ruby, || Some(Subscriptions::default()));
    SUBSCRIPTIONS.with(ruby, |subscriptions| subscriptions.names.push(name));
}

/// The start of a look-up of code; None without a listener.
pub fn begin(ruby: Main<'_>) -> Option<Instant> {
    let are_told = SUBSCRIPTIONS.with(ruby, |subscriptions| subscriptions.look_ups) == Some(true);
    are_told.then(Instant::now)
}

/// Reports a look-up of code. `begun`: the result of [`begin`]. `finder`: who has found the file. May raise what a listener raises.
pub fn report_look_up(
    ruby: Main<'_>,
    event: Event,
    path: &CStr,
    finder: Finder,
    begun: Option<Instant>,
) -> Protected<()> {
    if let Some(begun) = begun {
        let took = ruby.number(begun.elapsed().as_nanos() as usize);
        let found = ruby.boolean(finder == Finder::Archive);
        let arguments = [ruby.number(event as usize), ruby.text(path.to_bytes())?, took, found];
        ruby.send(archive(ruby)?, "tell_code", &arguments)?;
    }
    Ok(())
}

/// Reports that Ruby has compiled a script that the archive lacked. May raise what a listener raises.
pub fn tell_compiled(ruby: Main<'_>, path: &CStr) -> Protected<()> {
    if begin(ruby).is_some() {
        ruby.send(archive(ruby)?, "tell_compiled", &[ruby.text(path.to_bytes())?])?;
    }
    Ok(())
}

/// The name of the awaited file that a feature may lead to.
pub fn awaited(ruby: Main<'_>, feature: &[u8]) -> Option<Vec<u8>> {
    let name = feature.rsplit(|byte| *byte == b'/').next()?;
    let stem = name.strip_suffix(b".rb").unwrap_or(name);
    let is_it = |awaited: &&Vec<u8>| awaited.strip_suffix(b".rb") == Some(stem);
    SUBSCRIPTIONS.with(ruby, |subscriptions| subscriptions.names.iter().find(is_it).cloned()).flatten()
}

/// Reports that an awaited file was loaded. May raise what a listener raises.
pub fn loaded(ruby: Main<'_>, name: &[u8]) -> Protected<()> {
    let is_awaited = SUBSCRIPTIONS.with(ruby, |subscriptions| {
        let at = subscriptions.names.iter().position(|awaited| awaited == name)?;
        Some(subscriptions.names.swap_remove(at))
    });
    match is_awaited.flatten() {
        Some(name) => ruby.send(archive(ruby)?, "tell_loaded", &[ruby.text(&name)?]).map(drop),
        None => Ok(()),
    }
}

fn archive(ruby: Main<'_>) -> Protected<Value<'_>> {
    ruby.module_under(ruby.module(c"Snapboot")?, c"Archive")
}
