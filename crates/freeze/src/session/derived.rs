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
use std::fs;

use failure::Failure;
use judge::environment_inputs::EnvironmentInputs;
use judge::findings::Finding;
use judge::places::reader;
use judge::secrets::Form;

use super::Session;
use crate::boot::{leave_on_demand, Boot, Watch};
use crate::control_dir::ControlDir;
use crate::outcome::{Result, Stop};
use crate::progress::Step;
use crate::report::{Outcome, Report};

/// Digests of the texts and numbers in a process, as the front end writes them.
type Texts = BTreeSet<[u8; SIZE]>;

/// Size of a digest (bytes).
const SIZE: usize = 8;

/// Number of pairs of boots in which a digest must follow the secrets to count. A value with few possibilities, such as
/// a count of threads, agrees in one pair by chance.
const ROUNDS: u32 = 2;

/// Maximum of derived objects in a message.
const MAX: usize = 5;

impl Session<'_> {
    /// Boots with other secrets, after a first boot that ended with `report`. Returns whether the image is only for
    /// secrets of the same form; refuses if something was derived from them.
    pub(super) fn check_secrets(&self, boot: &Boot<'_>, dir: &ControlDir, report: &Report) -> Result<bool> {
        let first = texts(dir)?;
        let restored = |made: Result<bool>| leave_on_demand(boot.environment, dir).map_err(Stop::from).and(made);
        let mut found = Vec::new();
        let inputs = EnvironmentInputs { environment: boot.environment, reads: &report.reads };
        for form in [Form::Other, Form::Same] {
            if form == Form::Same && !inputs.secrets_read().all(|(secret, _)| secret.has_room()) {
                break;
            }
            match self.boot_with_other_secrets(boot, dir, report, &first, form) {
                Ok(derived) if derived.is_empty() => return restored(Ok(form == Form::Same)),
                Ok(derived) => found = derived,
                Err(stop) => return restored(Err(stop)),
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
        restored(Err(Stop::Refused(findings.collect())))
    }

    /// Describes what was derived from secrets, as shown by boots with other secrets of this form, and boots with the
    /// same again.
    fn boot_with_other_secrets(
        &self,
        boot: &Boot<'_>,
        dir: &ControlDir,
        report: &Report,
        first: &Texts,
        form: Form,
    ) -> Result<Vec<String>> {
        let mut environment = boot.environment.with_other_fiction(form);
        let mut suspects = first.clone();
        for round in 1.. {
            let _ = fs::remove_file(dir.file("suspects"));
            let others = match self.boot_for_secrets(&Boot { environment: &environment, ..*boot }, dir)? {
                Ok(others) if is_alike(&others, report) => texts(dir)?,
                Ok(_) => return Ok(vec!["what the program loads follows".to_owned()]),
                Err(why) => return Ok(vec![why]),
            };
            suspects = &suspects - &others;
            if suspects.is_empty() {
                break;
            }
            let file = dir.file("suspects");
            let bytes: Vec<u8> = suspects.iter().flatten().copied().collect();
            fs::write(&file, bytes).map_err(|error| Failure::io("write", &file, &error))?;
            let derived = match self.boot_for_secrets(boot, dir)? {
                Ok(again) => again.secrets.derived,
                Err(why) => return Ok(vec![why]),
            };
            if derived.is_empty() {
                break;
            }
            if round == ROUNDS {
                return Ok(derived.iter().map(|what| format!("{what} is made")).collect());
            }
            environment = environment.with_other_fiction(form);
        }
        Ok(Vec::new())
    }

    /// Boots for a comparison. Returns the reason if that failed.
    fn boot_for_secrets(&self, boot: &Boot<'_>, dir: &ControlDir) -> Result<std::result::Result<Report, String>> {
        leave_on_demand(boot.environment, dir)?;
        self.progress.step(&Step::BootForSecrets);
        let ended = self.boot_once(boot, dir, &Watch::Secrets);
        boot.interrupt.check()?;
        Ok(match ended {
            Ok((Outcome::Written(report), _)) => Ok(*report),
            Ok((Outcome::Refused(findings), _)) => {
                Err(format!("whether the program can be frozen ({}) follows", findings[0].text))
            }
            Err(Stop::Interrupted(signal)) => return Err(Stop::Interrupted(signal)),
            Err(_) => Err("whether the program boots at all follows".to_owned()),
        })
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
