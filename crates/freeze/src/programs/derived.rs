//! Whether a program only keeps its secrets, or has derived something from them during the boot: other boots with other
//! placeholders show it.
//!
//! The front end writes a digest of each text and number in the process, with the secrets removed, to the file `texts`.
//! A digest that the first boot has, and a boot with other secrets lacks, may vary from boot to boot, such as a time;
//! or it was derived from a secret. A boot with the secrets of the first one tells: it has what was derived from them.
//! Another such pair of boots rules out chance. The second boot gives secrets another length and other characters, to
//! detect a program that depends on these. If it does, one more boot changes only the values, and the image is for
//! secrets of the same form.

use std::collections::BTreeSet;
use std::fmt;
use std::fs;

use failure::Failure;
use judge::environment_inputs::EnvironmentInputs;
use judge::findings::Finding;
use judge::secrets::Form;
use judge::source_locations::reader;

use super::boot::{BootRequest, Watch};
use super::site_reads::leave_on_demand;
use crate::boot::Report;
use crate::control_dir::ControlDir;
use crate::outcome::{Result, Stop};
use crate::progress::Step;

/// Digests of the texts and numbers in a process, as the front end writes them.
type Texts = BTreeSet<[u8; SIZE]>;

/// Size of a digest (bytes).
const SIZE: usize = 8;

/// Number of pairs of boots in which a digest must follow the secrets to count. A value with few possibilities, such as
/// a count of threads, agrees in one pair by chance.
const ROUNDS: u32 = 2;

/// Maximum of derived objects in a message.
const MAX: usize = 5;

/// What follows from the value of a secret.
enum Follows {
    /// What the program loads.
    Loaded,
    /// Whether the program can be frozen: this finding.
    Frozen(Finding),
    /// Whether it boots at all.
    Booted,
    /// This object.
    Object(String),
}

impl fmt::Display for Follows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Follows::Loaded => f.write_str("what the program loads follows"),
            Follows::Frozen(finding) => write!(f, "whether the program can be frozen ({}) follows", finding.text),
            Follows::Booted => f.write_str("whether the program boots at all follows"),
            Follows::Object(object) => write!(f, "{object} is made"),
        }
    }
}

/// Boots with other secrets, after a first boot that ended with `report`. Returns whether the image is only for secrets
/// of the same form; refuses if something was derived from them.
pub fn follows_form_of_secrets(boot: &BootRequest<'_>, report: &Report) -> Result<bool> {
    let first = texts(boot.freeze.dir)?;
    let follows_form = compare_forms(boot, report, &first);
    leave_on_demand(boot.environment, boot.freeze.dir)?;
    follows_form
}

fn compare_forms(boot: &BootRequest<'_>, report: &Report, first: &Texts) -> Result<bool> {
    let mut found = Vec::new();
    let inputs = EnvironmentInputs { environment: boot.environment, reads: &report.reads };
    for form in [Form::Other, Form::Same] {
        if form == Form::Same && !inputs.secrets_read().all(|(secret, _)| secret.has_room()) {
            break;
        }
        found = boot_with_other_secrets(boot, report, first, form)?;
        if found.is_empty() {
            return Ok(form == Form::Same);
        }
    }
    let read = inputs
        .secrets_read()
        .map(|(secret, place)| format!("{} (read by {})", secret.name.to_string_lossy(), reader(place)));
    let read = read.collect::<Vec<_>>().join(", ");
    let findings = found.iter().take(MAX).map(|what| {
        Finding::new(
            "secret",
            format!(
                "{what} from the value of a secret while the program boots: {read}; compute it at each start: with snapboot.defer \
                 (Snapboot.defer in Ruby), in an after_thaw hook, or in what is loaded after the freeze point; or let the image hold the \
                 value with --env NAME"
            ),
        )
    });
    Err(Stop::Refused(findings.collect()))
}

/// What was derived from secrets, as shown by boots with other secrets of this form, and boots with the same again.
fn boot_with_other_secrets(boot: &BootRequest<'_>, report: &Report, first: &Texts, form: Form) -> Result<Vec<Follows>> {
    let dir = boot.freeze.dir;
    let mut environment = boot.environment.with_other_fiction(form);
    let mut suspects = first.clone();
    for round in 1.. {
        let _ = fs::remove_file(dir.file("suspects"));
        let others = match boot_for_secrets(&BootRequest { environment: &environment, ..*boot })? {
            Ok(others) if is_alike(&others, report) => texts(dir)?,
            Ok(_) => return Ok(vec![Follows::Loaded]),
            Err(why) => return Ok(vec![why]),
        };
        suspects = &suspects - &others;
        if suspects.is_empty() {
            break;
        }
        dir.write("suspects", suspects.iter().flatten().copied().collect::<Vec<u8>>())?;
        let derived = match boot_for_secrets(boot)? {
            Ok(again) => again.derived,
            Err(why) => return Ok(vec![why]),
        };
        if derived.is_empty() {
            break;
        }
        if round == ROUNDS {
            return Ok(derived.into_iter().map(Follows::Object).collect());
        }
        environment = environment.with_other_fiction(form);
    }
    Ok(Vec::new())
}

/// Boots for a comparison. Returns what follows from the secrets if that failed.
fn boot_for_secrets(boot: &BootRequest<'_>) -> Result<std::result::Result<Report, Follows>> {
    leave_on_demand(boot.environment, boot.freeze.dir)?;
    boot.freeze.progress.step(&Step::BootForSecrets);
    let ended = boot.run(&Watch::Secrets);
    boot.freeze.interrupt.check()?;
    match ended {
        Ok(ended) => Ok(ended.outcome.map_err(|mut findings| Follows::Frozen(findings.swap_remove(0)))),
        Err(Stop::Interrupted(signal)) => Err(Stop::Interrupted(signal)),
        Err(_) => Ok(Err(Follows::Booted)),
    }
}

/// Whether another boot loaded the same.
fn is_alike(other: &Report, report: &Report) -> bool {
    let files = |report: &Report| report.loaded.iter().cloned().collect::<BTreeSet<_>>();
    files(other) == files(report)
}

fn texts(dir: &ControlDir) -> Result<Texts> {
    let file = dir.file("texts");
    let bytes = fs::read(&file).map_err(|error| Failure::io("read", &file, &error))?;
    Ok(bytes.chunks_exact(SIZE).filter_map(|digest| digest.try_into().ok()).collect())
}
