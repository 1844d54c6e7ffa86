//! What is to be frozen, and how.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::Duration;

use image_file::info::Origin;
use inputs::cpu::Level;
use installation::Installation;
use runtime::terminal::Terminal;

/// What is to be frozen, and how.
pub struct FreezeRequest {
    /// The program to boot and its first arguments, as the user types them; at least one word.
    pub command: Vec<OsString>,
    /// The image's path; by default NAME.img in the current directory, after the script or the command.
    pub output: Option<PathBuf>,
    /// Modules or features to load before the freeze point, none of them empty.
    pub preloads: Vec<String>,
    /// The function of the program where it is frozen, as `--at` names it; right before the main part if there is none.
    pub at: Option<String>,
    /// Whether a framework's recipe adds preloads, if there are none.
    pub recipes: bool,
    /// The training runs.
    pub training: Training,
    /// Names and patterns of variables that the boot sees and that count.
    pub environment: Vec<String>,
    /// Names and patterns of variables that are withheld from the boot.
    pub withheld: Vec<String>,
    /// How starts check files: one of [`image::policy`].
    pub policy: u32,
    /// Whether starts check the data pages.
    pub check_pages: bool,
    /// The CPUs on which the image thaws. None: those of level v3 if that can be, those with all features of this one otherwise.
    pub cpu: Option<Cpu>,
    /// How many times the program is booted; each start continues one of the boots: 1 to [`image::MAX_VARIANTS`].
    pub variants: u32,
    /// Maximum age of the image, if any.
    pub max_age: Option<Duration>,
    /// Maximum number of thaws, if any.
    pub max_thaws: Option<u64>,
    /// Arguments that force the fallback, in addition to those of recipes.
    pub guards: Vec<OsString>,
    /// How to make the same image again; None if that cannot be recorded.
    pub origin: Option<Origin>,
    /// The image's store, if it is in one.
    pub store: Option<InStore>,
    /// The hash seed that the image shares with other images of the program, whose memory it should resemble; None for one of its own. Those of
    /// one freeze's variants follow each other.
    pub hash_seed: Option<u32>,
    /// Where Snapboot's own files are.
    pub installation: Installation,
}

impl FreezeRequest {
    /// A freeze of `command` (at least one word) into `output` with all options at their defaults, as `snapboot freeze`
    /// does it, except for the origin.
    pub fn new(command: Vec<OsString>, output: PathBuf, installation: Installation) -> FreezeRequest {
        FreezeRequest {
            command,
            output: Some(output),
            preloads: Vec::new(),
            at: None,
            recipes: true,
            training: Training::Default,
            environment: Vec::new(),
            withheld: Vec::new(),
            policy: image::policy::CHECK,
            check_pages: false,
            cpu: None,
            variants: 1,
            max_age: None,
            max_thaws: None,
            guards: Vec::new(),
            origin: None,
            store: None,
            hash_seed: None,
            installation,
        }
    }
}

/// The settings of an image in a store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InStore {
    /// What a start executes if it cannot use the image: see [`image::Command::store_words`].
    pub on_fallback: Vec<OsString>,
    /// The file in which thawed starts report what else they load; see docs/internals/protocol.md.
    pub profile: PathBuf,
    /// What a start executes after it has reported something new.
    pub on_news: Vec<OsString>,
    /// The terminal of the starts that it serves; None for starts without one.
    pub terminal: Option<Terminal>,
    /// How many modules or features were learnt for the last complete image.
    pub knows: usize,
    /// Whether an image is acceptable that lacks something for a reason that may pass.
    pub makes_do: bool,
    /// Maximum age of such an image; then it is made again.
    pub lesser_age: Duration,
    /// What it holds.
    pub content: Content,
    /// The inputs left to each start, with the modules that load them.
    pub changing: Changing,
    /// What the folder of the image is known by: once one of them is gone, no image is put there.
    pub marks: Vec<Mark>,
}

impl InStore {
    /// Whether the folder was removed since, also if there is another one in its place.
    pub fn is_removed(&self) -> bool {
        !self.marks.iter().all(Mark::is_there)
    }
}

/// A file that its folder is known by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    path: PathBuf,
    id: (u64, u64),
}

impl Mark {
    /// `file`: the file at `path`. It has to stay open, so that no other one gets its inode number.
    pub fn new(path: PathBuf, file: &File) -> io::Result<Mark> {
        let status = file.metadata()?;
        Ok(Mark { path, id: (status.dev(), status.ino()) })
    }

    /// Whether it is still there.
    pub fn is_there(&self) -> bool {
        self.path.symlink_metadata().is_ok_and(|status| (status.dev(), status.ino()) == self.id)
    }
}

/// What an image of a store holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Content {
    /// All that a boot loads, if the program is the user's own. Of another one, such as a tool that is started in many
    /// checkouts, the files of its own.
    #[default]
    Program,
    /// Nothing that comes from the user's own files, which are edited: see own_files.rs.
    Libraries,
}

/// Inputs that change from start to start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changing {
    /// Files and folders, existing or not.
    pub places: Vec<PathBuf>,
    /// Names of variables.
    pub variables: Vec<OsString>,
}

impl Changing {
    /// Whether no single ones are known.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty() && self.variables.is_empty()
    }
}

/// The training runs from which a freeze learns what the program loads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Training {
    /// `--version` and `--help` of an installed tool, the runs of a framework's recipe, and none of any other program.
    Default,
    /// Runs with these arguments appended to the command.
    Runs(Vec<Vec<OsString>>),
    /// None.
    None,
}

/// The CPUs on which an image thaws.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cpu {
    /// Those with at least the features of this one.
    Native,
    /// All of this level, with AES and PCLMULQDQ.
    Level(Level),
}

impl Cpu {
    /// Its word on the command line and in `snapboot inspect`.
    pub fn word(self) -> &'static str {
        match self {
            Cpu::Native => "native",
            Cpu::Level(Level::V2) => "v2",
            Cpu::Level(Level::V3) => "v3",
            Cpu::Level(Level::V4) => "v4",
        }
    }
}
