//! Prints facts about Rust sources as JSON, for the rules in tests/repository: each file is parsed once, and no test
//! searches its text.
//!
//!     rust-facts FILE...
//!
//! Except for `functions`, `tests` and `modules`, the facts leave out items that are compiled for unit tests only.
#![forbid(unsafe_code)]

mod tokens;
mod types;
mod visit;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::Serialize;

/// The facts about one file.
#[derive(Debug, Default, Serialize)]
struct Facts {
    /// The comment at the top of the file.
    head: String,
    /// The names of all functions.
    functions: Vec<String>,
    /// The first and the last line of each item for unit tests.
    tests: Vec<(usize, usize)>,
    /// All identifiers.
    identifiers: BTreeSet<String>,
    /// Paths of at least two names. Those into the same crate begin with `crate`.
    paths: BTreeSet<String>,
    /// Literals of text and of bytes, and numbers that fields get.
    literals: Vec<Literal>,
    /// The results of functions, by their names.
    returns: Vec<(String, String)>,
    /// All types with arguments, such as `Option<u8>`.
    types: BTreeSet<String>,
    /// The modules that lie in files of their own: their paths from the root of the crate, and what `#[path]` says.
    modules: Vec<(String, Option<String>)>,
    /// The fields of each struct.
    structs: BTreeMap<String, Struct>,
}

#[derive(Debug, Serialize)]
struct Literal {
    text: String,
    /// The innermost function, constant or variable around it, or nothing.
    item: String,
    /// What gets it: the name of the function that is called with it, or of the field; empty for anything else.
    receiver: String,
}

#[derive(Debug, Default, Serialize)]
struct Struct {
    /// The names in its attributes.
    attributes: BTreeSet<String>,
    /// The names in the attributes of each named field.
    fields: BTreeMap<String, BTreeSet<String>>,
}

/// The path of the module that a file of a crate contains; the root's is empty.
fn module_of(file: &Path) -> Vec<String> {
    let parts: Vec<String> = file.with_extension("").iter().map(|part| part.to_string_lossy().into_owned()).collect();
    let below = parts.iter().rposition(|part| part == "src").map_or(&parts[..0], |src| &parts[src + 1..]);
    match below {
        [folders @ .., last] if ["mod", "lib", "main"].contains(&last.as_str()) => folders.to_vec(),
        all => all.to_vec(),
    }
}

fn facts(file: &Path) -> Result<Facts, String> {
    let text = std::fs::read_to_string(file).map_err(|error| error.to_string())?;
    let parsed = syn::parse_file(&text).map_err(|error| error.to_string())?;
    Ok(visit::facts(&parsed, module_of(file)))
}

fn main() -> Result<(), String> {
    let files = std::env::args().skip(1);
    let all = files.map(|file| match facts(Path::new(&file)) {
        Ok(found) => Ok((file, found)),
        Err(error) => Err(format!("{file}: {error}")),
    });
    let all: BTreeMap<String, Facts> = all.collect::<Result<_, _>>()?;
    println!("{}", serde_json::to_string(&all).map_err(|error| error.to_string())?);
    Ok(())
}
