//! Images in front of installed commands: lists, installs and uninstalls them.
//!
//! An image lies in `tools/KEY`, with a link to it in `bin`, which comes first on PATH. Or, in place, the link replaces the command, which
//! is moved into a folder beside it under its own name, since programs tell their users their name.

use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, File, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{symlink, DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use failure::{Failure, Result};
use freeze::Progress;
use image_file::kind::Kind;
use runtime::{locate, search_path};
use serde::{Deserialize, Serialize};

use crate::background::environment_number;
use crate::build::{self, For};
use crate::folder::INSTALLED;
use crate::remote::Look;
use crate::{eviction, location, own_place, remote, Command, Folder, Lock, Store};

/// Holds the commands that images in place have replaced, beside them.
const KEPT: &str = ".snapboot";

/// Where a command was installed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Installed {
    /// Its name.
    pub name: String,
    /// The link to its image.
    pub link: PathBuf,
    /// The command itself.
    pub program: PathBuf,
    /// Whether the link replaces the command.
    pub in_place: bool,
}

/// The outcome of an installation.
pub enum Outcome {
    /// The image is in front of the command.
    Installed(Box<Installation>),
    /// There is no image, and the command is unchanged; the outcome of the freeze says why.
    NotFrozen(freeze::FreezeOutcome),
}

/// A new installation.
pub struct Installation {
    /// What was installed.
    pub installed: Installed,
    /// The image.
    pub image: NewImage,
    /// Which program had the name before, if another one did.
    pub instead_of: Option<PathBuf>,
    /// Its place on PATH.
    pub on_path: OnPath,
}

/// A new image.
pub struct NewImage {
    /// Where it is.
    pub path: PathBuf,
    /// Its size (bytes).
    pub size: u64,
    /// How long it took to make or to fetch it.
    pub took: Duration,
    /// Whether it comes from the remote store.
    pub is_pulled: bool,
}

/// Which program a shell starts under the name of an installed command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OnPath {
    /// The image.
    Image,
    /// This one, which precedes it; or none at all.
    Other(Option<PathBuf>),
}

impl Installed {
    /// Reads what is installed in this folder.
    pub fn load(folder: &Folder) -> Option<Installed> {
        folder.read(INSTALLED)
    }

    /// Whether the link exists, and leads to an image of this folder.
    pub fn is_in_front(&self, folder: &Folder) -> bool {
        fs::read_link(&self.link).is_ok_and(|target| target.parent() == Some(folder.path()))
    }

    /// Whether the command itself is gone, as with a virtual environment that will be made again. Until then its link leads nowhere.
    pub fn is_dormant(&self) -> bool {
        !self.program.exists()
    }

    /// Which program a shell with this PATH starts under its name.
    pub fn on_path(&self, search_path: &OsStr) -> OnPath {
        match locate(OsStr::new(&self.name), search_path) {
            Ok(found) if found == self.link => OnPath::Image,
            found => OnPath::Other(found.ok()),
        }
    }

    /// Removes the link, and restores a command that was replaced in place. A file that somebody has put there meanwhile stays.
    pub fn take_away(&self, folder: &Folder) -> Result<()> {
        let is_ours = self.is_in_front(folder);
        let cannot = |error: std::io::Error| Failure::io("restore", &self.link, &error);
        if self.in_place {
            match is_ours {
                true => fs::rename(&self.program, &self.link).map_err(cannot)?,
                false => fs::remove_file(&self.program).or_else(missing_is_fine).map_err(cannot)?,
            }
            // Other commands may be kept there.
            let _ = self.program.parent().map(fs::remove_dir);
        } else if is_ours {
            fs::remove_file(&self.link).or_else(missing_is_fine).map_err(cannot)?;
        }
        Ok(())
    }
}

fn missing_is_fine(error: std::io::Error) -> std::io::Result<()> {
    match error.kind() {
        std::io::ErrorKind::NotFound => Ok(()),
        _ => Err(error),
    }
}

/// All installed commands with their folders, by name.
pub fn all(store: &Store) -> Vec<(Installed, Folder)> {
    let folders = store.folders().into_iter();
    let mut all: Vec<_> = folders.filter_map(|folder| Some((Installed::load(&folder)?, folder))).collect();
    all.sort_by(|(one, _), (other, _)| one.name.cmp(&other.name));
    all
}

/// PATH without the directory of the links.
pub fn path_without(bin: &Path) -> OsString {
    let path = search_path();
    let rest = std::env::split_paths(&path).filter(|directory| directory != bin);
    std::env::join_paths(rest).unwrap_or_else(|_| path.clone())
}

/// Puts the directory of the links first on the PATH of this process, as `shellenv` does for the shells in which installed commands are
/// started: if PATH counts, an image is for the PATH under which it was made. Only while this process has one thread.
pub fn put_links_first(store: &Store) {
    let path = search_path();
    let bin = store.bin();
    if std::env::split_paths(&path).next().as_ref() != Some(&bin) {
        let parts = std::iter::once(bin).chain(std::env::split_paths(&path));
        // A directory with a colon cannot be on PATH.
        let _ = std::env::join_paths(parts).map(|path| std::env::set_var("PATH", path));
    }
}

/// Makes an image of a command and puts it in front. `named`: the name that a shell would look up, or the path. `users_path`: the user's
/// PATH; `from_remote`: whether the remote store may have its image, and gets the one that is made.
///
/// Fails if there is no such command, if it is no Python or Ruby program, or if files cannot be written. If it fails, the command is
/// unchanged.
pub fn install(
    store: &Store,
    named: &OsStr,
    in_place: bool,
    users_path: &OsStr,
    from_remote: bool,
    progress: &dyn Progress,
) -> Result<Outcome> {
    let found = locate(named, &path_without(&store.bin()))?;
    let found = std::path::absolute(&found).map_err(|error| Failure::io("find", &found, &error))?;
    let name = found.file_name().unwrap_or_default().to_string_lossy().into_owned();
    if Kind::is_image(&found) {
        return Err(Failure::refusal(match all(store).into_iter().any(|(installed, _)| installed.link == found) {
            true => format!(
                "{name} is installed already, in place. To have its image made again: snapboot refreeze {}.",
                found.display()
            ),
            false => format!(
                "{} is an image already: put it on PATH yourself, or name the command that it was made from.",
                found.display()
            ),
        }));
    }
    let program = if in_place { keep_beside(&found)? } else { found.clone() };
    let made = put_in_front(store, &name, &found, &program, users_path, from_remote, progress);
    if in_place && !matches!(made, Ok(Outcome::Installed(_))) {
        let _ = fs::remove_file(&program);
        let _ = program.parent().map(fs::remove_dir);
    }
    made
}

fn put_in_front(
    store: &Store,
    name: &str,
    found: &Path,
    program: &Path,
    users_path: &OsStr,
    from_remote: bool,
    progress: &dyn Progress,
) -> Result<Outcome> {
    let in_place = found != program;
    File::open(program).map_err(|error| Failure::io("read", program, &error))?;
    let line = Command::split(&[program.into()], &search_path(), None)?;
    let Some((command, _)) = line.command else {
        return Err(Failure::refusal(format!(
            "{} is not a Python or Ruby program that can be frozen ({}). snapboot freeze -- {0} may say more.",
            program.display(),
            if line.is_interpreter {
                "an interpreter, or options that an image cannot honour"
            } else {
                "neither runs in the end"
            }
        )));
    };
    if line.is_shim {
        return Err(Failure::refusal(format!(
            "{} is a shim of a version manager. It leads elsewhere once you choose another version, and an image would not. Install the \
             program that it leads to now ({}), or use snapboot run, which follows the shim at each start.",
            program.display(),
            command.file.display()
        )));
    }
    let users = if in_place { Users::who_can_start(found) } else { Users::Owner };
    if users != Users::Owner && trust::check_place(store.data()).is_ok() {
        // An error here recurs below, with its reason.
        let _ = DirBuilder::new().recursive(true).mode(ENTERED).create(store.data());
    }
    location::make(&store.tools())?;
    let folder = Folder::new(store.tools().join(command.key()));
    let is_new = !folder.path().exists();
    folder.make(&command)?;
    let Some(own) = folder.lock() else {
        return Err(Failure::refusal(format!("an image of {name} is being made now. Try again in a moment.")));
    };
    let image = folder.first_image();
    if let Some(refusal) = out_of_reach(users, &folder, store, name) {
        if is_new {
            let _ = fs::remove_dir_all(folder.path());
        }
        return Err(refusal);
    }
    let whom = For { environment: &environment_number(), terminal: None, somebody_waits: true };
    let outcome = {
        let _there = Elsewhere::go(store, program)?;
        take_or_build(&folder, &own, &image, &whom, from_remote, progress)
    };
    let made = match outcome {
        Some(Ok(made)) => made,
        none => {
            if is_new {
                let _ = fs::remove_dir_all(folder.path());
            }
            let outcome = none.and_then(|outcome| outcome.err().map(Outcome::NotFrozen));
            return outcome.ok_or_else(|| Failure::failed(format!("{name} could not be frozen.")));
        }
    };
    if !users.are_among(Users::who_can_start(&image)) {
        let _ = fs::remove_dir_all(folder.path());
        return Err(Failure::refusal(format!(
            "{} can be started by other users, but the image of {name} cannot: it holds data that only its owner may read. {REMEDY}",
            found.display()
        )));
    }
    let link = if in_place {
        found.to_owned()
    } else {
        location::make(&store.bin())?;
        store.bin().join(name)
    };
    let installed = Installed { name: name.to_owned(), link: link.clone(), program: program.to_owned(), in_place };
    let before = all(store).into_iter().find(|(other, other_folder)| other.link == link && *other_folder != folder);
    folder.write(INSTALLED, &installed)?;
    replace_by_link(&folder.program_link(), program)?;
    replace_by_link(&link, &image)?;
    let instead_of = before.map(|(other, folder)| {
        eviction::remove_in_any_case(&folder);
        other.program
    });
    let on_path = installed.on_path(users_path);
    Ok(Outcome::Installed(Box::new(Installation { installed, image: made, instead_of, on_path })))
}

/// Takes an image from the remote store, or makes one, and gives it to that. `shares`: whether the remote store is used at all.
fn take_or_build(
    folder: &Folder,
    own: &Lock,
    image: &Path,
    whom: &For<'_>,
    shares: bool,
    progress: &dyn Progress,
) -> Option<std::result::Result<NewImage, freeze::FreezeOutcome>> {
    let begun = Instant::now();
    let mut lease = None;
    if shares {
        match remote::look(folder, own, image, whom, None) {
            Look::Pulled => {
                let size = image.metadata().map_or(0, |status| status.len());
                return Some(Ok(NewImage { path: image.to_owned(), size, took: begun.elapsed(), is_pulled: true }));
            }
            Look::MadeElsewhere => {}
            Look::NoImage(taken) => lease = taken,
        }
    }
    let written = match build::build(folder, own, image, whom, progress)? {
        freeze::FreezeOutcome::Written(written) => written,
        outcome => return Some(Err(outcome)),
    };
    if shares && !written.lacks {
        remote::push(folder, image, lease);
    }
    Some(Ok(NewImage { path: written.path, size: written.size, took: written.took, is_pulled: false }))
}

/// Mode of directories that others may enter, but not list.
const ENTERED: u32 = 0o711;
/// The remedy where an image cannot be installed in place.
const REMEDY: &str = "Install without --in-place, which changes nothing for other users";

/// Who can start a program, according to modes: those of the file and of all directories above it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Users {
    All,
    Group(u32),
    Owner,
}

impl Users {
    fn who_can_start(program: &Path) -> Users {
        let Ok(status) = program.metadata() else { return Users::Owner };
        let group = status.gid();
        let above: Vec<_> =
            program.canonicalize().iter().flat_map(|path| path.ancestors().skip(1)).map(entered_by).collect();
        let all_enter = above.iter().all(|(mode, _)| mode & 0o001 != 0);
        let group_enters = above.iter().all(|(mode, of)| mode & 0o001 != 0 || *of == group && mode & 0o010 != 0);
        match status.mode() {
            mode if mode & 0o005 == 0o005 && all_enter => Users::All,
            mode if mode & 0o050 == 0o050 && group_enters && !is_alone(group) => Users::Group(group),
            _ => Users::Owner,
        }
    }

    /// Whether the others include these.
    fn are_among(self, others: Users) -> bool {
        self == Users::Owner || others == Users::All || self == others
    }
}

fn entered_by(directory: &Path) -> (u32, u32) {
    directory.metadata().map_or((0, 0), |status| (status.mode(), status.gid()))
}

fn is_alone(group: u32) -> bool {
    trust::is_group_of_user_alone(group, rustix::process::geteuid().as_raw())
}

/// Lets those who can start a command reach the folder of its image, as far as the store's own directories prevent that; returns the reason
/// if others do.
fn out_of_reach(users: Users, folder: &Folder, store: &Store, name: &str) -> Option<Failure> {
    if users == Users::Owner {
        return None;
    }
    let own: Vec<&Path> = folder.path().ancestors().take_while(|path| path.starts_with(store.data())).collect();
    own.iter().for_each(|directory| drop(fs::set_permissions(directory, Permissions::from_mode(ENTERED))));
    let blocked = folder.path().ancestors().find(|path| entered_by(path).0 & 0o001 == 0)?;
    Some(Failure::refusal(format!(
        "other users can start {name}, too, but could not reach its image: only the owner may enter {}. {REMEDY}, or name a store that \
         all users can reach (SNAPBOOT_STORE=/var/lib/snapboot).",
        blocked.display()
    )))
}

/// While it lives, this process is in a folder in which no start is made; then it returns.
///
/// A tool is started anywhere, and an image made in a folder above its environment may depend on that folder. A program of the current
/// folder, such as an application's own script, is started there.
struct Elsewhere(Option<PathBuf>);

impl Elsewhere {
    fn go(store: &Store, program: &Path) -> Result<Elsewhere> {
        let here = std::env::current_dir().ok();
        let is_below = here.as_ref().is_some_and(|here| program.starts_with(here));
        let folder = program.parent().unwrap_or(Path::new("/"));
        // The folder in which a virtual environment, or any other installation, has its commands.
        let is_tool = folder.file_name().is_some_and(|name| name == "bin")
            && (folder.with_file_name("pyvenv.cfg").exists()
                || std::env::split_paths(&search_path()).any(|it| it == folder));
        if is_below && !is_tool {
            return Ok(Elsewhere(None));
        }
        let empty = store.empty();
        location::make(&empty)?;
        std::env::set_current_dir(&empty).map_err(|error| Failure::io("enter", &empty, &error))?;
        Ok(Elsewhere(here))
    }
}

impl Drop for Elsewhere {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            let _ = std::env::set_current_dir(before);
        }
    }
}

/// Gives a command a second name in a folder beside it.
fn keep_beside(command: &Path) -> Result<PathBuf> {
    let cannot = |error: std::io::Error| Failure::io("keep a copy of", command, &error);
    if command.is_symlink() {
        return Err(Failure::refusal(format!(
            "{} is a link to {}: an image goes in the place of a file. Name that file, or install without --in-place.",
            command.display(),
            fs::read_link(command).map_err(cannot)?.display()
        )));
    }
    if let Some(by) = own_place::finding_by_place(command)? {
        return Err(Failure::refusal(format!(
            "{} finds other files by its own place ({by}), and would not find them from the folder {KEPT}, in which an image in its place \
             keeps it. Install it without --in-place: then it stays where it is.",
            command.display()
        )));
    }
    let folder = command.parent().unwrap_or(Path::new("/")).join(KEPT);
    let kept = folder.join(command.file_name().unwrap_or_default());
    fs::create_dir_all(&folder).map_err(cannot)?;
    // An upgrade has replaced an earlier image's link with a new command.
    fs::remove_file(&kept).or_else(missing_is_fine).map_err(cannot)?;
    fs::hard_link(command, &kept).or_else(|_| fs::copy(command, &kept).map(|_| ())).map_err(cannot)?;
    Ok(kept)
}

/// Replaces a link or anything else with a link, atomically.
fn replace_by_link(link: &Path, target: &Path) -> Result<()> {
    let mut new = link.as_os_str().to_owned();
    new.push(format!(".snapboot-{}", std::process::id()));
    let new = PathBuf::from(new);
    let made = symlink(target, &new).and_then(|()| fs::rename(&new, link));
    made.map_err(|error| {
        let _ = fs::remove_file(&new);
        Failure::io("write", link, &error)
    })
}

/// Uninstalls a command: everything is as it was before. `named`: its name, or the path of its link.
///
/// Fails if none of that name is installed.
pub fn uninstall(store: &Store, named: &OsStr) -> Result<Installed> {
    let is_it =
        |installed: &Installed| installed.name.as_bytes() == named.as_bytes() || installed.link == Path::new(named);
    let Some((installed, folder)) = all(store).into_iter().find(|(installed, _)| is_it(installed)) else {
        return Err(Failure::refusal(format!("{} is not installed: snapboot list shows what is.", named.display())));
    };
    installed.take_away(&folder)?;
    eviction::remove_in_any_case(&folder);
    Ok(installed)
}

/// What a start by the link of an installed command does while the command itself is gone. None while it exists, or if none was installed.
pub fn dormant(folder: &Folder) -> Option<Dormant> {
    let installed = Installed::load(folder).filter(Installed::is_dormant)?;
    let links = installed.link.parent().unwrap_or(Path::new("/"));
    let other = locate(OsStr::new(&installed.name), &path_without(links)).ok();
    Some(Dormant { installed, other })
}

/// An installed command that is gone. Its link and its image stay, since it may come back.
pub struct Dormant {
    /// Where it was.
    pub installed: Installed,
    /// Which other program has its name.
    pub other: Option<PathBuf>,
}
