//! `snapboot inspect`: shows what an image holds.

mod strings;
pub mod why;

use std::collections::BTreeMap;

use failure::{Failure, Kind, Result};
use image::arch::{x86_64, Architecture};
use image::{
    mapping_kind, presence, Descriptor, Directory, Input, Item, MappedFile, Mapping, Section, SignalAction, Tables,
    Variable, NO_FILE,
};
use image_file::info::{Decision, Info, Verdict};
use image_file::rotation;
use image_file::starts::Starts;
use image_file::ImageFile;
use inputs::environment::locale_row;
use inputs::facts::{self, fact_kind, is_of_terminal, searched, NO_TERMINAL};
use serde::Serialize;

use crate::arguments::Inspect;
use crate::human;
use crate::render;

/// How many libraries the summary lists.
const LIBRARIES_SHOWN: usize = 12;

/// Width of a text in the summary (characters).
const COLUMNS: usize = 100;

/// In the list of libraries: heap, stack and other memory without a library.
const NO_LIBRARY: &str = "(heap, stack, other)";

/// Everything shown about an image; `--json` prints it as it is.
#[derive(Serialize)]
struct Contents {
    image: String,
    format_version: u32,
    /// Of which machines, as `uname -m` has it.
    architecture: &'static str,
    size: u64,
    pages: u64,
    tables: u64,
    /// How many frozen processes it holds. The rest describes the first of them.
    variants: usize,
    /// How many of them are only for starts at a terminal.
    at_terminals: usize,
    /// How many of them are for starts in a locale of another encoding than the first one's.
    in_other_locale: usize,
    /// How many variants are for CPUs of a higher level than the image.
    on_higher_level: usize,
    /// The program that the fallback executes, then its argv.
    command: Vec<String>,
    #[serde(flatten)]
    info: Info,
    kinds: BTreeMap<&'static str, Share>,
    libraries: Vec<Library>,
    descriptors: Vec<DescriptorShown>,
    signals: Vec<u32>,
    guards: Vec<String>,
    /// Until when it may be used.
    limits: Vec<String>,
    /// How its starts have gone; None if unknown.
    starts: Option<Starts>,
    patterns: Vec<String>,
    compared: Vec<String>,
    not_set: Vec<String>,
    facts: Vec<String>,
    inputs: Vec<FileShown>,
    directories: Vec<DirectoryShown>,
    files: Vec<FileShown>,
    mappings: Vec<MappingShown>,
}

/// Sums over one group.
#[derive(Clone, Copy, Default, Serialize)]
struct Share {
    mappings: usize,
    /// Address space (bytes).
    size: u64,
    /// Of these, bytes kept in the image.
    in_image: u64,
}

impl Share {
    fn add(&mut self, mapping: &Mapping) {
        let size = mapping.end - mapping.start;
        self.mappings += 1;
        // A copy overwrites memory of an earlier row, or is made in its place.
        let is_copy = matches!(mapping.kind, mapping_kind::COPY | mapping_kind::VDSO_COPY);
        self.size += if is_copy { 0 } else { size };
        self.in_image += if mapping.has_pages() { size } else { 0 };
    }
}

#[derive(Serialize)]
struct Library {
    path: String,
    #[serde(flatten)]
    share: Share,
}

#[derive(Serialize)]
struct DescriptorShown {
    number: u32,
    kind: &'static str,
    flags: String,
    path: String,
}

#[derive(Serialize)]
struct FileShown {
    path: String,
    size: u64,
    mtime: i64,
    ctime: i64,
}

/// A directory among the inputs: its answers, by name.
#[derive(Serialize)]
struct DirectoryShown {
    path: String,
    mtime: i64,
    ctime: i64,
    inputs: u32,
    answers: Vec<AnswerShown>,
}

#[derive(Serialize)]
struct AnswerShown {
    name: String,
    kind: &'static str,
    #[serde(skip_serializing_if = "String::is_empty")]
    value: String,
}

#[derive(Serialize)]
struct MappingShown {
    start: String,
    end: String,
    protection: String,
    kind: &'static str,
    offset: u64,
    file: Option<String>,
}

/// Runs the subcommand.
pub fn main(arguments: &Inspect) -> Result<u8> {
    if let Some(pattern) = &arguments.strings {
        // Status 1 would mean that nothing was found.
        let image = ImageFile::open(&arguments.image).map_err(|failure| Failure { kind: Kind::Refused, ..failure })?;
        return strings::search(&image, pattern);
    }
    let image = ImageFile::open(&arguments.image)?;
    if arguments.why {
        return why::answer(&image, arguments.json);
    }
    let contents = Contents::read(&image)?;
    if arguments.json {
        render::print_json(&contents)?;
    } else {
        render::print(&contents.summary())?;
    }
    Ok(0)
}

impl Contents {
    fn read(image: &ImageFile) -> Result<Self> {
        let tables = image.tables();
        let text = |text| -> Result<String> { Ok(String::from_utf8_lossy(tables.text(text)?).into_owned()) };
        let texts =
            |section| -> Result<Vec<String>> { tables.rows::<Item>(section)?.map(|item| text(item.text)).collect() };
        let names = |wanted| -> Result<Vec<String>> {
            let rows = tables.rows::<Variable>(Section::Variables)?.filter(|variable| variable.present == wanted);
            rows.map(|variable| text(variable.name)).collect()
        };
        let mut kinds: BTreeMap<&'static str, Share> = BTreeMap::new();
        let mut mappings = Vec::new();
        let files: Vec<MappedFile> = tables.rows(Section::Files)?.collect();
        let mut by_file: BTreeMap<String, Share> = BTreeMap::new();
        for mapping in tables.rows::<Mapping>(Section::Mappings)? {
            let file = files.get(mapping.file as usize).filter(|_| mapping.file != NO_FILE);
            let file = file.map(|file| text(file.path)).transpose()?;
            kinds.entry(kind_name(mapping.kind)).or_default().add(&mapping);
            by_file.entry(file.clone().unwrap_or_else(|| NO_LIBRARY.to_owned())).or_default().add(&mapping);
            mappings.push(MappingShown {
                start: format!("{:#x}", mapping.start),
                end: format!("{:#x}", mapping.end),
                protection: protection(mapping.protection),
                kind: kind_name(mapping.kind),
                offset: mapping.offset,
                file,
            });
        }
        let mut libraries: Vec<Library> = by_file.into_iter().map(|(path, share)| Library { path, share }).collect();
        libraries.sort_by_key(|library| std::cmp::Reverse(library.share.in_image));
        let lowest = image.variants.last().map_or(tables, image_file::Variant::tables);
        let file =
            |path, size, mtime, ctime| -> Result<FileShown> { Ok(FileShown { path: text(path)?, size, mtime, ctime }) };
        Ok(Contents {
            image: image.path.to_string_lossy().into_owned(),
            format_version: image.head().version,
            size: image.size,
            pages: image.variants.iter().map(|variant| variant.head.pages_size).sum(),
            tables: image.variants.iter().map(|variant| variant.head.tables_size).sum(),
            variants: image.variants.len(),
            at_terminals: image.variants.iter().filter(|variant| is_for_terminal(&variant.tables())).count(),
            in_other_locale: image
                .variants
                .iter()
                .filter(|variant| locales(&variant.tables()) != locales(&tables))
                .count(),
            on_higher_level: image
                .variants
                .iter()
                .filter(|variant| variant.tables().bytes(Section::Cpu) != lowest.bytes(Section::Cpu))
                .count(),
            command: image.command()?,
            info: Info::read(&tables),
            architecture: Architecture::from_tables(&tables)?.name(),
            kinds,
            libraries,
            descriptors: descriptors(&tables)?,
            signals: tables.rows::<SignalAction>(Section::Signals)?.map(|action| action.number).collect(),
            guards: texts(Section::Guards)?,
            limits: rotation::limits(&image.settings()?, &image.path, image.head().image_id()),
            starts: Starts::read(image),
            patterns: texts(Section::Patterns)?,
            compared: names(presence::SET)?,
            not_set: names(presence::UNSET)?,
            facts: tables
                .rows::<image::HostFact>(Section::Facts)?
                .map(|fact| Ok(fact_shown(&fact, &text(fact.value)?)))
                .collect::<Result<_>>()?,
            inputs: tables
                .rows::<Input>(Section::Inputs)?
                .map(|input| file(input.path, input.size, input.mtime, input.ctime))
                .collect::<Result<_>>()?,
            directories: directories(image)?,
            files: files.iter().map(|it| file(it.path, it.size, it.mtime, it.ctime)).collect::<Result<_>>()?,
            mappings,
        })
    }

    /// The CPUs, with the architecture unless it is the usual one.
    fn cpu(&self) -> String {
        match self.architecture {
            x86_64::NAME => self.info.cpu.clone(),
            other => format!("{}, of {other}", self.info.cpu),
        }
    }

    fn variants_line(&self) -> String {
        let kinds = [
            (self.at_terminals, "for starts at a terminal"),
            (self.in_other_locale, "for another encoding"),
            (self.on_higher_level, "for CPUs of a higher level"),
        ];
        let kinds = kinds.iter().filter(|(count, _)| *count > 0);
        let kinds: String = kinds.map(|(count, which)| format!(", {count} of them {which}")).collect();
        format!("{}{kinds}", self.variants)
    }

    /// The page for people.
    fn summary(&self) -> String {
        let info = &self.info;
        let list = |words: &[String]| if words.is_empty() { "none".to_owned() } else { words.join(", ") };
        let lines = |texts: &[String]| match texts {
            [] => "none".to_owned(),
            texts => texts.iter().map(|text| in_lines(text)).collect::<Vec<_>>().join("\n"),
        };
        let command = human::command(self.command.iter().skip(1).map(String::as_str));
        let rows = [
            ("image", format!("{}  {}", self.image, human::size(self.size))),
            ("format", format!("version {}, written by snapboot {}", self.format_version, info.snapboot)),
            ("variants", self.variants_line()),
            ("runtime", info.runtime.clone()),
            ("command", command),
            ("preloads", list(&info.preloads)),
            ("learnt", list(&info.learnt)),
            ("patterns", format!("{} that training runs compiled", human::count(info.patterns, "regular expression"))),
            (
                "left out",
                lines(&info.left_out.iter().map(|left| format!("{} {}", left.name, left.why)).collect::<Vec<_>>()),
            ),
            ("CPU", self.cpu()),
            ("inputs", self.inputs_line()),
            ("variables", list(&self.compared)),
            ("not set", format!("{} that the boot looked up", human::count(self.not_set.len(), "variable"))),
            ("facts", lines(&self.facts)),
            ("depends on", if info.depends.is_empty() { "nothing else".to_owned() } else { lines(&info.depends) }),
            ("decisions", decisions(&info.decisions)),
            ("guards", list(&self.guards)),
            ("limits", list(&self.limits)),
            ("starts", self.starts.as_ref().map_or("not counted here".to_owned(), crate::starts::line)),
            ("descriptors", list(&self.descriptors.iter().map(DescriptorShown::line).collect::<Vec<_>>())),
            ("notes", lines(&info.notes)),
            ("warnings", lines(&info.warnings)),
        ];
        let total = Share {
            mappings: self.mappings.len(),
            size: self.kinds.values().map(|share| share.size).sum(),
            in_image: self.kinds.values().map(|share| share.in_image).sum(),
        };
        let mut kinds: Vec<_> = self.kinds.iter().collect();
        kinds.sort_by_key(|(_, share)| std::cmp::Reverse((share.in_image, share.size)));
        let kinds = kinds.into_iter().chain([(&"all", &total)]).map(|(kind, share)| share_row(kind, share));
        let libraries = self.libraries.iter().take(LIBRARIES_SHOWN);
        let libraries = libraries
            .map(|library| share_row(library.path.rsplit('/').next().unwrap_or(&library.path), &library.share));
        let more = self.libraries.len().saturating_sub(LIBRARIES_SHOWN);
        let more = if more > 0 { format!(" and {more} more (--json lists all)\n") } else { String::new() };
        let header = |what| [what, "mappings", "size", "in the image"];
        format!(
            "{}\n{}\n{}{more}",
            render::facts(rows),
            render::numbers(&header("kind"), 3, kinds),
            render::numbers(&header("library"), 3, libraries)
        )
    }
}

impl Contents {
    fn inputs_line(&self) -> String {
        let absent = |answer: &&AnswerShown| answer.kind == "absent";
        let absent = self.directories.iter().flat_map(|directory| &directory.answers).filter(absent).count();
        let files = human::count(self.inputs.len(), "file");
        let (mapped, directories) = (self.files.len(), self.directories.len());
        format!("{files}, {mapped} mapped, {absent} absent names in {directories} directories")
    }
}

impl DescriptorShown {
    fn line(&self) -> String {
        if self.path.is_empty() {
            format!("{} {}", self.number, self.kind)
        } else {
            format!("{} {}", self.number, self.path)
        }
    }
}

/// A fact and its value. A record of names is spelled out.
fn fact_shown(fact: &image::HostFact, value: &str) -> String {
    let name = facts::name(fact.kind, fact.of);
    match (fact.kind, searched::names(value.as_bytes())) {
        (fact_kind::SEARCHED, Some(names)) => {
            let variable = String::from_utf8_lossy(searched::variable(value.as_bytes()));
            let names = String::from_utf8_lossy(names).replace('/', ", ");
            format!("{name} in the directories of {variable}: {names}")
        }
        (fact_kind::FOUND | fact_kind::KERNEL_FILE, _) => format!("{name} {value}"),
        _ => format!("{name}: {value}"),
    }
}

/// Breaks a long text into lines; those after the first are indented.
fn in_lines(text: &str) -> String {
    render::in_columns(text, "  ", COLUMNS).join("\n").trim_start().to_owned()
}

/// The decisions by verdict and reason: `read by app.py:3: HOME, USER`.
fn decisions(all: &[Decision]) -> String {
    let mut lines = Vec::new();
    for verdict in [Verdict::Input, Verdict::Renewed, Verdict::NoInput] {
        let mut names: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for decision in all.iter().filter(|decision| decision.verdict == verdict) {
            names.entry(&decision.why).or_default().push(&decision.what);
        }
        if !names.is_empty() {
            lines.push(format!("{}:", verdict.heading()));
        }
        lines.extend(
            names.iter().map(|(why, names)| format!("- {}", in_lines(&format!("{why}: {}", names.join(", "))))),
        );
    }
    if lines.is_empty() {
        "none".to_owned()
    } else {
        lines.join("\n")
    }
}

fn share_row(name: &str, share: &Share) -> Vec<String> {
    vec![name.to_owned(), share.mappings.to_string(), human::size(share.size), human::size(share.in_image)]
}

/// Whether a boot has found a terminal, and the answer counts.
fn is_for_terminal(tables: &Tables<'_>) -> bool {
    let facts = tables.rows::<image::HostFact>(Section::Facts).into_iter().flatten();
    let mut terminals = facts.filter(|fact| is_of_terminal(fact.kind));
    terminals.any(|fact| tables.text(fact.value).is_ok_and(|value| value != NO_TERMINAL))
}

/// Which locales a variant is for.
fn locales(tables: &Tables<'_>) -> Option<(u32, [u8; 16])> {
    locale_row(tables).ok().flatten().map(|row| (row.present, row.value))
}

fn directories(image: &ImageFile) -> Result<Vec<DirectoryShown>> {
    let first = &image.variants[0];
    let tables = first.tables();
    let shown = |row: Directory| {
        let answers = first.answers(&row)?.into_iter().map(|(name, fact)| AnswerShown {
            name: name.to_string_lossy().into_owned(),
            kind: inputs::directories::kind_name(fact.record().0),
            value: String::from_utf8_lossy(fact.record().1).into_owned(),
        });
        Ok(DirectoryShown {
            path: String::from_utf8_lossy(tables.text(row.path)?).into_owned(),
            mtime: row.mtime,
            ctime: row.ctime,
            inputs: row.inputs,
            answers: answers.collect(),
        })
    };
    tables.rows::<Directory>(Section::Directories)?.map(shown).collect()
}

fn descriptors(tables: &Tables<'_>) -> Result<Vec<DescriptorShown>> {
    let shown = |row: Descriptor| {
        let path = String::from_utf8_lossy(tables.text(row.path)?).into_owned();
        Ok(DescriptorShown {
            number: row.number,
            kind: descriptors::name(row.kind),
            flags: format!("{:#o}", row.flags),
            path,
        })
    };
    tables.rows::<Descriptor>(Section::Descriptors)?.map(shown).collect()
}

fn kind_name(kind: u32) -> &'static str {
    match kind {
        mapping_kind::IMAGE => "pages of the image",
        mapping_kind::FILE => "pages of files",
        mapping_kind::ANONYMOUS => "zeros",
        mapping_kind::COPY => "copied pages",
        mapping_kind::VDSO => "vdso",
        mapping_kind::STACK => "stack",
        mapping_kind::VDSO_COPY => "vdso for other kernels",
        _ => "unknown",
    }
}

/// `rwx` with dashes, as /proc/PID/maps has it.
fn protection(bits: u32) -> String {
    let letter = |bit, letter| if bits & bit != 0 { letter } else { '-' };
    [letter(1, 'r'), letter(2, 'w'), letter(4, 'x')].iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copied_pages_are_in_the_image_but_add_no_memory() {
        let mut share = Share::default();
        share.add(&Mapping { start: 0x1000, end: 0x9000, kind: mapping_kind::STACK, ..Mapping::default() });
        share.add(&Mapping { start: 0x7000, end: 0x9000, kind: mapping_kind::COPY, ..Mapping::default() });
        assert_eq!((share.mappings, share.size, share.in_image), (2, 0x8000, 0x2000));
    }
}
