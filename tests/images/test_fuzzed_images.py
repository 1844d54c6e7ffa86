"""Images with damaged fields and right checksums, run by the real launcher: each must end in the ordinary answer.

The checks of the reader alone are fuzzed in crates/image-writer/tests/fuzz; here it is what the launcher does with fields that
passed them. The image is one whose very last step before the jump fails, an action for SIGKILL: so no damaged process ever
runs, and whatever happens up to there, with all memory replaced, has to end in the original command. A signal would be the
launcher's own.

FUZZ_SEED and FUZZ_CASES ask for other cases and for more of them; a failure names its case.
"""

import errno
import os
import random
import struct

import pytest
from common import support
from common.image_file import ImageFile, image_format
from common.waiting import wait_until

ASK = ["-c", "import sys; print('right', sys.argv[1:])", "an argument"]
ANSWER = "right ['an argument']\n"
LAST_STEP = "cannot set a signal's action"
SIGKILL = 9
SEED = int(os.environ.get("FUZZ_SEED", 1))
CASES = int(os.environ.get("FUZZ_CASES", 300))

ROWS = {
    "registers": "Registers",
    "process": "Process",
    "platform": "Platform",
    "cpu": "CpuLeaf",
    "mappings": "Mapping",
    "files": "MappedFile",
    "descriptors": "Descriptor",
    "signals": "SignalAction",
    "inputs": "Input",
    "variables": "Variable",
    "patterns": "Item",
    "hot": "HotRange",
    "touched": "TouchedRange",
    "touched-files": "TouchedFileRange",
    "settings": "Settings",
}


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    """An image that falls back at the last moment. Tests change it in place, and undo that."""
    path = support.frozen(tmp_path_factory.mktemp("fuzzed") / "last.img", [support.PYTHON, "-I", "-S"])
    changed = ImageFile(support.read(path))
    changed.set("SignalAction", "number", changed.rows("signals")[0], SIGKILL)
    return support.write(path, changed.seal())


@pytest.fixture(scope="module")
def content(image):
    return support.read(image)


def places(whole):
    """Name, place in the file and size of every field that may be damaged: groups of equal weight."""
    fields = whole.format.records
    head = [(f"head.{name}", whole.head_at + at, size) for name, (at, size) in fields["Head"].items()]
    groups = [[place for place in head if not place[0].endswith("_sum")]]
    directory = whole.head("tables_offset") + 8
    (count,) = struct.unpack_from("<I", whole.bytes, directory - 8)
    entries = range(directory, directory + count * whole.format.size("Entry"), whole.format.size("Entry"))
    groups.append(
        [
            (f"directory.{name}", entry + at, size)
            for entry in entries
            if whole.get("Entry", "section", entry) != whole.format.sections["signals"]
            for name, (at, size) in fields["Entry"].items()
        ]
    )
    for section, record in ROWS.items():
        group = [
            (f"{section}[{index}].{name}", row + at, size)
            for index, row in enumerate(whole.rows(section))
            for name, (at, size) in fields[record].items()
            if (section, index, name) != ("signals", 0, "number")
        ]
        groups += [group] if group else []
    # Most of what a launcher does follows from these.
    return groups + [group for group in groups if group[0][0].startswith(("process", "mappings"))] * 2


def borders():
    """Numbers at which checks change their mind."""
    names = ("PAGE", "HEAD_AREA", "MAX_TABLES", "RESERVED_START", "RESERVED_END", "ADDRESS_END", "MAX_DESCRIPTORS")
    powers = [1 << bits for bits in (0, 16, 31, 32, 47, 63, 64)]
    return [0, 4, 64, *powers, *(image_format().constants[name] for name in names)]


def damaged(now, size, numbers, chance):
    """Another number of `size` bytes in place of `now`; `numbers` are others that the image holds."""
    near = chance.choice((1, 8, 4096))
    value = chance.choice(
        (
            now + near,
            now - near,
            now ^ (1 << chance.randrange(size * 8)),
            chance.getrandbits(size * 8) >> chance.randrange(size * 8),
            chance.choice(numbers) + chance.choice((0, 0, near, -near)),
            chance.choice(numbers) + chance.choice((0, 0, near, -near)),
            chance.choice(borders()) - chance.choice((0, 0, near)),
        )
    )
    return value % (1 << size * 8)


def case(content, number):
    """The image of a case, sealed, and what was done to it."""
    chance = random.Random(f"{SEED} {number}")
    changed = ImageFile(content)
    groups, done = places(changed), []
    addresses = [changed.get("Mapping", edge, row) for row in changed.rows("mappings") for edge in ("start", "end")]
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        name, at, size = chance.choice(chance.choice(groups))
        if size > 8:
            at, size = at + chance.randrange(size), 1
        elif size == 8 and chance.random() < 0.2:
            at, size = at + chance.choice((0, 4)), 4
        value = damaged(int.from_bytes(changed.bytes[at : at + size], "little"), size, addresses, chance)
        changed.bytes[at : at + size] = value.to_bytes(size, "little")
        done.append(f"{name} = {value:#x}")
    return changed.seal(), f"case {number} of seed {SEED}: {', '.join(done)}"


def is_free(path):
    """Whether the program in a file has ended, for the kernel too: another process may still look at its memory in /proc."""
    try:
        open(path, "r+b").close()
    except OSError as error:
        if error.errno != errno.ETXTBSY:
            raise
        return False
    return True


def write_differences(path, before, after):
    """Change a file in place: only its head and tables differ, and most of it is pages."""
    wait_until(lambda: is_free(path), "the program in the file has ended")
    with open(path, "r+b") as file:
        for at in range(0, len(before), 4096):
            if before[at : at + 4096] != after[at : at + 4096]:
                file.seek(at)
                file.write(after[at : at + 4096])


def test_the_last_step_fails(image):
    result = support.run([image, *ASK])
    assert result.out == ANSWER and result.status == 0 and LAST_STEP in result.err, result


@pytest.mark.fault("fields with random values under right checksums, run by the real launcher", "the ordinary start")
def test_damage_with_right_checksums_ends_in_the_ordinary_answer(image, content):
    reached = 0
    for number in range(CASES):
        changed, what = case(content, number)
        write_differences(image, content, changed)
        result = support.run([image, *ASK])
        write_differences(image, changed, content)
        if "head.command_" in what and result.status == 125:
            assert "no original command" in result.err and result.out == "", (what, result)
        else:
            assert (result.out, result.status, result.fell_back) == (ANSWER, 0, True), (what, result)
        reached += LAST_STEP in result.err
    assert reached > CASES / 20, "some damage is found by no check, and gets to the last step"
