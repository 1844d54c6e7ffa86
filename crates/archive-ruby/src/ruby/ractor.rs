//! Which Ractor runs, and whether it warns of experimental features: answers of Ruby's own methods.

use std::sync::OnceLock;

use super::{Id, Main, Protected, Ruby, Value};

/// The class Ractor and its methods `count`, `current` and `main`.
static RACTOR: OnceLock<(Value<'static>, [Id; 3])> = OnceLock::new();

/// The module Warning, its method `[]` and the name `experimental`.
static WARNING: OnceLock<(Value<'static>, Id, Value<'static>)> = OnceLock::new();

impl<'r> Ruby<'r> {
    /// The token of the main Ractor, if this is the main one.
    pub fn main(self) -> Option<Main<'r>> {
        self.is_main_ractor().unwrap_or(false).then_some(Main(self))
    }

    fn is_main_ractor(self) -> Protected<bool> {
        let (class, [count, current, main]) = match RACTOR.get() {
            Some(known) => *known,
            None => {
                let Some(class) = self.find_constant(self.object_class(), "Ractor")? else { return Ok(false) };
                let names = [self.intern("count")?, self.intern("current")?, self.intern("main")?];
                let class = self.keep(class)?;
                *RACTOR.get_or_init(|| (class, names))
            }
        };
        Ok(self.call(class, count, &[])? == self.number(1)
            || self.call(class, current, &[])? == self.call(class, main, &[])?)
    }

    /// Whether warnings about experimental features are on: the value of `Warning[:experimental]`.
    pub(super) fn warns_of_experiments(self) -> Protected<bool> {
        let (module, get, name) = match WARNING.get() {
            Some(known) => *known,
            None => {
                let Some(module) = self.find_constant(self.object_class(), "Warning")? else { return Ok(true) };
                let (module, get, name) = (self.keep(module)?, self.intern("[]")?, self.symbol("experimental")?);
                let name = self.keep(name)?;
                *WARNING.get_or_init(|| (module, get, name))
            }
        };
        Ok(self.call(module, get, &[name])?.is_truthy())
    }
}
