//! Of a virtual environment of Python: `site` runs the `import` lines of the .pth files in site-packages.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use failure::{Failure, Result};
use installation::Installation;

use super::{own_program, quotable, Hook};

/// `site` runs the `import` lines of files with this ending, in the order of their names. This one comes before those of setuptools and of
/// editable packages, which import modules that a thaw has no use for.
const FILE: &str = "00_snapboot.pth";

/// The files for an environment: one in each of its site-packages.
pub fn hooks(environment: &Path) -> Result<Vec<Hook>> {
    let set_up = Installation::find()?.python_run()?;
    let line = line(&set_up)?;
    let served: Vec<PathBuf> =
        packages_of(environment)?.into_iter().filter(|folder| !is_free_threaded(folder)).collect();
    if served.is_empty() {
        return Err(Failure::refusal(format!(
            "{} is an environment of a free-threaded build of CPython, which has no boot archive yet: its objects are laid out in another \
             way. Its programs start as before. Make the environment with an ordinary build of the same version to have an archive.",
            environment.display()
        )));
    }
    compile_own(environment, &set_up);
    let gives = "what this Python starts has images and a boot archive";
    Ok(served.iter().map(|folder| Hook { path: folder.join(FILE), content: line.clone(), gives }).collect())
}

/// Their paths.
pub fn files(environment: &Path) -> Result<Vec<PathBuf>> {
    Ok(packages_of(environment)?.iter().map(|folder| folder.join(FILE)).collect())
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
    let program = own_program()?;
    let (path, snapboot) = (quotable(set_up, "a .pth file")?, quotable(&program, "a .pth file")?);
    // A virtual environment's `site` runs it twice.
    Ok(format!(
        "import sys; any(hasattr(finder, 'is_of_archive') for finder in sys.meta_path) or exec(\"try:\\n import _frozen_importlib_external as e; n = {{'__name__': 'snapboot.archive.run', '__file__': '{path}'}}; \
         exec(e.SourceFileLoader(n['__name__'], n['__file__']).get_code(n['__name__']), n); n['switch_on_here']('{snapboot}')\\nexcept Exception: pass\", {{}})\n"
    ))
}

/// Whether a directory is an environment of Python.
pub fn is_environment(directory: &Path) -> bool {
    directory.join("pyvenv.cfg").is_file() || directory.join("conda-meta").is_dir()
}

/// The directory, if it is an environment of Python.
pub fn environment(directory: &Path) -> Result<PathBuf> {
    if is_environment(directory) {
        return Ok(directory.to_owned());
    }
    Err(Failure::refusal(format!(
        "{} should be a virtual environment of Python, but there is neither pyvenv.cfg nor conda-meta in it, nor a Ruby in its bin. Name the \
         directory that python -m venv has made; a Python of the system is left alone: snapboot run -- COMMAND serves single programs of it.",
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
