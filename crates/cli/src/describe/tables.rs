//! Tables of the program as JSON, for tests that compare them with other lists, and for tools that write documents.

use std::collections::BTreeMap;

use channel::{Kind, Phase, Request};
use failure::Result;
use inputs::attributes::Attribute;
use serde_json::{json, Value};

/// Prints the tables; returns the exit status.
pub fn main() -> Result<u8> {
    let attributes = Attribute::ALL.iter().map(|it| (it.name(), Value::from(format!("{:?}", it.class()))));
    let tables = json!({
        "attributes": attributes.collect::<BTreeMap<_, _>>(),
        "channel": {
            "bits": channel::locale::NAMES.iter().copied().collect::<BTreeMap<_, _>>(),
            "event": channel::EVENT,
            "name": String::from_utf8_lossy(channel::NAME),
            "words": {
                "Kind": by_word(Kind::MEANINGS),
                "Phase": by_word(Phase::MEANINGS),
                "Request": by_word(Request::MEANINGS),
            },
        },
        "versions": { "python": runtime::PYTHONS, "ruby": runtime::RUBIES, "yjit": runtime::YJIT },
    });
    println!("{tables}");
    Ok(0)
}

/// The meaning of each word, without the space in front of it.
fn by_word(meanings: &[(&'static str, &'static str)]) -> BTreeMap<&'static str, &'static str> {
    meanings.iter().map(|(word, meaning)| (*word, meaning.trim())).collect()
}
