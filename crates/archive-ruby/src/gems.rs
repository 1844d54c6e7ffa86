//! Checks whether RubyGems' require has anything to do.

use std::sync::OnceLock;

use crate::names;
use crate::ruby::{Id, Protected, Ruby, Value};

/// Gem, Gem::Specification, and their methods that list pending activations.
struct Gems {
    gem: Value<'static>,
    specification: Value<'static>,
    find_unresolved_default_spec: Id,
    unresolved_deps: Id,
    is_empty: Id,
}

static GEMS: OnceLock<Gems> = OnceLock::new();

/// Whether a file is that of RubyGems' require.
pub fn is_require(file: &[u8]) -> bool {
    file.strip_suffix(b">").unwrap_or(file).ends_with(b"/rubygems/core_ext/kernel_require.rb")
}

/// Finds RubyGems. Whether it has the methods that are called here.
pub fn find(ruby: Ruby<'_>) -> Protected<bool> {
    let Some(gem) = ruby.find_constant(ruby.object_class(), "Gem")? else { return Ok(false) };
    let Some(specification) = ruby.find_constant(gem, "Specification")? else { return Ok(false) };
    let gems = Gems {
        gem: ruby.keep(gem)?,
        specification: ruby.keep(specification)?,
        find_unresolved_default_spec: ruby.intern("find_unresolved_default_spec")?,
        unresolved_deps: ruby.intern("unresolved_deps")?,
        is_empty: ruby.intern("empty?")?,
    };
    let is_known = ruby.responds_to(gem, gems.find_unresolved_default_spec)?
        && ruby.responds_to(specification, gems.unresolved_deps)?;
    Ok(is_known && GEMS.set(gems).is_ok())
}

/// Whether RubyGems' require would directly call Ruby's own: no default gem of that name waits for activation, and no gem has unresolved
/// dependencies.
pub fn are_idle(ruby: Ruby<'_>, name: Value<'_>) -> Protected<bool> {
    let Some(gems) = GEMS.get() else { return Ok(false) };
    Ok(ruby.with_bytes(name, names::is_plain)?
        && !ruby.call(gems.gem, gems.find_unresolved_default_spec, &[name])?.is_truthy()
        && ruby.call(ruby.call(gems.specification, gems.unresolved_deps, &[])?, gems.is_empty, &[])?.is_truthy())
}
