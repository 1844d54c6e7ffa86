"""A sample of the programs that no other test knows (SNAPBOOT_STRANGERS=all: all of them)."""

import os

import pytest

from . import strangers

# Small ones, in both languages, that are quickly installed.
SAMPLE = ("pygments", "yamllint", "rake")
CHOSEN = [it for it in strangers.programs() if os.environ.get("SNAPBOOT_STRANGERS") == "all" or it.name in SAMPLE]


@pytest.mark.parametrize("program", CHOSEN, ids=[it.name for it in CHOSEN])
def test_a_program_starts_as_without_an_image(program, tmp_path):
    outcome = strangers.outcome(program, tmp_path)
    if outcome.kind == "missing":
        pytest.skip(outcome.text)
    assert outcome.is_good, f"{outcome.kind}: {outcome.text}"


def test_the_sample_is_there():
    assert {it.name for it in CHOSEN} >= set(SAMPLE)


def made(tmp_path, text, **keys):
    """What comes of a program of these lines, in Python."""
    program = strangers.Program(
        name="made", python=(), command=("{python}", "made.py"), starts=({"args": []},), files={"made.py": text}, **keys
    )
    program.prepare()
    return strangers.outcome(program, tmp_path).kind


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("same", "print('a')"),
        ("same", "import sys; sys.exit(3)"),
        ("different", "print('.img' in open('/proc/self/maps').read())"),
        ("unstable", "import os; print(os.getpid(), os.urandom(4))"),
    ],
)
def test_what_is_seen(tmp_path, kind, text):
    assert made(tmp_path, text) == kind


def test_a_refusal_counts_where_it_is_expected_and_only_there(tmp_path):
    text = "x = 1 +"
    assert made(tmp_path / "expected", text, refused="syntax") == "refused"
    assert made(tmp_path / "other", text) == "useless"
    assert made(tmp_path / "none", "print(1)", refused="syntax") == "different"
