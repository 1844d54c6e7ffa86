//! `snapboot-remote`: what `snapboot remote` and the builders of the store execute. A program of its own, so that no start carries the
//! libraries of a dozen storages.
#![forbid(unsafe_code)]

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use failure::{Failure, Kind, Result};
use remote::pull::{Pulled, Wanted};
use remote::push::Pushed;
use remote::signing::SecretKey;
use remote::storage::{Storage, VARIABLE};
use remote::trusted::Trust;
use remote::{prune, pull, push, survey};
use runtime::search_path;
use runtime::terminal::Terminal;
use store::{background, fit, Command, Folder, Store};

/// How this ends if it failed, if it was refused, and if a pull found no image.
const FAILED: u8 = 1;
const REFUSED: u8 = 2;

fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    let status = match run(&words) {
        Ok(status) => status,
        Err(failure) => {
            say(&format!("snapboot: {failure}"));
            if failure.kind == Kind::Refused {
                REFUSED
            } else {
                FAILED
            }
        }
    };
    // A request that still runs may hang.
    std::process::exit(status.into())
}

fn run(words: &[OsString]) -> Result<u8> {
    let (subcommand, rest) = words.split_first().ok_or_else(not_for_people)?;
    match (subcommand.to_str().unwrap_or_default(), rest) {
        (store::remote::FETCH, [snapboot, folder, output, terminal]) => {
            let folder = Folder::containing(Path::new(output)).filter(|it| it.path() == Path::new(folder));
            let folder = folder.ok_or_else(not_for_people)?;
            let terminal = background::parse_terminal(terminal);
            let wanted = Wanted {
                folder: &folder,
                output: Path::new(output),
                terminal: terminal.as_ref(),
                snapboot: Path::new(snapboot),
            };
            let pulled = pull::pull(&storage()?, &wanted)?;
            say(&words_of(&pulled));
            Ok(if matches!(pulled, Pulled::Image { .. }) { 0 } else { FAILED })
        }
        (store::remote::PUSH, images) => push_all(images),
        ("pull", [snapboot, command @ ..]) if !command.is_empty() => pull_command(Path::new(snapboot), command),
        (store::remote::CHECK, []) => {
            let storage = storage()?;
            let whose = Trust::in_storage(&storage)?.check(&storage)?;
            print(&format!("{}: {whose}\n", storage.name()))
        }
        ("list", rest) => list(rest.iter().any(|word| word == "--json")),
        ("verify", []) => verify(),
        ("prune", [seconds]) => {
            let seconds = seconds.to_str().and_then(|text| text.parse().ok()).ok_or_else(not_for_people)?;
            let removed = prune::prune(&storage()?, Duration::from_secs(seconds))?;
            print(&format!(
                "removed {} images, and {} chunks of {} bytes\n",
                removed.images, removed.chunks, removed.bytes
            ))
        }
        ("key", [file]) => {
            let public = SecretKey::make()?.keep(Path::new(file))?;
            print(&format!(
                "{0}: the secret key, for machines that push (SNAPBOOT_REMOTE_SECRET_KEY={0})\n{1}: its public key, for all that pull \
                 (SNAPBOOT_REMOTE_KEYS={1})\n",
                Path::new(file).display(),
                public.display()
            ))
        }
        _ => Err(not_for_people()),
    }
}

fn not_for_people() -> Failure {
    Failure::refusal("snapboot-remote is a part of Snapboot. See snapboot remote --help.")
}

fn storage() -> Result<Storage> {
    Storage::from_environment()?.ok_or_else(|| {
        Failure::refusal(format!(
            "{VARIABLE} should name the store that machines share, and is not set. Example: file:///mnt/snapboot"
        ))
    })
}

/// Pushes these images, or all of the store.
fn push_all(images: &[OsString]) -> Result<u8> {
    let storage = storage()?;
    let secret = SecretKey::from_environment()?;
    let images: Vec<PathBuf> = match images {
        [] => Store::open()?.folders().iter().flat_map(Folder::all_images).collect(),
        named => named.iter().map(PathBuf::from).collect(),
    };
    let mut status = 0;
    for image in images {
        let shown = image.display();
        match push::push(&storage, secret.as_ref(), &image) {
            Ok(Pushed { chunks, new, sent, .. }) => {
                print(&format!("{shown}: pushed ({new} of {chunks} chunks were new, {sent} bytes)\n"))?;
            }
            Err(failure) => {
                say(&format!("snapboot: {failure}"));
                status = if failure.kind == Kind::Refused { REFUSED } else { FAILED };
            }
        }
    }
    Ok(status)
}

/// Takes an image for a command, as if a start had asked for one.
fn pull_command(snapboot: &Path, words: &[OsString]) -> Result<u8> {
    let storage = storage()?;
    let shown = words[0].to_string_lossy();
    let (command, _) = Command::split(words, &search_path(), None)?.command.ok_or_else(|| {
        Failure::refusal(format!("{shown} should be a Python or Ruby program that can have an image, and is none."))
    })?;
    let folder = Store::open()?.folder(&command);
    folder.make(&command)?;
    let own = folder.lock().ok_or_else(|| {
        Failure::passing(format!("an image of {shown} is being made. snapboot list shows when it is there."))
    })?;
    // One that this start would take, if there is one, gives way: it may be stale, and starts would look no further.
    let output = folder.images().into_iter().find(|image| fit::fits(image)).unwrap_or_else(|| folder.next_image());
    let terminal = Terminal::of_this_process();
    let wanted = Wanted { folder: &folder, output: &output, terminal: terminal.as_ref(), snapboot };
    let pulled = pull::pull(&storage, &wanted)?;
    if let Pulled::Image { .. } = pulled {
        store::remote::record(&folder, &own, &output, &background::environment_number(), None);
    }
    print(&format!("{}\n", words_of(&pulled)))?;
    Ok(if matches!(pulled, Pulled::Image { .. }) { 0 } else { FAILED })
}

fn words_of(pulled: &Pulled) -> String {
    match pulled {
        Pulled::Image { chunks, bytes } => format!("the image was pulled ({chunks} chunks, {bytes} bytes)"),
        Pulled::NoImage => "there is no image of this program for machines like this one".to_owned(),
        Pulled::NoneFits(lines) => format!("no image fits; of the newest differs: {}", lines.join("; ")),
    }
}

fn list(json: bool) -> Result<u8> {
    let rows = survey::rows(&storage()?)?;
    if json {
        let rows: Vec<_> = rows.iter().map(survey::Row::json).collect();
        let text = serde_json::to_string_pretty(&rows).map_err(|error| Failure::failed(format!("{error}.")))?;
        return print(&(text + "\n"));
    }
    for row in &rows {
        print(&match &row.manifest {
            Ok(manifest) => {
                format!("{}  {} bytes  {}  {}\n", manifest.name, manifest.image.size, manifest.runtime, row.path)
            }
            Err(failure) => format!("not used: {failure}\n"),
        })?;
    }
    Ok(0)
}

/// Reads all of the remote store.
fn verify() -> Result<u8> {
    let storage = storage()?;
    let rows = survey::rows(&storage)?;
    let (mut good, mut wrong) = (BTreeSet::new(), Vec::new());
    for row in &rows {
        match &row.manifest {
            Ok(manifest) => wrong.extend(survey::damage(&storage, manifest, &mut good)),
            Err(failure) => wrong.push(failure.message.clone()),
        }
    }
    wrong.iter().for_each(|what| say(&format!("snapboot: {what}")));
    print(&format!("{} images, {} whole chunks, {} faults\n", rows.len(), good.len(), wrong.len()))?;
    Ok(if wrong.is_empty() { 0 } else { FAILED })
}

/// Prints to standard output.
fn print(text: &str) -> Result<u8> {
    let written = std::io::stdout().lock().write_all(harmless(text).as_bytes());
    written
        .map_err(|error| Failure::failed(format!("cannot write to standard output: {}.", failure::reason(&error))))?;
    Ok(0)
}

/// Prints a line to standard error. Nothing hangs on whether anybody reads it.
fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{}", harmless(line));
}

/// A text without what a terminal would obey: names come from elsewhere.
fn harmless(text: &str) -> String {
    text.chars().map(|sign| if sign.is_control() && sign != '\n' { '?' } else { sign }).collect()
}
