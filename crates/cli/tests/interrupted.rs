//! An interrupted freeze: no half image under the final name, and no leftovers that are never cleaned.

mod support;

use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;

use rustix::process::{kill_process, Pid, Signal};
use support::{stderr, Scene};

const OLD: &[u8] = b"";

/// The control directories in the working directory.
fn control_dirs(scene: &Scene) -> Vec<String> {
    scene.listing().into_iter().filter(|name| name.contains(".freezing-")).collect()
}

#[test]
fn killed_at_every_fault_point_it_leaves_only_its_control_directory() {
    let before =
        ["after-control-dir", "after-request", "after-dump", "before-head", "before-magic", "before-rehearsal"];
    let between = ["before-pages", "before-sync", "before-rename"];
    let renamed = ["before-directory-sync", "after-rename"];
    let scene = Scene::new();
    for point in before.into_iter().chain(between).chain(renamed) {
        scene.write("out.img", OLD, 0o755);
        let output = scene.freeze("written").env("SNAPBOOT_FAULT", point).output().unwrap();
        assert_eq!(output.status.signal(), Some(9), "{point}: {}", stderr(&output));
        let size = scene.work().join("out.img").metadata().unwrap().len();
        assert_eq!(size > 0, renamed.contains(&point), "{point}: {size} bytes");
        assert_eq!(control_dirs(&scene).len(), 1, "{point}: {:?}", scene.listing());
        // The directory is young, but its freeze is gone: the next freeze removes it.
        let output = scene.freeze("written").output().unwrap();
        assert!(output.status.success(), "{point}: {}", stderr(&output));
        assert_eq!(scene.listing(), ["out.img"], "{point}");
    }
}

#[test]
fn a_signal_ends_the_program_and_removes_everything() {
    for (signal, number) in [(Signal::INT, 2), (Signal::TERM, 15), (Signal::HUP, 1)] {
        let scene = Scene::new();
        let mut child = scene.freeze("hang").stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        said.read_line(&mut line).unwrap();
        assert_eq!(line, "waiting\n");
        assert_eq!(control_dirs(&scene).len(), 1);
        kill_process(Pid::from_child(&child), signal).unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(number));
        assert!(scene.listing().is_empty(), "{:?}", scene.listing());
        // The runtime is gone too: nobody holds its standard error any more.
        line.clear();
        assert_eq!(said.read_line(&mut line).unwrap(), 0, "{line}");
    }
}

#[test]
fn two_freezes_of_one_output_do_not_disturb_each_other() {
    let scene = Scene::new();
    let mut first = scene.freeze("hang").stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(first.stderr.take().unwrap()).read_line(&mut line).unwrap();
    assert!(scene.freeze("written").status().unwrap().success());
    assert_eq!(control_dirs(&scene).len(), 1, "the first one goes on");
    kill_process(Pid::from_child(&first), Signal::TERM).unwrap();
    first.wait().unwrap();
    assert_eq!(scene.listing(), ["out.img"]);
}
