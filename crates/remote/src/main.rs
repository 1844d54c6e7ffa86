//! `snapboot-remote`: what `snapboot remote` and the builders of the store execute. A program of its own, so that no start carries the
//! libraries of a dozen storages.
#![forbid(unsafe_code)]

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use failure::{harmless_lines, Failure, Kind, Result};
use image_file::info::Info;
use image_file::ImageFile;
use remote::archives::{self, Place, Taken};
use remote::lease::{Lease, Turn};
use remote::prune::{Limits, Removed};
use remote::pull::{Pulled, Wanted};
use remote::push::{Pushed, Whose};
use remote::signing::SecretKey;
use remote::storage::{Storage, VARIABLE};
use remote::trusted::Trust;
use remote::{key, prune, pull, push, sign_command, survey};
use runtime::search_path;
use runtime::terminal::Terminal;
use store::{background, fit, Command, Folder, RemoteMetrics, Store};

/// Stands for a limit that there is not.
const NONE: &str = "-";
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
        (store::remote::FETCH, [snapboot, folder, output, terminal, patience]) => {
            fetch([snapboot, folder, output].map(Path::new), terminal, patience == store::remote::PATIENT)
        }
        (store::remote::PUSH, [option, lease, images @ ..]) if option == store::remote::LEASED => {
            let status = push_all(images);
            // If that fails, it ends by itself. What was said of the image counts.
            let _ = end_lease(lease);
            status
        }
        (store::remote::PUSH, images) => push_all(images),
        (store::remote::RELEASE, [lease]) => end_lease(lease),
        (store::remote::FETCH_FILE, [output, interpreter, words @ ..]) => {
            let key = key::of_file(Path::new(interpreter), words)?;
            let output = Path::new(output);
            let wanted = Wanted { key: &key, folder: None, output, terminal: None, snapboot: None };
            let pulled = counted_pull(&storage()?, None, &wanted)?;
            say(&words_of(&pulled));
            Ok(if matches!(pulled, Pulled::Image { .. }) { 0 } else { store::remote::NO_IMAGE })
        }
        (store::remote::PUSH_FILE, [image, interpreter, words @ ..]) => {
            let (image, key) = (Path::new(image), key::of_file(Path::new(interpreter), words)?);
            let name = image.file_name().unwrap_or_default().to_string_lossy();
            let (storage, signer) = (storage()?, sign_command::signer()?);
            let whose = Whose { key: &key, name: &name, folder: None };
            let pushed = push::push_as(&storage, signer.as_deref(), image, &whose);
            count_push(&storage, None, &pushed);
            pushed.map(|_| 0)
        }
        (store::remote::PUSH_ARCHIVE, [file, root]) => push_archive(&place_of(file, root)),
        (store::remote::FETCH_ARCHIVE, [file, root]) => fetch_archive(&place_of(file, root)),
        ("pull", [snapboot, command @ ..]) if !command.is_empty() => pull_command(Path::new(snapboot), command),
        (store::remote::CHECK, []) => {
            let storage = storage()?;
            let whose = Trust::in_storage(&storage)?.check(&storage)?;
            print(&format!("{}: {whose}\n", storage.name()))
        }
        ("list", rest) => list(rest.iter().any(|word| word == "--json")),
        ("verify", []) => verify(),
        ("prune", [older_than, unused_for, max_size]) => {
            let number = |word: &OsStr| match word.to_str() {
                Some(NONE) => Ok(None),
                text => text.and_then(|text| text.parse().ok()).map(Some).ok_or_else(not_for_people),
            };
            let age = |word: &OsStr| number(word).map(|seconds| seconds.map(Duration::from_secs));
            let (older_than, unused_for) = (age(older_than)?, age(unused_for)?);
            print(&words_of_removed(&prune::prune(
                &storage()?,
                &Limits { older_than, unused_for, max_size: number(max_size)? },
            )?))
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

/// Takes an image for a builder, which makes one where this does not succeed. `patient`: whether it rather waits for a machine that makes one.
fn fetch([snapboot, folder, output]: [&Path; 3], terminal: &OsStr, patient: bool) -> Result<u8> {
    let folder = Folder::containing(output).filter(|it| it.path() == folder).ok_or_else(not_for_people)?;
    let (key, terminal, storage) = (key::of_folder(&folder)?, background::parse_terminal(terminal), storage()?);
    let (key, terminal) = (&key, terminal.as_ref());
    let wanted = Wanted { key, folder: Some(&folder), output, terminal, snapboot: Some(snapboot) };
    let pulled = counted_pull(&storage, Some(&folder), &wanted);
    match &pulled {
        Ok(Pulled::Image { .. }) => {
            say(&words_of(&pulled?));
            return Ok(0);
        }
        Err(failure) if failure.is_passing => return pulled.map(|_| FAILED),
        Ok(_) | Err(_) => {}
    }
    let can_give = !storage.is_read_only() && (sign_command::is_named() || storage.directory().is_some());
    let turn = Lease::take(&storage, key, can_give);
    let left = u64::from(patient && matches!(turn, Ok(Turn::Other)));
    count(&storage, Some(&folder), RemoteMetrics { left, ..RemoteMetrics::default() });
    match turn {
        Ok(Turn::Other) if patient => {
            say("another machine makes an image of this program");
            return Ok(store::remote::MADE_ELSEWHERE);
        }
        Ok(Turn::Own(lease)) => drop(print(&lease.word())),
        // The message about the image says what is wrong.
        Ok(Turn::Other | Turn::Nobody) | Err(_) => {}
    }
    say(&words_of(&pulled?));
    Ok(FAILED)
}

/// Takes an image, and counts that.
fn counted_pull(storage: &Storage, folder: Option<&Folder>, wanted: &Wanted<'_>) -> Result<Pulled> {
    let begun = Instant::now();
    let pulled = pull::pull(storage, wanted);
    let none = RemoteMetrics::default();
    let counts = match &pulled {
        Ok(Pulled::Image { .. }) => {
            let froze = ImageFile::open(wanted.output).map_or(0.0, |image| Info::read(&image.tables()).seconds);
            RemoteMetrics { hits: 1, seconds_saved: (froze - begun.elapsed().as_secs_f64()).max(0.0), ..none }
        }
        Ok(Pulled::NoImage | Pulled::NoneFits(_)) => RemoteMetrics { misses: 1, ..none },
        Err(_) => RemoteMetrics { errors: 1, ..none },
    };
    count(storage, folder, counts);
    pulled
}

/// Counts an image that was given, or was not. One that stays on its machine is no error.
fn count_push(storage: &Storage, folder: Option<&Folder>, pushed: &Result<Pushed>) {
    let errors = pushed.as_ref().is_err_and(|failure| failure.kind != Kind::Refused).into();
    count(storage, folder, RemoteMetrics { given: pushed.is_ok().into(), errors, ..RemoteMetrics::default() });
}

/// Counts what has come of something, and what went there and back for it.
fn count(storage: &Storage, folder: Option<&Folder>, counts: RemoteMetrics) {
    let traffic = storage.take_traffic();
    RemoteMetrics {
        requests: traffic.requests,
        bytes_fetched: traffic.received,
        bytes_given: traffic.sent,
        chunks_fetched: traffic.chunks_received,
        chunks_given: traffic.chunks_sent,
        ..counts
    }
    .add(folder);
}

/// What was pruned.
fn words_of_removed(removed: &Removed) -> String {
    let unreadable = match removed.unreadable {
        0 => String::new(),
        count => format!("; {count} manifests cannot be read here, so all chunks stay until these are pruned"),
    };
    format!("removed {} images, and {} chunks of {} bytes{unreadable}\n", removed.images, removed.chunks, removed.bytes)
}

/// Ends the lease of a builder that has made its image, or could not.
fn end_lease(word: &OsStr) -> Result<u8> {
    let lease = word.to_str().and_then(Lease::parse).ok_or_else(not_for_people)?;
    let storage = storage()?;
    let ended = lease.end(&storage);
    count(&storage, None, RemoteMetrics::default());
    ended.map(|()| 0)
}

/// Pushes these images, or all of the store.
fn push_all(images: &[OsString]) -> Result<u8> {
    let (storage, signer) = (storage()?, sign_command::signer()?);
    let images: Vec<PathBuf> = match images {
        [] => Store::open()?.folders().iter().flat_map(Folder::all_images).collect(),
        named => named.iter().map(PathBuf::from).collect(),
    };
    let mut status = 0;
    for image in images {
        let pushed = push::push(&storage, signer.as_deref(), &image);
        count_push(&storage, Folder::containing(&image).as_ref(), &pushed);
        match pushed {
            Ok(pushed) => {
                print(&words_of_pushed(&image, &pushed))?;
            }
            Err(failure) => {
                say(&format!("snapboot: {failure}"));
                status = if failure.kind == Kind::Refused { REFUSED } else { FAILED };
            }
        }
    }
    Ok(status)
}

fn place_of<'a>(file: &'a OsStr, root: &'a OsStr) -> Place<'a> {
    Place { file: Path::new(file), root: Path::new(root) }
}

fn push_archive(place: &Place<'_>) -> Result<u8> {
    let (storage, signer) = (storage()?, sign_command::signer()?);
    let pushed = archives::push(&storage, signer.as_deref(), place);
    count_push(&storage, None, &pushed);
    print(&words_of_pushed(place.file, &pushed?))
}

fn words_of_pushed(file: &Path, Pushed { chunks, new, sent, .. }: &Pushed) -> String {
    format!("{}: pushed ({new} of {chunks} chunks were new, {sent} bytes)\n", file.display())
}

fn fetch_archive(place: &Place<'_>) -> Result<u8> {
    let storage = storage()?;
    let taken = archives::pull(&storage, place);
    let none = RemoteMetrics::default();
    count(
        &storage,
        None,
        match &taken {
            Ok(Taken::Archive { .. }) => RemoteMetrics { hits: 1, ..none },
            Ok(Taken::Kept) => none,
            Ok(Taken::NoArchive) => RemoteMetrics { misses: 1, ..none },
            Err(_) => RemoteMetrics { errors: 1, ..none },
        },
    );
    let shown = place.file.display();
    match taken? {
        Taken::Archive { chunks, bytes } => print(&format!("{shown}: pulled ({chunks} chunks, {bytes} bytes)\n")),
        Taken::Kept => print(&format!("{shown}: is as new as that of the remote store\n")),
        Taken::NoArchive => {
            say(&format!("snapboot: the remote store has no archive for {shown}."));
            Ok(FAILED)
        }
    }
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
    let (key, terminal) = (key::of_folder(&folder)?, Terminal::of_this_process());
    let wanted = Wanted {
        key: &key,
        folder: Some(&folder),
        output: &output,
        terminal: terminal.as_ref(),
        snapboot: Some(snapboot),
    };
    let pulled = counted_pull(&storage, Some(&folder), &wanted)?;
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
    let written = std::io::stdout().lock().write_all(harmless_lines(text).as_bytes());
    written
        .map_err(|error| Failure::failed(format!("cannot write to standard output: {}.", failure::reason(&error))))?;
    Ok(0)
}

/// Prints a line to standard error. Nothing hangs on whether anybody reads it.
fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{}", harmless_lines(line));
}
