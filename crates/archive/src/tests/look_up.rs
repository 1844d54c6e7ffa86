//! A stored entry is found, fresh as long as nothing has changed, and gone when anything has.

use std::fs;
use std::thread::sleep;
use std::time::Duration;

use super::support::*;
use crate::*;

fn payload(archive: &Archive, path: &std::path::Path) -> Option<Vec<u8>> {
    let entry = archive.find(&scope(), &archive.name(bytes(path)))?;
    entry.plain().map(<[u8]>::to_vec)
}

#[test]
fn what_was_stored_is_found_below_the_root_and_outside() {
    let (program, elsewhere) = (Program::new(), Program::new());
    let inside = program.write("app/a.rb", "a");
    let outside = elsewhere.write("lib/b.rb", "b");
    let mut batch = Batch::default();
    batch.add(code(&inside, b"code of a"));
    batch.add(code(&outside, b"code of b"));
    assert_eq!(program.append(batch).entries, 4); // with the context and the root

    let archive = program.open();
    assert!(archive.is_whole());
    assert_eq!(payload(&archive, &inside).unwrap(), b"code of a");
    assert_eq!(payload(&archive, &outside).unwrap(), b"code of b");
    assert!(archive.find(&scope(), &[b"./app/a.r"]).is_none());
    assert!(archive.find(&scope(), &[b"./app/", b"a", b".rb"]).is_some());
    assert!(archive.find(&Scope::new(Kind::Data, &context()), &[b"./app/a.rb"]).is_none());
    assert!(archive.find(&Scope::new(Kind::Code, &Context::any()), &[b"./app/a.rb"]).is_none());
    let named: Vec<Key> = archive.live().iter().map(|entry| entry.key()).collect();
    assert_eq!(named[1], Key { kind: Kind::Context, context: context().id, name: b"" });
    assert_eq!(named[2].name, b"./app/a.rb");
    assert_eq!(archive.noted_root().unwrap(), program.root());
    let entry = archive.find(&scope(), &archive.name(bytes(&inside))).unwrap();
    assert_eq!(entry.inputs().map(|row| row.name.len()).collect::<Vec<_>>(), [0]);
    assert!(entry.plain().unwrap().as_ptr().addr().is_multiple_of(16));
}

#[test]
fn the_newest_entry_counts() {
    let program = Program::new();
    let file = program.write("a.rb", "a");
    program.store(&[("a.rb", b"old")]);
    let old = program.open();
    let size = program.store(&[("a.rb", b"new")]).size;
    assert_eq!(payload(&program.open(), &file).unwrap(), b"new");
    assert_eq!(payload(&old, &file).unwrap(), b"old");
    // An existing entry is not stored again.
    let again = program.store(&[("a.rb", b"new")]);
    assert_eq!((again.entries, again.size), (0, size));
}

#[test]
fn an_entry_holds_as_long_as_its_file_is_the_same() {
    let program = Program::new();
    let file = program.write("a.rb", "a");
    program.store(&[("a.rb", b"code")]);
    let archive = program.open();
    let entry = archive.find(&scope(), &archive.name(bytes(&file))).unwrap();
    let check = |policy| archive.check(&entry, policy, None);
    assert_eq!([check(Policy::Check), check(Policy::Content), check(Policy::Trust)], [Freshness::Fresh; 3]);
    assert_eq!(archive.check(&entry, Policy::Check, Some(&settled(&file))), Freshness::Fresh);

    touch(&file);
    assert_eq!(check(Policy::Check), Freshness::Revalidated);
    assert_eq!(archive.check(&entry, Policy::Check, Some(&settled(&file))), Freshness::Revalidated);
    fs::write(&file, "b").unwrap();
    assert_eq!([check(Policy::Check), check(Policy::Content)], [Freshness::Stale; 2]);
    fs::write(&file, "longer").unwrap();
    assert_eq!(check(Policy::Check), Freshness::Stale);
    assert_eq!(archive.check(&entry, Policy::Check, Some(&settled(&file))), Freshness::Stale);
    fs::remove_file(&file).unwrap();
    assert_eq!(check(Policy::Check), Freshness::Stale);
    assert_eq!(check(Policy::Trust), Freshness::Fresh);
}

#[test]
fn a_revalidated_entry_is_stored_again_with_the_new_times() {
    let program = Program::new();
    let file = program.write("a.rb", "a");
    program.store(&[("a.rb", b"code")]);
    touch(&file);
    sleep(Duration::from_millis(40));
    let archive = program.open();
    let entry = archive.find(&scope(), &[b"./a.rb"]).unwrap();
    let mut batch = Batch::default();
    batch.again(&entry);
    assert_eq!(program.append(batch).entries, 1);
    let archive = program.open();
    let entry = archive.find(&scope(), &[b"./a.rb"]).unwrap();
    assert_eq!(archive.check(&entry, Policy::Check, None), Freshness::Fresh);
    assert_eq!(entry.plain(), Some(&b"code"[..]));

    // An entry whose inputs have changed meanwhile is not.
    let mut batch = Batch::default();
    batch.again(&entry);
    fs::write(&file, "changed").unwrap();
    sleep(Duration::from_millis(40));
    assert_eq!(program.append(batch).entries, 0);
}

#[test]
fn what_changes_before_it_is_stored_is_left_out() {
    let program = Program::new();
    let file = program.write("a.rb", "a");
    let mut batch = Batch::default();
    let fresh = Identity::stat(&file).unwrap();
    assert!(!fresh.is_settled);
    batch.add(entry(Kind::Code, bytes(&file), vec![NewInput::File(bytes(&file).to_vec(), fresh)], b"code"));
    assert!(batch.is_empty());
    batch.add(code(&file, b"code"));
    fs::write(&file, "changed").unwrap();
    program.append(batch);
    assert!(program.open().find(&scope(), &[b"./a.rb"]).is_none());
}

#[test]
fn every_kind_of_input_counts() {
    let program = Program::new();
    let (file, directory) = (program.write("gems/a.gemspec", "a"), program.path("gems"));
    let absent = program.path("gems/b.gemspec");
    let inputs = vec![
        NewInput::File(bytes(&file).to_vec(), settled(&file)),
        NewInput::Directory(bytes(&directory).to_vec(), settled(&directory)),
        NewInput::Absent(bytes(&absent).to_vec()),
        NewInput::Variable(b"PATH".to_vec(), std::env::var("PATH").ok().map(String::into_bytes)),
        NewInput::Variable(b"SNAPBOOT_NO_SUCH_VARIABLE".to_vec(), None),
    ];
    for at in 0..inputs.len() {
        // One input differs from what the maker saw.
        let mut batch = Batch::default();
        let mut inputs = inputs.clone();
        match &mut inputs[at] {
            NewInput::File(_, identity) | NewInput::Directory(_, identity) => identity.mtime += 1,
            NewInput::Absent(path) => *path = bytes(&file).to_vec(),
            NewInput::Variable(_, value) => *value = Some(b"another".to_vec()),
        }
        batch.add(entry(Kind::Memo, b"m", inputs, b"memo"));
        program.append(batch);
        let archive = program.open();
        let found = archive.find(&Scope::new(Kind::Memo, &context()), &[b"m"]);
        let freshness = found.map(|entry| archive.check(&entry, Policy::Check, None));
        assert_eq!(freshness, if at < 2 { None } else { Some(Freshness::Stale) }, "input {at}");
    }
    let mut batch = Batch::default();
    batch.add(entry(Kind::Memo, b"m", inputs, b"memo"));
    program.append(batch);
    let archive = program.open();
    let memo = archive.find(&Scope::new(Kind::Memo, &context()), &[b"m"]).unwrap();
    assert_eq!(
        memo.inputs().map(|row| row.name).collect::<Vec<_>>()[..3],
        [&b"./gems/a.gemspec"[..], b"./gems", b"./gems/b.gemspec"]
    );
    let check = || archive.check(&memo, Policy::Check, None);
    assert_eq!(check(), Freshness::Fresh);
    fs::write(program.path("gems/other"), "").unwrap();
    assert_eq!(check(), Freshness::Stale);
    fs::remove_file(program.path("gems/other")).unwrap();
    assert_eq!(check(), Freshness::Revalidated);
    fs::write(&absent, "").unwrap();
    assert_eq!(check(), Freshness::Stale);
}

#[test]
fn an_archive_moves_with_its_application() {
    let program = Program::new();
    program.write("app/a.rb", "a");
    program.store(&[("app/a.rb", b"code")]);
    let elsewhere = Program::new();
    let moved = elsewhere.path("moved");
    fs::rename(program.root(), &moved).unwrap();
    let archive = Archive::open(&moved.join("tmp/cache/snapboot.archive"), &moved).unwrap();
    let entry = archive.find(&scope(), &archive.name(bytes(&moved.join("app/a.rb")))).unwrap();
    assert_eq!(archive.check(&entry, Policy::Check, None), Freshness::Fresh);
}

#[test]
fn payloads_are_packed_where_that_is_wanted() {
    let program = Program::new();
    let (text, noise) = ("text ".repeat(1000), (0..5000).map(|_| fastrand::u8(..)).collect::<Vec<_>>());
    let mut batch = Batch::default();
    let mut names = Vec::new();
    for (name, payload) in [("text", text.as_bytes()), ("noise", &noise), ("short", b"short"), ("empty", b"")] {
        batch.add(NewEntry { compress: true, ..entry(Kind::Memo, name.as_bytes(), Vec::new(), payload) });
        names.push((name, payload));
    }
    assert!(program.append(batch).size < 12_000);
    let (archive, mut decoder) = (program.open(), Decoder::default());
    for (name, payload) in names {
        let entry = archive.find(&Scope::new(Kind::Memo, &context()), &[name.as_bytes()]).unwrap();
        assert_eq!(decoder.decode(&entry), Some(payload), "{name}");
        assert_eq!((entry.encoding(), entry.plain()), (encoding::PACKED, None));
    }
}

#[test]
fn a_directory_is_listed_once_and_asked_without_a_scan() {
    let program = Program::new();
    let names: Vec<String> = (0..300).map(|number| format!("lib/c{number}.rb")).collect();
    names.iter().for_each(|name| drop(program.write(name, "")));
    fs::create_dir(program.path("lib/sub")).unwrap();
    std::os::unix::fs::symlink("c1.rb", program.path("lib/link.rb")).unwrap();
    let payload = list_directory(&program.path("lib")).unwrap();
    let list = DirectoryList::parse(&payload).unwrap();
    assert_eq!((list.len(), list.names().count()), (302, 302));
    assert!((0..300).all(|number| list.find(&[format!("c{number}").as_bytes(), b".rb"]) == Some(FileKind::File)));
    assert_eq!(list.find(&[b"sub"]), Some(FileKind::Directory));
    assert_eq!(list.find(&[b"link.rb"]), Some(FileKind::Link));
    assert_eq!(list.find(&[b"c300.rb"]), None);
    assert_eq!(list.find(&[b"c1"]), None);
    assert!(list.names().map(|(name, _)| name).is_sorted());
    fs::create_dir(program.path("empty")).unwrap();
    let payload = list_directory(&program.path("empty")).unwrap();
    assert_eq!(DirectoryList::parse(&payload).unwrap().find(&[b"x"]), None);
}
