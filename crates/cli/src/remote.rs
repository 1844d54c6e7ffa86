//! `snapboot remote`: hands over to `snapboot-remote`, which has the libraries for it.

use std::ffi::OsString;
use std::time::Duration;

use failure::{Failure, Result};
use installation::Installation;
use store::remote::PUSH;

use crate::arguments::RemoteAction;

/// How long images that `snapboot remote prune` removes were unused, if nobody says what to remove.
const UNUSED_FOR: Duration = Duration::from_secs(30 * 24 * 3600);

/// Executes it; returns only if that fails.
pub fn main(action: &RemoteAction) -> Result<u8> {
    execute(words(action)?)
}

/// Executes `snapboot-remote` with these words; returns only if that fails.
pub fn execute(words: impl IntoIterator<Item = OsString>) -> Result<u8> {
    let program = Installation::find()?.remote()?;
    for (name, value) in store::remote_settings::variables()? {
        std::env::set_var(name, value);
    }
    let argv: Vec<OsString> = std::iter::once(program.clone().into_os_string()).chain(words).collect();
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
        RemoteAction::Prune(prune) => {
            let unused_for = prune.unused_for.or_else(|| prune.has_no_limit().then_some(UNUSED_FOR));
            let seconds = [prune.older_than, unused_for].map(|age| age.map(|age| age.as_secs()));
            let numbers = seconds.into_iter().chain([prune.max_size]);
            let words = numbers.map(|number| number.map_or_else(|| "-".to_owned(), |number| number.to_string()));
            std::iter::once("prune".into()).chain(words.map(OsString::from)).collect()
        }
        RemoteAction::Key(key) => vec!["key".into(), key.file.clone().into_os_string()],
    })
}
