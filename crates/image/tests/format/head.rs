//! The head and the command: a round trip works, and each damage has its own error.

use image::{
    checksum, Command, Error, Head, Record, COMMAND_OFFSET, HEAD_AREA, HEAD_OFFSET, MAX_TABLES, MAX_VARIANTS, PAGE,
    VARIANTS_OFFSET, VERSION,
};

const COMMAND: [&[u8]; 4] = [b"/usr/bin/python3", b"1=/a/b", b"python3", b"-I"];
const FIRST: u64 = (HEAD_OFFSET + HEAD_AREA) as u64;

/// A head with two data pages and tables right behind it.
fn good() -> Head {
    Head {
        file_size: FIRST + 3 * PAGE,
        pages_offset: FIRST,
        pages_size: 2 * PAGE,
        tables_offset: FIRST + 2 * PAGE,
        tables_size: PAGE,
        ..Head::default()
    }
}

fn written(head: Head) -> Vec<u8> {
    let mut area = vec![0; HEAD_AREA];
    Head::write(&[head], COMMAND.into_iter(), &[], &mut area).unwrap();
    area
}

/// Parses a head after `change`, with a correct checksum.
fn parsed(change: impl FnOnce(&mut Head)) -> Result<Head, Error> {
    let mut head = good();
    change(&mut head);
    Head::parse(&written(head), good().file_size)
}

fn out_of_range(change: impl FnOnce(&mut Head)) -> &'static str {
    match parsed(change) {
        Err(Error::OutOfRange { what, .. }) => what,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_is_written_is_read_back() {
    let area = written(good());
    let head = Head::parse(&area, good().file_size).unwrap();
    assert_eq!((head.pages_offset, head.tables_size, head.version), (FIRST, PAGE, VERSION));
    let command = Command::parse(&area, &head).unwrap();
    assert_eq!(command.program(), b"/usr/bin/python3\0");
    assert_eq!(command.argv().collect::<Vec<_>>(), [&b"python3\0"[..], b"-I\0"]);
    assert_eq!(command.argc(), 2);
    assert_eq!(command.anchor(), Some((1, &b"/a/b\0"[..])));
}

#[test]
fn the_words_of_the_store_stand_behind_the_command() {
    let mut area = vec![0; HEAD_AREA];
    let words = [&b"/bin/snapboot"[..], b"fallback", b"", b"1.img"];
    for count in [0, 1, 4] {
        Head::write(&[good()], COMMAND.into_iter(), &words[..count], &mut area).unwrap();
        let command = Command::parse(&area, &Head::parse(&area, good().file_size).unwrap()).unwrap();
        assert_eq!((command.argc(), command.store_count()), (2, count));
        assert_eq!(command.argv().collect::<Vec<_>>(), [&b"python3\0"[..], b"-I\0"]);
        let found: Vec<_> = command.store_words().map(|word| &word[..word.len() - 1]).collect();
        assert_eq!(found, words[..count]);
    }
}

#[test]
fn every_variant_has_a_head_of_its_own() {
    let head = |number: u64| Head { pages_size: PAGE * (1 + number % 2), tables_sum: number, ..good() };
    let heads: Vec<Head> = (0..MAX_VARIANTS.into()).map(head).collect();
    let mut area = vec![0; HEAD_AREA];
    let longest = vec![b'x'; VARIANTS_OFFSET - COMMAND_OFFSET - 7];
    Head::write(&heads, [&b"/p"[..], b"", &longest].into_iter(), &[], &mut area).unwrap();
    for number in 0..MAX_VARIANTS {
        let parsed = Head::parse_variant(number, &area, good().file_size).unwrap();
        assert_eq!((parsed.tables_sum, parsed.variants), (number.into(), MAX_VARIANTS));
    }
    let beyond = Head::parse_variant(MAX_VARIANTS, &area, u64::MAX);
    assert!(matches!(beyond, Err(Error::OutOfRange { what: "the number of a variant", .. })));
    assert_eq!(Head::parse_variant(1, &written(good()), u64::MAX), Err(Error::NotAnImage));
    let last = HEAD_AREA - Head::SIZE;
    area[last + 40] ^= 1;
    assert_eq!(Head::parse_variant(MAX_VARIANTS - 1, &area, u64::MAX), Err(Error::Damaged { what: "head" }));
    assert!(Head::parse(&area, good().file_size).is_ok());
}

/// The value that is out of range in the head of an image with so many variants and kinds of starts.
fn wrong_counts(variants: u32, kinds: u32) -> Option<&'static str> {
    let mut area = written(good());
    let mut head = Head { variants, kinds, ..Head::decode(&area) };
    head.encode(&mut area);
    head.head_sum = checksum(&area[..Head::SIZE - 8]);
    head.encode(&mut area);
    match Head::parse(&area, u64::MAX) {
        Err(Error::OutOfRange { what, .. }) => Some(what),
        other => other.map(|_| None).unwrap(),
    }
}

#[test]
fn the_number_of_variants_has_bounds() {
    for wrong in [0, MAX_VARIANTS + 1, u32::MAX] {
        assert_eq!(wrong_counts(wrong, 1), Some("the number of variants"), "{wrong}");
    }
}

#[test]
fn each_kind_of_starts_has_as_many_variants() {
    for (variants, kinds) in [(1, 1), (2, 1), (2, 2), (6, 3), (MAX_VARIANTS, MAX_VARIANTS)] {
        assert_eq!(wrong_counts(variants, kinds), None, "{variants} {kinds}");
    }
    for (variants, wrong) in [(1, 0), (1, 2), (4, 3), (4, u32::MAX)] {
        assert_eq!(wrong_counts(variants, wrong), Some("the number of kinds of starts"), "{variants} {wrong}");
    }
}

#[test]
fn a_file_may_be_longer_than_the_head_says_but_not_shorter() {
    let area = written(good());
    let size = good().file_size;
    assert!(Head::parse(&area, size + 1).is_ok());
    assert_eq!(
        Head::parse(&area, size - 1),
        Err(Error::Truncated { what: "the image", expected: size, found: size - 1 })
    );
}

#[test]
fn every_changed_bit_is_noticed() {
    let area = written(good());
    let command_end = COMMAND_OFFSET + COMMAND.iter().map(|string| string.len() + 1).sum::<usize>();
    for byte in (0..Head::SIZE).chain(COMMAND_OFFSET..command_end) {
        for bit in 0..8 {
            let mut area = area.clone();
            area[byte] ^= 1 << bit;
            assert!(Head::parse(&area, good().file_size).is_err(), "byte {byte}, bit {bit}");
        }
    }
}

#[test]
fn what_is_no_image_is_told_from_another_version_and_from_damage() {
    let mut area = written(good());
    area[0] = 0;
    assert_eq!(Head::parse(&area, u64::MAX), Err(Error::NotAnImage), "an unfinished image");
    let mut area = written(good());
    area[8] = 99;
    assert_eq!(Head::parse(&area, u64::MAX), Err(Error::Version { found: 99 }));
    let mut area = written(good());
    area[40] ^= 1;
    assert_eq!(Head::parse(&area, u64::MAX), Err(Error::Damaged { what: "head" }));
    let short = &written(good())[..HEAD_AREA - 1];
    assert!(matches!(Head::parse(short, u64::MAX), Err(Error::Truncated { what: "the head", .. })));
}

#[test]
fn areas_lie_inside_the_file_in_their_order() {
    assert_eq!(out_of_range(|head| head.pages_offset += 1), "the data pages");
    assert_eq!(out_of_range(|head| head.pages_offset = PAGE), "the data pages");
    assert_eq!(out_of_range(|head| head.pages_size = 100 * PAGE), "the data pages");
    assert_eq!(out_of_range(|head| head.pages_size = u64::MAX), "the data pages");
    assert_eq!(out_of_range(|head| head.pages_size -= 1), "the size of the data pages");
    assert_eq!(out_of_range(|head| head.tables_offset += 8), "the tables");
    assert_eq!(out_of_range(|head| head.tables_size += 1), "the tables");
    assert_eq!(out_of_range(|head| head.tables_size = u64::MAX), "the tables");
    assert_eq!(out_of_range(|head| head.answers_size = PAGE), "the answers");
    assert_eq!(out_of_range(|head| (head.answers_offset, head.answers_size) = (FIRST, u64::MAX)), "the answers");
    assert_eq!(out_of_range(|head| (head.answers_offset, head.answers_size) = (FIRST + 3 * PAGE, 1)), "the answers");
    assert_eq!(out_of_range(|head| head.tables_offset -= PAGE), "the offset of the tables");
    let mut head = good();
    head.tables_size = MAX_TABLES + 1;
    head.file_size = head.tables_offset + head.tables_size;
    let size = head.file_size;
    assert!(matches!(Head::parse(&written(head), size), Err(Error::OutOfRange { what: "the size of the tables", .. })));
}

#[test]
fn a_damaged_head_leaves_the_command_usable() {
    let mut area = written(good());
    area[32..112].fill(0xff);
    let head = Head::decode(&area);
    assert!(Head::parse(&area, u64::MAX).is_err());
    assert_eq!(Command::parse(&area, &head).unwrap().argc(), 2);
}

#[test]
fn a_command_has_a_program_and_an_argv_whose_strings_end() {
    /// A head whose command is these bytes, with a correct checksum.
    fn with(count: u32, strings: &[u8]) -> (Vec<u8>, Head) {
        let mut area = written(good());
        area[COMMAND_OFFSET..][..strings.len()].copy_from_slice(strings);
        let head = Head {
            command_count: count,
            command_size: strings.len() as u64,
            command_sum: checksum(strings),
            ..Head::decode(&area)
        };
        (area, head)
    }
    let parse = |count, strings| {
        let (area, head) = with(count, strings);
        Command::parse(&area, &head).map(|command| command.argc())
    };
    assert_eq!(parse(4, b"/p\0\0p\x000\0"), Ok(1));
    assert!(matches!(parse(3, b"/p\0\x000\0"), Err(Error::OutOfRange { .. })), "a program without argv");
    assert!(matches!(parse(5, b"/p\0\0p\x000\0"), Err(Error::OutOfRange { .. })), "another number of strings");
    assert_eq!(parse(4, b"/p\0\0p\x000"), Err(Error::Damaged { what: "command" }), "no NUL at the end");
    assert_eq!(parse(5, b"/p\x001=/s\0p\0s\x000\0"), Ok(2));
    assert_eq!(parse(6, b"/p\0\0p\0/s\0w\x002\0"), Ok(1));
    assert!(matches!(parse(4, b"/p\0\0p\x001\0"), Err(Error::OutOfRange { .. })), "more words of the store than words");
    assert!(matches!(parse(4, b"/p\0\0p\x0018446744073709551615\0"), Err(Error::OutOfRange { .. })));
    assert_eq!(parse(4, b"/p\0\0p\0x\0"), Err(Error::Damaged { what: "command" }), "no number of words");
    for wrong in [
        &b"/p\x002=/s\0p\0s\x000\0"[..],
        b"/p\x001=s\0p\0s\x000\0",
        b"/p\x001\0p\0s\x000\0",
        b"/p\0=/s\0p\0s\x000\0",
        b"/p\0x=/s\0p\0s\x000\0",
        b"/p\0-1=/s\0p\0s\x000\0",
    ] {
        assert_eq!(parse(5, wrong), Err(Error::Damaged { what: "command" }), "{}", wrong.escape_ascii());
    }
    assert_eq!(parse(0, b""), Err(Error::Damaged { what: "command" }));
    let (area, head) = with(4, b"/p\0\0p\x000\0");
    for size in [HEAD_AREA as u64, u64::MAX] {
        let head = Head { command_size: size, ..head };
        assert!(matches!(Command::parse(&area, &head), Err(Error::OutOfRange { .. })));
    }
    let head = Head { command_sum: head.command_sum ^ 1, ..head };
    assert_eq!(Command::parse(&area, &head), Err(Error::Damaged { what: "command" }));
}

#[test]
fn a_command_fills_the_room_to_the_last_byte_and_no_further() {
    let room_for_strings = VARIANTS_OFFSET - COMMAND_OFFSET;
    let longest = vec![b'x'; room_for_strings - b"/p\0\0\0".len() - b"0\0".len()];
    let mut area = vec![0; HEAD_AREA];
    Head::write(&[good()], [&b"/p"[..], b"", &longest].into_iter(), &[], &mut area).unwrap();
    let head = Head::parse(&area, good().file_size).unwrap();
    assert_eq!(Command::parse(&area, &head).unwrap().argv().next().unwrap().len(), longest.len() + 1);
    let longer = vec![b'x'; longest.len() + 1];
    let error = Head::write(&[good()], [&b"/p"[..], b"", &longer].into_iter(), &[], &mut area);
    assert_eq!(error, Err(Error::CommandTooLong { length: room_for_strings + 1 }));
}

#[test]
fn errors_say_what_was_expected_and_what_to_do() {
    let text = Error::Version { found: 7 }.to_string();
    assert!(text.contains(&format!("version {VERSION}, found 7")) && text.contains("freeze again"), "{text}");
    let text = Error::Truncated { what: "the image", expected: 10, found: 9 }.to_string();
    assert!(text.contains("10 bytes, but it ends at 9"), "{text}");
    for error in [
        Error::NotAnImage,
        Error::Damaged { what: "head" },
        Error::OutOfRange { what: "x", value: 1 },
        Error::Missing { what: "process" },
    ] {
        assert!(error.to_string().contains("freeze again"), "{error}");
    }
    assert!(Error::CommandTooLong { length: 20_000 }.to_string().contains("shorten"));
}
