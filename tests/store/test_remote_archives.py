"""Boot archives that machines take from a remote store before the first boot of a program."""

import json
import os
import re
import shutil

import pytest
from common import support
from common.languages import PYTHON, RUBY

from store.fleets import Fleet

pytestmark = pytest.mark.sample(4)
LANGUAGES = pytest.mark.parametrize(
    "language", [PYTHON, pytest.param(RUBY, marks=support.needs_ruby)], ids=lambda language: language.name
)


# Without it a Python would import nothing that is worth an archive.
MORE = {"python": "import argparse, json, logging\n", "ruby": "require 'json'\n"}


class Application:
    """A program with an archive of its own, at the same path on all machines of a fleet."""

    def __init__(self, top, language):
        self.fleet = Fleet(top, language)
        self.folder = self.fleet.files
        self.fleet.script.write_text(MORE[language.name] + self.fleet.script.read_text())
        self.archive = self.folder / "tmp/cache/snapboot.archive"
        self.archive.parent.mkdir(parents=True)
        self.one, self.other = (self.fleet.machine(name, SNAPBOOT_ARCHIVE=str(self.archive)) for name in ("one", "other"))
        self.boot(self.one, "1")
        assert self.archive.exists()

    def boot(self, machine, shown):
        """A start without an image, which fills the archive."""
        started = machine.run(*self.fleet.words, "a", options=["--no-freeze"], cwd=self.folder)
        assert started.status == 0 and started.out.startswith(f"{shown} "), started

    def check_out_again(self):
        """The files of another machine: the same contents at other times, and no archive."""
        shutil.rmtree(self.folder / "tmp/cache", ignore_errors=True)
        for path in (self.fleet.script, self.fleet.part):
            path.write_bytes(path.read_bytes())
            os.utime(path, (1_600_000_000, 1_600_000_000))

    def share(self, machine, word):
        return machine.snapboot("archive", word, self.archive, log=False)


@pytest.fixture
def application(tmp_path, language):
    return Application(tmp_path, language)


def entries(archive):
    """The names of the entries of an archive, with their kinds."""
    listed = support.run([support.SNAPBOOT, "archive", "list", "--json", archive], log=False)
    assert listed.status == 0, listed
    return sorted((entry["kind"], entry["name"]) for entry in json.loads(listed.out)["entries"])


@LANGUAGES
def test_an_archive_of_another_machine_serves_the_first_boot(application):
    before, content = entries(application.archive), application.archive.read_bytes()
    pushed = application.share(application.one, "push")
    assert pushed.status == 0 and re.search(r"pushed \(\d+ of \d+ chunks were new", pushed.out), pushed
    application.check_out_again()
    pulled = application.share(application.other, "pull")
    assert pulled.status == 0 and "pulled (" in pulled.out, pulled
    assert application.archive.read_bytes() == content and entries(application.archive) == before
    application.boot(application.other, "1")
    # What is edited since is not taken from there.
    application.fleet.part.write_text("VALUE = 2\n")
    application.boot(application.other, "2")


@LANGUAGES
def test_an_archive_that_is_as_new_stays(application):
    assert application.share(application.one, "push").status == 0
    kept = application.share(application.one, "pull")
    assert kept.status == 0 and "is as new" in kept.out, kept
    none = application.other.snapboot("archive", "pull", application.folder / "another/archive", log=False)
    assert none.status == 1 and "has no archive" in none.err and not (application.folder / "another").exists(), none


@LANGUAGES
def test_what_only_its_owner_may_read_keeps_an_archive_here(application):
    application.fleet.part.chmod(0o600)
    stays = application.share(application.one, "push")
    assert stays.status == 2 and str(application.fleet.part) in stays.err and "mode 0600" in stays.err, stays
    assert not application.fleet.objects("images")


@LANGUAGES
@pytest.mark.parametrize("part", ["images", "chunks"])
@pytest.mark.fault("a boot archive in the remote store is damaged, or signed by somebody else", "it is not taken, and nothing is left")
def test_a_damaged_archive_is_not_taken(application, part):
    assert application.share(application.one, "push").status == 0
    application.check_out_again()
    path = application.fleet.objects(part)[0]
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    refused = application.share(application.other, "pull")
    assert refused.status in (1, 2) and refused.err.startswith("snapboot: "), refused
    assert not list((application.folder / "tmp").rglob("*archive*"))
    application.boot(application.other, "1")


@LANGUAGES
def test_what_is_no_archive_is_not_replaced(application):
    assert application.share(application.one, "push").status == 0
    application.archive.write_text("something else\n")
    refused = application.share(application.other, "pull")
    assert refused.status == 2 and application.archive.read_text() == "something else\n", refused
