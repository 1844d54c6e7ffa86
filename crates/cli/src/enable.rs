//! `snapboot enable` and `snapboot disable`: images and the boot archive for every program of a Python environment, through a file in
//! its site-packages that `site` runs. See python/snapboot/archive/images.py.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use failure::{Failure, Result};
use installation::Installation;

use crate::arguments::{Disable, Enable};
use crate::render;

/// `site` runs the `import` lines of files with this ending, in the order of their names.
const FILE: &str = "snapboot-archive.pth";

/// Runs the subcommand.
pub fn enable(arguments: &Enable) -> Result<u8> {
    let environment = environment(arguments.environment.as_deref())?;
    let set_up = Installation::find()?.python_run()?;
    let line = line(&set_up)?;
    let served: Vec<PathBuf> =
        packages_of(&environment)?.into_iter().filter(|folder| !is_free_threaded(folder)).collect();
    if served.is_empty() {
        return Err(Failure::refusal(format!(
            "{} is an environment of a free-threaded build of CPython, which has no boot archive yet: its objects are laid out in another \
             way. Its programs start as before. Make the environment with an ordinary build of the same version to have an archive.",
            environment.display()
        )));
    }
    for folder in served {
        let file = folder.join(FILE);
        // Starts read it at any time, so it is never half written.
        let draft = folder.join(format!(".{FILE}.{}", std::process::id()));
        fs::write(&draft, &line)
            .and_then(|()| fs::rename(&draft, &file))
            .map_err(|error| Failure::io("write", &file, &error))?;
        if !arguments.verbosity.quiet {
            let file = file.display();
            render::print(&format!("{file}: what this Python starts has images and a boot archive from now on\n"))?;
        }
    }
    compile_own(&environment, &set_up);
    Ok(0)
}

/// Runs the subcommand.
pub fn disable(arguments: &Disable) -> Result<u8> {
    let environment = environment(arguments.environment.as_deref())?;
    for folder in packages_of(&environment)? {
        let file = folder.join(FILE);
        let was_there = match fs::remove_file(&file) {
            Ok(()) => true,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => false,
            Err(error) => return Err(Failure::io("remove", &file, &error)),
        };
        if !arguments.verbosity.quiet {
            let said = if was_there { "removed: starts are as they were before" } else { "was not there" };
            render::print(&format!("{}: {said}\n", file.display()))?;
        }
    }
    Ok(0)
}

/// Compiles the files that starts run for this Python, if that may write beside them: a Python that writes no compiled files
/// (PYTHONDONTWRITEBYTECODE), or belongs to another user, compiles them each time. So do starts if this fails.
fn compile_own(environment: &Path, set_up: &Path) {
    let Some(folder) = set_up.parent().and_then(Path::parent) else { return };
    let _ = Command::new(environment.join("bin/python"))
        .args(["-I", "-m", "compileall", "-qq", "--invalidation-mode", "checked-hash"])
        .arg(folder)
        .env("SNAPBOOT", "off")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
}

/// The contents of the file. An environment still works after Snapboot is removed.
fn line(set_up: &Path) -> Result<String> {
    let quotable = |path: &Path| {
        let text = path.to_str().filter(|path| !path.contains(['\'', '"', '\\']) && !path.contains(char::is_control));
        text.map(str::to_owned).ok_or_else(|| {
            Failure::refusal(format!(
                "{} has a quote, a backslash or bytes that are not UTF-8 in its path, and a .pth file cannot hold these. Install \
                 Snapboot elsewhere.",
                path.display()
            ))
        })
    };
    let program = std::env::current_exe().map_err(|error| Failure::io("find", Path::new("snapboot"), &error))?;
    let (path, snapboot) = (quotable(set_up)?, quotable(&program)?);
    // A virtual environment's `site` runs it twice.
    Ok(format!(
        "import sys; hasattr(sys.meta_path[-2], 'is_of_archive') or exec(\"try:\\n import _frozen_importlib_external as e; n = {{'__name__': 'snapboot.archive.run', '__file__': '{path}'}}; \
         exec(e.SourceFileLoader(n['__name__'], n['__file__']).get_code(n['__name__']), n); n['switch_on_here']('{snapboot}')\\nexcept Exception: pass\", {{}})\n"
    ))
}

/// The named environment, or the active one.
fn environment(named: Option<&Path>) -> Result<PathBuf> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let Some(directory) =
        named.map(Path::to_owned).or_else(|| variable("VIRTUAL_ENV")).or_else(|| variable("CONDA_PREFIX"))
    else {
        return Err(Failure::refusal(
            "No virtual environment is active (neither VIRTUAL_ENV nor CONDA_PREFIX is set). Activate one, or name its directory: \
             snapboot enable .venv.",
        ));
    };
    if directory.join("pyvenv.cfg").is_file() || directory.join("conda-meta").is_dir() {
        return std::path::absolute(&directory).map_err(|error| Failure::io("find", &directory, &error));
    }
    Err(Failure::refusal(format!(
        "{} should be a virtual environment of Python, but there is neither pyvenv.cfg nor conda-meta in it. Name the directory that \
         python -m venv has made; a Python of the system is left alone: snapboot run -- COMMAND serves single programs of it.",
        directory.display()
    )))
}

/// Its site-packages directories.
fn packages_of(environment: &Path) -> Result<Vec<PathBuf>> {
    let lib = environment.join("lib");
    let entries = fs::read_dir(&lib).map_err(|error| Failure::io("read", &lib, &error))?;
    let mut found: Vec<PathBuf> = entries
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("python3."))
        .map(|entry| entry.path().join("site-packages"))
        .filter(|folder| folder.is_dir())
        .collect();
    found.sort();
    if found.is_empty() {
        return Err(Failure::refusal(format!(
            "{} should have a directory python3.N/site-packages, but has none: this is not an environment of CPython 3.",
            lib.display()
        )));
    }
    Ok(found)
}

/// Whether a site-packages directory belongs to a free-threaded build, whose library directory is named like `python3.13t`.
fn is_free_threaded(packages: &Path) -> bool {
    packages.parent().and_then(Path::file_name).is_some_and(|name| name.as_encoded_bytes().ends_with(b"t"))
}
