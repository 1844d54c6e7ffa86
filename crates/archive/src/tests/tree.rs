//! The state of directories and what is below them: another one after every change of a name, and only then.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use super::support::*;
use crate::*;

/// The state of a tree, once that has settled.
fn settled_state(tree: &[u8]) -> [u8; 32] {
    loop {
        match tree_state(tree).unwrap() {
            (state, true) => return state,
            _ => sleep(Duration::from_millis(5)),
        }
    }
}

fn listed(root: &Path) -> Vec<u8> {
    list_tree([root]).unwrap()
}

#[test]
fn a_tree_is_in_another_state_after_every_change_of_a_name() {
    let program = Program::new();
    let file = program.write("app/tree/deep/er/a.rb", "a");
    let elsewhere = program.write("elsewhere/b.rb", "b").parent().unwrap().to_path_buf();
    let root = program.root().join("app/tree");
    symlink(&elsewhere, root.join("link")).unwrap();
    let changes: [(&str, &dyn Fn()); 7] = [
        ("a new file", &|| drop(fs::write(root.join("deep/new"), ""))),
        ("a file that is gone", &|| fs::remove_file(&file).unwrap()),
        ("a new directory", &|| fs::create_dir(root.join("deep/er/new")).unwrap()),
        ("a file behind a link", &|| drop(fs::write(elsewhere.join("c.rb"), ""))),
        ("a directory in place of a file", &|| {
            fs::remove_file(root.join("deep/new")).unwrap();
            fs::create_dir(root.join("deep/new")).unwrap();
        }),
        ("a link that leads nowhere", &|| fs::remove_dir_all(&elsewhere).unwrap()),
        ("no tree", &|| fs::remove_dir_all(&root).unwrap()),
    ];
    for (what, change) in changes {
        let tree = listed(&root);
        let before = settled_state(&tree);
        assert_eq!(settled_state(&tree), before, "{what}: before it");
        change();
        assert_ne!(settled_state(&tree), before, "{what}");
    }
}

#[test]
fn a_tree_does_not_depend_on_what_is_in_its_files() {
    let program = Program::new();
    let file = program.write("app/tree/a.rb", "a");
    let tree = listed(&program.root().join("app/tree"));
    let before = settled_state(&tree);
    sleep(Duration::from_millis(25));
    fs::write(file, "another").unwrap();
    assert_eq!(settled_state(&tree), before);
}

#[test]
fn a_tree_that_has_just_changed_has_not_settled() {
    let program = Program::new();
    program.write("app/tree/a.rb", "a");
    let tree = listed(&program.root().join("app/tree"));
    fs::write(program.root().join("app/tree/b.rb"), "").unwrap();
    assert!(!tree_state(&tree).unwrap().1);
}

#[test]
fn a_tree_may_be_missing_or_lead_to_itself() {
    let program = Program::new();
    program.write("app/tree/a.rb", "a");
    let root = program.root().join("app/tree");
    symlink(&root, root.join("again")).unwrap();
    assert_eq!(listed(&root).iter().filter(|byte| **byte == 0).count(), 2);
    let missing = listed(&program.root().join("missing"));
    let before = settled_state(&missing);
    fs::create_dir(program.root().join("missing")).unwrap();
    assert_ne!(settled_state(&missing), before);
    assert!(tree_state(b"no end").is_none());
}
