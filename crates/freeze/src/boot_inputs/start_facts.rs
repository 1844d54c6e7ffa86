//! Facts about a start whose values differ in the boot as another start.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use inputs::environment::matches;
use inputs::facts::searched;
use judge::environment::Environment;
use judge::evidence::{CWD, HOST, KERNEL, KERNEL_VERSION};
use judge::reads::Reads;
use judge::variables::always_compared;
use runtime::Language;

/// Variables that are always changed: paths and names, of which one value is as good as another.
pub const VARIABLES: [&str; 4] = ["HOME", "PATH", "USER", "LOGNAME"];

/// Facts that are names.
const NAMES: [&str; 3] = ["USER", "LOGNAME", HOST];

/// Directories of gems. Their answers are compared one by one: a new directory without the gem that was looked up leaves an image fresh.
const RUBYGEMS: &str = "GEM_*";

/// Maximum length of the name and of the value of any other variable that is changed (bytes).
const LONGEST: usize = 200;

/// Facts about a start, with their values in the image.
pub fn facts_of_start(language: Language, environment: &Environment) -> Vec<(OsString, OsString)> {
    let Ok(directory) = std::env::current_dir() else { return Vec::new() };
    let set = VARIABLES.iter().filter_map(|name| Some((OsString::from(name), environment.value(name)?.to_owned())));
    let set = set.filter(|(name, value)| !value.is_empty() && !environment.is_secret(name));
    let names = (language == Language::Python).then(rustix::system::uname);
    let system = names
        .iter()
        .flat_map(|names| [(HOST, names.nodename()), (KERNEL, names.release()), (KERNEL_VERSION, names.version())]);
    let system = system.map(|(name, value)| (name.into(), OsStr::from_bytes(value.to_bytes()).to_owned()));
    [(CWD.into(), directory.into_os_string())].into_iter().chain(set).chain(system).collect()
}

/// Other variables that the program has read and that may have any such value: paths of existing or missing
/// directories, and the names of the user and of the host. Without those by which its runtime finds libraries and
/// itself.
pub fn more_variables(
    language: Language,
    facts: &[(OsString, OsString)],
    environment: &Environment,
    reads: &Reads,
) -> Vec<(OsString, OsString)> {
    let known = |wanted: &OsStr| facts.iter().any(|(name, _)| name == wanted);
    let is_name = |name: &OsStr| NAMES.iter().any(|known| name == *known);
    let names: Vec<&OsString> = facts.iter().filter(|(fact, _)| is_name(fact)).map(|(_, value)| value).collect();
    let is_of_runtime = |name: &OsStr| {
        let mut patterns = always_compared(language).chain([RUBYGEMS]);
        patterns.any(|pattern| matches(pattern.as_bytes(), name.as_bytes()))
    };
    let read = reads
        .variables
        .keys()
        .filter(|name| name.to_str().is_some() && !known(name) && !reads.by_c.contains(*name) && !is_of_runtime(name));
    let read = read.filter(|name| environment.may_change(name));
    let set = read.filter_map(|name| Some((name.clone(), environment.value(name.to_str()?)?.to_owned())));
    set.filter(|(name, value)| {
        // The path of a program says more than where the program is.
        let is_directory = || searched::is_plain(value.as_bytes()) && !Path::new(value).is_file();
        name.len() + value.len() <= LONGEST && (is_directory() || names.contains(&value))
    })
    .collect()
}

/// Whether uname(2) returns this fact.
pub fn is_of_system(name: &str) -> bool {
    matches!(name, HOST | KERNEL | KERNEL_VERSION)
}
