//! What is to be frozen, and how.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use image_file::info::Origin;
use inputs::cpu::Level;
use installation::Installation;
use runtime::terminal::Terminal;

/// What is to be frozen, and how.
pub struct FreezeRequest {
    /// The program to boot and its first arguments, as a user types them; at least one word.
    pub command: Vec<OsString>,
    /// Where the image goes; None: NAME.img in the current directory, after the script or the command.
    pub output: Option<PathBuf>,
    /// Modules or features to load before the freeze point, none of them empty.
    pub preloads: Vec<String>,
    /// Whether a framework's recipe adds what to load, where there are no preloads.
    pub recipes: bool,
    /// From which runs it is learnt what else to load.
    pub training: Training,
    /// Names and patterns of variables that the boot sees and that count.
    pub environment: Vec<String>,
    /// Names and patterns of variables that are kept from the boot.
    pub withheld: Vec<String>,
    /// How starts check files: one of [`image::policy`].
    pub policy: u32,
    /// Whether starts check the data pages.
    pub check_pages: bool,
    /// On which CPUs the image thaws.
    pub cpu: Cpu,
    /// How many times the program is booted, each start continuing one of them: 1 to [`image::MAX_VARIANTS`].
    pub variants: u32,
    /// How long the image may be used; None: for ever.
    pub max_age: Option<Duration>,
    /// How many thaws it may be used for; None: any number.
    pub max_thaws: Option<u64>,
    /// Arguments that force the fallback, besides those that recipes name.
    pub guards: Vec<OsString>,
    /// What makes the same image again; None where that cannot be written down.
    pub origin: Option<Origin>,
    /// For an image of a store; None for an image that is in none.
    pub store: Option<InStore>,
    /// Where Snapboot's own files are.
    pub installation: Installation,
}

impl FreezeRequest {
    /// A freeze of `command` (at least one word) into `output`, in a way that nobody has chosen: what `snapboot freeze` does without
    /// options, but for the origin.
    pub fn new(command: Vec<OsString>, output: PathBuf, installation: Installation) -> FreezeRequest {
        FreezeRequest {
            command,
            output: Some(output),
            preloads: Vec::new(),
            recipes: true,
            training: Training::Default,
            environment: Vec::new(),
            withheld: Vec::new(),
            policy: image::policy::CHECK,
            check_pages: false,
            cpu: Cpu::Native,
            variants: 1,
            max_age: None,
            max_thaws: None,
            guards: Vec::new(),
            origin: None,
            store: None,
            installation,
        }
    }
}

/// What makes an image one of a store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InStore {
    /// What a start executes where it cannot use the image: see [`image::Command::store_words`].
    pub on_fallback: Vec<OsString>,
    /// The file in which thawed starts tell what else they load; see docs/internals/protocol.md.
    pub profile: PathBuf,
    /// What a start executes when it has told something new.
    pub on_news: Vec<OsString>,
    /// The terminal of the starts that it is for; None: of those that have none.
    pub terminal: Option<Terminal>,
    /// How many modules or features were learnt for the last image that lacked nothing.
    pub knows: usize,
    /// Whether an image will do that lacks something for a reason that need not last.
    pub makes_do: bool,
    /// How long an image may be used that lacks something: then it is made again.
    pub lesser_age: Duration,
    /// What is left to each start, with what loads it.
    pub changing: Changing,
}

/// Inputs that change from start to start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changing {
    /// Files and folders, or places where there are none.
    pub places: Vec<PathBuf>,
    /// Names of variables.
    pub variables: Vec<OsString>,
}

impl Changing {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty() && self.variables.is_empty()
    }
}

/// From which runs of the program a freeze learns what it loads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Training {
    /// `--version` and `--help` of an installed tool, what the recipe of a framework says of its own script, none of any other program.
    Default,
    /// Runs with these arguments behind the command.
    Runs(Vec<Vec<OsString>>),
    /// None.
    None,
}

/// On which CPUs an image thaws.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cpu {
    /// Those with at least the features of this one.
    Native,
    /// All that have this level, with AES and PCLMULQDQ.
    Level(Level),
}

impl Cpu {
    /// The word for it on the command line and in `snapboot inspect`.
    pub fn word(self) -> &'static str {
        match self {
            Cpu::Native => "native",
            Cpu::Level(Level::V2) => "v2",
            Cpu::Level(Level::V3) => "v3",
            Cpu::Level(Level::V4) => "v4",
        }
    }
}
