// For the build scripts of the libraries that a start with the boot archive loads.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// Links the C compiler's unwinder into the library. Rust's standard library needs it for backtraces, and asks for `libgcc_s`: mapping and
/// binding that file takes as long as loading the rest of the library. So a linker script of the same name, which the linker finds first,
/// names the archive with the same functions. If there is no such archive, the library depends on `libgcc_s` as usual.
fn link_unwinder() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=../archive/unwinder.rs");
    println!("cargo:rerun-if-env-changed=RUSTC_LINKER");
    let variable = |name: &str| env::var(name).unwrap_or_default();
    let linker = match env::var("RUSTC_LINKER") {
        Ok(linker) => linker,
        Err(_) if variable("TARGET") == variable("HOST") => "cc".to_owned(),
        Err(_) => return,
    };
    if variable("CARGO_CFG_TARGET_OS") != "linux" || variable("CARGO_CFG_TARGET_ENV") != "gnu" {
        return;
    }
    let Some(archive) = archive_of(&linker) else { return };
    let folder = variable("OUT_DIR");
    let script = format!("INPUT(\"{}\")\n", archive.display());
    fs::write(Path::new(&folder).join("libgcc_s.so"), script).expect("OUT_DIR can be written to");
    println!("cargo:rustc-link-search=native={folder}");
}

/// The path of that compiler's `libgcc_eh.a`. A compiler without one prints the name alone.
fn archive_of(linker: &str) -> Option<PathBuf> {
    let printed = Command::new(linker).arg("-print-file-name=libgcc_eh.a").output().ok()?;
    let path = PathBuf::from(String::from_utf8(printed.stdout).ok()?.trim());
    path.is_absolute().then_some(path).filter(|path| path.exists())
}
