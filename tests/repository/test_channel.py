"""The channel between front ends, freezer and recorder is defined once, in crates/channel: Python, Ruby and the document say the same."""

import ast
import re
import runpy
import subprocess

import pytest
from common import sources, support

ROOT = support.ROOT
RUBY = ROOT / "ruby/lib/snapboot/front_end/channel.rb"
DOCUMENT = (ROOT / "docs/internals/protocol.md").read_text()
# Fields of a record that are hard to read: those that look like the head of another one, and text that is none.
FIELDS = [b"", b"a", b"1:", b"10:\n=", "é".encode(), b"\xff\xfe"]
DEFINITION = sources.tables()["channel"]
WORDS = DEFINITION["words"]
ALL = [word for meanings in WORDS.values() for word in meanings]
# Fields of a record, which stood as keys of their own before there were records.
FIELDS_OF_RECORDS = {"reader", "place", "because", "holder", "learnt_from", "gem_version", "harmless_reader"}


def python() -> dict:
    return runpy.run_path(str(ROOT / "python/snapboot/front_end/channel.py"))


def ruby(code: str) -> str:
    """What Ruby prints that has loaded the module Channel."""
    return subprocess.run(["ruby", "-r", str(RUBY), "-e", code], capture_output=True, check=True).stdout.decode()


def test_the_definition_is_read():
    assert len(ALL) > 20 and len(DEFINITION["bits"]) == 6 and "kind" in DEFINITION["event"]
    assert all(len(text) > 5 for meanings in WORDS.values() for text in meanings.values())


def test_python_says_the_same():
    names = python()
    said = {name: value for name, value in names.items() if name.isupper() and name not in ("NAME", "EVENT")}
    assert sorted(value.decode() for value in said.values() if isinstance(value, bytes)) == sorted(ALL)
    assert {name: value for name, value in said.items() if isinstance(value, int)} == DEFINITION["bits"]
    assert list(names["EVENT"]) == DEFINITION["event"]
    assert names["NAME"].decode() == DEFINITION["name"]


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
    assert rows.pop("EVENT").split("\t") == DEFINITION["event"]
    assert rows.pop("NAME") == DEFINITION["name"]
    assert {name: int(value) for name, value in rows.items() if value.isdigit()} == DEFINITION["bits"]
    assert sorted(value for value in rows.values() if not value.isdigit()) == sorted(ALL)


def test_ruby_writes_and_reads_records_as_python_does():
    record = python()["record"](*FIELDS)
    quoted = "[%s].pack('H*')" % repr(record.hex())
    assert ruby("print Channel.record(*Channel.fields(%s)).unpack1('H*')" % quoted) == record.hex()
    assert ruby("print Channel.fields(%s.chop).size" % quoted) == str(len(FIELDS) - 1)


@pytest.mark.parametrize("kind", ["Request", "Phase", "Kind"])
def test_the_document_has_a_row_for_each(kind):
    rows = ["| `%s` | %s |" % (word, re.sub(r"\[(`\w+`)\]", r"\1", text)) for word, text in WORDS[kind].items()]
    missing = [row for row in rows if row not in DOCUMENT]
    assert not missing, "\n".join(missing)


def variables_set(path) -> list[bytes]:
    """Snapboot's variables that a file of Python passes to putenv."""
    calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call) and node.args]
    put = [call.args[0] for call in calls if ast.unparse(call.func).rpartition(".")[2] == "putenv"]
    return [name.value for name in put if isinstance(name, ast.Constant) and name.value[:9] in (b"SNAPBOOT_", "SNAPBOOT_")]


def test_nothing_else_is_said_in_secret():
    """No variable is set, no file looked for, and no thread named, to tell somebody something."""
    secret = re.compile(r"^/dev/null/snapboot|^snapboot:(?!secrets$)\w")
    code = {path: facts for path, facts in sources.product().items() if "channel" not in path.parts}
    texts = {path: facts.texts() for path, facts in code.items()} | {path: it.literals for path, it in sources.front_ends().items()}
    assert {path: found for path, all in texts.items() if (found := [text for text in all if secret.search(text)])} == {}
    python_files = [path for path in sources.front_ends() if path.suffix == ".py"]
    assert {path: names for path in python_files if (names := variables_set(path))} == {}
    rubies = [facts for path, facts in sources.front_ends().items() if path.suffix == ".rb"]
    named = [names for facts in rubies for attribute, names in facts.assignments if attribute == "name"]
    assert named and [names for names in named if names not in (["MARK"], ["before"])] == []


def test_no_field_of_a_record_is_an_entry_of_its_own():
    files = {path: facts for path, facts in sources.front_ends().items() if path.parent.name == "front_end" and path.stem != "channel"}
    assert len(files) > 100
    assert [path.name for path, facts in files.items() if FIELDS_OF_RECORDS & set(facts.literals)] == []
