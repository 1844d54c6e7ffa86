//! Telling Ruby code what happened: listeners to look-ups, and who waits for a file to be loaded.

use std::ffi::CStr;

use crate::cell::Locked;
use crate::ruby::{self, Protected, Value};
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

/// The name of a file, if somebody waits for that to be loaded.
pub fn awaited(path: &CStr) -> Protected<Option<Value>> {
    let awaited = WISHES.with(|wishes| {
        let names = &mut wishes.names;
        let name = path.to_bytes().rsplit(|byte| *byte == b'/').next();
        let at = names.iter().position(|awaited| Some(awaited.as_slice()) == name)?;
        Some(names.swap_remove(at))
    });
    awaited.flatten().map(|name| ruby::text(&name)).transpose()
}

/// A file that was awaited has been loaded. May raise what happens then.
pub fn loaded(name: Option<Value>) -> Protected<()> {
    match name {
        Some(name) => ruby::send(archive()?, "tell_loaded", &[name]).map(drop),
        None => Ok(()),
    }
}

fn archive() -> Protected {
    ruby::module_under(ruby::module(c"Snapboot")?, c"Archive")
}
