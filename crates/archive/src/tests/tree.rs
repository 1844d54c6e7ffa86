//! The state of directories and everything below them: it differs after every change of a name, and only then.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use super::support::*;
use crate::*;

/// Asks until there is an answer, once everything has settled.
fn settled<T>(ask: impl Fn() -> Option<T>) -> T {
    loop {
        match ask() {
            Some(answer) => return answer,
            None => sleep(Duration::from_millis(5)),
        }
    }
}

fn listed(root: &Path) -> Tree {
    settled(|| Tree::list([root], true).unwrap())
}

fn state_of(tree: &Tree) -> [u8; 32] {
    settled(|| tree_state(&tree.paths))
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
        assert_eq!(state_of(&tree), tree.state, "{what}: before it");
        change();
        assert_ne!(state_of(&tree), tree.state, "{what}");
    }
}

#[test]
fn a_tree_does_not_depend_on_what_is_in_its_files() {
    let program = Program::new();
    let file = program.write("app/tree/a.rb", "a");
    let tree = listed(&program.root().join("app/tree"));
    fs::write(file, "another").unwrap();
    assert_eq!(state_of(&tree), tree.state);
}

#[test]
fn a_tree_that_has_just_changed_has_no_state() {
    let program = Program::new();
    program.write("app/tree/a.rb", "a");
    let root = program.root().join("app/tree");
    let tree = listed(&root);
    fs::write(root.join("b.rb"), "").unwrap();
    assert_eq!(tree_state(&tree.paths), None);
    assert_eq!(Tree::list([&*root], true).unwrap(), None);
}

#[test]
fn a_tree_may_be_missing_or_lead_to_itself() {
    let program = Program::new();
    program.write("app/tree/a.rb", "a");
    let root = program.root().join("app/tree");
    symlink(&root, root.join("again")).unwrap();
    assert_eq!(listed(&root).paths.iter().filter(|byte| **byte == 0).count(), 2);
    let without = settled(|| Tree::list([&*root], false).unwrap());
    assert_eq!(without.paths, [root.as_os_str().as_encoded_bytes(), b"\0"].concat());
    let missing = program.root().join("app/mis/sing");
    let tree = listed(&missing);
    fs::create_dir_all(&missing).unwrap();
    assert_ne!(state_of(&tree), tree.state, "it is there");
    fs::remove_dir_all(missing.parent().unwrap()).unwrap();
    assert_ne!(state_of(&tree), tree.state, "it was there");
    assert!(tree_state(b"no end").is_none());
}
