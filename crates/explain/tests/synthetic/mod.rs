//! A report as large as that of a Rails boot: three kinds of start, thousands of modules, the same at each call.

use snapboot_explain::{Advice, Kind, Node, Report, Start, WITH_ARCHIVE};

/// How many modules a boot loads.
pub const MODULES: usize = 3000;

const GEMS: [&str; 12] = [
    "activesupport-6.1.7.10",
    "activerecord-6.1.7.10",
    "actionpack-6.1.7.10",
    "actionview-6.1.7.10",
    "railties-6.1.7.10",
    "actionmailer-6.1.7.10",
    "activejob-6.1.7.10",
    "activestorage-6.1.7.10",
    "concurrent-ruby-1.1.10",
    "mail-2.8.1",
    "nokogiri-1.13.10",
    "sprockets-3.7.2",
];
const WORDS: [&str; 20] = [
    "core_ext",
    "connection_adapters",
    "abstract",
    "schema_statements",
    "middleware",
    "callbacks",
    "notifications",
    "cache",
    "store",
    "relation",
    "associations",
    "serializers",
    "inflections",
    "time_with_zone",
    "helpers",
    "asset_tag_helper",
    "railtie",
    "template",
    "resolver",
    "parameters",
];

/// The report of a Rails boot. `hostile` is put into every text that comes from outside of Snapboot.
pub fn rails(hostile: &str) -> Report {
    let command = format!("bin/rails runner 'puts 1'{hostile}");
    let start = |title: &str, root| Start {
        title: title.to_owned(),
        command: command.clone(),
        runs: 20,
        overhead: 0.034,
        root,
    };
    let starts = vec![
        start("ordinary", boot(1.0, MODULES, hostile)),
        start(WITH_ARCHIVE, boot(0.35, MODULES, hostile)),
        start("thawed", thaw(hostile)),
    ];
    let advice = |headline: &str, text: &str, place: Option<String>, remedy: Option<&str>, saves| Advice {
        headline: headline.to_owned(),
        text: format!("{text}{hostile}"),
        place,
        remedy: remedy.map(str::to_owned),
        start: None,
        saves,
    };
    let place = format!("/srv/shop/config/initializers/metrics.rb:14{hostile}");
    Report {
        starts,
        no_archive: None,
        advice: vec![
            advice(
                "Freeze it",
                "All but 19 ms of this start happens before the main part, and an image does it once. This program can be frozen.",
                None,
                Some("snapboot freeze -o shop.img -- bin/rails runner 'puts 1'"),
                Some(1.88),
            ),
            advice(
                "Open the connection later",
                "An initializer opens a connection while the program boots. It would have to be opened again after each thaw: open it at \
                 its first use.",
                Some(place),
                None,
                Some(0.0121),
            ),
            advice(
                "Keep an archive for starts that cannot be thawed",
                "The boot archive finds files and has their code, for consoles and tests as well.",
                None,
                Some("snapboot enable"),
                Some(1.2),
            ),
        ],
        snapboot: "0.1.0".to_owned(),
        machine: format!("AMD EPYC, 2 cores, Linux 6.18.44{hostile}"),
        when: "2026-11-25 01:30:00 UTC".to_owned(),
    }
}

/// Numbers that look random and are the same each time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % sides
    }
}

/// A boot under construction: its clock, and how many modules it has loaded.
struct Boot<'a> {
    now: f64,
    speed: f64,
    modules: usize,
    dice: Dice,
    hostile: &'a str,
}

/// The boot archive makes searches and code faster: `speed` is less than 1 then.
fn boot(speed: f64, modules: usize, hostile: &str) -> Node {
    let mut boot = Boot { now: 0.0, speed, modules: 0, dice: Dice(7), hostile };
    let interpreter = boot.part("Ruby starts", Kind::Interpreter, 0.038, 310, 24);
    let gems = boot.part("RubyGems", Kind::Interpreter, 0.031, 420, 96);
    let mut parts = vec![interpreter, gems];
    if speed < 1.0 {
        parts.push(boot.part("opening the boot archive", Kind::Archive, 0.0051, 346, 9));
        parts.push(boot.part("the bundle", Kind::Data, 0.0042, 12, 0));
    }
    let application = boot.module(modules - modules / 20, 1);
    parts.push(application);
    parts.push(boot.part("major collection", Kind::Collector, 0.011, 0, 0));
    let initializers = boot.module(modules / 20, 1);
    parts.push(initializers);
    parts.push(boot.part("main part: -e", Kind::Main, 0.0021, 3, 0));
    parts.push(boot.part("exit", Kind::Exit, 0.0089, 21, 0));
    boot.now += 0.004;
    whole("process", Kind::Process, 0.0, boot.now, parts)
}

impl Boot<'_> {
    fn part(&mut self, name: &str, kind: Kind, seconds: f64, system_calls: u64, failed_lookups: u64) -> Node {
        let start = self.now;
        self.now += seconds;
        let name = name.to_owned();
        let children = Vec::new();
        Node {
            name,
            kind,
            detail: None,
            start,
            seconds,
            spread: seconds * 0.03,
            system_calls,
            failed_lookups,
            children,
        }
    }

    /// A module that loads this many modules, itself included.
    fn module(&mut self, modules: usize, depth: usize) -> Node {
        self.modules += 1;
        let (gem, number) = (GEMS[self.dice.roll(GEMS.len())], self.modules);
        let words = [(); 2].map(|()| WORDS[self.dice.roll(WORDS.len())]);
        let library = gem.rsplit_once('-').expect("a name and a version").0;
        let name = format!("{library}/{}/{}_{number}{}", words[0], words[1], self.hostile);
        let file = format!("/usr/share/rubygems-integration/all/gems/{gem}/lib/{name}.rb");
        let start = self.now;
        let tries = self.dice.roll(40) as u64;
        let (search, code) = if self.speed < 1.0 { (Kind::Lookup, Kind::Stored) } else { (Kind::Search, Kind::Code) };
        let search = self.part(&name, search, 0.000_09 * self.speed, tries + 1, tries);
        let seconds = (0.5 + self.dice.roll(10) as f64) * 0.000_04 * self.speed;
        let code = self.part(&name, code, seconds, 6, 0);
        let mut parts = vec![search, code];
        let heavy = if self.dice.roll(60) == 0 { 30.0 } else { 1.0 };
        self.now += 0.000_02 * heavy * (1 + self.dice.roll(8)) as f64;
        let mut rest = modules - 1;
        while rest > 0 {
            // Sometimes one of them loads most of the rest.
            let most = if self.dice.roll(3) == 0 && depth < 30 { rest } else { 1 + rest / 12 };
            let part_of_it = 1 + self.dice.roll(most);
            let part = self.module(part_of_it, depth + 1);
            rest -= part_of_it;
            parts.push(part);
            self.now += 0.000_01 * heavy;
        }
        if self.dice.roll(25) == 0 {
            let collection = self.part("minor collection", Kind::Collector, 0.0017, 0, 0);
            parts.push(collection);
        }
        Node { detail: Some(file), ..whole(&name, Kind::Body, start, self.now, parts) }
    }
}

fn thaw(hostile: &str) -> Node {
    let mut boot = Boot { now: 0.0, speed: 1.0, modules: 0, dice: Dice(7), hostile };
    let checks = [
        ("the image", 0.000_09, 4),
        ("files that the boot read", 0.001_84, 2911),
        ("directories: /usr/share/rubygems-integration/all/gems", 0.000_71, 402),
        ("environment", 0.000_012, 0),
    ];
    let checks = checks.map(|(name, seconds, calls)| boot.part(name, Kind::Launcher, seconds, calls, 0));
    let launcher = whole("launcher", Kind::Launcher, 0.0, boot.now, checks.into());
    let mapping = boot.part("memory of the image", Kind::Mapping, 0.000_62, 214, 0);
    let faults = ["heap", "libruby-3.1.so.3.1", "libc.so.6"].map(|name| boot.part(name, Kind::Faults, 0.000_94, 0, 0));
    let begin = faults[0].start;
    let faults = whole("page faults", Kind::Faults, begin, boot.now, faults.into());
    let begin = boot.now;
    let context = ["arguments", "environment", "standard streams", "random numbers", "current directory"];
    let context = context.map(|name| boot.part(name, Kind::Context, 0.000_17, 9, 0));
    let context = whole("context", Kind::Context, begin, boot.now, context.into());
    let hook = boot.part(&format!("ActiveRecord: connections{hostile}"), Kind::Hook, 0.001_21, 12, 0);
    let main = boot.part("main part: -e", Kind::Main, 0.0028, 3, 0);
    let exit = boot.part("exit", Kind::Exit, 0.0077, 21, 0);
    whole("process", Kind::Process, 0.0, boot.now + 0.0002, vec![launcher, mapping, faults, context, hook, main, exit])
}

/// A part with children.
fn whole(name: &str, kind: Kind, start: f64, end: f64, children: Vec<Node>) -> Node {
    let sum = |figure: fn(&Node) -> u64| children.iter().map(figure).sum();
    Node {
        name: name.to_owned(),
        kind,
        detail: None,
        start,
        seconds: end - start,
        spread: (end - start) * 0.02,
        system_calls: sum(|child| child.system_calls),
        failed_lookups: sum(|child| child.failed_lookups),
        children,
    }
}
