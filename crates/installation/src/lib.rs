//! Finds the other parts of Snapboot, relative to this command, never by a built-in path.
//!
//! Two layouts are known: `PREFIX/bin/snapboot` with everything else in `PREFIX/libexec/snapboot`, made by `make
//! install`, the wheel and the gem; and a source tree with the launcher, the entry and the freezer beside
//! `target/PROFILE/snapboot`, and the front ends at the top.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod set_up;
mod whole;

use std::path::{Path, PathBuf};

use failure::{Failure, Result};

const LAUNCHER: &str = "snapboot-launcher";
const ENTRY: &str = "snapboot-entry";
const REMOTE: &str = "snapboot-remote";
const FREEZER: &str = "libsnapboot_freezer.so";
/// The remedy for a missing or damaged part.
const AGAIN: &str = "this installation is not whole. Install Snapboot again (its wheel, its gem, or make install PREFIX=...), or build all of it \
                     (make build) when you run it from its source tree.";
/// Names of at least this length (bytes) are long for CRuby.
const LONG_NAME: usize = 1024;

/// The directories of the parts.
pub struct Installation {
    /// Holds the launcher, the entry and the freezer.
    native: PathBuf,
    /// Holds `python` and `ruby`.
    front_ends: PathBuf,
}

impl Installation {
    /// Finds the installation that the running command belongs to.
    pub fn find() -> Result<Self> {
        let command = std::env::current_exe().map_err(|error| {
            Failure::failed(format!("cannot find out where snapboot itself is installed: {error}. Mount /proc."))
        })?;
        let directory = command.parent().unwrap_or(Path::new("/"));
        let installed = directory.parent().unwrap_or(directory).join("libexec/snapboot");
        if installed.join(LAUNCHER).exists() {
            return Ok(Installation { native: installed.clone(), front_ends: installed });
        }
        let front_ends = directory.ancestors().find(|above| above.join("python/snapboot").is_dir());
        Ok(Installation { native: directory.to_owned(), front_ends: front_ends.unwrap_or(&installed).to_owned() })
    }

    /// The launcher.
    pub fn launcher(&self) -> Result<PathBuf> {
        let launcher = part(self.native.join(LAUNCHER), "launcher")?;
        whole::check_program(&launcher)?;
        Ok(launcher)
    }

    /// The program that takes the place of an enabled environment's interpreter.
    pub fn entry(&self) -> Result<PathBuf> {
        let entry = part(self.native.join(ENTRY), "entry")?;
        whole::check_program(&entry)?;
        Ok(entry)
    }

    /// The program that speaks with the store which many machines share.
    pub fn remote(&self) -> Result<PathBuf> {
        part(self.native.join(REMOTE), "program for remote stores")
    }

    /// The freezer.
    pub fn freezer(&self) -> Result<PathBuf> {
        part(self.native.join(FREEZER), "freezer")
    }

    /// The script that CPython runs to be frozen.
    pub fn python_front_end(&self) -> Result<PathBuf> {
        part(self.front_ends.join("python/snapboot/front_end/freeze.py"), "Python front end")
    }

    /// The script that CPython runs for a training run.
    pub fn python_training(&self) -> Result<PathBuf> {
        part(self.front_ends.join("python/snapboot/front_end/train.py"), "Python front end")
    }

    /// The script with which CPython reports the reads of `site`.
    pub fn python_site(&self) -> Result<PathBuf> {
        part(self.front_ends.join("python/snapboot/front_end/site_reads.py"), "Python front end")
    }

    /// The file that CRuby requires to be frozen.
    pub fn ruby_front_end(&self) -> Result<PathBuf> {
        part(self.front_ends.join("ruby/lib/snapboot/freeze.rb"), "Ruby front end")
    }

    /// The file that CRuby requires last to be frozen.
    pub fn ruby_last_library(&self) -> Result<PathBuf> {
        part(self.front_ends.join("ruby/lib/snapboot/last_library.rb"), "Ruby front end")
    }

    /// The file that CRuby requires for a training run.
    pub fn ruby_training(&self) -> Result<PathBuf> {
        part(self.front_ends.join("ruby/lib/snapboot/train.rb"), "Ruby front end")
    }

    /// The file with which `snapboot run` switches on Ruby's boot archive.
    pub fn ruby_run(&self) -> Result<PathBuf> {
        part(self.front_ends.join("ruby/lib/snapboot/archive/run.rb"), "Ruby front end")
    }

    /// The file with which the starts of an enabled Ruby go on as `snapboot run`.
    pub fn ruby_enabled(&self) -> Result<PathBuf> {
        part(self.front_ends.join("ruby/lib/snapboot/enabled.rb"), "Ruby front end")
    }

    /// The module with which `snapboot run` switches on Python's boot archive: `sitecustomize`, in a directory of its
    /// own.
    pub fn python_run(&self) -> Result<PathBuf> {
        part(self.front_ends.join("python/snapboot/archive/run/sitecustomize.py"), "Python front end")
    }

    /// Fails if parts of Python's boot archive are missing or damaged.
    pub fn check_python_archive(&self) -> Result<()> {
        whole::ends_with(&self.python_run()?, "start()\n")?;
        whole::check(&self.native, &["libsnapboot_python.so", "python/snapboot/archive/"])
    }

    /// Fails if parts of Ruby's boot archive are missing or damaged.
    pub fn check_ruby_archive(&self) -> Result<()> {
        whole::ends_with(&self.ruby_run()?, "end\n")?;
        let files = ["libsnapboot_ruby.so", "ruby/lib/snapboot/archive", "ruby/lib/snapboot/setup.rb"];
        whole::check(&self.native, &files)
    }

    /// The file with which Ruby records where the time of its start goes.
    pub fn ruby_explain(&self) -> Result<PathBuf> {
        part(self.front_ends.join("ruby/lib/snapboot/explain/run.rb"), "Ruby front end")
    }

    /// The module with which Python records where the time of its start goes: `sitecustomize`, in a directory of its
    /// own.
    pub fn python_explain(&self) -> Result<PathBuf> {
        part(self.front_ends.join("python/snapboot/explain/run/sitecustomize.py"), "Python front end")
    }

    /// The script with which Ruby builds an archive.
    pub fn ruby_archive_builder(&self) -> Result<PathBuf> {
        part(self.front_ends.join("ruby/lib/snapboot/archive/build.rb"), "Ruby front end")
    }

    /// The script with which Python builds an archive.
    pub fn python_archive_builder(&self) -> Result<PathBuf> {
        part(self.front_ends.join("python/snapboot/archive/build.py"), "Python front end")
    }

    /// Files and directories that a booting process reads, and that are no part of the program.
    pub fn own_files(&self) -> Vec<PathBuf> {
        let front_end = |name: &str| self.front_ends.join(name);
        vec![self.native.join(FREEZER), front_end("python/snapboot"), front_end("ruby/lib/snapboot")]
    }

    /// Replaces the main script in a Ruby that has none while it is frozen. Its name is made too long for any CRuby to
    /// embed in a string object (640 bytes), because the front end has to exchange the buffer.
    pub fn ruby_main_script(&self) -> Result<PathBuf> {
        let directory = self.front_ends.join("ruby/lib/snapboot");
        part(directory.join("stand_in_for_main.rb"), "Ruby front end")?;
        let mut name = directory.into_os_string();
        name.push("/.".repeat(LONG_NAME / 2));
        name.push("/stand_in_for_main.rb");
        Ok(PathBuf::from(name))
    }
}

fn part(path: PathBuf, name: &str) -> Result<PathBuf> {
    if path.is_file() {
        return Ok(path);
    }
    Err(Failure::refusal(format!("the {name} should be at {}, but there is no such file: {AGAIN}", path.display())))
}
