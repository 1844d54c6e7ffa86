"""Archives with flipped bytes and lost ends, each followed by a boot: none wrong, none failed.

SNAPBOOT_DAMAGES of each program (default 60; `make damage` takes 10,000); the seed is printed, and SNAPBOOT_SEED repeats it.
"""

import os

import pytest
from common import support

from . import boots

DAMAGES = int(os.environ.get("SNAPBOOT_DAMAGES", "60"))


def flip(content, state):
    """One bit or one byte of it is another one."""
    at = state.randrange(len(content))
    content[at] ^= state.choice([1 << state.randrange(8), 0xFF, state.randrange(1, 256)])
    return f"byte {at} flipped"


def flip_early(content, state):
    """The same near the beginning, where headers are."""
    at = state.randrange(min(len(content), 8192))
    content[at] ^= 1 << state.randrange(8)
    return f"byte {at} flipped"


def flips(content, state):
    return ", ".join(flip(content, state) for _ in range(state.choice([2, 8, 64])))


def truncate(content, state):
    size = state.choice([state.randrange(len(content)), len(content) - state.randrange(1, 65), state.randrange(4096)])
    del content[size:]
    return f"cut off at {size}"


def zero_page(content, state):
    """A page that was never written, as after a crash of the machine."""
    at = state.randrange(0, len(content), 4096)
    content[at : at + 4096] = bytes(len(content[at : at + 4096]))
    return f"zeros at {at}"


def append(content, state):
    content += state.randbytes(state.choice([1, 100, 5000]))
    return "something appended"


def repeat(content, state):
    """A piece of it stands in another place."""
    size = state.choice([16, 64, 4096])
    one, other = (state.randrange(max(1, len(content) - size)) for _ in range(2))
    content[one : one + size] = content[other : other + size]
    return f"{size} bytes of {other} at {one}"


KINDS = [flip] * 8 + [flip_early] * 4 + [flips, truncate, truncate, zero_page, append, repeat]


@pytest.mark.fault("any bytes of an archive are others, its end is lost, something is added", "the boots are right, and mend it")
def test_damaged_archives(tmp_path):
    state, seed = support.seeded()
    boots_of = boots.made(boots.tiny, tmp_path).warm()
    whole = boots_of.archive.read_bytes()
    ordinary = boots_of.ordinary()
    for number in range(1, DAMAGES + 1):
        content = bytearray(whole)
        what = f"{seed}, damage {number}: {state.choice(KINDS)(content, state)}"
        new = boots_of.place / "new"
        new.write_bytes(content)
        new.chmod(0o600)
        os.replace(new, boots_of.archive)
        boots.same(ordinary, boots_of.boot(), what)
        if number % 10 == 0:
            boots.same(ordinary, boots_of.boot(), f"{what}, the next boot")
            _, events = boots_of.counted()
            assert events.get("code hit") and not events.get("code miss"), (what, "was not mended", events)


# Where damage is done, by the bytes that stand there.
KEY_OF_A_SOURCE = b"./late/second.rb"
KEY_OF_THE_DATA = b"./data.yml"
FRAME = b"\x28\xb5\x2f\xfd"  # how a block's compressed code starts


def test_damage_is_found_where_it_is(tmp_path):
    """Without this the test above could pass with boots that use nothing of a damaged archive, or never look at it."""
    boots_of = boots.made(boots.tiny, tmp_path).warm()
    boots_of.options["SNAPBOOT_ARCHIVE_READONLY"] = "1"
    whole = boots_of.archive.read_bytes()

    def events_with_damage(at):
        content = bytearray(whole)
        content[at] ^= 1
        support.write(boots_of.archive, content).chmod(0o600)
        return boots_of.counted()[1]

    _, whole_one = boots_of.counted()
    sources = whole_one["code hit"]
    assert whole_one == {"code hit": sources, "data hit": 1, "enabled": 1}
    assert events_with_damage(whole.index(KEY_OF_A_SOURCE)) == {**whole_one, "code hit": sources - 1, "code miss": 1}
    of_the_data = events_with_damage(whole.index(KEY_OF_THE_DATA))
    assert of_the_data["code hit"] >= sources and of_the_data["data miss"] == 1 and "data hit" not in of_the_data
    of_a_block = events_with_damage(whole.index(FRAME) + 100)
    assert of_a_block["code stale"] + of_a_block.get("code hit", 0) == sources and of_a_block["data hit"] == 1
    assert events_with_damage(0) == {}  # the header: it is no archive
