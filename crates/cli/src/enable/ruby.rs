//! Of a Ruby: RubyGems begins with `require "rbconfig"`, and the folder for what a site adds comes first in the search path. A file of that
//! name there runs before anything else of RubyGems, whose loading takes most of the time of a small start, and loads the real one.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use failure::{Failure, Result};
use installation::Installation;

use super::{own_program, quotable, Hook};

/// Where `require` finds it, in the first folder of the search path.
const FILE: &str = "rbconfig.rb";
/// How it begins.
const MARK: &str = "# Written by `snapboot enable`";
/// What shows the implementation and the folder.
const FOLDER: &str = "print RUBY_ENGINE, ' ', $LOAD_PATH.first";

/// The Ruby of a directory that is no environment of Python.
pub fn interpreter(directory: &Path) -> Option<PathBuf> {
    let ruby = directory.join("bin/ruby");
    (!super::python::is_environment(directory) && ruby.is_file()).then_some(ruby)
}

/// The file for a Ruby.
pub fn hook(ruby: &Path) -> Result<Hook> {
    let path = file(ruby)?;
    let enabled = Installation::find()?.ruby_enabled()?;
    let program = own_program()?;
    // Others may start this Ruby, too, and will execute what the file names.
    trust::check_place(&program).and(trust::check_place(&enabled)).map_err(|refusal| {
        Failure::refusal(format!(
            "the programs of {} would execute Snapboot, which others can change: {refusal}. Install Snapboot where only you and root can \
             write.",
            ruby.display()
        ))
    })?;
    let own = enabled.parent().and_then(Path::parent).unwrap_or(&enabled);
    let holder = "a file of Ruby";
    let (enabled, own, program) = (quotable(&enabled, holder)?, quotable(own, holder)?, quotable(&program, holder)?);
    let content = format!(
        "{MARK}: what this Ruby starts has images (SNAPBOOT=off: not). `snapboot disable` removes it.\n\
         begin\n  \
         Module.new.module_eval(File.read(\"{enabled}\"), \"{enabled}\")\n        \
         .const_get(:HandOver).new(\"{program}\", \"{own}\").call\n\
         rescue StandardError, ScriptError => error\n  \
         warn(\"snapboot: no image: #{{error.message}}\") unless [\"\", \"0\"].include?(ENV.fetch(\"SNAPBOOT_LOG\", \"\"))\n\
         end\n\
         require $LOAD_PATH.map {{ |folder| \"#{{folder}}/rbconfig.rb\" }}.find {{ |file| File.file?(file) && !File.identical?(file, __FILE__) }}\n"
    );
    Ok(Hook { path, content, gives: "what this Ruby starts has images" })
}

/// The path of the file. Fails where there is another one, and for a Ruby that cannot have images.
pub fn file(ruby: &Path) -> Result<PathBuf> {
    let asked = Command::new(ruby)
        .args(["--disable=gems", "-e", FOLDER])
        .env_remove("RUBYOPT")
        .env_remove("RUBYLIB")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| Failure::io("start", ruby, &error))?;
    let said = String::from_utf8_lossy(&asked.stdout).into_owned();
    let folder = match said.split_once(' ') {
        Some(("ruby", folder)) if asked.status.success() && folder.starts_with('/') && folder.contains("site_ruby") => {
            folder
        }
        _ => {
            return Err(Failure::refusal(format!(
                "{} should be CRuby, and say where its site_ruby is; it said {said:?}. Other implementations have a boot archive, and no images: \
                 snapboot run -- COMMAND.",
                ruby.display()
            )))
        }
    };
    let path = Path::new(folder).join(FILE);
    match fs::read_to_string(&path) {
        Ok(content) if !content.starts_with(MARK) => Err(Failure::refusal(format!(
            "{} is there, and not Snapboot's: this Ruby has been changed by somebody else in the same way. Remove the file if nothing needs \
             it.",
            path.display()
        ))),
        _ => Ok(path),
    }
}
