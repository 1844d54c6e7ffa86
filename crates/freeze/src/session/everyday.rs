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
use crate::boot::{leave_on_demand, Boot, Watch};
use crate::control_dir::ControlDir;
use crate::elsewhere::Otherwise;
use crate::outcome::Result;
use crate::report::Report;

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
const MOST_BOOTS: u32 = 5;

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
        let mut ahead: Option<(Values, Option<(Reads, Accesses)>)> = None;
        // Whether another locale alone has made a difference, so that what comes with one is better tried first, and without it.
        let mut locale_differs = false;
        for (number, start) in STARTS.iter().enumerate() {
            let mut tried = in_turn(self.those_that_count(start, boot, reads), locale_differs);
            while let Some(values) = tried.pop().filter(|_| left > 0) {
                left -= 1;
                let booted = match ahead.take_if(|(known, _)| *known == values) {
                    Some((_, booted)) => booted,
                    None => {
                        // With the next start in the same time, as far as is known by now what counts in that.
                        let next = STARTS.get(number + 1).filter(|_| shown.two && left > 0 && ahead.is_none());
                        let next = next.map(|start| self.those_that_count(start, boot, reads));
                        let next = next.and_then(|next| in_turn(next, locale_differs).pop());
                        let next = next.filter(|next| *next != values);
                        let both: Vec<&Values> = [&values].into_iter().chain(&next).collect();
                        let mut booted = self.boot_alike(boot, dir, &both, shown, first)?.into_iter();
                        let own = booted.next().flatten();
                        ahead = next.zip(booted.next()).or(ahead);
                        own
                    }
                };
                if let Some((mut more, mut accesses)) = booted {
                    let other = boot.environment.with_values(&resolved(&values, boot.environment));
                    if values.contains(&("HOME", OtherValue::Unset)) {
                        accesses.count_system_without_home(notes);
                        shown.forget_places_at_home(reads, &mut accesses, &other);
                        if !first.facts.contains(&(fact_kind::USER, 0)) {
                            more.count_user_without_home();
                        }
                    }
                    let boots = 1 << alike.len();
                    reads.serve(&values, boots);
                    if reads.renewals.may_renew_locale() && values.iter().any(|(name, _)| LOCALE.contains(name)) {
                        reads.locales.push((locale_of(&other), boots));
                    }
                    reads.add_those_of(&more, first);
                    notes.add_those_of(accesses);
                    alike.push(values);
                } else if values.len() > 1 {
                    tried.extend(halves(&values));
                } else {
                    locale_differs |= LOCALE.contains(&values[0].0);
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

    /// Boots with each of these values, two at a time where that may be. Returns for each what that has read and looked up; None where it comes to
    /// another state, or where nobody has looked for that in a boot before.
    pub(super) fn boot_alike(
        &self,
        boot: &Boot<'_>,
        dir: &ControlDir,
        values: &[&Values],
        shown: &OtherStart,
        first: &Reads,
    ) -> Result<Vec<Option<(Reads, Accesses)>>> {
        let mut all = Vec::new();
        for some in values.chunks(if shown.two { 2 } else { 1 }) {
            let same = self.boot_some_alike(boot, dir, some, shown, first)?;
            let is_alike = same.iter().all(Option::is_some);
            all.extend(same);
            if !is_alike {
                break;
            }
        }
        Ok(all)
    }

    fn boot_some_alike(
        &self,
        boot: &Boot<'_>,
        dir: &ControlDir,
        values: &[&Values],
        shown: &OtherStart,
        first: &Reads,
    ) -> Result<Vec<Option<(Reads, Accesses)>>> {
        let watch = Watch::OtherStart(std::env::current_dir().unwrap_or_default(), Otherwise::default());
        let environments: Vec<Environment> =
            values.iter().map(|values| boot.environment.with_values(&resolved(values, boot.environment))).collect();
        let boots: Vec<Boot<'_>> =
            environments.iter().map(|environment| Boot { limit: Some(shown.limit), environment, ..*boot }).collect();
        let beside = if boots.len() > 1 { Some(dir.beside(is_for_all_boots)?) } else { None };
        let dirs = [dir].into_iter().chain(&beside);
        // Each that has begun is waited for, whatever comes of the other one.
        let running: Vec<_> =
            boots.iter().zip(dirs.clone()).map(|(boot, dir)| self.begin_otherwise(boot, dir, &watch)).collect();
        let ended: Vec<_> = running
            .into_iter()
            .zip(&boots)
            .zip(dirs)
            .map(|((running, boot), dir)| self.end(running?, boot, dir))
            .collect();
        leave_on_demand(boot.environment, dir)?;
        let is_same = |report: &Report| {
            shown.is_same(report)
                && report.reads.early.iter().all(|read| first.early.contains(read))
                && report.reads.wholes.iter().all(|read| first.wholes.contains(read))
        };
        let told: Vec<Option<(Report, Accesses)>> =
            ended.into_iter().map(|ended| self.told_otherwise(ended, boot)).collect::<Result<_>>()?;
        for (report, _) in told.iter().flatten() {
            self.find_noise_of_order(boot, dir, shown, shown.orders_only(report).into_iter())?;
        }
        let same = |told: Option<(Report, Accesses)>| {
            told.filter(|(report, _)| is_same(report)).map(|(report, accesses)| (report.reads, accesses))
        };
        Ok(told.into_iter().map(same).collect())
    }
}

/// Whether a file of the control directory is left by one boot for all later ones.
fn is_for_all_boots(name: &str) -> bool {
    ["held", "noise", "left_out"].contains(&name) || name.starts_with("front_end.")
}

/// Of values that make a difference together: the rest and the locale, or else two halves.
fn halves(values: &[(&'static str, OtherValue)]) -> [Values; 2] {
    let [locale, rest] = locale_and_rest(values);
    if locale.is_empty() || rest.is_empty() {
        let (first, second) = values.split_at(values.len() / 2);
        return [first.to_vec(), second.to_vec()];
    }
    [rest, locale]
}

/// What is tried of a start's values, last first: all together, or apart from the locale.
fn in_turn(values: Values, is_apart: bool) -> Vec<Values> {
    let parts = if is_apart { locale_and_rest(&values).into() } else { vec![values] };
    parts.into_iter().filter(|part| !part.is_empty()).collect()
}

fn locale_and_rest(values: &[(&'static str, OtherValue)]) -> [Values; 2] {
    let (locale, rest) = values.iter().copied().partition(|(name, _)| LOCALE.contains(name));
    [locale, rest]
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
