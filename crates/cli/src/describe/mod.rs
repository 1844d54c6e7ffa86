//! What the definition of the command line says, in the forms that shells and `man` want.

mod completion;
mod manual;

use clap::{Command, CommandFactory};

use crate::arguments::Arguments;

pub use completion::main as completion;
pub use manual::main as manual;

/// The command line without what nobody types.
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
