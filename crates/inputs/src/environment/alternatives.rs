//! Alternatives: other values of variables with which the program booted to the same state. A start with them is
//! served, too.
//!
//! Each was tried in a boot, together with others. A start may have several of them if one boot had them all.

use image::{alternative_kind, Alternative, Error, Rows, Section, Tables};

use super::{locale, value_of, LOCALE};

/// The alternatives of an image, and the boots that had all those taken so far.
pub struct Alternatives<'t, 'a, E> {
    tables: &'t Tables<'a>,
    rows: Rows<'a, Alternative>,
    environment: E,
    boots: u32,
}

impl<'t, 'a, E: Iterator<Item = &'a [u8]> + Clone> Alternatives<'t, 'a, E> {
    /// The alternatives of this image, for a start in this environment. Fails if the tables are damaged.
    pub fn new(tables: &'t Tables<'a>, environment: E) -> Result<Self, Error> {
        Ok(Alternatives { tables, rows: tables.rows(Section::Alternatives)?, environment, boots: u32::MAX })
    }

    /// Whether a variable that differs has one of its alternatives, together with all that were taken before.
    pub fn take(&mut self, name: &[u8]) -> Result<bool, Error> {
        if self.rows.len() == 0 {
            return Ok(false);
        }
        let environment = self.environment.clone();
        let value = if name == LOCALE { locale(environment) } else { value_of(name, environment) };
        let home = value_of(b"HOME", self.environment.clone()).filter(|home| home.starts_with(b"/"));
        let mut boots = 0;
        for row in self.rows.clone() {
            if self.tables.text(row.name)? == name && is_met(&row, value, home) {
                boots |= row.boots;
            }
        }
        let left = self.boots & boots;
        if left != 0 {
            self.boots = left;
        }
        Ok(left != 0)
    }
}

fn is_met(row: &Alternative, value: Option<&[u8]>, home: Option<&[u8]>) -> bool {
    let recorded = match row.kind {
        alternative_kind::UNSET => return value.is_none(),
        alternative_kind::SET => value,
        alternative_kind::BELOW_HOME => value.zip(home).and_then(|(value, home)| value.strip_prefix(home)),
        _ => return false,
    };
    recorded.is_some_and(|recorded| image::digest(recorded) == row.value)
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::vec::Vec;

    use image::{presence, Variable};
    use image_writer::TablesWriter;

    use super::super::differences;
    use super::*;

    /// Whether this environment is served by an image that was made with LANG=de and HOME=/h, and without NO_COLOR and
    /// XDG_CONFIG_HOME. The first other boot had no LANG and NO_COLOR=1, the second LANG=C and
    /// XDG_CONFIG_HOME=$HOME/.config.
    fn serves(environment: &[&'static str]) -> bool {
        let mut writer = TablesWriter::new();
        for (name, value) in [("HOME", None), ("LANG", Some("de")), ("NO_COLOR", None), ("XDG_CONFIG_HOME", None)] {
            let present = if value.is_some() { presence::SET } else { presence::UNSET };
            let value = value.map_or([0; 16], |value: &str| image::digest(value.as_bytes()));
            let name = writer.text(name.as_bytes());
            let present = if name.length == 4 && present == presence::UNSET { presence::RENEWED } else { present };
            writer.push(Section::Variables, &Variable { name, value, present, reserved: 0 });
        }
        for (name, kind, value, boots) in [
            ("LANG", alternative_kind::UNSET, "", 1),
            ("NO_COLOR", alternative_kind::SET, "1", 1),
            ("LANG", alternative_kind::SET, "C", 2),
            ("XDG_CONFIG_HOME", alternative_kind::BELOW_HOME, "/.config", 2),
        ] {
            let name = writer.text(name.as_bytes());
            writer.push(
                Section::Alternatives,
                &Alternative { name, value: image::digest(value.as_bytes()), kind, boots },
            );
        }
        let bytes = writer.finish();
        let tables = Tables::parse_unchecked_sum(&bytes).unwrap();
        let environment: Vec<&[u8]> = environment.iter().map(|entry| entry.as_bytes()).collect();
        let result = differences(&tables, environment.iter().copied()).unwrap().next().is_none();
        result
    }

    #[test]
    fn what_one_boot_had_is_served() {
        assert!(serves(&["HOME=/h", "LANG=de"]) && serves(&["HOME=/h"]) && serves(&["HOME=/h", "LANG=C"]));
        assert!(serves(&["HOME=/h", "NO_COLOR=1"]) && serves(&["HOME=/h", "LANG=de", "NO_COLOR=1"]));
        assert!(serves(&["HOME=/x", "LANG=C", "XDG_CONFIG_HOME=/x/.config"]));
    }

    #[test]
    fn what_no_boot_had_is_not() {
        assert!(!serves(&["HOME=/h", "LANG=fr"]) && !serves(&["HOME=/h", "NO_COLOR=2"]) && !serves(&["LANG=de"]));
        assert!(!serves(&["HOME=/h", "XDG_CONFIG_HOME=/x/.config"]), "it is not below this HOME");
        assert!(!serves(&["HOME=/h", "LANG=C", "NO_COLOR=1"]), "not in one boot");
        assert!(!serves(&["HOME=/h", "XDG_CONFIG_HOME=/h/.config"]), "LANG is gone, as it was in the first boot only");
    }
}
