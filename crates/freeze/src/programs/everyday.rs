//! Boots with values that variables have in everyday starts, and that cannot be inferred from one another. If the
//! program comes to the same state, the image also serves starts with these values ([`image::Alternative`]).

use std::ffi::{OsStr, OsString};

use inputs::facts::fact_kind;
use judge::environment::Environment;
use judge::environment_inputs::{locale_of, EnvironmentInputs};
use judge::reads::{OtherValue, Reads};

use super::boot::{BootRequest, Running, Watch};
use super::other_start::{begin_otherwise, compared, find_noise_of_order};
use super::site_reads::leave_on_demand;
use super::Freeze;
use crate::boot::{Boot, Report};
use crate::boot_inputs::elsewhere::Otherwise;
use crate::boot_inputs::other_start_inputs::OtherStart;
use crate::outcome::Result;

/// Kinds of starts, each tried in one boot.
const STARTS: [&[(&str, OtherValue)]; 4] = {
    use OtherValue::{BelowHome, Is, Unset};
    [
        // From a service manager, in a container, by cron.
        &[("HOME", Unset), ("USER", Unset), ("LANG", Unset), ("LC_ALL", Unset), ("LANGUAGE", Unset)],
        // On a desktop. The directories are the defaults of the XDG Base Directory Specification.
        &[
            ("LANG", Is("en_US.UTF-8")),
            ("XDG_CACHE_HOME", BelowHome("/.cache")),
            ("XDG_CONFIG_HOME", BelowHome("/.config")),
            ("XDG_DATA_HOME", BelowHome("/.local/share")),
            ("XDG_STATE_HOME", BelowHome("/.local/state")),
        ],
        // From a script that parses the output of other programs.
        &[("LC_ALL", Is("C"))],
        // In a container whose image sets it.
        &[("LANG", Is("C.UTF-8"))],
    ]
};

/// Other values of variables.
pub type Values = Vec<(&'static str, OtherValue)>;

/// Maximum number of boots. The values of a start are tried together in one boot; if they make a difference, in several.
const MOST_BOOTS: u32 = 5;

/// Variables that are tried only if each thaw sets the locale.
const LOCALE: [&str; 3] = ["LANG", "LC_ALL", "LANGUAGE"];

/// Tries everyday values of input variables, and adds those that make no difference to the reads of `made`. The reads
/// and accesses that only such a boot makes count, too. `shown` comes from the boots before; `first` are the reads of
/// the image's boot. Returns the values of each such boot.
pub fn try_values(
    boot: &BootRequest<'_>,
    shown: &OtherStart,
    first: &Reads,
    mut made: Boot,
) -> Result<(Boot, Vec<Values>)> {
    let Boot { report: Report { reads, .. }, accesses, .. } = &mut made;
    let (mut alike, mut left) = (Vec::new(), MOST_BOOTS);
    let mut ahead: Option<(Values, Option<Boot>)> = None;
    // Whether another locale alone made a difference. Then the locale of a later start is best tried separately.
    let mut locale_differs = false;
    for (number, start) in STARTS.iter().enumerate() {
        let mut tried = in_turn(those_that_count(start, boot, reads), locale_differs);
        while let Some(values) = tried.pop().filter(|_| left > 0) {
            left -= 1;
            let booted = match ahead.take_if(|(known, _)| *known == values) {
                Some((_, booted)) => booted,
                None => {
                    // Together with the next start, given what is known so far about its inputs.
                    let next = STARTS.get(number + 1).filter(|_| shown.two && left > 0 && ahead.is_none());
                    let next = next.map(|start| those_that_count(start, boot, reads));
                    let next = next.and_then(|next| in_turn(next, locale_differs).pop());
                    let next = next.filter(|next| *next != values);
                    let both: Vec<&Values> = [&values].into_iter().chain(&next).collect();
                    let mut booted = boot_alike(boot, &both, shown, first)?.into_iter();
                    let own = booted.next().flatten();
                    ahead = next.zip(booted.next()).or(ahead);
                    own
                }
            };
            if let Some(Boot { report: Report { reads: mut more, .. }, accesses: mut others, .. }) = booted {
                let other = boot.environment.with_values(&resolved(&values, boot.environment));
                if values.contains(&("HOME", OtherValue::Unset)) {
                    others.count_system_without_home(accesses);
                    shown.forget_places_at_home(reads, &mut others, &other);
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
                accesses.add_those_of(others);
                alike.push(values);
            } else if values.len() > 1 {
                tried.extend(halves(&values));
            } else {
                locale_differs |= LOCALE.contains(&values[0].0);
            }
        }
    }
    Ok((made, alike))
}

fn those_that_count(start: &[(&'static str, OtherValue)], boot: &BootRequest<'_>, reads: &Reads) -> Values {
    let environment = boot.environment;
    let may_renew_locale = reads.renewals.may_renew_locale();
    let renews_locale = may_renew_locale || EnvironmentInputs { environment, reads }.renews_locale();
    let counts = |(name, value): &&(&'static str, OtherValue)| {
        let variable = OsStr::new(name);
        let is_read = reads.variables.contains_key(variable) || reads.renewed.contains(variable);
        (is_read || (may_renew_locale && LOCALE.contains(name)))
            && !reads.by_c.contains(variable)
            && environment.may_change(variable)
            && (renews_locale || !LOCALE.contains(name))
            && value.resolve(environment).as_deref() != environment.value(name)
    };
    start.iter().filter(counts).copied().collect()
}

/// Boots with each of these values, two at a time if possible. Returns each boot; None if it comes to another state, or
/// reads what no earlier comparison covered.
pub fn boot_alike(
    boot: &BootRequest<'_>,
    values: &[&Values],
    shown: &OtherStart,
    first: &Reads,
) -> Result<Vec<Option<Boot>>> {
    let mut all = Vec::new();
    for some in values.chunks(if shown.two { 2 } else { 1 }) {
        let same = boot_some_alike(boot, some, shown, first)?;
        let is_alike = same.iter().all(Option::is_some);
        all.extend(same);
        if !is_alike {
            break;
        }
    }
    Ok(all)
}

fn boot_some_alike(
    boot: &BootRequest<'_>,
    values: &[&Values],
    shown: &OtherStart,
    first: &Reads,
) -> Result<Vec<Option<Boot>>> {
    let watch = Watch::OtherStart(std::env::current_dir().unwrap_or_default(), Otherwise::default());
    let environments: Vec<Environment> =
        values.iter().map(|values| boot.environment.with_values(&resolved(values, boot.environment))).collect();
    let dir = boot.freeze.dir;
    let beside = if values.len() > 1 { Some(dir.beside(is_for_all_boots)?) } else { None };
    let dirs = [dir].into_iter().chain(&beside);
    // Wait for every boot that was started, whatever the result of the other is.
    let running: Vec<_> = environments
        .iter()
        .zip(dirs)
        .map(|(environment, dir)| {
            let freeze = Freeze { dir, ..boot.freeze };
            begin_otherwise(&BootRequest { freeze, limit: Some(shown.limit), environment, ..*boot }, &watch)
        })
        .collect();
    let ended: Vec<_> = running.into_iter().map(|running| running.and_then(Running::wait_for_end)).collect();
    leave_on_demand(boot.environment, dir)?;
    let is_same = |report: &Report| {
        shown.is_same(report)
            && report.reads.early.iter().all(|read| first.early.contains(read))
            && report.reads.wholes.iter().all(|read| first.wholes.contains(read))
    };
    let ended: Vec<Option<Boot>> = ended.into_iter().map(|ended| compared(ended, boot)).collect::<Result<_>>()?;
    for booted in ended.iter().flatten() {
        find_noise_of_order(boot, shown, shown.orders_only(&booted.report).into_iter())?;
    }
    Ok(ended.into_iter().map(|booted| booted.filter(|booted| is_same(&booted.report))).collect())
}

/// Whether one boot writes a file of the control directory for all later ones.
fn is_for_all_boots(name: &str) -> bool {
    ["held", "noise", "left_out"].contains(&name) || name.starts_with("front_end.")
}

/// Splits values that together make a difference into the locale and the rest, or else into two halves.
fn halves(values: &[(&'static str, OtherValue)]) -> [Values; 2] {
    let [locale, rest] = locale_and_rest(values);
    if locale.is_empty() || rest.is_empty() {
        let (first, second) = values.split_at(values.len() / 2);
        return [first.to_vec(), second.to_vec()];
    }
    [rest, locale]
}

/// The sets of a start's values to try, as a stack: all in one set, or the locale and the rest in one each.
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
