//! Generates Rust code with the folders of recipes/, which become part of the command.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// The files of a folder, in the order of the fields.
const FILES: [&str; 3] = ["recipe.toml", "python.py", "ruby.rb"];

fn main() {
    let top = Path::new(&env::var("CARGO_MANIFEST_DIR").unwrap()).join("../../recipes");
    let mut folders: Vec<PathBuf> = fs::read_dir(&top).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.retain(|folder| folder.is_dir());
    folders.sort();
    let mut list = String::from("[\n");
    for folder in folders {
        let name = folder.file_name().unwrap().to_str().unwrap();
        write!(list, "    ({name:?}").unwrap();
        for file in FILES.map(|file| folder.join(file)) {
            match file.exists() {
                true => write!(list, ", Some(include_str!({:?}))", file.to_str().unwrap()).unwrap(),
                false => list.push_str(", None"),
            }
        }
        list.push_str("),\n");
    }
    list.push(']');
    // Watch each folder, to notice files that are added or removed.
    println!("cargo:rerun-if-changed={}", top.display());
    fs::write(Path::new(&env::var("OUT_DIR").unwrap()).join("built_in.rs"), list).unwrap();
}
