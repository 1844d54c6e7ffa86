//! What CPython's start-up files (.pth, sitecustomize) read: they run before the front end, which cannot see it. A boot must see from its
//! start what they ask for.

use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use failure::{Failure, Result};
use judge::entries::Entries;
use judge::environment::Environment;
use runtime::deadline::{self, ProcessOutput};
use runtime::Language;

use super::Freeze;
use crate::control_dir::ControlDir;

/// Time limit for `site` to read its files.
const LIMIT: Duration = Duration::from_secs(20);

/// Writes the variables that a boot may get on demand to the control directory.
pub fn leave_on_demand(environment: &Environment, dir: &ControlDir) -> Result<()> {
    let (entries, index) = environment.on_demand();
    dir.write("environment", entries.to_bytes())?;
    dir.write("on_demand", index.to_bytes())
}

/// As [`leave_on_demand`], and has the interpreter write to DIR/site what `site` reads and changes. Returns the boot's environment.
pub fn early_reads(freeze: &Freeze<'_>, environment: Environment) -> Result<Environment> {
    let Freeze { request, program, dir, .. } = *freeze;
    leave_on_demand(&environment, dir)?;
    if program.runtime.language != Language::Python {
        return Ok(environment);
    }
    let (runtime, main) = (&program.runtime.program, &program.main);
    let mut command = Command::new(runtime);
    command.arg0(&main.argv[0]).args(main.options()).arg("-S").arg(request.installation.python_site()?);
    command.arg(main.kind.word());
    command.env_clear().envs(environment.seen().iter().cloned()).env("SNAPBOOT_FREEZE_DIR", dir.path());
    let told = deadline::run(&mut command, LIMIT).map_err(|error| Failure::io("start", runtime, &error))?;
    let reads = Entries::read(&dir.file("site")).map_err(|_| untold(runtime, told.as_ref()))?;
    let environment = environment.with_seen_early(&reads);
    leave_on_demand(&environment, dir)?;
    Ok(environment)
}

/// The failure of an interpreter that has written nothing. An image would not depend on what its start-up files have read.
fn untold(runtime: &Path, told: Option<&ProcessOutput>) -> Failure {
    let said = told.map(|told| String::from_utf8_lossy(&told.stderr).into_owned());
    let why = match &said {
        Some(said) => said.lines().rfind(|line| !line.is_empty()).unwrap_or("it said nothing"),
        None => "it took too long",
    };
    Failure::refusal(format!(
        "{} should run its start-up files (.pth, sitecustomize) and say what they read, but did not: {why}. Check that it starts by itself.",
        runtime.display()
    ))
}
