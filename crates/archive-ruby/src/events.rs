//! Telling Ruby code what happened: listeners to look-ups, and who waits for a file to be loaded.

use std::ffi::CStr;

use crate::cell::Locked;
use crate::ruby::{self, Protected};
use crate::store::Event;

/// What Ruby code wants to hear of.
#[derive(Default)]
struct Wishes {
    /// Every look-up of code.
    look_ups: bool,
    /// That files of these names have been loaded.
    names: Vec<Vec<u8>>,
}

static WISHES: Locked<Wishes> = Locked::empty();

/// Every look-up of code is told to Snapboot::Archive from now on.
pub fn tell_look_ups() {
    WISHES.fill(|| Some(Wishes::default()));
    WISHES.with(|wishes| wishes.look_ups = true);
}

/// Snapboot::Archive is told when a file of that name has been loaded.
pub fn await_file(name: Vec<u8>) {
    WISHES.fill(|| Some(Wishes::default()));
    WISHES.with(|wishes| wishes.names.push(name));
}

/// A look-up of code has taken place. May raise what a listener raises.
pub fn tell(event: Event, path: &CStr) -> Protected<()> {
    if WISHES.with(|wishes| wishes.look_ups) == Some(true) {
        let arguments = [ruby::number(event as usize), ruby::text(path.to_bytes())?];
        ruby::send(archive()?, "tell_code", &arguments)?;
    }
    Ok(())
}

/// The name of the file that a feature may lead to, if somebody waits for that to be loaded.
pub fn awaited(feature: &[u8]) -> Option<Vec<u8>> {
    let name = feature.rsplit(|byte| *byte == b'/').next()?;
    let stem = name.strip_suffix(b".rb").unwrap_or(name);
    let is_it = |awaited: &&Vec<u8>| awaited.strip_suffix(b".rb") == Some(stem);
    WISHES.with(|wishes| wishes.names.iter().find(is_it).cloned()).flatten()
}

/// A file that was awaited has been loaded. May raise what happens then.
pub fn loaded(name: &[u8]) -> Protected<()> {
    let is_awaited = WISHES.with(|wishes| {
        let at = wishes.names.iter().position(|awaited| awaited == name)?;
        Some(wishes.names.swap_remove(at))
    });
    match is_awaited.flatten() {
        Some(name) => ruby::send(archive()?, "tell_loaded", &[ruby::text(&name)?]).map(drop),
        None => Ok(()),
    }
}

fn archive() -> Protected {
    ruby::module_under(ruby::module(c"Snapboot")?, c"Archive")
}
