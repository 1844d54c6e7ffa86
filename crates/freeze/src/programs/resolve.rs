//! Finds out what a request means here: the program, its runtime and environment, and where the image goes.

use std::path::{Path, PathBuf};

use failure::{Failure, Result};
use image_file::info::Info;
use image_file::starts::Starts;
use image_file::{rotation, ImageFile};
use judge::environment::Environment;
use judge::variables;
use runtime::{probe, search_path, Main, Shim};

use super::cpu_level;
use crate::arch;
use crate::output;
use crate::own_files::OwnFiles;
use crate::program::Program;
use crate::progress::{Progress, Step};
use crate::request::{Cpu, FreezeRequest};

/// Resolves the program. Refuses what cannot be meant before anything is booted.
pub fn resolve(request: &FreezeRequest, progress: &dyn Progress) -> Result<Program> {
    if !cfg!(target_os = "linux") || !inputs::cpu::IS_SUPPORTED {
        let message =
            "images can be made on Linux only, on x86-64 and aarch64: not yet elsewhere. Programs run as before.";
        return Err(Failure::refusal(message));
    }
    arch::check_kernel()?;
    recipes::load_own()?;
    variables::check(&request.environment, &request.withheld)
        .map_err(|mistake| Failure::refusal(mistake.to_string()))?;
    let search_path = search_path();
    let environment = Environment::pick(std::env::vars_os(), &request.environment, &request.withheld);
    let mut resolved = runtime::resolve(&request.command, &search_path)?;
    progress.step(&Step::Probe(&resolved.program));
    let runtime = probe(&resolved.program, environment.seen())?;
    if runtime.program != resolved.program {
        let shim = Shim { script: resolved.program.clone(), program: runtime.program.clone() };
        resolved.argv[0] = shim.program.clone().into_os_string();
        resolved.executed.clone_from(&shim.program);
        resolved.called.clone_from(&shim.program);
        resolved.shim = Some(shim);
    }
    let (cpu, only_native, environment) = match request.cpu {
        None => cpu_level::by_default(environment, &runtime.program),
        Some(Cpu::Native) => (Cpu::Native, None, environment),
        Some(cpu @ Cpu::Level(level)) => {
            let made = cpu_level::for_level(environment, &runtime.program, level);
            (cpu, None, made.map_err(|unfit| unfit.failure)?)
        }
    };
    let main = Main::split(runtime.language, resolved.argv, &search_path)?;
    let named = main.script.clone().or_else(|| main.module().map(PathBuf::from)).unwrap_or(resolved.named);
    let output = output::path(request.output.as_deref(), &named)?;
    output::check(&output, resolved.followed.iter().chain(&main.script).map(|path| path.as_path()))?;
    if request.max_thaws.is_some() {
        rotation::check_counter(&output)?;
    }
    // Only once: a user who freezes the same again has read it.
    let messages: Vec<String> = resolved.shim.iter().map(Shim::message).collect();
    let replaced = ImageFile::open(&output).ok();
    let known = replaced.as_ref().map(|old| Info::read(&old.tables()).notes).unwrap_or_default();
    messages.iter().filter(|message| !known.contains(message)).for_each(|message| progress.message(message));
    let replaced = replaced.map(|old| (old.head().image_id(), Starts::read(&old)));
    let executed = resolved.executed;
    let others = [output.parent().map(Path::to_owned), runtime.program.canonicalize().ok()];
    let others = request.installation.own_files().into_iter().chain(others.into_iter().flatten());
    let own_files = OwnFiles::new(others.collect());
    Ok(Program {
        runtime,
        called: resolved.called,
        main,
        executed,
        named,
        cpu,
        only_native,
        environment,
        output,
        replaced,
        own_files,
        leaves_own_files: false,
        leaves_script: false,
        messages,
    })
}
