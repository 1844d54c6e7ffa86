//! Extensions that are a part of Ruby itself: `require` finds them though they have no file.
//!
//! From Ruby 3.3 on the parser Prism is one (inits.c), and in a Ruby built with --with-static-linked-ext all are. Ruby has no list of them,
//! but for these `$LOAD_PATH.resolve_feature_path` returns a name instead of a path.

use std::sync::OnceLock;

use crate::ruby::{Main, Protected};

/// The extension that most Rubies have linked in.
const USUAL: &str = "prism/prism";

/// Every Ruby has this one, and hardly any program loads it: it stands for all.
const ANY: &str = "continuation";

#[derive(Clone, Copy, PartialEq)]
enum LinkedIn {
    Nothing,
    Usual,
    All,
}

static LINKED_IN: OnceLock<LinkedIn> = OnceLock::new();

/// Whether a feature that has no file may be linked into Ruby. `stem`: without an ending.
pub fn may_have(ruby: Main<'_>, stem: &[u8]) -> Protected<bool> {
    let linked_in = match LINKED_IN.get() {
        Some(known) => *known,
        None => {
            let found = look(ruby)?;
            *LINKED_IN.get_or_init(|| found)
        }
    };
    Ok(linked_in == LinkedIn::All || (linked_in == LinkedIn::Usual && stem == USUAL.as_bytes()))
}

fn look(ruby: Main<'_>) -> Protected<LinkedIn> {
    Ok(if is_linked_in(ruby, ANY)? {
        LinkedIn::All
    } else if is_linked_in(ruby, USUAL)? {
        LinkedIn::Usual
    } else {
        LinkedIn::Nothing
    })
}

fn is_linked_in(ruby: Main<'_>, feature: &str) -> Protected<bool> {
    let load_path = ruby.global(c"$LOAD_PATH")?;
    if !ruby.responds_to(load_path, ruby.intern("resolve_feature_path")?)? {
        return Ok(false);
    }
    let answer = ruby.send(load_path, "resolve_feature_path", &[ruby.file_name(feature.as_bytes())?])?;
    if !ruby.is_array(answer) {
        return Ok(false);
    }
    let found = ruby.entry_of(answer, 1);
    Ok(ruby.is_string(found) && !ruby.bytes(found)?.starts_with(b"/"))
}
