//! Links the launcher without libc or start files, at the fixed place that `launcher.ld` describes.

use std::env;

fn main() {
    let directory = env::var("CARGO_MANIFEST_DIR").unwrap();
    println!("cargo:rerun-if-changed=launcher.ld");
    for argument in [
        "-nostartfiles",
        "-nostdlib",
        "-static",
        "-no-pie",
        "-Wl,--build-id=none",
        "-Wl,-z,max-page-size=4096",
        "-Wl,-z,norelro",
    ] {
        println!("cargo:rustc-link-arg-bins={argument}");
    }
    println!("cargo:rustc-link-arg-bins=-Wl,-T,{directory}/launcher.ld");
}
