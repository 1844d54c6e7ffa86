//! Boots with values that variables have in everyday starts, of which one tells nothing about another: where the program comes to the same
//! state, the image serves starts with these as well ([`image::Alternative`]).

use std::ffi::{OsStr, OsString};

use image::fact_kind;
use judge::environment::Environment;
use judge::environment_inputs::{locale_of, EnvironmentInputs};
use judge::reads::{OtherValue, Reads};
use recorder::Accesses;

use super::other_start::OtherStart;
use super::Session;
use crate::boot::Boot;
use crate::control_dir::ControlDir;
use crate::outcome::Result;

/// Kinds of starts, each tried in one boot.
const STARTS: [&[(&str, OtherValue)]; 4] = {
    use OtherValue::{BelowHome, Is, Unset};
    [
        // From a service manager, in a container, by cron.
        &[("HOME", Unset), ("USER", Unset), ("LANG", Unset), ("LC_ALL", Unset), ("LANGUAGE", Unset)],
        // On a desktop. The directories are those that the XDG Base Directory Specification has where the variables are not set.
        &[
            ("LANG", Is("en_US.UTF-8")),
            ("XDG_CACHE_HOME", BelowHome("/.cache")),
            ("XDG_CONFIG_HOME", BelowHome("/.config")),
            ("XDG_DATA_HOME", BelowHome("/.local/share")),
            ("XDG_STATE_HOME", BelowHome("/.local/state")),
        ],
        // From a script that reads what others print.
        &[("LC_ALL", Is("C"))],
        // Where somebody has built an image of a container.
        &[("LANG", Is("C.UTF-8"))],
    ]
};

/// Other values of variables: their names, and what they are.
pub(super) type Values = Vec<(&'static str, OtherValue)>;

/// So many boots are made at most. A start whose values make a difference together takes more than one.
const MOST_BOOTS: u32 = 4;

/// Those that only count where each thaw sets the locale.
const LOCALE: [&str; 3] = ["LANG", "LC_ALL", "LANGUAGE"];

impl Session<'_> {
    /// Tries everyday values of variables that count, and adds those that make no difference to `reads`; what such a boot alone has read and looked
    /// up counts, too. `shown`: of the boots before; `first`: what the boot of the image has read. Returns the values of each such boot.
    pub(super) fn try_everyday_values(
        &self,
        boot: &Boot<'_>,
        dir: &ControlDir,
        shown: &OtherStart,
        first: &Reads,
        reads: &mut Reads,
        notes: &mut Accesses,
    ) -> Result<Vec<Values>> {
        let (mut alike, mut left) = (Vec::new(), MOST_BOOTS);
        for start in STARTS {
            let mut tried = vec![self.those_that_count(start, boot, reads)];
            while let Some(values) = tried.pop() {
                if values.is_empty() || left == 0 {
                    continue;
                }
                left -= 1;
                if let Some((mut more, accesses)) = self.boot_alike(boot, dir, &values, shown, first)? {
                    if values.contains(&("HOME", OtherValue::Unset)) && !first.facts.contains(&(fact_kind::USER, 0)) {
                        more.count_user_without_home();
                    }
                    let boots = 1 << alike.len();
                    reads.serve(&values, boots);
                    if reads.renewals.may_renew_locale() && values.iter().any(|(name, _)| LOCALE.contains(name)) {
                        let other = boot.environment.with_values(&resolved(&values, boot.environment));
                        reads.locales.push((locale_of(&other), boots));
                    }
                    reads.add_those_of(&more, first);
                    notes.add_those_of(accesses);
                    alike.push(values);
                } else if values.len() > 1 {
                    tried.extend(halves(&values));
                }
            }
        }
        Ok(alike)
    }

    fn those_that_count(&self, start: &[(&'static str, OtherValue)], boot: &Boot<'_>, reads: &Reads) -> Values {
        let environment = boot.environment;
        let may_renew_locale = reads.renewals.may_renew_locale();
        let renews_locale = may_renew_locale || EnvironmentInputs { environment, reads }.renews_locale();
        let counts = |(name, value): &&(&'static str, OtherValue)| {
            let variable = OsStr::new(name);
            let is_read = reads.variables.contains_key(variable) || reads.renewed.contains(variable);
            (is_read || (may_renew_locale && LOCALE.contains(name)))
                && !reads.by_c.contains(variable)
                && environment.leaves(variable)
                && (renews_locale || !LOCALE.contains(name))
                && value.resolve(environment).as_deref() != environment.value(name)
        };
        start.iter().filter(counts).copied().collect()
    }

    /// Boots with these values. Returns what that has read and looked up; None where it comes to another state.
    pub(super) fn boot_alike(
        &self,
        boot: &Boot<'_>,
        dir: &ControlDir,
        values: &[(&'static str, OtherValue)],
        shown: &OtherStart,
        first: &Reads,
    ) -> Result<Option<(Reads, Accesses)>> {
        let environment = boot.environment;
        let values = resolved(values, environment);
        let here = std::env::current_dir().unwrap_or_default();
        let boot = &Boot { limit: Some(shown.limit), ..*boot };
        let booted = self.boot_otherwise(boot, dir, &environment.with_values(&values), &here, false)?;
        let same = booted.filter(|(report, _)| {
            shown.is_same(report)
                && report.reads.early.iter().all(|read| first.early.contains(read))
                && report.reads.wholes.iter().all(|read| first.wholes.contains(read))
        });
        Ok(same.map(|(report, accesses)| (report.reads, accesses)))
    }
}

/// Of values that make a difference together: the rest and the locale, or else two halves.
fn halves(values: &[(&'static str, OtherValue)]) -> [Values; 2] {
    let (locale, rest): (Values, Values) = values.iter().copied().partition(|(name, _)| LOCALE.contains(name));
    if locale.is_empty() || rest.is_empty() {
        let (first, second) = values.split_at(values.len() / 2);
        return [first.to_vec(), second.to_vec()];
    }
    [rest, locale]
}

fn resolved(values: &[(&'static str, OtherValue)], environment: &Environment) -> Vec<(OsString, Option<OsString>)> {
    values.iter().map(|(name, value)| (OsString::from(name), value.resolve(environment))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_locale_is_tried_apart_from_the_rest() {
        let names = |start: &[(&'static str, OtherValue)]| {
            halves(start).map(|half| half.into_iter().map(|(name, _)| name).collect::<Vec<_>>())
        };
        assert_eq!(names(STARTS[0]), [vec!["HOME", "USER"], vec!["LANG", "LC_ALL", "LANGUAGE"]]);
        assert_eq!(
            names(&STARTS[1][1..]),
            [vec!["XDG_CACHE_HOME", "XDG_CONFIG_HOME"], vec!["XDG_DATA_HOME", "XDG_STATE_HOME"]]
        );
    }
}
