"""Each kind of change, one at a time, on each program; then many at random."""

import os
import random

import pytest
from common import support
from workloads import Unavailable

from . import changes, programs

pytestmark = pytest.mark.sample(20, whole=True)

STEPS = int(os.environ.get("SNAPBOOT_STEPS", "60"))

SMALL = {
    "python": (programs.small_python, [*changes.SMALL, changes.pth]),
    "ruby": (programs.small_ruby, [*(change for change in changes.SMALL if change is not changes.library), changes.gem]),
}
FRAMEWORKS = {
    "web": (programs.web, [*changes.COMMON, changes.pth]),
    "django": (programs.django, [*changes.COMMON, changes.pth]),
    # A start takes two seconds, and so does a freeze.
    "rails": (
        programs.rails,
        [changes.edit_same_size, changes.replace, changes.touch, changes.shadow, changes.environment, changes.swap_folders],
    ),
}


def made(make, top):
    if make in (programs.small_ruby, programs.rails) and support.RUBY is None:
        pytest.skip("there is no ruby")
    try:
        return make(top)
    except Unavailable as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="module")
def program_of(tmp_path_factory):
    """Programs by name, each made once."""
    made_once = {}

    def program(name, make):
        if name not in made_once:
            made_once[name] = made(make, tmp_path_factory.mktemp(name))
        return made_once[name]

    return program


def compared(program, what):
    ordinary, other, fell_back = program.starts()
    assert programs.same(ordinary, other), f"after {what}:\nordinary: {ordinary}\nimage: {other}\nfell back: {fell_back}"
    return ordinary, fell_back


CASES = [
    pytest.param(name, make, change, id=f"{name}-{change.__name__}")
    for name, (make, all) in SMALL.items()
    for change in all
]


@pytest.mark.parametrize("name, make, change", CASES)
def test_a_start_after_a_change_is_as_right_as_an_ordinary_one(program_of, name, make, change):
    program = program_of(name, make)
    random_state = random.Random(f"{name} {change.__name__}")
    done = program.freeze()
    assert done.status == 0, done
    compared(program, "the freeze")
    for _ in range(2):
        compared(program, change(program, random_state))


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_a_framework_after_each_change(tmp_path, name):
    make, kinds = FRAMEWORKS[name]
    program = made(make, tmp_path)
    assert program.freeze().status == 0
    walk = []
    for change in support.sampled(kinds):
        walk.append(change(program, random.Random(f"{name} {change.__name__}")))
        _, fell_back = compared(program, ", ".join(walk))
        if fell_back and program.freeze().status != 0:
            # What was shadowed has broken it.
            for path in program.shadows:
                path.unlink(missing_ok=True)
            assert program.freeze().status == 0


@pytest.mark.parametrize("name", SMALL)
def test_an_unchanged_program_thaws(tmp_path, name):
    """Without this the other tests could pass with images that always fall back."""
    program = made(SMALL[name][0], tmp_path)
    assert program.freeze().status == 0
    for harmless in (changes.touch, changes.copy, changes.hard_link, changes.unrelated, changes.swap_folders):
        what = harmless(program, random.Random(1))
        _, fell_back = compared(program, what)
        assert not fell_back, what


@pytest.mark.parametrize("name", SMALL)
def test_random_changes(tmp_path, name):
    """A walk of SNAPBOOT_STEPS changes; the seed is printed, and SNAPBOOT_SEED repeats it."""
    state, seed = support.seeded()
    make, kinds = SMALL[name]
    program, walk = None, []
    for step in range(STEPS):
        if program is None:
            top = tmp_path / f"{step}"
            top.mkdir()
            program, walk = made(make, top), []
            assert program.freeze().status == 0
        walk.append(state.choice(kinds)(program, state))
        _, fell_back = compared(program, f"{seed}: " + ", ".join(walk))
        if fell_back:
            walk.append("freeze")
            if program.freeze().status != 0:
                program = None  # what was changed last broke the program
