"""The channel between front ends, freezer and recorder is defined once, in crates/channel: Python, Ruby and the document say the same."""

import pathlib
import re
import runpy
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEFINITION = (ROOT / "crates/channel/src/lib.rs").read_text()
RUBY = ROOT / "ruby/lib/snapboot/front_end/channel.rb"
DOCUMENT = (ROOT / "docs/internals/protocol.md").read_text()
# Fields of a record that are hard to read: those that look like the head of another one, and text that is none.
FIELDS = [b"", b"a", b"1:", b"10:\n=", "é".encode(), b"\xff\xfe"]


def words(kind: str) -> dict[str, str]:
    """The words of an enum of the definition, and what each is for."""
    body = re.search(r"    %s \{\n(.*?)\n    \}" % kind, DEFINITION, re.DOTALL).group(1)
    rows = re.findall(r"((?: +/// .*\n)+)(?: +#\[default\]\n)? +\w+ = \"(.*?)\",", body + "\n")
    return {word: " ".join(line.strip()[4:] for line in text.splitlines()) for text, word in rows}


def numbers() -> dict[str, int]:
    """The bits of an answer about the locale."""
    return {name: int(value) for name, value in re.findall(r"pub const (\w+): i32 = (\d+);\n", DEFINITION.partition("pub mod locale")[2])}


ALL = [*words("Request"), *words("Phase"), *words("Kind")]
EVENT = re.findall(r'"(\w+)"', re.search(r"pub const EVENT.*?= \[(.*?)\]", DEFINITION, re.DOTALL).group(1))


def python() -> dict:
    return runpy.run_path(str(ROOT / "python/snapboot/front_end/channel.py"))


def ruby(code: str) -> str:
    """What Ruby prints that has loaded the module Channel."""
    return subprocess.run(["ruby", "-r", str(RUBY), "-e", code], capture_output=True, check=True).stdout.decode()


def test_the_definition_is_read():
    assert len(ALL) > 20 and len(numbers()) == 6 and "kind" in EVENT
    assert all(len(text) > 5 for kind in ("Request", "Phase", "Kind") for text in words(kind).values())


def test_python_says_the_same():
    names = python()
    said = {name: value for name, value in names.items() if name.isupper() and name not in ("NAME", "EVENT")}
    assert sorted(value.decode() for value in said.values() if isinstance(value, bytes)) == sorted(ALL)
    assert {name: value for name, value in said.items() if isinstance(value, int)} == numbers()
    assert list(names["EVENT"]) == EVENT
    assert b'NAME: &[u8] = b"%b"' % names["NAME"] in DEFINITION.encode()


@pytest.mark.parametrize("kind", ["bytes", "cut off"])
def test_python_reads_what_it_writes(kind):
    names = python()
    record = names["record"](*FIELDS)
    if kind == "bytes":
        assert names["fields"](record) == FIELDS
    else:
        assert names["fields"](record[:-1]) == FIELDS[:-1]


def test_ruby_says_the_same():
    said = ruby("Channel.constants.each { |name| puts [name, *Channel.const_get(name)].join(\"\\t\") }").splitlines()
    rows = dict(line.split("\t", 1) for line in said)
    assert rows.pop("EVENT").split("\t") == EVENT
    assert 'NAME: &[u8] = b"%s"' % rows.pop("NAME") in DEFINITION
    assert {name: int(value) for name, value in rows.items() if value.isdigit()} == numbers()
    assert sorted(value for value in rows.values() if not value.isdigit()) == sorted(ALL)


def test_ruby_writes_and_reads_records_as_python_does():
    record = python()["record"](*FIELDS)
    quoted = "[%s].pack('H*')" % repr(record.hex())
    assert ruby("print Channel.record(*Channel.fields(%s)).unpack1('H*')" % quoted) == record.hex()
    assert ruby("print Channel.fields(%s.chop).size" % quoted) == str(len(FIELDS) - 1)


@pytest.mark.parametrize("kind", ["Request", "Phase", "Kind"])
def test_the_document_has_a_row_for_each(kind):
    missing = ["| `%s` | %s |" % (word, re.sub(r"\[(`\w+`)\]", r"\1", text)) for word, text in words(kind).items()]
    missing = [row for row in missing if row not in DOCUMENT]
    assert not missing, "\n".join(missing)


def test_nothing_else_is_said_in_secret():
    """No variable is set, no file looked for, and no thread named, to tell somebody something."""
    files = [path for folder in ("python", "ruby", "crates") for path in (ROOT / folder).rglob("*.*")]
    sources = [path for path in files if path.suffix in (".py", ".rb", ".rs")]
    marks = re.compile(r"/dev/null/snapboot|[\"']snapboot:(?!secrets\")\w|putenv\(b\"SNAPBOOT_|thread\.name = (?!MARK|before)")
    found = {str(path): marks.findall(path.read_text()) for path in sources if "/tests/" not in str(path)}
    assert {path: marks for path, marks in found.items() if marks and "crates/channel" not in path} == {}


# Fields of a record, which stood as keys of their own before there were records.
FIELDS_OF_RECORDS = re.compile(r"""["'](reader|place|because|holder|learnt_from|gem_version|harmless_reader)["']""")


def test_no_field_of_a_record_is_an_entry_of_its_own():
    folders = (ROOT / "python/snapboot/front_end", ROOT / "ruby/lib/snapboot/front_end")
    files = [file for folder in folders for file in folder.iterdir() if file.suffix in (".py", ".rb") and file.stem != "channel"]
    assert len(files) > 100
    assert not [file.name for file in files if FIELDS_OF_RECORDS.search(file.read_text())]
