//! What an image depends on in its environment: what the boot both saw and read. variables.rs explains the lists.
//!
//! A variable is an input when the boot read it, set or not, or when the table of [`super::variables`] always includes
//! it. Of a secret an image depends only on its being set and on its kind of value: the boot had a placeholder.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use image::{alternative_kind, presence, Alternative, Item, Section, Variable};
use image_writer::TablesWriter;
use inputs::environment::{is_volatile, locale, LocaleText, ALL, LOCALE};
use runtime::Language;

use crate::environment::{is_under, Environment};
use crate::findings::Finding;
use crate::reads::{FullEnvironmentRead, OtherValue, Reads, Searched};
use crate::secrets::Secret;
use crate::source_locations::reader;
use crate::variables::{always_compared, rule};

/// An environment, and what the boot read of it.
pub struct EnvironmentInputs<'a> {
    /// What the boot sees.
    pub environment: &'a Environment,
    /// What the boot read.
    pub reads: &'a Reads,
}

impl<'a> EnvironmentInputs<'a> {
    /// Why no image can be made: C code of the program read a secret, and may keep any part of it.
    pub fn findings(&self) -> Vec<Finding> {
        let by_c = self.secrets_read().filter(|(_, place)| place.is_none());
        by_c.map(|(secret, _)| {
            let name = secret.name.to_string_lossy();
            Finding::new(
                "secret",
                format!(
                    "{name} looks like a secret, and C code of the program reads it while it boots, and may keep it where no thaw can \
                     replace it; load the code that reads it after the freeze point, let the image hold the value with --env {name}, or \
                     unset it for the boot with --withhold {name}"
                ),
            )
        })
        .collect()
    }

    /// For a failed boot: the secrets whose placeholders it read.
    pub fn made_up(&self) -> Vec<Finding> {
        self.secrets_read()
            .map(|(secret, place)| {
                let name = secret.name.to_string_lossy();
                let reader = reader(place);
                Finding::new(
                    "secret",
                    format!(
                        "{name} looks like a secret, and {reader} has read a made-up value of it, with which the program may not boot; \
                         load the code that reads it after the freeze point, let the image hold the value with --env {name}, or unset it \
                         for the boot with --withhold {name}"
                    ),
                )
            })
            .collect()
    }

    /// The secrets that the boot read, and where; None for C code.
    pub fn secrets_read(&self) -> impl Iterator<Item = (&'a Secret, Option<&'a str>)> + use<'a, '_> {
        let whole = self.reads.wholes.iter().find_map(FullEnvironmentRead::place);
        self.environment.secrets.iter().filter_map(move |secret| match self.reads.variables.get(&secret.name) {
            Some(place) => Some((secret, place.as_deref().or(whole))),
            None => whole.map(|place| (secret, Some(place))),
        })
    }

    fn withholds_all(&self) -> bool {
        self.environment.patterns_withheld.iter().any(|pattern| pattern.as_bytes() == ALL)
    }

    /// Names of the set variables that an image of this language compares, for the user.
    pub fn compared_names(&self, language: Language) -> impl Iterator<Item = &'a OsStr> + use<'a, '_> {
        self.environment.visible().map(|(name, _)| name.as_os_str()).filter(move |name| self.compares(language, name))
    }

    /// Names of the set variables that count because the boot read them by name, and are in no table; empty if all
    /// variables count.
    pub fn read_by_name(&self) -> Vec<String> {
        if !self.reads.wholes.is_empty() {
            return Vec::new();
        }
        let is_read_by_name = |name: &OsStr| self.reads.variables.contains_key(name) && rule(name).is_none();
        let names = self.environment.visible().map(|(name, _)| name.as_os_str()).filter(|name| is_read_by_name(name));
        names
            .map(|name| {
                let place = self.reads.variables.get(name).and_then(Option::as_deref);
                if self.environment.is_secret(name) {
                    return format!(
                        "{} being set (a secret; each thaw puts its value in place)",
                        name.to_string_lossy()
                    );
                }
                format!("{} (read by {})", name.to_string_lossy(), reader(place))
            })
            .collect()
    }

    /// Writes what a start compares: a digest of each value, the names that were read and unset, the locale, and the
    /// patterns.
    pub fn write(&self, language: Language, tables: &mut TablesWriter) {
        let mut rows: BTreeMap<&[u8], (u32, [u8; 16])> = BTreeMap::new();
        // Unset variables of the table need no rows.
        let is_in_table = |name: &OsStr| rule(name).is_some_and(|rule| rule.compares(language));
        for name in self.reads.variables.keys().filter(|name| !is_in_table(name)) {
            let wanted =
                if is_under(&self.environment.patterns_withheld, name) { presence::ANY } else { presence::UNSET };
            rows.insert(name.as_bytes(), (wanted, [0; 16]));
        }
        let searched = self.reads.searched.iter().map(|it| it.variable);
        for name in self.reads.renewals.variables().chain(searched).filter(|name| self.is_renewed(OsStr::new(name))) {
            rows.insert(name.as_bytes(), (presence::ANY, [0; 16]));
        }
        let not_compared = self.environment.secrets.iter().map(|secret| &secret.name);
        for name in self.environment.withheld.iter().chain(not_compared) {
            rows.insert(name.as_bytes(), (presence::ANY, [0; 16]));
        }
        for (name, value) in self.environment.visible().filter(|(name, _)| self.compares(language, name)) {
            rows.insert(name.as_bytes(), (presence::SET, image::digest(value.as_bytes())));
        }
        for name in &self.reads.renewed {
            rows.insert(name.as_bytes(), (presence::RENEWED, [0; 16]));
        }
        let has_form = self.environment.compares_forms;
        let wanted = if has_form { presence::SECRET_OF_FORM } else { presence::SECRET };
        for secret in self.environment.secrets.iter().filter(|secret| self.compares(language, &secret.name)) {
            rows.insert(secret.name.as_bytes(), (wanted, secret.outline(has_form)));
        }
        let locale = locale_of(self.environment);
        let present = if locale.is_some() { presence::SET } else { presence::UNSET };
        let row = match self.renewed_locale() {
            Some(renewed) => (renewed, [0; 16]),
            None => (present, locale.as_deref().map_or([0; 16], image::digest)),
        };
        rows.insert(LOCALE, row);
        if let Some(largest) = self.reads.largest {
            rows.insert(ALL, (presence::AT_MOST, u128::from(largest).to_le_bytes()));
        }
        for (name, (present, value)) in rows {
            let name = tables.text(name);
            tables.push(Section::Variables, &Variable { name, value, present, reserved: 0 });
        }
        for alternative in &self.reads.alternatives {
            let (kind, value) = match alternative.value {
                OtherValue::Unset => (alternative_kind::UNSET, [0; 16]),
                OtherValue::Is(value) => (alternative_kind::SET, image::digest(value.as_bytes())),
                OtherValue::BelowHome(rest) => (alternative_kind::BELOW_HOME, image::digest(rest.as_bytes())),
            };
            let name = tables.text(alternative.name.as_bytes());
            tables.push(Section::Alternatives, &Alternative { name, value, kind, boots: alternative.boots });
        }
        for (locale, boots) in &self.reads.locales {
            let kind = if locale.is_some() { alternative_kind::SET } else { alternative_kind::UNSET };
            let value = locale.as_deref().map_or([0; 16], image::digest);
            let name = tables.text(LOCALE);
            tables.push(Section::Alternatives, &Alternative { name, value, kind, boots: *boots });
        }
        let whole = (!self.reads.wholes.is_empty() && !self.withholds_all()).then_some(ALL);
        let always = always_compared(language).map(|pattern| pattern.as_bytes());
        let is_withheld = |pattern: &&str| is_under(&self.environment.patterns_withheld, OsStr::new(pattern));
        let is_always = |pattern: &&str| rule(OsStr::new(pattern)).is_some_and(|rule| rule.compares(language));
        let looked_for = self
            .reads
            .patterns
            .iter()
            .map(String::as_str)
            .filter(|pattern| !is_withheld(pattern) && !is_always(pattern));
        let named = self.environment.named.iter().map(String::as_bytes);
        for pattern in always.chain(named).chain(looked_for.map(|pattern| pattern.as_bytes())).chain(whole) {
            let text = tables.text(pattern);
            tables.push(Section::Patterns, &Item { text });
        }
    }

    /// Whether each thaw sets the locale that its environment names.
    pub fn renews_locale(&self) -> bool {
        self.renewed_locale().is_some()
    }

    /// The one encoding of all locales that the image serves; None if it serves several.
    pub fn one_text(&self) -> Option<LocaleText> {
        let entries = entries(self.environment);
        let own = LocaleText::from_environment(entries.iter().map(Vec::as_slice));
        let is_other = |other: &Option<Vec<u8>>| other.is_none() == (own != LocaleText::C);
        let is_for_several = self.renewed_locale() == Some(presence::LOCALE_OF_UTF8_OR_C)
            || self.reads.locales.iter().any(|(other, _)| is_other(other));
        (!is_for_several).then_some(own)
    }

    /// The locales that the image serves, one of [`presence`]; None if it serves only that of the boot.
    fn renewed_locale(&self) -> Option<u32> {
        let entries = entries(self.environment);
        let is_utf8 = LocaleText::from_environment(entries.iter().map(Vec::as_slice)) == LocaleText::Utf8;
        self.reads.renewals.locale(|name| self.is_read(name), is_utf8)
    }

    /// Whether an image of this language is bound to the value of this variable.
    pub fn compares(&self, language: Language, name: &OsStr) -> bool {
        (!self.reads.wholes.is_empty() && !is_volatile(name.as_bytes()))
            || self.reads.variables.contains_key(name)
            || is_under(&self.environment.named, name)
            || (rule(name).is_some_and(|rule| rule.compares(language)) && !self.is_renewed(name))
    }

    /// Whether each thaw takes this variable from its own environment.
    fn is_renewed(&self, name: &OsStr) -> bool {
        let is_searched = |it: &Searched| name == it.variable && !self.is_read(it.variable);
        (self.reads.renewals.leaves_to_starts(name, |name| self.is_read(name))
            || self.reads.searched.as_ref().is_some_and(is_searched))
            && !is_under(&self.environment.named, name)
    }

    /// Whether the program read a variable of this name, or all variables.
    fn is_read(&self, name: &str) -> bool {
        !self.reads.wholes.is_empty() || self.reads.variables.contains_key(OsStr::new(name))
    }
}

/// The locale of an environment, in the form of inputs/environment.rs.
pub fn locale_of(environment: &Environment) -> Option<Vec<u8>> {
    locale(entries(environment).iter().map(Vec::as_slice)).map(<[u8]>::to_vec)
}

/// What the boot sees, as `NAME=VALUE`.
fn entries(environment: &Environment) -> Vec<Vec<u8>> {
    environment.visible().map(|(name, value)| [name.as_bytes(), b"=", value.as_bytes()].concat()).collect()
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;
    use crate::environment::tests::{environment, names};

    fn read(names: &[&str], wholes: Vec<FullEnvironmentRead>) -> Reads {
        let variables = names.iter().map(|name| (OsString::from(name), Some("/app/settings.py:3".to_owned())));
        Reads { variables: variables.collect(), wholes, ..Reads::default() }
    }

    /// Whether an image is fresh in another environment.
    fn is_fresh_in(made_in: &Environment, language: Language, reads: &Reads, entries: &[&[u8]]) -> bool {
        let mut writer = TablesWriter::new();
        EnvironmentInputs { environment: made_in, reads }.write(language, &mut writer);
        let bytes = writer.finish();
        let tables = image::Tables::parse_unchecked_sum(&bytes).unwrap();
        let entries: Vec<&[u8]> = entries.to_vec();
        let result = inputs::environment::first_difference(&tables, entries.into_iter()).unwrap().is_none();
        result
    }

    #[test]
    fn the_table_and_named_variables_are_seen_from_the_start_and_all_but_secrets_on_demand() {
        let all = [("HOME", "/h"), ("PYTHONPATH", "/p"), ("SECRET", "x"), ("TERM", "vt"), ("EL", "1"), ("FM", "1")];
        let picked = environment(&all, &["EL"], &[]);
        assert_eq!(names(picked.seen()), ["EL", "HOME", "PYTHONPATH"]);
        let (entries, index) = picked.on_demand();
        let secret = picked.value("SECRET").unwrap().to_str().unwrap();
        assert_eq!(
            entries.to_bytes(),
            format!("variable=FM=1\0variable=SECRET={secret}\0volatile=TERM=vt\0").into_bytes()
        );
        assert!(index.to_bytes().starts_with(b"variable=12,1,FM\0variable=30,"));
        assert!(secret.len() > 10, "long enough to be found again: {secret}");
        let compared = |language, reads: &Reads| {
            EnvironmentInputs { environment: &picked, reads }
                .compared_names(language)
                .map(|name| name.to_str().unwrap().to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(compared(Language::Python, &Reads::default()), ["EL", "PYTHONPATH"]);
        assert_eq!(compared(Language::Ruby, &Reads::default()), ["EL"]);
        let reads = read(&["PYTHONPATH", "FM", "TERM", "HOME"], Vec::new());
        assert_eq!(compared(Language::Ruby, &reads), ["EL", "HOME", "PYTHONPATH", "FM", "TERM"]);
    }

    #[test]
    fn of_a_secret_that_was_read_only_its_outline_counts() {
        let all = [("DATABASE_URL", "db://me:pass@host"), ("OTHER_KEY", "y"), ("EL", "1")];
        let made_in = environment(&all, &[], &[]);
        let reads = read(&["DATABASE_URL", "OTHER_KEY", "MISSING_KEY"], Vec::new());
        let is_fresh = |entries: &[&[u8]]| is_fresh_in(&made_in, Language::Python, &reads, entries);
        assert!(is_fresh(&[b"DATABASE_URL=db://you:other@host", b"OTHER_KEY=z"]));
        assert!(!is_fresh(&[b"DATABASE_URL=db://you:other@elsewhere", b"OTHER_KEY=z"]), "another address");
        assert!(
            !is_fresh(&[b"DATABASE_URL=db://me:pass@host"])
                && !is_fresh(&[b"DATABASE_URL=db://me:pass@host", b"OTHER_KEY="])
        );
        assert!(!is_fresh(&[b"DATABASE_URL=db://me:pass@host", b"OTHER_KEY=y", b"MISSING_KEY=x"]));
        let unread = is_fresh_in(&made_in, Language::Python, &Reads::default(), &[b"OTHER_KEY=z"]);
        assert!(unread, "nobody has read them");
        let whole = read(&[], vec![FullEnvironmentRead::Read("/app.py:1".to_owned())]);
        let is_fresh = |entries: &[&[u8]]| is_fresh_in(&made_in, Language::Python, &whole, entries);
        assert!(
            is_fresh(&[b"DATABASE_URL=db://you:other@host", b"OTHER_KEY=z", b"EL=1"])
                && !is_fresh(&[b"OTHER_KEY=z", b"EL=1"])
        );
        let mut bound = environment(&[("A_KEY", "00ff")], &[], &[]);
        bound.compares_forms = true;
        let reads = read(&["A_KEY"], Vec::new());
        let is_fresh = |value: &[u8]| is_fresh_in(&bound, Language::Python, &reads, &[value]);
        assert!(is_fresh(b"A_KEY=12ab") && !is_fresh(b"A_KEY=12abc") && !is_fresh(b"A_KEY=12xy"));
    }

    #[test]
    fn a_secret_that_c_code_has_read_is_found() {
        let all = [("A_KEY", "x"), ("B_KEY", "y")];
        let mut reads = read(&["A_KEY"], Vec::new());
        let findings = |environment: &Environment, reads: &Reads| EnvironmentInputs { environment, reads }.findings();
        assert!(findings(&environment(&all, &[], &[]), &reads).is_empty());
        reads.variables.insert("B_KEY".into(), None);
        let found = findings(&environment(&all, &[], &[]), &reads);
        assert!(found.len() == 1 && found[0].text.starts_with("B_KEY looks like a secret, and C code"), "{found:?}");
        assert!(findings(&environment(&all, &["B_KEY"], &[]), &reads).is_empty(), "its value is wanted");
    }

    #[test]
    fn what_was_read_is_compared() {
        let made_in = environment(&[("TZ", "UTC"), ("PATH", "/bin"), ("TERM", "vt")], &[], &["QUIET"]);
        let reads = read(&["TZ", "MISSING", "QUIET", "LINES"], Vec::new());
        let is_fresh = |entries: &[&[u8]]| is_fresh_in(&made_in, Language::Python, &reads, entries);
        assert!(is_fresh(&[b"TZ=UTC", b"PATH=/other", b"DATABASE_URL=x", b"QUIET=1", b"TERM=xterm", b"COLUMNS=1"]));
        assert!(!is_fresh(&[b"TZ=CET"]) && !is_fresh(&[]) && !is_fresh(&[b"TZ=UTC", b"MISSING="]));
        assert!(!is_fresh(&[b"TZ=UTC", b"LINES=1"]), "read by name");
        let whole = read(&[], vec![FullEnvironmentRead::Read("/app.py:1".to_owned())]);
        let made_in = environment(&[("A", "1"), ("B_KEY", "k1"), ("TERM", "vt")], &[], &["QUIET"]);
        let is_fresh = |entries: &[&[u8]]| is_fresh_in(&made_in, Language::Python, &whole, entries);
        assert!(is_fresh(&[b"A=1", b"B_KEY=k2", b"PWD=/", b"TERM=xterm"]) && !is_fresh(&[b"A=1"]));
        assert!(!is_fresh(&[b"A=1", b"B_KEY=k3", b"B=1"]) && !is_fresh(&[b"A=2", b"B_KEY=k3"]) && !is_fresh(&[]));
        let whole = read(&["TERM"], vec![FullEnvironmentRead::Read("/app.py:1".to_owned())]);
        assert!(!is_fresh_in(&made_in, Language::Python, &whole, &[b"A=1", b"B_KEY=k3", b"TERM=xterm"]));
    }

    #[test]
    fn what_appears_where_the_boot_looked_by_a_pattern_is_noticed() {
        let reads = || Reads { patterns: ["TQDM_*".to_owned()].into(), ..Reads::default() };
        let is_fresh =
            |made_in: &Environment, reads: &Reads| is_fresh_in(made_in, Language::Python, reads, &[b"TQDM_ASCII=1"]);
        assert!(
            !is_fresh(&environment(&[], &[], &[]), &reads())
                && is_fresh(&environment(&[], &[], &[]), &Reads::default())
        );
        assert!(is_fresh(&environment(&[], &[], &["TQDM_*"]), &reads()), "withheld: taken for unset");
    }

    #[test]
    fn an_image_compares_equal_in_the_environment_it_was_made_in() {
        let all = [("LANG", "C.UTF-8"), ("LC_ALL", ""), ("RAILS_ENV", "production"), ("LD_DEBUG", "x")];
        let made_in = environment(&all, &["EL"], &[]);
        let reads = read(&["RAILS_ENV"], Vec::new());
        let compare = |entries: &[&[u8]]| is_fresh_in(&made_in, Language::Ruby, &reads, entries);
        assert!(compare(&[b"LANG=C.UTF-8", b"LC_ALL=", b"RAILS_ENV=production", b"LD_DEBUG=x", b"TZ=UTC"]));
        assert!(
            compare(&[b"LC_ALL=C.UTF-8", b"RAILS_ENV=production", b"LD_DEBUG=x"]),
            "the same locale by another name"
        );
        assert!(
            compare(&[b"LANG=C.UTF-8", b"RAILS_ENV=production", b"LD_DEBUG=x", b"PYTHONPATH=/x", b"HOME=/h"]),
            "the other language's, and one that nobody read"
        );
        assert!(!compare(&[b"LANG=C", b"RAILS_ENV=production", b"LD_DEBUG=x"]), "another locale");
        assert!(!compare(&[b"LANG=C.UTF-8", b"RAILS_ENV=test", b"LD_DEBUG=x"]), "another value");
        assert!(!compare(&[b"LANG=C.UTF-8", b"RAILS_ENV=production"]), "a variable is gone");
        assert!(
            !compare(&[b"LANG=C.UTF-8", b"RAILS_ENV=production", b"LD_DEBUG=x", b"RUBYOPT=-w"]),
            "a variable appeared"
        );
        assert!(
            !compare(&[b"LANG=C.UTF-8", b"RAILS_ENV=production", b"LD_DEBUG=x", b"EL=0"]),
            "a named variable appeared"
        );
    }
}
