//! The script's path where the user starts an image by a link with another name, as in `ln -s ~/.local/bin/black b`.
//!
//! In an ordinary start through such a link, `sys.argv[0]`, `$0`, usage texts and comm show the link's name. But a program also asks
//! where that name leads, to find what lies beside it, and here it leads to the image. So the script is called by a link of that name
//! that leads to it, in a folder beside the image.

use crate::image_file::ImageFile;
use crate::start::{without_nul, Start};
use crate::sys;
use crate::text::Text;

/// A path with its NUL.
pub type Path = Text<1024>;

/// Beside the image.
const FOLDER: &[u8] = b"/names";

/// By which path the script is to be called; None where the image was started by its own name, or such a path cannot be made.
pub fn path(start: &Start, image: &ImageFile) -> Option<Path> {
    let script = image.command.argv().last().filter(|script| script.first() == Some(&b'/'))?;
    let executed = start.executed().filter(|path| name(path) != name(script))?;
    let is_installed = image.command.store_count() > 0 && image.own_arguments == 1;
    if !is_installed || sys::read_link(executed, &mut [0]).is_err() {
        return None;
    }
    let mut own = [0; 1024];
    let size = sys::read_link(b"/proc/self/exe\0", &mut own).ok()?;
    let end = own[..size].iter().rposition(|&byte| byte == b'/')?;
    let of = |parts: &[&[u8]]| {
        let mut path = Path::new();
        parts.iter().for_each(|part| path.push(part));
        path.complete().is_some().then_some(path)
    };
    let folder = of(&[&own[..end], FOLDER, b"\0"])?;
    let path = of(&[&own[..end], FOLDER, b"/", name(executed)])?;
    let leads_there = || match (sys::stat(None, path.bytes()), sys::stat(None, script)) {
        (Ok(found), Ok(script)) => (found.device, found.inode) == (script.device, script.inode),
        _ => false,
    };
    if !leads_there() {
        sys::make_folder(folder.bytes(), 0o700);
        sys::unlink(path.bytes());
        sys::link(script, path.bytes());
    }
    leads_there().then_some(path)
}

/// The name that the kernel gives a process which executes this path (with its NUL).
pub fn comm(path: &[u8]) -> [u8; 16] {
    let mut comm = [0; 16];
    without_nul(name(path)).iter().take(15).enumerate().for_each(|(index, byte)| comm[index] = *byte);
    comm
}

/// The last part of a path.
fn name(path: &[u8]) -> &[u8] {
    path.rsplit(|&byte| byte == b'/').next().unwrap_or(path)
}
