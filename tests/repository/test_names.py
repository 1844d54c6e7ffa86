"""Names of functions say what they return or do."""

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
CRATES = sorted(path.parent for path in (ROOT / "crates").glob("*/Cargo.toml"))
# Crates with such names left. The list only shrinks.
LEFT = {"archive", "archive-python", "archive-ruby", "cli", "explain", "image-file", "inputs", "launcher", "store"}
SAYS_NOTHING = re.compile(r"\bfn (of|at|told|known|holds|is_in)\b *[<(]")


def nameless(crate: pathlib.Path) -> list[str]:
    """Functions of a crate whose names say nothing at the call, as `file: name`."""
    sources = sorted(crate.rglob("*.rs"))
    assert sources
    found = ((path, name) for path in sources for name in SAYS_NOTHING.findall(path.read_text()))
    return [f"{path.relative_to(ROOT)}: {name}" for path, name in found]


@pytest.mark.parametrize("crate", CRATES, ids=lambda path: path.name)
def test_functions_say_what_they_return_or_do(crate):
    # What is left, is left for a reason that is gone when the names are.
    assert bool(nameless(crate)) == (crate.name in LEFT)


def test_only_whole_names_of_functions_count():
    assert SAYS_NOTHING.findall("pub fn of(a: u8)\nfn of_open() {}\n// of(\nfn at<T>(it: T)\nfn is_known()") == ["of", "at"]
