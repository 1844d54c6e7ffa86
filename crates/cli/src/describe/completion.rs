//! `snapboot completion`: the script with which a shell completes words.

use clap::builder::StyledStr;
use clap::{Command, ValueHint};
use clap_complete::Shell;
use failure::Result;

use super::visible;
use crate::arguments::{self, Completion};
use crate::render;

/// Completes another command after a `--`, and names of commands after `install`: clap's scripts for bash and fish do not. {COMMANDS}
/// stands for the subcommands that take names.
const COMMANDS_IN_BASH: &str = r#"
_snapboot_commands() {
    local at
    for ((at = 2; at < COMP_CWORD; at++)); do
        if [[ ${COMP_WORDS[at]} == -- ]]; then
            if declare -F _command_offset >/dev/null; then
                _command_offset $((at + 1))
            elif ((at + 1 == COMP_CWORD)); then
                COMPREPLY=($(compgen -c -- "${COMP_WORDS[COMP_CWORD]}"))
            fi
            return
        fi
    done
    if [[ " {COMMANDS} " == *" ${COMP_WORDS[1]} "* && $COMP_CWORD -gt 1 && ${COMP_WORDS[COMP_CWORD]} != -* ]]; then
        COMPREPLY=($(compgen -c -- "${COMP_WORDS[COMP_CWORD]}"))
        return
    fi
    _snapboot "$@"
}

complete -F _snapboot_commands -o bashdefault -o default snapboot
"#;
const COMMANDS_IN_FISH: &str = r#"
complete -c snapboot -n "__fish_snapboot_using_subcommand {COMMANDS}" -a "(__fish_complete_command)"
complete -c snapboot -n "string match -q -- -- (commandline -opc)[-1]" -a "(__fish_complete_command)"
"#;

/// Prints the script for a shell; returns the exit status.
pub fn main(arguments: &Completion) -> Result<u8> {
    let (shell, more) = match arguments.shell {
        arguments::Shell::Bash => (Shell::Bash, COMMANDS_IN_BASH),
        arguments::Shell::Fish => (Shell::Fish, COMMANDS_IN_FISH),
        arguments::Shell::Zsh => (Shell::Zsh, ""),
    };
    let mut command = visible();
    let takes_names = |subcommand: &&Command| {
        subcommand.get_positionals().any(|word| word.get_value_hint() == ValueHint::CommandName)
    };
    let names: Vec<&str> = command.get_subcommands().filter(takes_names).map(Command::get_name).collect();
    let more = more.replace("{COMMANDS}", &names.join(" "));
    command = command.mut_subcommands(in_short);
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, "snapboot", &mut script);
    render::print(&(String::from_utf8_lossy(&script).into_owned() + &more)).map(|()| 0)
}

/// Keeps one phrase about each option: a list of words has no room for more.
fn in_short(command: Command) -> Command {
    let phrase = |text: &StyledStr| {
        let text = text.to_string();
        let end = [". ", ": ", "; ", ", as in "].iter().filter_map(|end| text.find(end)).min().unwrap_or(text.len());
        text[..end].to_owned()
    };
    let command = command.mut_args(|option| match option.get_help().map(phrase) {
        Some(help) => option.help(help),
        None => option,
    });
    command.mut_subcommands(in_short)
}
