//! `snapboot time` from the outside.

mod support;

use serde_json::Value;
use support::{stderr, stdout, Scene};

#[test]
fn commands_take_turns_and_are_summed_up() {
    let scene = Scene::new();
    let output =
        scene.snapboot(&["time", "--json", "-n", "5", "--", "sleep", "0", "--vs", "sleep", "0.02"]).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    let medians: [f64; 2] = [0, 1].map(|index| {
        let command = &json["commands"][index];
        let mut wall: Vec<f64> =
            command["wall_ms"].as_array().unwrap().iter().map(|time| time.as_f64().unwrap()).collect();
        wall.sort_by(f64::total_cmp);
        assert_eq!((wall.len(), wall[2]), (5, command["median_ms"].as_f64().unwrap()), "{json}");
        wall[2]
    });
    assert!(medians[0] > 0.0 && medians[1] >= 20.0, "{json}");
    let ratio = &json["ratio"];
    assert!(
        ratio["low"].as_f64() <= ratio["value"].as_f64() && ratio["value"].as_f64() <= ratio["high"].as_f64(),
        "{ratio}"
    );
}

#[test]
fn the_page_shows_ratio_and_histogram() {
    let scene = Scene::new();
    let output = scene.snapboot(&["time", "-n", "3", "true", "--vs", "true"]).output().unwrap();
    let page = stdout(&output);
    assert!(
        page.contains("median") && page.contains("A / B = ") && page.contains('█') && page.contains("n = 3 pairs"),
        "{page}"
    );
}

#[test]
fn failing_commands_are_reported() {
    let scene = Scene::new();
    let output = scene.snapboot(&["time", "-n", "2", "sh", "-c", "echo why >&2; exit 7"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("exit status: 7") && stderr(&output).contains("why"), "{}", stderr(&output));
    let output = scene.snapboot(&["time", "-n", "2", "--allow-failure", "sh", "-c", "exit 7"]).output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(stdout(&output).contains("exit status: 7 in 2 of 2 runs"), "{}", stdout(&output));
    let output = scene.snapboot(&["time", "true", "--vs", "no-such-command"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_shim_is_named_with_what_it_leads_to() {
    let scene = Scene::new();
    let manager = scene.write("manager", "#!/bin/sh\ncase $1 in which) echo /bin/true;; *) shift 2;; esac\n", 0o755);
    let shim = format!("#!/bin/sh\nprogram=python3\nexec \"{}\" exec \"$program\" \"$@\"\n", manager.display());
    scene.write("python3", shim, 0o755);
    let output = scene.snapboot(&["time", "-n", "2", "--", "./python3", "--vs", "true"]).output().unwrap();
    let page = stdout(&output);
    assert!(page.contains(" A starts through the shim ./python3") && page.contains(": /bin/true\n"), "{page}");
    assert!(!page.contains(" B starts through"), "{page}");
}

#[test]
fn the_usage_has_as_many_brackets_open_as_closed() {
    let scene = Scene::new();
    for subcommand in ["freeze", "run", "archive", "inspect", "verify", "check", "time"] {
        let output = scene.snapboot(&[subcommand, "--help"]).output().unwrap();
        let help = stdout(&output);
        let usage = help.lines().find(|line| line.starts_with("Usage:")).unwrap();
        for (open, close) in [('[', ']'), ('<', '>')] {
            assert_eq!(usage.matches(open).count(), usage.matches(close).count(), "{usage}");
        }
    }
}
