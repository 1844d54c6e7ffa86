//! Writes the page and the JSON of a made-up Rails boot, for work on their design: `--example rails -- FOLDER`.

#[path = "../tests/synthetic/mod.rs"]
mod synthetic;

use std::path::PathBuf;

fn main() -> std::io::Result<()> {
    let folder = PathBuf::from(std::env::args_os().nth(1).unwrap_or_else(|| ".".into()));
    let report = synthetic::rails("");
    std::fs::write(folder.join("rails.html"), snapboot_explain::page(&report))?;
    std::fs::write(folder.join("rails.json"), snapboot_explain::json(&report))
}
