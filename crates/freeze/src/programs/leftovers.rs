//! Folders, files and sockets that a boot creates and that still exist at the freeze point. All starts of the image
//! would share them, and the first that removes them at its end takes them from all later ones.
//!
//! A path in a directory for temporary files is meant for one start. Elsewhere it may be a cache that all starts share.
//! The next boot tells: it either creates the path again, or finds it.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fmt;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use judge::entries::Entries;
use judge::environment::Environment;
use judge::findings::Finding;
use recorder::{Accesses, PathAccess, State};

use crate::control_dir::ControlDir;

const TEMPORARY: [&str; 6] = ["/tmp", "/var/tmp", "/dev/shm", "/run", "/run/lock", "/run/user"];
/// Variables that name a further such directory.
const NAMED_BY: [&str; 4] = ["TMPDIR", "TEMP", "TMP", "XDG_RUNTIME_DIR"];

const REMEDY: &str = "every start of the image would use this one, and the first to remove it takes it from the others; make it in each \
    start, with snapboot.defer (Python) or Snapboot.defer (Ruby), or remove it in a before_freeze hook. If a library makes it, leave \
    that library to the main part: do not preload it";

/// A path that a boot has left behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    pub path: PathBuf,
    /// Its kind, in a word.
    kind: &'static str,
}

/// The outermost paths that the boot created and that still exist. Compiled code does not count: any start would find
/// it.
pub fn find(accesses: &Accesses, dir: &ControlDir) -> Vec<Left> {
    let is_left = |(path, access): &(&PathBuf, &PathAccess)| {
        access.made && access.state == State::Absent && path.symlink_metadata().is_ok() && !path.starts_with(dir.path())
    };
    let places: BTreeSet<&PathBuf> = accesses.places.iter().filter(is_left).map(|(path, _)| path).collect();
    let is_outermost = |path: &&&PathBuf| !path.ancestors().skip(1).any(|above| places.contains(&above.to_owned()));
    places
        .iter()
        .filter(is_outermost)
        .filter(|path| !is_bytecode(path))
        .map(|path| Left { path: path.to_path_buf(), kind: kind(path) })
        .collect()
}

fn kind(path: &Path) -> &'static str {
    match path.symlink_metadata().map(|metadata| metadata.file_type()) {
        Ok(kind) if kind.is_dir() => "folder",
        Ok(kind) if kind.is_socket() => "socket",
        Ok(kind) if kind.is_symlink() => "link",
        _ => "file",
    }
}

fn is_bytecode(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str() == "__pycache__") || path.extension() == Some(OsStr::new("pyc"))
}

/// The directories for temporary files that the boot sees.
pub struct Temporary(Vec<PathBuf>);

impl Temporary {
    pub fn new(environment: &Environment) -> Temporary {
        let named =
            NAMED_BY.iter().filter_map(|name| environment.value(name)).map(Path::new).filter(|it| it.is_absolute());
        // Accesses are recorded with links resolved.
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        Temporary(TEMPORARY.iter().map(Path::new).chain(named).map(real).collect())
    }

    /// Whether the path is meant for one start.
    pub fn is_for_one_start(&self, left: &Left) -> bool {
        left.path.parent().is_some_and(|folder| self.contains(folder))
    }

    /// Whether this is one of these directories.
    pub fn contains(&self, folder: &Path) -> bool {
        self.0.iter().any(|it| it == folder) || folder.parent() == Some(Path::new("/run/user"))
    }
}

/// The findings about paths that were left behind. `dir` has the report of another boot, which recorded where in the
/// program things are created, and left `others` behind. Other processes may have created things there meanwhile.
pub fn findings(left: &[Left], others: &[Left], dir: &ControlDir) -> Vec<Finding> {
    let report = Entries::read(&dir.file("report")).unwrap_or_default();
    let mut origins: Vec<Origin> = report.all("made_origin").filter_map(Origin::parse).collect();
    origins.retain(|origin| left.iter().chain(others).any(|left| left.path == origin.path));
    left.iter().map(|left| finding(left, Origin::take(&mut origins, &left.path))).collect()
}

fn finding(left: &Left, origin: Option<Origin>) -> Finding {
    let place = origin.map_or_else(|| "the program".to_owned(), |origin| origin.place);
    let (kind, path) = (left.kind, left.path.display());
    let text = format!("{place} makes the {kind} {path} while it boots, and it is still there; {REMEDY}");
    Finding::new("made", text)
}

/// Where in the program something was created: `PATH:FILE:LINE`.
struct Origin {
    path: PathBuf,
    place: String,
}

impl Origin {
    fn parse(entry: &OsStr) -> Option<Origin> {
        let mut parts = entry.as_bytes().rsplitn(3, |&byte| byte == b':');
        let (line, file, path) = (parts.next()?, parts.next()?, parts.next()?);
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        Some(Origin { path: OsStr::from_bytes(path).into(), place: format!("{}:{}", text(file), text(line)) })
    }

    /// The origin of a path, or of one with another name in another boot that was created in the same folder.
    fn take(origins: &mut Vec<Origin>, path: &Path) -> Option<Origin> {
        let same = origins.iter().position(|origin| origin.path == path);
        let index = same.or_else(|| origins.iter().position(|origin| origin.path.parent() == path.parent()))?;
        Some(origins.remove(index))
    }
}

/// Removes what fruitless boots left in directories for temporary files, if nothing is lost: empty folders, sockets,
/// links and empty files.
pub fn clean_up(left: &[Left], temporary: &Temporary) {
    for Left { path, .. } in left.iter().filter(|left| temporary.is_for_one_start(left)) {
        let Ok(metadata) = path.symlink_metadata() else { continue };
        // What cannot be removed stays.
        let _ = match metadata.file_type() {
            kind if kind.is_dir() => fs::remove_dir(path),
            kind if kind.is_socket() || kind.is_symlink() || kind.is_file() && metadata.len() == 0 => {
                fs::remove_file(path)
            }
            _ => Ok(()),
        };
    }
}

/// Paths that fruitless boots have made and that still exist; at least one.
pub struct StillThere(Vec<Left>);

impl fmt::Display for StillThere {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// Maximum of paths to name.
        const MAX: usize = 5;
        let StillThere(made) = self;
        let names: Vec<String> =
            made.iter().take(MAX).map(|it| format!("the {} {}", it.kind, it.path.display())).collect();
        let more = if made.len() > MAX { format!(" and {} more", made.len() - MAX) } else { String::new() };
        write!(
            f,
            "the boot of this freeze has made {}{more}, and nothing removes that now; remove what an ordinary start would not leave",
            names.join(", ")
        )
    }
}

/// The paths that fruitless boots have `made` and that still exist, except those in findings.
pub fn still_there(mut made: Vec<Left>, findings: &[Finding]) -> Option<StillThere> {
    made.sort_by(|one, other| one.path.cmp(&other.path));
    // A path that a later boot created in a folder of an earlier one goes with that folder.
    made.dedup_by(|next, one| next.path.starts_with(&one.path));
    made.retain(|it| it.path.symlink_metadata().is_ok());
    made.retain(|it| !findings.iter().any(|finding| finding.text.contains(&format!(" {} ", it.path.display()))));
    (!made.is_empty()).then_some(StillThere(made))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_outermost_of_what_is_still_there_is_left() {
        let top = tempfile::tempdir().unwrap();
        let dir = ControlDir::create(&top.path().join("app.img")).unwrap();
        let made = ["d/inner/file", "x", "__pycache__/a.pyc", "gone"].map(|name| top.path().join(name));
        for path in &made[..3] {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        let mut accesses = Accesses::default();
        let folders =
            [top.path().join("d"), top.path().join("d/inner"), top.path().join("__pycache__"), dir.file("image")];
        for path in made.iter().chain(&folders) {
            accesses
                .places
                .insert(path.clone(), PathAccess { made: true, state: State::Absent, ..PathAccess::default() });
        }
        accesses.places.insert(
            top.path().join("was"),
            PathAccess { made: true, state: State::Directory, ..PathAccess::default() },
        );
        let found: Vec<(PathBuf, &str)> =
            find(&accesses, &dir).into_iter().map(|left| (left.path, left.kind)).collect();
        assert_eq!(found, [(top.path().join("d"), "folder"), (top.path().join("x"), "file")]);
    }

    #[test]
    fn an_origin_is_told_by_its_path_and_then_by_its_folder() {
        let parse = |text: &str| Origin::parse(OsStr::new(text)).unwrap();
        let mut origins = vec![parse("/tmp/a1:/app/x.py:3"), parse("/tmp/fixed:/app/y.py:4")];
        assert_eq!(Origin::take(&mut origins, Path::new("/tmp/fixed")).unwrap().place, "/app/y.py:4");
        assert_eq!(Origin::take(&mut origins, Path::new("/tmp/b2")).unwrap().place, "/app/x.py:3");
        assert!(Origin::take(&mut origins, Path::new("/tmp/c3")).is_none());
    }
}
