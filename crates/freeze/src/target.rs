//! What a request would freeze, for those who look elsewhere for such an image first.

use std::path::PathBuf;

use failure::Result;

use crate::programs;
use crate::progress::Progress;
use crate::request::FreezeRequest;

/// What would be frozen, and where its image goes.
pub struct Target {
    /// The interpreter.
    pub interpreter: PathBuf,
    /// The script, or the module of a main part.
    pub main: Option<PathBuf>,
    /// The image.
    pub output: PathBuf,
}

impl Target {
    /// Resolves a request. Fails as the freeze would before it boots anything.
    pub fn resolve(request: &FreezeRequest, progress: &dyn Progress) -> Result<Target> {
        let program = programs::resolve(request, progress)?;
        let main = program.main.script.clone().or_else(|| program.main.module().map(PathBuf::from));
        Ok(Target { interpreter: program.runtime.program, main, output: program.output })
    }
}
