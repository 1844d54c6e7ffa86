//! Bad input: each gets exit status 2, a message with the remedy, and changes nothing.

mod support;

use std::process::Command;
use support::{elf, stderr, Scene};

#[test]
fn what_cannot_be_frozen_is_refused_with_the_reason() {
    let scene = Scene::new();
    for (name, content) in [
        ("python-static", elf(62, "")),
        ("python-arm", elf(183, "")),
        ("python-musl", elf(62, "/lib/ld-musl-x86_64.so.1")),
        ("tool.sh", b"#!/bin/sh\necho\n".to_vec()),
        ("gone.py", b"#!/nowhere/python3\n".to_vec()),
        ("text", b"print(1)\n".to_vec()),
    ] {
        scene.write(name, content, 0o755);
    }
    scene.write("app.py", "print(1)\n", 0o644);
    std::fs::create_dir(scene.work().join("directory")).unwrap();
    let before = scene.listing();
    let cases: [(&[&str], &str); 20] = [
        (&["--", "no-such-command"], "in no directory of PATH"),
        (&["--", "app.py"], "write ./app.py"),
        (&["--", "./app.py"], "not executable"),
        (&["--", "./missing.py"], "no such file"),
        (&["--", "./directory"], "is a directory"),
        (&["--", ""], "empty string"),
        (&["--", "/bin/ls"], "neither Python nor Ruby"),
        (&["--", "/bin/sh"], "is a shell"),
        (&["--", "./tool.sh"], "is a shell script"),
        (&["--", "./text"], "neither a program nor a script"),
        (&["--", "./gone.py"], "first line of ./gone.py"),
        (&["--", "./python-static"], "is a static binary"),
        (&["--", "./python-arm"], "not yet"),
        (&["--", "./python-musl"], "linked against musl"),
        (&["--", "env", "A=1", "python3"], "--env NAME"),
        (&["--", "python3", "missing.py"], "cannot read the script missing.py"),
        (&["--", "python3", "-V"], "option -V"),
        (&["--env", "A=1", "--", "python3"], "--env takes the name"),
        (&["-o", "directory", "--", "python3"], "names the directory"),
        (&["-o", "no/where.img", "--", "python3"], "there is no directory"),
    ];
    for (words, expected) in cases {
        let output = scene.snapboot(&[&["freeze"], words].concat()).output().unwrap();
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {said}");
        assert!(said.starts_with("snapboot: ") && said.contains(expected), "{words:?}: {said}");
        assert_eq!(scene.listing(), before, "{words:?}");
    }
}

#[test]
fn the_command_itself_is_not_overwritten() {
    let scene = Scene::new();
    let script = scene.write("app.py", "print(1)\n", 0o644);
    let output = scene.snapboot(&["freeze", "-o", "app.py", "--", "python3", "app.py"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("a part of the command itself"), "{}", stderr(&output));
    assert_eq!(std::fs::read_to_string(script).unwrap(), "print(1)\n");
}

#[test]
fn mistakes_in_the_arguments_end_with_status_2() {
    let scene = Scene::new();
    for words in [
        &["freeze"][..],
        &["freeze", "--nope", "--", "python3"],
        &["nope"],
        &[],
        &["time"],
        &["time", "-n", "0", "true"],
        &["inspect"],
        &["inspect", "missing.img"],
        &["verify", "missing.img"],
    ] {
        let output = scene.snapboot(words).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{words:?}: {}", stderr(&output));
    }
}

#[test]
fn what_cannot_be_run_ends_as_in_a_shell() {
    let scene = Scene::new();
    for (word, status) in [("missing.img", 127), ("./missing.img", 127), ("./.", 126)] {
        let output = scene.snapboot(&["run", word]).output().unwrap();
        assert_eq!(output.status.code(), Some(status), "{word}: {}", stderr(&output));
    }
}

#[test]
fn a_missing_part_of_the_installation_is_named() {
    let scene = Scene::new();
    std::fs::remove_file(scene.path("libexec/snapboot/libsnapboot_freezer.so")).unwrap();
    let output = scene.freeze("written").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("this installation is not whole"), "{}", stderr(&output));
    assert!(scene.listing().is_empty());
}

#[test]
fn a_full_disk_leaves_what_was_there_before() {
    let scene = Scene::new();
    // Only a user who may mount can make a small disk.
    let script = "mount -t tmpfs -o size=20k none . && cd \"$PWD\" && printf old > x && \
                  \"$0\" freeze -o out.img --preload written -- python3; echo status $?; ls -A; cat x";
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", script]).arg(scene.path("bin/snapboot")).current_dir(scene.work());
    let output = command.output().unwrap();
    let said = stderr(&output);
    if said.contains("unshare") || said.contains("mount:") {
        eprintln!("not tried: cannot mount here: {said}");
        return;
    }
    assert!(said.contains("The disk (or the quota) is full"), "{said}");
    assert_eq!(support::stdout(&output), "status 2\nx\nold");
}

#[test]
fn files_that_are_no_images_are_told_apart_from_damaged_ones() {
    let scene = Scene::new();
    scene.write("text", "hello", 0o644);
    for words in [["verify", "text"], ["inspect", "text"]] {
        let output = scene.snapboot(&words).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        assert!(stderr(&output).contains("not an image"), "{}", stderr(&output));
    }
}
