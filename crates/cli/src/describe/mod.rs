//! The definition of the command line in other forms: shell completion, manual pages, the reference of commands. Also
//! tables of the program, for tests and documents.

mod completion;
mod manual;
mod reference;
mod tables;

use clap::{Command, CommandFactory};

use crate::arguments::Arguments;

pub use completion::main as completion;
pub use manual::main as manual;
pub use reference::main as reference;
pub use tables::main as tables;

/// The command line without hidden parts.
fn visible() -> Command {
    let all = Arguments::command();
    let shown: Vec<Command> = all.get_subcommands().filter(|subcommand| !subcommand.is_hide_set()).cloned().collect();
    let about = all.get_about().cloned().unwrap_or_default();
    Command::new("snapboot")
        .version(env!("CARGO_PKG_VERSION"))
        .about(about)
        .subcommand_required(true)
        .subcommands(shown)
}
