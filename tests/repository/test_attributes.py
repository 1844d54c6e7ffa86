"""docs/process-attributes.md lists the kernel's attributes of a process as the tests that hold them do."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))

import attributes  # noqa: E402


def test_the_table_is_up_to_date():
    document = attributes.DOCUMENT.read_text()
    assert document == attributes.filled_in(document, attributes.table()), "run: tools/attributes.py --write"


def test_each_attribute_is_in_it():
    text = attributes.table()
    assert len(attributes.classes()) > 50
    assert all(f"| {name} | " in text for name in attributes.classes())
