//! Writes the manual pages, for `make install`.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use clap::Command;
use clap_mangen::Man;
use failure::{Failure, Result};

use super::visible;
use crate::arguments::Manual;

/// Writes a page for the command and for each subcommand; returns the exit status.
pub fn main(arguments: &Manual) -> Result<u8> {
    let mut command = visible().disable_help_subcommand(true);
    command.build();
    pages(&command, &arguments.directory).map(|()| 0)
}

fn pages(command: &Command, directory: &Path) -> Result<()> {
    let man = Man::new(command.clone());
    let file = directory.join(man.get_filename());
    fs::write(&file, page(command, &man)).map_err(|error| Failure::io("write", &file, &error))?;
    command.get_subcommands().try_for_each(|subcommand| pages(subcommand, directory))
}

fn page(command: &Command, man: &Man) -> Vec<u8> {
    let name = command.get_display_name().unwrap_or(command.get_name()).to_uppercase();
    let mut page = format!(".TH {} 1 \"\" \"snapboot {}\"\n", escaped(&name), env!("CARGO_PKG_VERSION")).into_bytes();
    let mut sections = || -> std::io::Result<()> {
        man.render_name_section(&mut page)?;
        man.render_synopsis_section(&mut page)?;
        man.render_description_section(&mut page)?;
        man.render_options_section(&mut page)?;
        if command.has_subcommands() {
            man.render_subcommands_section(&mut page)?;
        }
        Ok(())
    };
    sections().expect("memory takes what is written");
    page.extend(command.get_after_long_help().map(|text| more(&text.to_string())).unwrap_or_default().into_bytes());
    page
}

/// The text after the options in `--help`: headings and indented lines. Examples keep their lines.
fn more(text: &str) -> String {
    let mut page = String::new();
    let mut is_example = false;
    for line in text.lines() {
        match line.strip_prefix("  ") {
            Some(line) if is_example => writeln!(page, "{}", escaped(line)),
            Some(line) => writeln!(page, ".PP\n{}", escaped(line.trim_start())),
            None if line.is_empty() => writeln!(page, "{}", if is_example { "" } else { ".PP" }),
            None => {
                let end = if std::mem::replace(&mut is_example, line == "Examples:") { ".fi\n" } else { "" };
                let start = if is_example { ".nf\n" } else { "" };
                write!(page, "{end}.SH {:?}\n{start}", line.trim_end_matches(':').to_uppercase())
            }
        }
        .expect("memory takes what is written");
    }
    page + if is_example { ".fi\n" } else { "" }
}

/// A line that roff prints unchanged.
fn escaped(line: &str) -> String {
    let line = line.replace('\\', "\\e").replace('-', "\\-").replace('\'', "\\(aq");
    if line.starts_with('.') {
        return format!("\\&{line}");
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_keep_their_lines() {
        let text = "Environment:\n  A, and\n\nExamples:\n  ./x -c 'a\\n'\n";
        let expected =
            ".SH \"ENVIRONMENT\"\n.PP\nA, and\n.PP\n.SH \"EXAMPLES\"\n.nf\n\\&./x \\-c \\(aqa\\en\\(aq\n.fi\n";
        assert_eq!(more(text), expected);
    }
}
