//! Where the other parts of Snapboot are: found from where this command is, never from a path built in.
//!
//! Two layouts are known: `PREFIX/bin/snapboot` with everything else in `PREFIX/libexec/snapboot`, which `make install`, the wheel and
//! the gem have, and a source tree with `target/PROFILE/snapboot` beside the launcher and the freezer, and the front ends at the top.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod set_up;
mod whole;

use std::path::{Path, PathBuf};

use failure::{Failure, Result};

const LAUNCHER: &str = "snapboot-launcher";
const FREEZER: &str = "libsnapboot_freezer.so";
/// What is to be said where a part is missing or damaged.
const AGAIN: &str = "this installation is not whole. Install Snapboot again (its wheel, its gem, or make install PREFIX=...), or build all of it \
                     (make build) when you run it from its source tree.";
/// Bytes that make a name long to CRuby.
const LONG_NAME: usize = 1024;

/// The directories in which the parts lie.
pub struct Installation {
    /// Holds the launcher and the freezer.
    native: PathBuf,
    /// Holds `python` and `ruby`.
    front_ends: PathBuf,
}

impl Installation {
    /// Finds the installation that the running command belongs to.
    pub fn find() -> Result<Self> {
        let command = std::env::current_exe().map_err(|error| {
            Failure::failed(format!("cannot tell where snapboot itself lies: {error}. Mount /proc."))
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

    /// The freezer.
    pub fn freezer(&self) -> Result<PathBuf> {
        part(self.native.join(FREEZER), "freezer")
    }

    /// What CPython runs to be frozen.
    pub fn python_front_end(&self) -> Result<PathBuf> {
        part(self.front_ends.join("python/snapboot/front_end/freeze.py"), "Python front end")
    }

    /// What CPython runs for a training run.
    pub fn python_training(&self) -> Result<PathBuf> {
        part(self.front_ends.join("python/snapboot/front_end/train.py"), "Python front end")
    }

    /// What CPython runs to tell what `site` reads.
    pub fn python_site(&self) -> Result<PathBuf> {
        part(self.front_ends.join("python/snapboot/front_end/site_reads.py"), "Python front end")
    }

    /// What CRuby requires to be frozen.
    pub fn ruby_front_end(&self) -> Result<PathBuf> {
        part(self.front_ends.join("ruby/lib/snapboot/freeze.rb"), "Ruby front end")
    }

    /// What CRuby requires for a training run.
    pub fn ruby_training(&self) -> Result<PathBuf> {
        part(self.front_ends.join("ruby/lib/snapboot/train.rb"), "Ruby front end")
    }

    /// What Ruby requires to have its boot archive switched on by `snapboot run`.
    pub fn ruby_run(&self) -> Result<PathBuf> {
        part(self.front_ends.join("ruby/lib/snapboot/archive/run.rb"), "Ruby front end")
    }

    /// What Python imports to have its boot archive switched on by `snapboot run`: `sitecustomize`, in a directory of its own.
    pub fn python_run(&self) -> Result<PathBuf> {
        part(self.front_ends.join("python/snapboot/archive/run/sitecustomize.py"), "Python front end")
    }

    /// Fails where what Python's boot archive is made of is not whole.
    pub fn check_python_archive(&self) -> Result<()> {
        whole::ends_with(&self.python_run()?, "start()\n")?;
        whole::check(&self.native, &["libsnapboot_python.so", "python/snapboot/archive/"])
    }

    /// Fails where what Ruby's boot archive is made of is not whole.
    pub fn check_ruby_archive(&self) -> Result<()> {
        whole::ends_with(&self.ruby_run()?, "end\n")?;
        let files = ["libsnapboot_ruby.so", "ruby/lib/snapboot/archive", "ruby/lib/snapboot/setup.rb"];
        whole::check(&self.native, &files)
    }

    /// What Ruby requires to note where the time of its start goes.
    pub fn ruby_explain(&self) -> Result<PathBuf> {
        part(self.front_ends.join("ruby/lib/snapboot/explain/run.rb"), "Ruby front end")
    }

    /// What Python imports to note where the time of its start goes: `sitecustomize`, in a directory of its own.
    pub fn python_explain(&self) -> Result<PathBuf> {
        part(self.front_ends.join("python/snapboot/explain/run/sitecustomize.py"), "Python front end")
    }

    /// What Ruby runs to build an archive.
    pub fn ruby_archive_builder(&self) -> Result<PathBuf> {
        part(self.front_ends.join("ruby/lib/snapboot/archive/build.rb"), "Ruby front end")
    }

    /// What Python runs to build an archive.
    pub fn python_archive_builder(&self) -> Result<PathBuf> {
        part(self.front_ends.join("python/snapboot/archive/build.py"), "Python front end")
    }

    /// Files and directories of which a booting process reads, and which are no part of the program.
    pub fn own_files(&self) -> Vec<PathBuf> {
        let front_end = |name: &str| self.front_ends.join(name);
        vec![self.native.join(FREEZER), front_end("python/snapboot"), front_end("ruby/lib/snapboot")]
    }

    /// What stands for the main script in a Ruby that has none while it is frozen. Its name is made longer than
    /// any CRuby keeps inside of a string object (640 bytes), because the front end has to exchange the buffer outside of it.
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
