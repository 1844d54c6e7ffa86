//! `snapboot remote`: hands over to `snapboot-remote`, which has the libraries for it.

use std::ffi::OsString;

use failure::{Failure, Result};
use installation::Installation;
use store::remote::PUSH;

use crate::arguments::RemoteAction;

/// Executes it; returns only if that fails.
pub fn main(action: &RemoteAction) -> Result<u8> {
    let program = Installation::find()?.remote()?;
    let argv: Vec<OsString> = std::iter::once(program.clone().into_os_string()).chain(words(action)?).collect();
    Err(Failure::io("execute", &program, &store::execute(&program, &argv, None)))
}

fn words(action: &RemoteAction) -> Result<Vec<OsString>> {
    Ok(match action {
        RemoteAction::Push(push) => {
            std::iter::once(PUSH.into()).chain(push.images.iter().map(OsString::from)).collect()
        }
        RemoteAction::Pull(pull) => {
            let own = std::env::current_exe()
                .map_err(|error| Failure::io("find", std::path::Path::new("snapboot"), &error))?;
            ["pull".into(), own.into_os_string()].into_iter().chain(pull.command.iter().cloned()).collect()
        }
        RemoteAction::List(list) if list.json => vec!["list".into(), "--json".into()],
        RemoteAction::List(_) => vec!["list".into()],
        RemoteAction::Verify(_) => vec!["verify".into()],
        RemoteAction::Prune(prune) => vec!["prune".into(), prune.age.as_secs().to_string().into()],
        RemoteAction::Key(key) => vec!["key".into(), key.file.clone().into_os_string()],
    })
}
