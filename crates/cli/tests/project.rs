//! Settings of a project for its freeze, and how a freeze is reported.

mod support;

use std::fs;
use std::os::unix::fs::{chown, PermissionsExt};
use std::process::Output;

use serde_json::Value;
use support::{facts, stderr, stdout, Scene};

/// A repository with a file, and with a folder `sub` in it.
fn project(name: &str, text: &str) -> Scene {
    let scene = Scene::new();
    fs::create_dir(scene.work().join(".git")).unwrap();
    fs::create_dir(scene.work().join("sub")).unwrap();
    scene.write("app.py", "", 0o644);
    scene.write(name, text, 0o644);
    scene
}

/// `snapboot` in that folder.
fn in_sub(scene: &Scene, words: &[&str]) -> Output {
    scene.snapboot(words).current_dir(scene.work().join("sub")).output().unwrap()
}

/// The request to the boot, in one line.
fn request(output: &Output) -> String {
    let facts = facts(output);
    let entries = facts["request"].as_array().unwrap().iter();
    // Facts of this start and of the CPU belong to no project, and recipes to all.
    let others = ["boot_only", "evidence", "fact", "most_files", "recipe_code", "restarted_thread"];
    let entries = entries.filter(|it| !others.iter().any(|key| it[0] == *key));
    entries.map(|it| format!("{}={}", it[0].as_str().unwrap(), it[1].as_str().unwrap())).collect::<Vec<_>>().join(" ")
}

const SETTINGS: &str =
    "command = 'python3 app.py'\noutput = 'app.img'\npreload = ['facts', 'other']\npolicy = 'content'\n";

#[test]
fn a_freeze_without_a_command_does_what_the_project_says() {
    for (name, head) in [("snapboot.toml", ""), ("pyproject.toml", "[project]\nname = 'x'\n[tool.snapboot]\n")] {
        let scene = project(name, &format!("{head}{SETTINGS}"));
        let output = in_sub(&scene, &["freeze"]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert!(request(&output).contains("argv=python3 argv=app.py "), "{}", request(&output));
        assert!(request(&output).ends_with("preload=facts preload=other"), "{}", request(&output));
        assert_eq!(facts(&output)["cwd"], scene.work().to_str().unwrap());
        let told = format!("snapboot: note: freezing as {} says\n", scene.work().join(name).display());
        assert!(stderr(&output).starts_with(&told), "{}", stderr(&output));
        assert!(stdout(&output).starts_with(scene.work().join("app.img").to_str().unwrap()), "{}", stdout(&output));
        let info = scene.snapboot(&["inspect", "--json", "app.img"]).output().unwrap();
        let info: Value = serde_json::from_slice(&info.stdout).unwrap();
        assert_eq!(
            info["origin"]["options"],
            serde_json::json!(["--preload=facts", "--preload=other", "--policy=content"])
        );
        assert_eq!(info["origin"]["directory"], scene.work().to_str().unwrap());
        // Refreezing uses the words in the image, and not the file's present contents.
        scene.write(name, format!("{head}broken = 1"), 0o644);
        let again = in_sub(&scene, &["refreeze", "../app.img"]);
        assert_eq!(again.status.code(), Some(0), "{}", stderr(&again));
    }
}

#[test]
fn an_option_takes_the_place_of_its_key() {
    let scene = project("snapboot.toml", &format!("{SETTINGS}train = 'x'\n"));
    let output = in_sub(&scene, &["freeze", "-o", "own.img", "--preload", "facts", "--no-train", "--"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(request(&output).ends_with("preload=facts"), "{}", request(&output));
    assert!(scene.work().join("sub/own.img").exists() && !scene.work().join("app.img").exists());
}

#[test]
fn with_a_command_the_file_is_not_read() {
    let scene = project("snapboot.toml", "broken");
    let output = in_sub(&scene, &["freeze", "--preload", "facts", "--", "python3"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(scene.work().join("sub/python3.img").exists());
}

#[test]
fn the_nearest_file_counts() {
    let scene = project("snapboot.toml", "broken");
    scene.write("sub/pyproject.toml", "[tool.black]\nline-length = 100\n", 0o644);
    assert_eq!(in_sub(&scene, &["freeze"]).status.code(), Some(2), "a file of other tools is passed over");
    scene.write("sub/pyproject.toml", "[tool.snapboot]\ncommand = 'python3'\npreload = 'facts'\n", 0o644);
    assert_eq!(in_sub(&scene, &["freeze"]).status.code(), Some(0));
    scene.write("sub/snapboot.toml", "command = 'python3'\npreload = 'facts,more'", 0o644);
    assert!(request(&in_sub(&scene, &["freeze"])).ends_with("preload=facts preload=more"));
}

#[test]
fn without_a_command_or_a_file_nothing_is_frozen() {
    let scene = project("snapboot.toml", SETTINGS);
    fs::create_dir(scene.work().join("sub/.git")).unwrap();
    let output = in_sub(&scene, &["freeze"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).starts_with("snapboot: no COMMAND was given, and neither "), "{}", stderr(&output));
    assert!(stderr(&output).contains("snapboot.toml"), "{}", stderr(&output));
}

#[test]
fn a_mistake_in_the_file_is_told_with_its_place() {
    let scene = project("snapboot.toml", &format!("{SETTINGS}polcy = 'check'\n"));
    let output = in_sub(&scene, &["freeze"]);
    assert_eq!(output.status.code(), Some(2));
    let expected = format!(
        "snapboot: {}:5: unknown key polcy; did you mean policy?\n",
        scene.work().join("snapboot.toml").display()
    );
    assert_eq!(stderr(&output), expected);
}

#[test]
fn what_others_may_have_written_is_not_obeyed() {
    let scene = project("snapboot.toml", SETTINGS);
    let file = scene.work().join("snapboot.toml");
    let refused = |output: Output| {
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains("freeze in its directory"), "{}", stderr(&output));
    };
    fs::set_permissions(&file, fs::Permissions::from_mode(0o646)).unwrap();
    refused(in_sub(&scene, &["freeze"]));
    refused(scene.snapboot(&["freeze"]).output().unwrap());
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    assert_eq!(scene.snapboot(&["freeze"]).status().unwrap().code(), Some(0));
    // Only root can change its owner.
    if chown(&file, Some(65534), None).is_ok() {
        refused(in_sub(&scene, &["freeze"]));
    }
}

#[test]
fn a_quiet_freeze_tells_nothing_and_leaves_no_trace_of_it() {
    let scene = project("snapboot.toml", "command = 'python3'\npreload = 'written'\noutput = 'app.img'\n");
    let output = in_sub(&scene, &["freeze", "-q"]);
    assert_eq!((output.status.code(), stdout(&output), stderr(&output)), (Some(0), String::new(), String::new()));
    let info = scene.snapboot(&["inspect", "--json", "app.img"]).output().unwrap();
    let info: Value = serde_json::from_slice(&info.stdout).unwrap();
    assert_eq!(info["origin"]["options"], serde_json::json!(["--preload=written"]));
    for words in [&["refreeze", "-q", "app.img"][..], &["verify", "--quiet", "app.img"]] {
        let output = scene.snapboot(words).output().unwrap();
        assert_eq!((output.status.code(), stdout(&output), stderr(&output)), (Some(0), String::new(), String::new()));
    }
    let output = scene.snapboot(&["freeze", "-q", "--preload", "refused", "--", "python3"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).starts_with("snapboot: cannot freeze: "), "{}", stderr(&output));
}

#[test]
fn what_came_of_a_freeze_is_told_as_json() {
    let scene = project("snapboot.toml", "command = 'python3'\npreload = 'written'\noutput = 'app.img'\n");
    let told = |words: &[&str], status: i32| -> Value {
        let output = scene.snapboot(words).output().unwrap();
        assert_eq!(output.status.code(), Some(status), "{}", stderr(&output));
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let written = told(&["freeze", "--json"], 0);
    assert_eq!(written["outcome"], "written");
    assert_eq!(written["settings"], scene.work().join("snapboot.toml").to_str().unwrap());
    assert_eq!(written["image"], scene.work().join("app.img").to_str().unwrap());
    assert!(written["size"].as_u64().unwrap() > 4096 && written["took"].as_f64().unwrap() > 0.0);
    assert_eq!(written["preloaded"], serde_json::json!(["written"]));

    let refused = told(&["freeze", "--json", "--preload", "refused", "--", "python3"], 2);
    assert_eq!((&refused["outcome"], &refused["settings"]), (&Value::from("refused"), &Value::Null));
    assert_eq!(refused["findings"][0]["descriptor"], "7");
    assert_eq!(refused["findings"][0]["opened_by"], "redis/connection.py:559");
    assert_eq!(refused["findings"][1]["text"], "a timer runs");

    let failed = told(&["freeze", "--json", "--preload", "a,,b", "--", "python3"], 2);
    assert!(failed["outcome"] == "failed" && failed["message"].as_str().unwrap().contains("empty name"), "{failed}");
}
