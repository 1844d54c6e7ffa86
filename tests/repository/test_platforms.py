"""The README's table of the machines on which images were tried: it is made of stored results, and says what failed."""

import pathlib

import platforms
import pytest
import results


@pytest.fixture
def stored(monkeypatch, tmp_path):
    monkeypatch.setattr(platforms, "RESULTS", tmp_path / "platforms.json")
    monkeypatch.setattr(results, "commit", lambda: "12345678")
    return platforms.stored


def test_the_readme_has_the_stored_results():
    readme = platforms.README.read_text()
    assert platforms.table(platforms.stored()) in readme and "<!-- tools/platforms.py: begin -->" in readme


def test_without_results_there_is_no_table(stored):
    assert platforms.table(stored()) == ""


def test_platforms_of_one_title_share_a_row_and_failures_are_named(stored):
    platforms.store("cpu", "Haswell", "CPUs up to v3", {"programs": {"passed": 3, "failed": []}})
    platforms.store("cpu", "EPYC", "CPUs up to v3", {"programs": {"passed": 2, "failed": ["hello for v3"]}})
    platforms.store("kernel", "sid", "Linux 7.1", {"programs": {"passed": 1, "failed": []}})
    platforms.store("kernel", "sid", "Linux 7.2", {"behaviour": {"passed": 1200, "failed": [], "not run": {}}})
    lines = platforms.table(stored()).splitlines()
    assert lines[2:4] == [
        "| Linux 7.2 | 1 of 1 | 1,200 of 1,200 | – | `make kernels` |",
        "| CPUs up to v3 (Haswell, EPYC) | 5 of 6 | – | – | `make cpus` |",
    ]
    assert lines[-1].endswith(" Failed: `EPYC: hello for v3`.")


def test_pytests_report_is_counted(tmp_path):
    report = tmp_path / "report.xml"
    report.write_text(
        "<testsuites><testsuite><testcase name='a'/><testcase name='b'><failure/></testcase><testcase name='c'><error/></testcase>"
        "<testcase name='d'><skipped message='no moon'/></testcase></testsuite></testsuites>"
    )
    assert results.counted(pathlib.Path(report)) == {"passed": 1, "failed": ["b", "c"], "not run": {"no moon": 1}}
