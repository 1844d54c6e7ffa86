//! Inspects images, whole and damaged ones, that are made here byte by byte.

mod support;

use std::fs::{set_permissions, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use image::{mapping_kind, Head, MappedFile, Mapping, Section, HEAD_AREA, HEAD_OFFSET, NO_FILE, PAGE};
use image_writer::TablesWriter;
use support::{minimal, stderr, stdout, Scene};

const PAGES_OFFSET: u64 = (HEAD_OFFSET + HEAD_AREA) as u64;
const PAGES: u64 = 3;

/// An image with a library, some heap, and no inputs of interest.
fn whole() -> Vec<u8> {
    let mut tables = TablesWriter::new();
    let path = tables.text(b"/lib/libexample.so.1");
    tables.push(Section::Files, &MappedFile { path, size: 10, mtime: 1, ctime: 2, digest: [0; 16] });
    let mapping = |start: u64, pages: u64, kind, file| Mapping {
        start,
        end: start + pages * PAGE,
        offset: if kind == mapping_kind::IMAGE { PAGES_OFFSET } else { 0 },
        protection: 3,
        kind,
        file,
        flags: 0,
    };
    tables.push(Section::Mappings, &mapping(0x10000, 1, mapping_kind::IMAGE, 0));
    tables.push(Section::Mappings, &mapping(0x20000, 2, mapping_kind::IMAGE, NO_FILE));
    minimal(&mut tables);
    tables.set_bytes(Section::Info, br#"{"runtime": "CPython 3.11.2", "preloads": ["flask"]}"#);
    let tables = tables.finish();

    let mut file = vec![0; PAGES_OFFSET as usize];
    file.resize((PAGES_OFFSET + PAGES * PAGE) as usize, b'p');
    let head = Head {
        pages_offset: PAGES_OFFSET,
        pages_size: PAGES * PAGE,
        pages_digest: image::digest(&file[PAGES_OFFSET as usize..]),
        tables_offset: PAGES_OFFSET + PAGES * PAGE,
        tables_size: tables.len() as u64,
        tables_sum: image::checksum(&tables),
        file_size: PAGES_OFFSET + PAGES * PAGE + tables.len() as u64,
        ..Head::default()
    };
    file.extend_from_slice(&tables);
    let command: [&[u8]; 4] = [b"/usr/bin/python3", b"", b"python3", b"it's"];
    Head::write(&[head], command.into_iter(), &[], &mut file[HEAD_OFFSET..][..HEAD_AREA]).unwrap();
    file
}

fn place(scene: &Scene, bytes: &[u8]) -> PathBuf {
    scene.write("app.img", bytes, 0o755)
}

#[test]
fn a_whole_image_is_verified() {
    let scene = Scene::new();
    place(&scene, &whole());
    let output = scene.snapboot(&["verify", "app.img"]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stdout(&output).starts_with("app.img: whole"), "{}", stdout(&output));
}

#[test]
fn every_kind_of_damage_is_named() {
    let scene = Scene::new();
    let whole = whole();
    let last = whole.len() - 1;
    let cases = [
        (HEAD_OFFSET, "not an image"),
        (HEAD_OFFSET + 8, "image format version"),
        (HEAD_OFFSET + 40, "checksum of the head"),
        (HEAD_OFFSET + image::COMMAND_OFFSET + 3, "checksum of the command"),
        (PAGES_OFFSET as usize + 5000, "checksum of the data pages"),
        (last, "checksum of the tables"),
    ];
    for (position, expected) in cases {
        let mut damaged = whole.clone();
        damaged[position] ^= 1;
        place(&scene, &damaged);
        let output = scene.snapboot(&["verify", "app.img"]).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{position}");
        assert!(stderr(&output).contains(expected), "{position}: {}", stderr(&output));
    }
    for (length, expected) in [(0, "not an image"), (PAGES_OFFSET as usize, "ends at"), (last, "ends at")] {
        place(&scene, &whole[..length]);
        let output = scene.snapboot(&["verify", "app.img"]).output().unwrap();
        assert!(stderr(&output).contains(expected), "{length}: {}", stderr(&output));
    }
    place(&scene, &[&whole[..], b"more"].concat());
    let output = scene.snapboot(&["verify", "app.img"]).output().unwrap();
    assert!(stderr(&output).contains("appended"), "{}", stderr(&output));
}

#[test]
fn an_image_that_others_can_write_is_not_trusted() {
    let scene = Scene::new();
    let image = place(&scene, &whole());
    set_permissions(image, Permissions::from_mode(0o777)).unwrap();
    let output = scene.snapboot(&["verify", "app.img"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("chmod go-w"), "{}", stderr(&output));
}

#[test]
fn inspect_shows_what_is_in_it() {
    let scene = Scene::new();
    place(&scene, &whole());
    let page = stdout(&scene.snapboot(&["inspect", "app.img"]).output().unwrap());
    for expected in [
        "CPython 3.11.2",
        "python3 'it'\\''s'",
        "flask",
        "libexample.so.1",
        "pages of the image",
        "(heap, stack, other)",
    ] {
        assert!(page.contains(expected), "{expected}: {page}");
    }
    let json = scene.snapboot(&["inspect", "--json", "app.img"]).output().unwrap();
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["mappings"].as_array().unwrap().len(), 3);
    assert_eq!(json["kinds"]["pages of the image"]["in_image"], PAGES * PAGE);
    assert_eq!(json["files"][0]["path"], "/lib/libexample.so.1");
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let scene = Scene::new();
    place(&scene, &whole());
    let mut command = scene.snapboot(&["inspect", "--json", "app.img"]);
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = command.stdout(writer).output().unwrap();
    assert_eq!(stderr(&output), "");
}
