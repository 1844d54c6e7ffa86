"""tests/README.md lists the faults that tests bring about, all of them and nothing else."""

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))

import faults  # noqa: E402

MARKED = '@pytest.mark.parametrize("x", [1])\n@pytest.mark.fault("it rains", "it gets wet")\ndef test_rain(x): pass\n'


def test_the_list_is_up_to_date():
    document = faults.DOCUMENT.read_text()
    assert document == faults.filled_in(document, faults.table(faults.faults())), "run: tools/faults.py --write"
    assert len(faults.faults()) > 30


def test_marked_tests_are_found():
    (fault,) = faults.faults_in(MARKED + "@pytest.mark.skip\ndef test_other(): pass\n", "tests/a.py")
    assert fault == ("it rains", "it gets wet", "tests/a.py::test_rain")
    assert "| it rains | it gets wet | [rain](a.py) |" in faults.table([fault])


@pytest.mark.parametrize("words", ['"it rains"', '"", "wet"', '1, "wet"', ""])
def test_a_mark_says_what_happens_and_what_comes_of_it(words):
    with pytest.raises(ValueError, match="test_rain: pytest.mark.fault takes"):
        faults.faults_in(f"@pytest.mark.fault({words})\ndef test_rain(): pass\n", "tests/a.py")
