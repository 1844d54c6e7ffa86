"""Parsed data from the archive: what a program sees of it is what it sees without, on every Ruby; and what is served is what can be.

data/make_documents.rb writes YAML documents, data/loads.rb loads each in every way and prints all that can be seen of what comes of it;
data/calls.rb is about the calls themselves: arguments, changes of files, programs that change Psych.
"""

import functools
import pathlib
import subprocess

import pytest
from common.waiting import settle

from .rubies import KINDS, SETUP, OnJvm, archive_options

PROGRAMS = pathlib.Path(__file__).parent / "data"
RANDOM_DOCUMENTS, SEED = 30, 1


@pytest.fixture(scope="module")
def documents(rubies, tmp_path_factory):
    """A directory with the documents, long enough there to be remembered."""
    directory = tmp_path_factory.mktemp("documents")
    words = [rubies("cruby").command, PROGRAMS / "make_documents.rb", directory, str(RANDOM_DOCUMENTS), str(SEED)]
    subprocess.run(words, check=True)
    settle()
    return directory


@pytest.fixture(scope="module")
def boot(rubies):
    """Boots a program in a directory. A JVM can load TruffleRuby's psych, which is in C, only once."""

    def run(name, directory, words, **variables):
        if name != "truffleruby":
            return rubies(name).boot(directory, words, **variables)
        ruby = OnJvm(name)
        try:
            return ruby.boot(directory, words, **variables)
        finally:
            ruby.close()

    return run


@pytest.fixture(scope="module")
def same_objects_without(boot, documents):
    """What loads.rb prints without the archive; once for all back ends of a Ruby."""
    return functools.cache(lambda name: boot(name, documents, [PROGRAMS / "loads.rb", documents]))


@pytest.fixture(params=KINDS, ids=str)
def kind(request):
    """A Ruby and its back end."""
    return request.param


def boots(kind, boot, program, directory, folder):
    """The boot that fills the archive and the one that it serves, each with what it wrote about the calls that were served."""
    switch, variables = archive_options(kind, folder)
    for name in ("filling", "served"):
        report = folder / name
        result = boot(kind.name, directory, [*switch, PROGRAMS / program, directory, report], **variables)
        yield name, result, report.read_text().splitlines() if report.exists() else []


def differences(result, expected):
    """The lines that differ, shortened."""
    got, wanted = str(result).splitlines(), str(expected).splitlines()
    lines = [f"{one[:300]}\n  instead of\n{two[:300]}" for one, two in zip(got, wanted, strict=False) if one != two]
    return lines + ([f"{len(got)} lines instead of {len(wanted)}"] if len(got) != len(wanted) else [])


def test_same_objects(kind, boot, same_objects_without, documents, tmp_path):
    expected = same_objects_without(kind.name)
    for name, result, report in boots(kind, boot, "loads.rb", documents, tmp_path):
        assert differences(result, expected) == [], name
        calls = [line.split() for line in report]
        assert calls
        if name == "filling":
            assert [call for call in calls if call[2] == "hit"] == []
        else:
            wrong = {"kept": "parsed", "random": "parsed", "left": "hit"}
            assert [call for call in calls if call[2] == wrong[call[0].partition("/")[0]]] == []


def test_same_calls(kind, boot, tmp_path):
    directory = tmp_path / "program"
    directory.mkdir()
    boot(kind.name, directory, [PROGRAMS / "calls.rb", directory])  # writes the files
    settle()
    expected = boot(kind.name, directory, [PROGRAMS / "calls.rb", directory])
    for name, result, _ in boots(kind, boot, "calls.rb", directory, tmp_path):
        assert differences(result, expected) == [], name


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.back_end == "native"], ids=str)
def test_notation(kind, boot, documents, tmp_path):
    switch, variables = archive_options(kind, tmp_path)
    words = ["-I", SETUP.parents[1], *switch, PROGRAMS / "notation.rb", documents, "20000", str(SEED)]
    result = boot(kind.name, tmp_path, words, **variables)
    assert (result.status, result.err) == (0, "")
    assert result.out.endswith(" documents, 20000 damages\n")
