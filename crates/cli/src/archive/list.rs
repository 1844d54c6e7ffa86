//! `snapboot archive list`: shows what an archive holds.

use std::collections::BTreeMap;

use archive::{encoding, Archive, Entry, Kind};
use failure::Result;
use serde::Serialize;

use super::Named;
use crate::arguments::ArchiveList;
use crate::human;
use crate::render;

/// Everything shown about an archive; `--json` prints it as it is.
#[derive(Serialize)]
struct Contents {
    archive: String,
    format_version: u32,
    size: u64,
    segments: usize,
    is_whole: bool,
    /// When an entry was last stored (seconds since 1970).
    written: Option<i64>,
    /// The application's path then.
    root: Option<String>,
    /// Descriptions by id.
    contexts: BTreeMap<String, String>,
    entries: Vec<EntryShown>,
    /// Entries that newer ones have replaced, and damaged ones.
    superseded: usize,
    damaged: usize,
}

#[derive(Serialize)]
struct EntryShown {
    kind: &'static str,
    context: String,
    name: String,
    packed: bool,
    stored_size: usize,
    size: usize,
    inputs: Vec<InputShown>,
}

#[derive(Serialize)]
struct InputShown {
    kind: &'static str,
    name: String,
    size: u64,
    mtime: i64,
    ctime: i64,
    sha256: String,
}

/// Runs the subcommand.
pub fn main(arguments: &ArchiveList) -> Result<u8> {
    let named = Named::find(&arguments.archive)?;
    let contents = Contents::from_archive(&named.open()?, named.path.display().to_string());
    if arguments.json {
        render::print_json(&contents)?;
    } else {
        render::print(&contents.page())?;
    }
    Ok(0)
}

impl Contents {
    fn from_archive(archive: &Archive, path: String) -> Self {
        let live = archive.live();
        let all = archive.entries().count();
        let damaged = archive.entries().filter(Option::is_none).count();
        let descriptions = live.iter().filter(|entry| entry.kind() == Kind::Context && entry.key().name.is_empty());
        let contexts =
            descriptions.filter_map(|entry| Some((hex(&entry.key().context), text(entry.plain()?)))).collect();
        Contents {
            archive: path,
            format_version: archive::VERSION,
            size: archive.size(),
            segments: archive.segments(),
            is_whole: archive.is_whole(),
            written: archive.written(),
            root: archive.noted_root().map(|root| root.display().to_string()),
            contexts,
            superseded: all - damaged - live.len(),
            damaged,
            entries: live.iter().filter(|entry| entry.kind() != Kind::Context).map(EntryShown::from_entry).collect(),
        }
    }

    fn page(&self) -> String {
        let state = if self.is_whole { "whole" } else { "damaged; snapboot archive verify says where" };
        let mut facts = vec![
            ("archive", self.archive.clone()),
            ("state", state.to_owned()),
            ("size", format!("{} in {}", human::size(self.size), human::count(self.segments, "segment"))),
        ];
        facts.extend(self.root.clone().map(|root| ("application", root)));
        if let Some(written) = self.written.and_then(|seconds| jiff::Timestamp::from_second(seconds).ok()) {
            facts.push(("last stored", written.to_string()));
        }
        if self.superseded + self.damaged > 0 {
            facts.push(("of no use", format!("{} superseded, {} damaged", self.superseded, self.damaged)));
        }
        let mut kinds: BTreeMap<(&str, &str), (usize, usize, usize)> = BTreeMap::new();
        for entry in &self.entries {
            let sum = kinds.entry((entry.kind, &entry.context)).or_default();
            *sum = (sum.0 + 1, sum.1 + entry.stored_size, sum.2 + entry.size);
        }
        let size = |bytes: usize| human::size(bytes as u64);
        let kinds = kinds.into_iter().map(|((kind, context), (count, stored, plain))| {
            let context = self.contexts.get(context).map_or(context, String::as_str);
            vec![kind.to_owned(), count.to_string(), size(stored), size(plain), human::harmless(context)]
        });
        let entries = self.entries.iter().map(|entry| {
            let inputs = entry.inputs.len().to_string();
            vec![entry.kind.to_owned(), size(entry.stored_size), size(entry.size), inputs, entry.name.clone()]
        });
        let kinds = render::numbers(&["kind", "entries", "in the archive", "decoded", "context"], 3, kinds);
        let entries = render::numbers(&["kind", "in the archive", "decoded", "inputs", "name"], 3, entries);
        format!("{}\n{kinds}\n{entries}", render::facts(facts))
    }
}

impl EntryShown {
    fn from_entry(entry: &Entry<'_>) -> Self {
        let inputs = entry.inputs().map(|row| InputShown {
            kind: row.kind_name(),
            name: text(entry.name_of(&row)),
            size: row.input.size,
            mtime: row.input.mtime,
            ctime: row.input.ctime,
            sha256: hex(&row.input.digest),
        });
        EntryShown {
            kind: entry.kind().name(),
            context: hex(&entry.key().context),
            name: text(entry.key().name),
            packed: entry.encoding() == encoding::PACKED,
            stored_size: entry.stored_size(),
            size: entry.plain_size(),
            inputs: inputs.collect(),
        }
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
