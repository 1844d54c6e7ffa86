//! The paths of programs and their archives: the Ruby front end is tested with the same cases.

use std::ffi::OsString;
use std::path::Path;

use serde_json::Value;
use sha2::{Digest, Sha256};

use super::support::*;
use crate::Application;

const CASES: &str = include_str!("../../../../tests/archive/locations.json");

#[test]
fn roots_and_places_are_as_the_table_says() {
    let table: Value = serde_json::from_str(CASES).unwrap();
    let cases = table["cases"].as_array().unwrap();
    assert!(cases.len() > 10);
    for case in cases {
        let program = Program::new();
        let top = program.root().canonicalize().unwrap();
        let filled = |text: &Value| text.as_str().map(|text| text.replace("TOP", top.to_str().unwrap()));
        let each =
            |name: &str| case[name].as_array().unwrap().iter().map(|it| it.as_str().unwrap()).collect::<Vec<_>>();
        each("files").into_iter().for_each(|name| drop(program.write(name, "")));
        each("directories").iter().for_each(|name| std::fs::create_dir_all(program.path(name)).unwrap());
        let variable = |name: &str| filled(&case[name]).map(OsString::from);

        let (script, cwd) = (filled(&case["script"]), filled(&case["cwd"]).unwrap());
        let found =
            Application::find(variable("gemfile").as_deref(), script.as_deref().map(Path::new), Path::new(&cwd));
        assert_eq!(found.root.to_str(), filled(&case["root"]).as_deref(), "{}", case["what"]);
        let place = found.place(variable("cache_home").as_deref(), variable("home").as_deref());
        let expected = filled(&case["place"]).map(with_digest);
        assert_eq!(place.as_deref().and_then(Path::to_str), expected.as_deref(), "{}", case["what"]);
    }
}

/// Replaces the text in braces with its digest.
fn with_digest(text: String) -> String {
    let Some((start, rest)) = text.split_once('{') else { return text };
    let (anchor, end) = rest.split_once('}').unwrap();
    let digest = Sha256::digest(anchor);
    let digest: String = digest[..8].iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{start}{digest}{end}")
}
