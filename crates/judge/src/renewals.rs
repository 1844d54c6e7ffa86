//! Settings of a runtime that each thaw takes from its own environment, as an ordinary start does. Decides which of
//! them an image leaves to its starts; the image is bound to the others.
//!
//! A front end reports which settings it can renew, and which of them the program read during the boot, since the
//! program may keep a result that depends on them. It renews only the settings that it reported.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};

use image::presence;
use runtime::Language;

use crate::entries::Entries;

/// The front ends' name for LC_CTYPE's locale. Other settings have the names of their variables.
pub(crate) const LOCALE: &str = "locale";
/// Python sets it when it coerces the locale C to C.UTF-8, so a reader of it has learnt the locale.
const SET_BY_PYTHON: &str = "LC_CTYPE";

/// The settings that an image leaves to its starts.
#[derive(Clone, Debug, Default)]
pub struct Renewals {
    renewed: BTreeSet<String>,
    /// Other settings, which a thaw renews if boots have shown that nothing depends on them.
    renewable: BTreeSet<String>,
    /// Settings that the program read, and where.
    pub bound: BTreeMap<String, String>,
    language: Option<Language>,
}

impl Renewals {
    /// Collects what the front end reported.
    pub fn gather(report: &Entries, language: Language) -> Renewals {
        let mut renewals = Renewals { language: Some(language), ..Renewals::default() };
        renewals.renewed.extend(report.texts("renews"));
        renewals.renewable.extend(report.texts("renewable"));
        let text = |field: OsString| field.to_string_lossy().into_owned();
        renewals.bound.extend(report.pairs("bound").map(|(name, place)| (text(name), text(place))));
        renewals
    }

    /// Whether an image leaves this setting to its starts. `is_read` tells whether the program read a variable.
    fn is_renewed(&self, setting: &str, is_read: impl Fn(&str) -> bool) -> bool {
        let tells_of_it = if setting == LOCALE { SET_BY_PYTHON } else { setting };
        let is_of_ruby = self.language == Some(Language::Ruby);
        self.renewed.contains(setting) && (is_of_ruby || !is_read(tells_of_it))
    }

    /// Whether an image leaves this variable's setting to its starts.
    pub fn leaves_to_starts(&self, name: &OsStr, is_read: impl Fn(&str) -> bool) -> bool {
        name.to_str().is_some_and(|name| name != LOCALE && self.is_renewed(name, is_read))
    }

    /// The variables that may be left to starts.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.renewed.iter().map(String::as_str).filter(|name| *name != LOCALE)
    }

    /// Whether a thaw can set other locales although the program read that of the boot.
    pub fn may_renew_locale(&self) -> bool {
        self.renewable.contains(LOCALE)
    }

    /// Records that the image has a variant for UTF-8 locales and one for C.
    pub fn split_by_locale(&mut self) {
        self.bound.remove(LOCALE);
    }

    /// The locales that an image made in this one serves: one of [`presence`]; None if it serves only this one.
    pub fn locale(&self, is_read: impl Fn(&str) -> bool, is_utf8: bool) -> Option<u32> {
        self.is_renewed(LOCALE, is_read).then_some(match self.language {
            Some(Language::Python) | None => presence::LOCALE_OF_UTF8_OR_C,
            Some(Language::Ruby) if is_utf8 => presence::LOCALE_OF_UTF8,
            Some(Language::Ruby) => presence::LOCALE_C,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_front_end_renews_is_left_to_starts_unless_the_program_has_read_it() {
        let report = b"renews=locale\0renews=PYTHONUNBUFFERED\0bound=16:PYTHONIOENCODING7:/a.py:1\0";
        let renewals = Renewals::gather(&Entries::parse(report), Language::Python);
        let leaves_to_starts =
            |name: &str, read: &str| renewals.leaves_to_starts(OsStr::new(name), |name| name == read);
        assert!(leaves_to_starts("PYTHONUNBUFFERED", "") && !leaves_to_starts("PYTHONUNBUFFERED", "PYTHONUNBUFFERED"));
        assert!(!leaves_to_starts("PYTHONIOENCODING", "") && !leaves_to_starts("locale", ""));
        assert_eq!(renewals.bound.iter().next(), Some((&"PYTHONIOENCODING".to_owned(), &"/a.py:1".to_owned())));
        assert_eq!(renewals.bound.len(), 1);
        assert_eq!(renewals.locale(|_| false, true), Some(presence::LOCALE_OF_UTF8_OR_C));
        assert_eq!(renewals.locale(|name| name == "LC_CTYPE", true), None, "it has the name of the locale");
        assert_eq!(Renewals::default().locale(|_| false, true), None);
        let renewable = Renewals::gather(&Entries::parse(b"renewable=locale\0"), Language::Python);
        assert!(renewable.may_renew_locale() && renewable.locale(|_| false, true).is_none());
        assert!(!renewals.may_renew_locale(), "it is renewed anyway");
    }
}
