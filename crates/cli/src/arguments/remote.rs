//! The command line of `snapboot remote`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueHint};

/// Share images with other machines, through a store that all of them reach.
///
/// SNAPBOOT_REMOTE names the store: a directory (`file:///mnt/snapboot`) or a bucket (`s3://BUCKET/PREFIX?region=REGION`, also gcs, azblob, redis,
/// webdav, ghac). Where it is set, the store of `snapboot run` looks there before it makes an image, and gives what it has made. No start waits for that.
/// So do `snapboot install` and `snapboot freeze`.
///
/// Machines that push need a secret key (SNAPBOOT_REMOTE_SECRET_KEY, or SNAPBOOT_REMOTE_SIGN_COMMAND, a command that signs its standard input), and
/// machines that pull the public one (SNAPBOOT_REMOTE_KEYS), but for a directory that nobody but you and root can write to. Credentials are those that the storage's own tools use.
#[derive(Debug, Args)]
pub struct Remote {
    #[command(subcommand)]
    pub action: RemoteAction,
}

#[derive(Debug, clap::Subcommand)]
pub enum RemoteAction {
    Push(RemotePush),
    Pull(RemotePull),
    List(RemoteList),
    Verify(RemoteVerify),
    Prune(RemotePrune),
    Key(RemoteKey),
}

/// Give images to the remote store.
///
/// An image that may hold a secret stays here, and the message says why.
///
/// Exit status: 0 when all were pushed, else that of the last one that was not: 1 for a failure of the remote store, 2 for an image that stays here.
#[derive(Debug, Args)]
pub struct RemotePush {
    /// Images of the store, by their paths. Default: all.
    #[arg(value_name = "IMAGE")]
    pub images: Vec<PathBuf>,
}

/// Take the image of a command from the remote store, if one fits here.
///
/// Exit status: 0 when an image was taken, 1 when none fits, which the message explains.
#[derive(Debug, Args)]
#[command(override_usage = "snapboot remote pull -- COMMAND [ARG...]")]
pub struct RemotePull {
    /// The command, as for `snapboot run`.
    #[arg(value_names = ["COMMAND", "ARG"], required = true, num_args = 1.., trailing_var_arg = true, allow_hyphen_values = true,
          value_hint = ValueHint::CommandWithArguments)]
    pub command: Vec<OsString>,
}

/// Show the images of the remote store, and those that are not believed, with the reason.
#[derive(Debug, Args)]
pub struct RemoteList {
    /// Print JSON: for each image path, usable, why, name, runtime, created (seconds since 1970), size (bytes). Default: a line for each.
    #[arg(long)]
    pub json: bool,
}

/// Read all images of the remote store, and compare every chunk with its digest.
///
/// Exit status: 0 when all are whole and signed by a known key, 1 when one is not (and what is wrong).
#[derive(Debug, Args)]
pub struct RemoteVerify {}

/// Remove images from the remote store, and what no image needs any more.
///
/// Default: images that nobody has pushed or taken for 30 days. Chunks go a day after the last image that needs them. Safe at any time: a machine that
/// misses a part of an image makes its own.
#[derive(Debug, Args)]
pub struct RemotePrune {
    /// Remove images that were pushed longer ago, as in 12h or 30d.
    #[arg(long, value_name = "AGE", value_parser = image_file::rotation::parse_duration)]
    pub older_than: Option<Duration>,

    /// Remove images that nobody has pushed or taken for so long, as in 12h or 30d.
    #[arg(long, value_name = "AGE", value_parser = image_file::rotation::parse_duration)]
    pub unused_for: Option<Duration>,

    /// Remove the images that were used longest ago, until the others have this size together, as in 500M or 20G.
    #[arg(long, value_name = "SIZE", value_parser = store::eviction::parse)]
    pub max_size: Option<u64>,
}

impl RemotePrune {
    /// Whether nothing says what goes.
    pub fn has_no_limit(&self) -> bool {
        self.older_than.is_none() && self.unused_for.is_none() && self.max_size.is_none()
    }
}

/// Make a pair of keys: the secret one in FILE, the public one in FILE.pub.
///
/// OpenSSL makes the same: `openssl genpkey -algorithm ed25519 -out FILE`, `openssl pkey -in FILE -pubout -out FILE.pub`.
#[derive(Debug, Args)]
pub struct RemoteKey {
    /// Where the secret key goes. Nothing is overwritten.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}
