"""What `snapboot freeze` and `snapboot install` take from the remote store, and give to it."""

import dataclasses
import json
import os
import pathlib
import shutil
import tempfile

import pytest
from common import support
from common.languages import PYTHON, both

from store.fleets import Fleet
from store.stores import is_thawed


@both
def test_a_freeze_takes_what_another_machine_has_frozen_in_the_same_way(tmp_path, language):
    fleet = Fleet(tmp_path, language)
    one, other = fleet.machine("one"), fleet.machine("other")
    assert frozen(fleet, one)["outcome"] == "written" and len(fleet.objects("images")) == 1
    pulled = frozen(fleet, other)
    assert pulled["outcome"] == "pulled" and pulled["image"] == str(other.folder / "app.img"), pulled
    own, taken = one.folder / "app.img", other.folder / "app.img"
    is_same = own.read_bytes() == taken.read_bytes()
    assert is_same and own.stat().st_mode == taken.stat().st_mode
    first, again = start(fleet, one), start(fleet, other)
    assert is_thawed(again) and again.out == first.out and "1 ['a']" in again.out.replace('"', "'"), again
    told = other.snapboot("freeze", "-o", taken, "--", *fleet.words, cwd=fleet.files, log=False)
    assert told.status == 0 and told.out.endswith("from the remote store\n"), told
    # Asked for otherwise, or not to be taken, or with other inputs, it is made here.
    for options in (["--no-remote"], ["--policy", "content"], ["--max-age", "1d"]):
        assert frozen(fleet, other, *options)["outcome"] == "written", options
    fleet.part.write_text(fleet.part.read_text().replace("1", "2"))
    # An image of a Ruby script holds none of the script's files.
    assert frozen(fleet, other)["outcome"] == ("written" if language is PYTHON else "pulled")
    assert frozen(fleet, one)["outcome"] == "pulled" and start(fleet, one).out == first.out.replace("1", "2")


def test_the_same_words_elsewhere_are_another_image(tmp_path):
    fleet = Fleet(tmp_path, PYTHON)
    one, elsewhere = fleet.machine("one"), tmp_path / "elsewhere"
    shutil.copytree(fleet.files, elsewhere)
    made = [
        json.loads(one.snapboot("freeze", "--json", "-o", one.folder / "x.img", "--", PYTHON.program, "show.py", cwd=folder, log=False).out)
        for folder in (fleet.files, elsewhere, fleet.files)
    ]
    assert [row["outcome"] for row in made] == ["written", "written", "pulled"], made


@pytest.mark.fault("a remote store that is damaged or not there while snapboot freeze asks it", "the image is made, and a note says why")
@pytest.mark.parametrize("damage, words", [("chunk", "it was damaged or exchanged"), ("store", "no such file or directory")])
def test_a_freeze_makes_the_image_whatever_is_wrong(tmp_path, damage, words):
    fleet = Fleet(tmp_path, PYTHON)
    one, other = fleet.machine("one"), fleet.machine("other")
    frozen(fleet, one)
    if damage == "chunk":
        os.truncate(max(fleet.objects("chunks"), key=lambda path: path.stat().st_size), 100)
    else:
        shutil.rmtree(fleet.remote)
    image = other.folder / "app.img"
    made = other.snapboot("freeze", "-o", image, "--", *fleet.words, cwd=fleet.files, log=False)
    assert made.status == 0 and "note: the image is made here" in made.err and words in made.err, made
    assert is_thawed(start(fleet, other))
    assert sorted(path.name for path in other.folder.iterdir() if "app" in path.name) == ["app.img"]


def test_what_a_freeze_was_told_to_keep_is_not_given(tmp_path):
    fleet = Fleet(tmp_path, PYTHON)
    one = fleet.machine("one")
    frozen(fleet, one, "--no-remote")
    frozen(fleet, one, "--max-thaws", "5")
    assert not fleet.objects("images")
    fleet.part.chmod(0o600)
    made = one.snapboot("freeze", "-o", one.folder / "app.img", "--", *fleet.words, cwd=fleet.files, log=False)
    assert made.status == 0 and "the remote store does not get the image" in made.err and "mode 0600" in made.err, made
    assert not fleet.objects("images")


def test_an_installed_command_has_the_image_of_another_machine(tmp_path):
    fleet = Fleet(tmp_path, PYTHON)
    command = fleet.files / "show"
    command.write_text(f"#!{shutil.which(PYTHON.program)}\n" + fleet.script.read_text())
    command.chmod(0o755)
    one, other, third = [fleet.machine(name) for name in ("one", "other", "third")]
    assert "from the remote store" not in installed(one, command) and len(fleet.objects("images")) == 1
    assert "from the remote store" in installed(other, command)
    assert "from the remote store" not in installed(third, command, "--no-remote")
    assert len(fleet.objects("images")) == 1
    starts = [support.run([machine.place / "data/bin/show", "a"], env=machine.env, cwd=fleet.files) for machine in (one, other)]
    assert all(is_thawed(start) and start.out == starts[0].out for start in starts), starts


@pytest.mark.skipif(not support.IS_ROOT, reason="only root can become somebody else")
def test_others_can_start_a_command_in_whose_place_an_image_of_another_machine_is():
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        fleet = Fleet(pathlib.Path(folder), dataclasses.replace(PYTHON, program=support.public_python()))
        command = fleet.files / "show"
        command.write_text(f"#!{fleet.language.program}\nimport sys\nprint(1, sys.argv[1:])\n")
        command.chmod(0o755)
        one, other = fleet.machine("one"), fleet.machine("other")
        installed(one, command, "--in-place")
        assert len(fleet.objects("images")) == 1
        assert one.snapboot("uninstall", "show", log=False).status == 0
        assert "from the remote store" in installed(other, command, "--in-place")
        for who in ([command, "a"], support.as_nobody([command, "a"])):
            started = support.run(who, env={**other.env, "HOME": "/", "SNAPBOOT_ON_STALE": "error"}, cwd="/")
            assert is_thawed(started) and started.out == "1 ['a']\n", started


def frozen(fleet, machine, *options):
    """The report on a machine's image app.img, which was frozen or pulled."""
    words = ["freeze", "--json", *options, "-o", machine.folder / "app.img", "--", *fleet.words]
    result = machine.snapboot(*words, cwd=fleet.files, log=False)
    assert result.status == 0, result
    return json.loads(result.out)


def start(fleet, machine):
    return support.run([machine.folder / "app.img", "a"], env=machine.env, cwd=fleet.files)


def installed(machine, command, *options):
    """What is said of an installation."""
    result = machine.snapboot("install", *options, command, log=False)
    assert result.status == 0, result
    return result.out


def test_the_image_that_is_there_is_not_in_the_way_of_a_program_that_lists_its_folder(tmp_path):
    fleet = Fleet(tmp_path, PYTHON)
    fleet.part.write_text("import os\nVALUE = len(os.listdir(os.path.dirname(__file__)))\n")
    image = fleet.files / "app.img"
    outcomes = []
    for name in ("one", "other", "third"):
        words = ["freeze", "--json", "-o", image, "--", *fleet.words]
        outcomes.append(json.loads(fleet.machine(name).snapboot(*words, cwd=fleet.files, log=False).out)["outcome"])
    assert outcomes == ["written", "pulled", "pulled"]
