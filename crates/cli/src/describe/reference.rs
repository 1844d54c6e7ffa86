//! The reference of commands in docs/reference.md, for tools/reference.py.

use std::fmt::Write;
use std::fs;

use clap::{Arg, Command};
use failure::{Failure, Result};

use super::visible;
use crate::arguments::Reference;

/// Writes a file of Markdown for each subcommand; returns the exit status.
pub fn main(arguments: &Reference) -> Result<u8> {
    let mut command = visible().disable_help_subcommand(true);
    command.build();
    for subcommand in command.get_subcommands() {
        let file = arguments.directory.join(subcommand.get_name()).with_extension("md");
        fs::write(&file, section(subcommand, "###")).map_err(|error| Failure::io("write", &file, &error))?;
    }
    Ok(0)
}

/// The section of one command: usage, description, options, the text after them in `--help`, and its subcommands.
fn section(command: &Command, heading: &str) -> String {
    let name = command.get_bin_name().unwrap_or(command.get_name());
    let usage = command.clone().render_usage().to_string().replace(['<', '>'], "");
    let usage: Vec<&str> = usage.trim_start_matches("Usage:").lines().map(str::trim).collect();
    let mut text = format!("{heading} {name}\n\n```text\n{}\n```\n\n", usage.join("\n"));
    if let Some(about) = command.get_long_about().or(command.get_about()) {
        text.push_str(&format!("{}\n\n", ended(marked_up(&about.to_string()))));
    }
    let items = command.get_arguments().filter(|argument| !is_unlisted(argument)).map(item).collect::<String>();
    if !items.is_empty() {
        text.push_str(&format!("{items}\n"));
    }
    text.push_str(&command.get_after_long_help().map(|more| sections_behind(&more.to_string())).unwrap_or_default());
    for subcommand in command.get_subcommands() {
        text.push_str(&section(subcommand, &format!("{heading}#")));
    }
    text.trim_end().to_owned() + "\n\n"
}

/// Arguments that every command has, and hidden ones.
fn is_unlisted(argument: &Arg) -> bool {
    argument.is_hide_set() || ["help", "version"].contains(&argument.get_id().as_str())
}

/// An option or a word of the command line with its meaning, as a list item.
fn item(argument: &Arg) -> String {
    let values: Vec<String> = argument.get_value_names().unwrap_or_default().iter().map(ToString::to_string).collect();
    let takes_values = argument.get_action().takes_values();
    let value = if takes_values { values.join(" ") } else { String::new() };
    let mut names: Vec<String> = argument.get_short().map(|short| format!("-{short}")).into_iter().collect();
    match argument.get_long() {
        Some(long) => names.push(format!("--{long} {value}").trim_end().to_owned()),
        None => names.push(value),
    }
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    let help = argument.get_long_help().or(argument.get_help()).map(ToString::to_string).unwrap_or_default();
    let defaults = argument.get_default_values().iter().map(|value| format!("`{}`", value.to_string_lossy()));
    let default = defaults.filter(|_| takes_values).collect::<Vec<_>>().join(", ");
    let default = if default.is_empty() { default } else { format!(" Default: {default}.") };
    format!("- {}: {}{default}\n", names.join(", "), ended(marked_up(&help)))
}

/// Restores the full stop that clap removes from texts of one paragraph.
fn ended(text: String) -> String {
    if text.ends_with('.') {
        text
    } else {
        text + "."
    }
}

/// Formats headings and the indented lines below them. Examples are commands of a shell.
fn sections_behind(text: &str) -> String {
    let mut markdown = String::new();
    for part in text.split("\n\n").filter(|part| !part.trim().is_empty()) {
        let (title, lines) = part.split_once('\n').unwrap_or((part, ""));
        if title == "Examples:" {
            let examples = text.split_once("Examples:\n").map_or("", |(_, examples)| examples);
            let lines: Vec<&str> = examples.lines().map(|line| line.trim_start_matches("  ")).collect();
            write!(markdown, "```sh\n{}\n```\n\n", lines.join("\n")).expect("memory takes what is written");
            break;
        }
        let items: Vec<String> = lines.lines().map(|line| format!("- {}\n", marked_up(line.trim()))).collect();
        write!(markdown, "{}\n\n{}\n", marked_up(title), items.concat()).expect("memory takes what is written");
    }
    markdown
}

/// Text of `--help` as Markdown: options become code, and asterisks are escaped.
fn marked_up(text: &str) -> String {
    let parts = text.split('`').enumerate().map(|(at, part)| match at % 2 {
        0 => part.split(' ').map(word_as_markdown).collect::<Vec<_>>().join(" "),
        _ => format!("`{part}`"),
    });
    parts.collect()
}

fn word_as_markdown(word: &str) -> String {
    let start = word.len() - word.trim_start_matches('(').len();
    let end = word.trim_end_matches(|end| ",.;:)?".contains(end)).len();
    match word.get(start..end) {
        Some(option) if option.starts_with('-') && !option.trim_start_matches('-').is_empty() => {
            format!("{}`{option}`{}", &word[..start], &word[end..])
        }
        _ => word.replace('*', "\\*").replace('<', "\\<"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_become_code_and_asterisks_stay() {
        let text = "As with --env (or -q), LD_* and `a *`; -";
        assert_eq!(marked_up(text), "As with `--env` (or `-q`), LD_\\* and `a *`; -");
    }

    #[test]
    fn an_option_is_shown_with_its_value_and_its_default() {
        let option = Arg::new("runs").short('n').long("runs").value_name("N").default_value("20").help("How often");
        assert_eq!(item(&option), "- `-n`, `--runs N`: How often. Default: `20`.\n");
        let flag = Arg::new("why").long("why").action(clap::ArgAction::SetTrue).help("Say why.");
        assert_eq!(item(&flag), "- `--why`: Say why.\n");
    }

    #[test]
    fn examples_keep_their_lines() {
        let text = "Environment:\n  A_*, and\n  B\n\nExamples:\n  a b\n\n  c d";
        assert_eq!(sections_behind(text), "Environment:\n\n- A_\\*, and\n- B\n\n```sh\na b\n\nc d\n```\n\n");
    }
}
