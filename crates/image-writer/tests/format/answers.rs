//! Answers of directories: a round trip works; damage is an error and never a panic.

use image::{answer_kind, checksum, is_unlisted, AnswersReader, Error, Listing};
use image_writer::AnswersWriter;

/// Kind, name and value.
type Row = (u32, &'static [u8], &'static [u8]);

const ROWS: [Row; 8] = [
    (answer_kind::LISTING, b"", b"00ff"),
    (answer_kind::FILE, b"model.rb", b""),
    (answer_kind::ABSENT, b"package/__init__.py", b""),
    (answer_kind::ABSENT, b"package/__init__.pyc", b""),
    (answer_kind::PLAIN, b"pad", b""),
    (answer_kind::LINK, b"python", b"python3"),
    (answer_kind::UNLINKED, b"x/y", b""),
    (answer_kind::BELOW, b"z", b""),
];

fn written(rows: &[Row]) -> (Vec<u8>, u64) {
    let mut writer = AnswersWriter::default();
    rows.iter().for_each(|(kind, name, value)| writer.push(*kind, name, value));
    let (offset, size, sum) = writer.end_directory();
    let bytes = writer.finish();
    assert_eq!((offset, size), (0, bytes.len() as u64));
    (bytes, sum)
}

/// A row as it was read.
type Found = (u32, Vec<u8>, Vec<u8>);

fn read(bytes: &[u8], sum: u64) -> Result<Vec<Found>, Error> {
    let mut answers = AnswersReader::parse(bytes, sum)?;
    let mut found = Vec::new();
    while let Some(answer) = answers.next()? {
        assert_eq!(answer.name.last(), Some(&0));
        found.push((answer.kind, answer.bare_name().to_vec(), answer.value.to_vec()));
    }
    Ok(found)
}

#[test]
fn what_is_written_is_read_back() {
    let (bytes, sum) = written(&ROWS);
    let expected: Vec<_> = ROWS.iter().map(|(kind, name, value)| (*kind, name.to_vec(), value.to_vec())).collect();
    assert_eq!(read(&bytes, sum).unwrap(), expected);
}

#[test]
fn directories_do_not_share_names_or_marks() {
    let mut writer = AnswersWriter::default();
    writer.push(answer_kind::ABSENT, b"same", b"");
    let first = writer.end_directory();
    assert_eq!(writer.end_directory(), (0, 0, 0), "nothing was answered");
    writer.push(answer_kind::ABSENT, b"same", b"");
    let second = writer.end_directory();
    let bytes = writer.finish();
    assert_eq!((first.1, first.2), (second.1, second.2));
    let part = &bytes[second.0 as usize..];
    assert_eq!(read(part, second.2).unwrap(), [(answer_kind::ABSENT, b"same".to_vec(), Vec::new())]);
}

#[test]
fn marks_tell_absent_names_by_their_first_part() {
    let (bytes, sum) = written(&ROWS);
    let answers = AnswersReader::parse(&bytes, sum).unwrap();
    assert_eq!(answers.absent(), 1);
    assert!(answers.may_be_absent(b"package"));
    for other in [&b"packag"[..], b"pad", b"z", b""] {
        assert!(!answers.may_be_absent(other), "{other:?}");
    }
}

#[test]
fn long_names_that_share_much_are_whole() {
    let name = vec![b'x'; 600];
    let mut writer = AnswersWriter::default();
    writer.push(answer_kind::ABSENT, &name[..599], b"");
    writer.push(answer_kind::ABSENT, &name, b"");
    let (_, _, sum) = writer.end_directory();
    let found = read(&writer.finish(), sum).unwrap();
    assert!(found[0].1 == name[..599] && found[1].1 == name);
}

#[test]
fn damage_is_an_error() {
    let (bytes, sum) = written(&ROWS);
    assert_eq!(read(&bytes, sum ^ 1), Err(Error::Damaged { what: "answers" }));
    // An attacker who changes the bytes can also correct the checksum.
    for length in 0..bytes.len() {
        let _ = read(&bytes[..length], checksum(&bytes[..length]));
    }
    let mut refused = 0;
    for place in 0..bytes.len() {
        for bit in 0..8 {
            let mut damaged = bytes.clone();
            damaged[place] ^= 1 << bit;
            refused += usize::from(read(&damaged, checksum(&damaged)).is_err());
        }
    }
    assert!(refused > bytes.len());
}

#[test]
fn the_digest_of_a_list_is_that_of_its_names_in_any_order() {
    let digest = |names: &[&[u8]]| {
        let mut listing = Listing::default();
        names.iter().for_each(|name| listing.add(name));
        listing.finish()
    };
    assert_eq!(digest(&[b"a", b"b"]), digest(&[b"b", b"a"]));
    assert_ne!(digest(&[b"a", b"b"]), digest(&[b"ab"]));
    assert_ne!(digest(&[b"a"]), digest(&[b"a", b""]));
    assert_eq!(digest(&[])[..], [b'0'; 48]);
}

#[test]
fn what_snapboot_and_python_write_is_not_listed() {
    for name in [
        &b"."[..],
        b"..",
        b"__pycache__",
        b"a.img",
        b"a.img.seen",
        b"a.img.seen~",
        b"a.img.thaws",
        b".a.img.freezing-7",
    ] {
        assert!(is_unlisted(name, b"a.img"), "{name:?}");
    }
    for name in [&b"a"[..], b"a.img.py", b"b.img", b".a.img", b"seen", b""] {
        assert!(!is_unlisted(name, b"a.img"), "{name:?}");
    }
    assert!(!is_unlisted(b".seen", b"") && !is_unlisted(b"", b""));
}
