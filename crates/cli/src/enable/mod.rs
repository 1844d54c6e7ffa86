//! `snapboot enable` and `snapboot disable`: images for every program of an environment, through one file that its interpreter runs at each
//! start before anything of the program, and through an entry in the interpreter's place ([`entry`], [`moved`]). See
//! python/snapboot/archive/images.py and ruby/lib/snapboot/enabled.rb.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use failure::{Failure, Result};

use crate::arguments::{Disable, Enable};
use crate::render;

mod drafts;
mod entry;
mod moved;
mod python;
mod ruby;

/// Begins the line that says how many folders above the file were made for it: `snapboot disable` removes these as well.
const MADE: &str = "# Folders made for this file: ";

/// A file that belongs into an environment.
struct Hook {
    path: PathBuf,
    content: String,
    /// What the interpreter's programs have from then on.
    gives: &'static str,
}

/// Runs the subcommand.
pub fn enable(arguments: &Enable) -> Result<u8> {
    let environment = named_or_active(arguments.environment.as_deref())?;
    let ruby = ruby::interpreter(&environment);
    let hooks = match &ruby {
        Some(ruby) => vec![ruby::hook(ruby)?],
        None => python::hooks(&python::environment(&environment)?)?,
    };
    for Hook { path, content, gives } in hooks {
        let folder = path.parent().expect("a file in a folder");
        let made = made_folders(&path).max(folder.ancestors().take_while(|folder| !folder.exists()).count());
        let content = if made > 0 { format!("{content}{MADE}{made}\n") } else { content };
        let write = |draft: &Path| {
            fs::write(draft, &content)?;
            // For all who start this interpreter, whatever the umask.
            fs::set_permissions(draft, Permissions::from_mode(0o644))
        };
        drafts::remove_old(folder);
        fs::create_dir_all(folder)
            .and_then(|()| drafts::replace(folder, &path, write))
            .map_err(|error| Failure::io("write", &path, &error))?;
        if !arguments.verbosity.quiet {
            render::print(&format!("{}: {gives} from now on\n", path.display()))?;
        }
    }
    let (entries, what) = match ruby {
        None => (entry::put(&environment)?, "what has an image starts without a Python from now on"),
        Some(_) => match moved::put(&environment)? {
            moved::Put::Entry(ruby) => (vec![ruby], "what has an image starts without a Ruby from now on"),
            moved::Put::Differs(ruby) => (
                vec![ruby],
                "stays where it is, since this Ruby finds other files from another path; each start begins with it",
            ),
            moved::Put::Unfit => (Vec::new(), ""),
        },
    };
    print_names(&entries, what, arguments.verbosity.quiet)?;
    Ok(0)
}

/// Runs the subcommand.
pub fn disable(arguments: &Disable) -> Result<u8> {
    let environment = named_or_active(arguments.environment.as_deref())?;
    let files = match ruby::interpreter(&environment) {
        Some(ruby) => {
            let file = ruby::file(&ruby)?;
            let back: Vec<PathBuf> = moved::take_back(&environment)?.into_iter().collect();
            print_names(&back, "as before", arguments.verbosity.quiet)?;
            vec![file]
        }
        None => {
            let environment = python::environment(&environment)?;
            print_names(&entry::take_back(&environment)?, "as before", arguments.verbosity.quiet)?;
            python::files(&environment)?
        }
    };
    for file in files {
        let made = made_folders(&file);
        file.parent().into_iter().for_each(drafts::remove_old);
        let was_there = match fs::remove_file(&file) {
            Ok(()) => {
                // One that somebody else uses by now is not empty, and neither are those above it.
                let mut folders = file.ancestors().skip(1).take(made);
                let _ = folders.try_for_each(fs::remove_dir);
                true
            }
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

/// Says what is so of the names of an interpreter, in one line.
fn print_names(entries: &[PathBuf], what: &str, is_quiet: bool) -> Result<()> {
    let Some((first, others)) = entries.split_first().filter(|_| !is_quiet) else { return Ok(()) };
    let others = others.iter().filter_map(|path| path.file_name()).map(|name| format!(", {}", name.display()));
    render::print(&format!("{}{}: {what}\n", first.display(), others.collect::<String>()))
}

/// How many folders above this file were made for it, as it says itself.
fn made_folders(file: &Path) -> usize {
    let content = fs::read_to_string(file).unwrap_or_default();
    content.lines().find_map(|line| line.strip_prefix(MADE)?.parse().ok()).unwrap_or_default()
}

/// The directory of the named environment, or of the active one.
fn named_or_active(named: Option<&Path>) -> Result<PathBuf> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let Some(directory) =
        named.map(Path::to_owned).or_else(|| variable("VIRTUAL_ENV")).or_else(|| variable("CONDA_PREFIX"))
    else {
        return Err(Failure::refusal(
            "No virtual environment is active (neither VIRTUAL_ENV nor CONDA_PREFIX is set). Activate one, or name a directory: that of a \
             virtual environment of Python (snapboot enable .venv), or one with a Ruby in its bin (snapboot enable ~/.rbenv/versions/3.3.6).",
        ));
    };
    std::path::absolute(&directory).map_err(|error| Failure::io("find", &directory, &error))
}

/// A path as it can stand between quotes. `holder`: the kind of file where it shall stand.
fn quotable<'a>(path: &'a Path, holder: &str) -> Result<&'a str> {
    let is_plain = |path: &&str| !path.contains(['\'', '"', '\\', '#']) && !path.contains(char::is_control);
    path.to_str().filter(is_plain).ok_or_else(|| {
        Failure::refusal(format!(
            "{} has a quote, a backslash, a number sign or bytes that are not UTF-8 in its path, and {holder} cannot hold these. Install \
             Snapboot elsewhere.",
            path.display()
        ))
    })
}

/// The path of this command.
fn own_program() -> Result<PathBuf> {
    std::env::current_exe().map_err(|error| Failure::io("find", Path::new("snapboot"), &error))
}
