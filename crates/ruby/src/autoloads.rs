//! Which files an autoload may be waiting for.
//!
//! While such a file is being loaded, Ruby's own table of what is being loaded has to say so: constants that wait for it count as
//! defined otherwise. So these files are entered there, or else loaded by Ruby's require, which gets their code from here.

use std::collections::HashSet;

use crate::names;
use crate::ruby::{self, method::Function, Value};
use crate::BOOT;

const BEFORE: &str = "snapboot_autoload_before";

/// What is known of autoloads.
#[derive(Default)]
pub struct Autoloads {
    /// Hashes of the last components of their files.
    files: HashSet<u32>,
    /// What was loaded before anybody noticed autoloads, without extensions: they may be for files below.
    old: HashSet<Box<[u8]>>,
}

impl Autoloads {
    /// An autoload for that file was defined.
    pub fn add(&mut self, file: &[u8]) {
        self.files.insert(names::tag(names::without_extension(file)));
    }

    /// That feature has been loaded before.
    pub fn add_old(&mut self, feature: &[u8]) {
        self.old.insert(names::without_extension(feature).into());
    }

    /// Whether there may be one for the file at that path.
    pub fn may_be_for(&self, path: &[u8]) -> bool {
        let mut above = path;
        let mut is_old = || {
            while let Some(slash) = above.iter().rposition(|byte| *byte == b'/') {
                above = &above[..slash];
                if self.old.contains(above) {
                    return true;
                }
            }
            false
        };
        self.files.contains(&names::tag(names::without_extension(path))) || is_old()
    }
}

/// Notices autoloads from now on, and those that main classes have already.
pub fn watch() {
    let (kernel, class) = (ruby::kernel(), ruby::module_class());
    ruby::alias(class, BEFORE, "autoload");
    Function::Two(autoload).define(class, c"autoload");
    ruby::alias(kernel, BEFORE, "autoload");
    Function::Two(autoload).define_private(kernel, c"autoload");
    let features = ruby::global(c"$LOADED_FEATURES");
    for position in 0..ruby::length(features) {
        let feature = ruby::entry(features, position);
        if feature.is_string() {
            BOOT.with(|boot| boot.autoloads.add_old(ruby::c_bytes(feature).to_bytes()));
        }
    }
    let outer = ruby::object_class();
    let gem = ruby::constant(outer, ruby::intern("Gem"));
    for module in [Some(outer), gem].into_iter().flatten() {
        let constants = ruby::call(module, ruby::intern("constants"), &[ruby::boolean(false)]);
        for position in 0..ruby::length(constants) {
            let file = ruby::call(module, ruby::intern("autoload?"), &[ruby::entry(constants, position)]);
            note(file);
        }
    }
}

fn note(file: Value) {
    if file.is_string() {
        BOOT.with(|boot| boot.autoloads.add(ruby::c_bytes(file).to_bytes()));
    }
}

/// Module#autoload and Kernel#autoload
extern "C-unwind" fn autoload(receiver: Value, name: Value, file: Value) -> Value {
    if ruby::is_main_ractor() {
        note(if file.is_string() { file } else { ruby::path(file) });
    }
    ruby::call(receiver, ruby::intern(BEFORE), &[name, file])
}
