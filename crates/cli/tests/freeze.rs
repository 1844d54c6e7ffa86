//! What the command starts, and how it handles the answers.

mod support;

use serde_json::Value;
use support::{facts, stderr, stdout, Scene};

#[test]
fn an_image_appears_with_one_line_about_it() {
    let scene = Scene::new();
    scene.write("loaded.py", "", 0o644);
    std::thread::sleep(std::time::Duration::from_millis(50));
    let output = scene.freeze("written").output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let line = stdout(&output);
    assert!(
        line.starts_with("out.img  ")
            && line.contains(" kB  ")
            && line.contains(" s  preloaded written (1 file)  thaws in "),
        "{line}"
    );
    assert_eq!(stderr(&output), "");
    assert_eq!(scene.listing(), ["loaded.py", "out.img"]);
    use std::os::unix::fs::PermissionsExt;
    let mode = scene.work().join("out.img").metadata().unwrap().permissions().mode() & 0o777;
    assert!(mode & 0o700 == 0o700 && mode & 0o022 == 0, "{mode:o}");
    // Again, over the previous image.
    assert!(scene.freeze("written").status().unwrap().success());
}

#[test]
fn the_boot_sees_the_documented_environment_and_nothing_else() {
    let scene = Scene::new();
    let mut command = scene.snapboot(&[
        "freeze",
        "--cpu",
        "native",
        "--env",
        "NAMED",
        "--preload",
        "facts",
        "--",
        "python3",
        "-Wignore",
        "-c",
        "a=1",
    ]);
    command.env("SECRET", "s").env("NAMED", "n").env("PYTHONHASHSEED", "0").env("TERM", "vt100").env("PWD", "/");
    let output = command.output().unwrap();
    let facts = facts(&output);
    let mut names: Vec<&str> = facts["env"].as_object().unwrap().keys().map(String::as_str).collect();
    names.sort();
    names.retain(|name| *name != "LC_CTYPE"); // Python's own locale coercion
    let own = ["LD_BIND_NOW", "LD_PRELOAD", "SNAPBOOT_FREEZE_DIR", "SNAPBOOT_PAD"];
    assert_eq!(names, ["HOME", "LANG", own[0], own[1], "NAMED", "PATH", "PYTHONHASHSEED", own[2], own[3]]);
    assert_eq!(facts["env"]["SNAPBOOT_PAD"].as_str().unwrap().len(), 16 * 1024);
    let request: Vec<(&str, &str)> = facts["request"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| (it[0].as_str().unwrap(), it[1].as_str().unwrap()))
        // Lists that are the same for all programs (of recipes, too), or of this start.
        .filter(|(name, _)| {
            !["attribute", "evidence", "fact", "most_files", "recipe_code", "restarted_thread"].contains(name)
        })
        .collect();
    let expected = [
        ("main", "code"),
        ("argv", "python3"),
        ("argv", "-Wignore"),
        ("argv", "-c"),
        ("argv", "a=1"),
        ("main_index", "2"),
        ("preload", "facts"),
        ("secret", "SECRET"),
    ];
    assert_eq!(request, expected);
    assert!(scene.work().join("python3.img").exists());
}

#[test]
fn the_boot_starts_with_default_signals_and_descriptors_of_its_own() {
    let scene = Scene::new();
    // Like a script that runs it in the background of nohup, with open descriptors of its own.
    let script = "trap '' INT HUP QUIT USR1; exec 4</etc/passwd 150</etc/passwd; exec \"$0\" freeze -o out.img --preload facts -- python3";
    let mut command = std::process::Command::new("bash");
    command.args(["-c", script]).arg(scene.path("bin/snapboot")).current_dir(scene.work());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let facts = facts(&output);
    // Python itself ignores SIGPIPE (13) and SIGXFSZ (25); 32 and 33 are the C library's own.
    let ignored = facts["signals"]["SigIgn"].as_u64().unwrap();
    assert_eq!(ignored & 0x7fff_ffff & !(1 << 12 | 1 << 24), 0, "{ignored:x}");
    assert_eq!(facts["signals"]["SigBlk"], 0);
    let descriptors = facts["fds"].as_object().unwrap();
    for number in 3..=99 {
        assert_eq!(descriptors[&number.to_string()], serde_json::json!(["/dev/null", true]), "{number}");
    }
    assert_eq!(descriptors["0"][0], "/dev/null");
    assert!(!descriptors.contains_key("150"), "{descriptors:?}");
}

#[test]
fn the_programs_own_failure_keeps_its_traceback() {
    let scene = Scene::new();
    for (word, said) in [
        ("raise", "ValueError: boom"),
        ("killed", "killed by SIGSEGV"),
        ("early", "ended by itself before its freeze point"),
        ("incomplete", "without having written the whole process"),
    ] {
        let output = scene.freeze(word).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{word}");
        assert!(stderr(&output).contains(said), "{word}: {}", stderr(&output));
        assert!(stderr(&output).contains("\nsnapboot: ") || stderr(&output).starts_with("snapboot: "), "{word}");
        assert!(scene.listing().is_empty(), "{word}: {:?}", scene.listing());
    }
}

#[test]
fn a_mistake_that_the_front_end_found_is_the_users() {
    let scene = Scene::new();
    let output = scene.freeze("mistake").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(stderr(&output), "snapboot: there is no module called nope. Check the spelling.\n");
}

#[test]
fn a_refusal_lists_all_findings_and_where_descriptors_were_opened() {
    let scene = Scene::new();
    let output = scene.freeze("refused").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(
        stderr(&output),
        "snapboot: cannot freeze: descriptor 7 is a socket, opened by redis/connection.py:559. Close it.\n\
         snapboot: cannot freeze: a timer runs.\n"
    );
    assert!(scene.listing().is_empty());
}

#[test]
fn an_edit_during_the_freeze_makes_it_void() {
    let scene = Scene::new();
    scene.write("loaded.py", "", 0o644);
    scene.write("out.img", "", 0o755);
    let output = scene.freeze("edited").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("loaded.py changed"), "{}", stderr(&output));
    assert_eq!(scene.work().join("out.img").metadata().unwrap().len(), 0, "what was there before stays");
    assert_eq!(scene.listing(), ["loaded.py", "out.img"]);
}

#[test]
fn warnings_and_notes_are_shown_and_do_not_stop_a_freeze() {
    let scene = Scene::new();
    let output = scene.freeze("noted").output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(stderr(&output), "snapboot: warning: watch out\nsnapboot: warning: thread timer is dropped\n");
}

#[test]
fn a_shim_is_noted_once_and_is_no_warning() {
    let scene = Scene::new();
    let manager = scene.write("manager", "#!/bin/sh\ncommand -v \"$2\"\n", 0o755);
    let shim = format!("#!/bin/sh\nexec \"{}\" exec \"$program\" \"$@\"\n", manager.display());
    scene.write("python3", shim, 0o755);
    let freeze = || scene.snapboot(&["freeze", "-o", "out.img", "--preload", "written", "--", "./python3"]).output();
    let first = freeze().unwrap();
    assert!(first.status.success(), "{}", stderr(&first));
    assert!(
        stderr(&first).starts_with(
            "snapboot: note: ./python3 is a shim; the image always starts the program that the shim leads to"
        ),
        "{}",
        stderr(&first)
    );
    assert_eq!(stderr(&freeze().unwrap()), "");
    let inspected = scene.snapboot(&["inspect", "--json", "out.img"]).output().unwrap();
    let info: Value = serde_json::from_slice(&inspected.stdout).unwrap();
    assert!(info["notes"][0].as_str().unwrap().contains("is a shim"), "{info}");
    assert_eq!(info["warnings"], serde_json::json!([]));
}

#[test]
fn options_behind_the_command_are_hinted_at() {
    let scene = Scene::new();
    let output = scene.snapboot(&["freeze", "python3", "--preload", "written"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = stderr(&output);
    assert!(said.contains("own options come first: snapboot freeze --preload ... -- python3"), "{said}");
    assert!(said.contains("Python's option --preload"), "{said}");
    assert_eq!(
        scene.snapboot(&["freeze", "--preload", "a,,b", "--", "python3"]).output().unwrap().status.code(),
        Some(2)
    );
}
