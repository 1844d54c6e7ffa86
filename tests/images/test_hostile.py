"""Images that are damaged, cut off, moved, somebody else's: each runs the original command, or says plainly why it cannot.

No case may end in a crash or a hang. What the tests cannot promise is an image whose launcher itself was cut off: its code
is not there to say anything.
"""

import os
import pathlib
import random
import shutil
import struct
import subprocess

import pytest
from common import support
from common.image_file import ImageFile

ASK = ["-c", "import sys; print('right', sys.argv[1:])", "an argument"]
ANSWER = "right ['an argument']\n"
FLIPS = 300


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    """An image whose fallback is quick."""
    folder = tmp_path_factory.mktemp("hostile")
    return support.frozen(folder / "small.img", [support.PYTHON, "-I", "-S"])


@pytest.fixture(scope="module")
def content(image):
    return support.read(image)


def launcher_end(content):
    """Where the launcher's own bytes end in the file: the last byte that a segment of it loads."""
    (table,) = struct.unpack_from("<Q", content, 32)
    size, count = struct.unpack_from("<HH", content, 54)
    ends = [0]
    for index in range(count):
        kind, _, offset, _, _, file_size = struct.unpack_from("<IIQQQQ", content, table + index * size)
        if kind == 1:
            ends.append(offset + file_size)
    return max(ends)


def falls_back(argv, reason="", **options):
    """Run an image; it must answer through the original command, and the log must hold `reason`."""
    result = support.run([*argv, *ASK], **options)
    assert result.out == ANSWER and result.status == 0 and result.fell_back, result
    assert reason in result.err, result
    return result


def falls_back_or_refuses(argv, **options):
    """As falls_back, but without a usable command the launcher may say so, with status 125."""
    result = support.run([*argv, *ASK], **options)
    support.no_signal(result)
    if result.status == 125:
        assert "no original command" in result.err and result.out == "", result
    else:
        assert result.out == ANSWER and result.status == 0 and result.fell_back, result
    return result


def test_the_image_itself_is_good(image):
    assert support.thawed([image, *ASK]).out == ANSWER


@pytest.mark.fault("an image is cut off", "the ordinary start, or a refusal when the command is gone")
def test_cut_off_at_every_border(content, tmp_path):
    whole = ImageFile(content)
    borders = {launcher_end(content), whole.head("pages_offset"), whole.head("tables_offset"), len(content)}
    for name in whole.format.sections:
        if section := whole.section(name):
            borders |= {section[0], section[0] + section[2]}
    places = {border + offset for border in borders for offset in (-1, 0, 1)}
    for size in sorted(size for size in places if launcher_end(content) <= size < len(content)):
        cut = support.write(tmp_path / "cut.img", content[:size])
        falls_back([cut], "the image was cut off")
        falls_back([support.launcher(), cut], "the image was cut off")


def test_cut_off_inside_the_launcher_is_refused_by_who_can_tell(content, tmp_path):
    for size in (0, 1, 63, 64, 100, 4096, 8191, 8192, 8193, 8192 + 60, 8192 + 16383):
        cut = support.write(tmp_path / "cut.img", content[:size])
        result = support.run([support.launcher(), cut, *ASK])
        assert result.status == 125 and "too short" in result.err, (size, result)
    for size in (8192, 8192 + 16384):
        cut = support.write(tmp_path / "cut.img", content[:size])
        assert support.run([support.SNAPBOOT, "verify", cut]).status == 1
        assert support.run([cut, *ASK]).status != 0, "and it ends"


@pytest.mark.fault("any byte of the head is another one", "the ordinary start")
def test_every_byte_of_the_head_changed(content, tmp_path):
    whole = ImageFile(content)
    for field, (offset, size) in whole.format.records["Head"].items():
        for byte in range(offset, offset + size):
            for change in (0x01, 0xFF):
                changed = bytearray(content)
                changed[whole.head_at + byte] ^= change
                result = falls_back_or_refuses([support.write(tmp_path / "changed.img", changed)])
                assert result.status == 0 or field.startswith("command_"), (field, result)


def test_every_field_of_the_head_changed_for_a_launcher_with_an_argument(content, tmp_path):
    whole = ImageFile(content)
    for offset, size in whole.format.records["Head"].values():
        changed = bytearray(content)
        changed[whole.head_at + offset + size - 1] ^= 0x80
        falls_back_or_refuses([support.launcher(), support.write(tmp_path / "changed.img", changed)])


@pytest.mark.fault("the original command in the image is damaged", "exit status 125 and a message")
def test_the_command_changed(content, tmp_path):
    whole = ImageFile(content)
    at = whole.head_at + whole.format.constants["COMMAND_OFFSET"]
    for offset in range(whole.head("command_size")):
        changed = bytearray(content)
        changed[at + offset] ^= 0x20
        result = support.run([support.write(tmp_path / "changed.img", changed), *ASK])
        assert result.status == 125 and "the checksum of the command" in result.err, result


@pytest.mark.fault("random bytes of head and tables are others", "the ordinary start")
def test_random_changes_of_head_and_tables(content, tmp_path):
    whole = ImageFile(content)
    start = whole.head("tables_offset")
    tables = range(start, start + whole.head("tables_size"))
    head = range(whole.head_at, whole.head_at + whole.format.size("Head"))
    chance = random.Random(1)
    for _ in range(FLIPS):
        changed = bytearray(content)
        for _ in range(chance.choice((1, 1, 1, 4, 64))):
            changed[chance.choice(tables if chance.random() < 0.9 else head)] = chance.randrange(256)
        if changed != content:
            falls_back_or_refuses([support.write(tmp_path / "changed.img", changed)])


@pytest.mark.fault("an image of another version of the format", "the ordinary start")
def test_another_version(content, tmp_path):
    other = ImageFile(content)
    other.set_head("version", other.head("version") + 1)
    falls_back([support.write(tmp_path / "other.img", other.seal())], "made by another release")


@pytest.mark.fault("an image that was never finished", "the ordinary start")
def test_unfinished(content, tmp_path):
    """The first byte of the magic is written last."""
    unfinished = bytearray(content)
    unfinished[ImageFile(content).head_at] = 0
    falls_back([support.write(tmp_path / "unfinished.img", unfinished)], "its writing was interrupted")


def test_no_tables(content, tmp_path):
    empty = ImageFile(content)
    at = empty.head("tables_offset")
    empty.bytes[at : at + 8] = bytes(8)
    falls_back([support.write(tmp_path / "empty.img", empty.seal())], "no process section")
    empty.set_head("tables_size", 0)
    falls_back([support.write(tmp_path / "none.img", empty.seal())])


@pytest.mark.parametrize(
    "section, record, field, value",
    [
        ("mappings", "Mapping", "start", 0x100000000000),
        ("mappings", "Mapping", "start", 1),
        ("mappings", "Mapping", "end", 0),
        ("mappings", "Mapping", "end", 1 << 63),
        ("mappings", "Mapping", "offset", 0xFFFFFFFFFFFFF000),
        ("mappings", "Mapping", "protection", 8),
        ("mappings", "Mapping", "kind", 99),
        ("mappings", "Mapping", "file", 99999),
        ("signals", "SignalAction", "number", 0),
        ("signals", "SignalAction", "number", 65),
        ("inputs", "Input", "path", b"\xff" * 8),
        ("variables", "Variable", "name", b"\xff" * 8),
        ("patterns", "Item", "text", b"\xff" * 8),
        ("files", "MappedFile", "path", b"\xff" * 8),
        ("process", "Process", "brk", 0),
        ("process", "Process", "env_end", 1 << 63),
        ("process", "Process", "tid_address", 1 << 63),
    ],
)
@pytest.mark.fault("fields out of range under right checksums", "the ordinary start")
def test_rows_that_are_out_of_range_though_the_checksums_are_right(content, tmp_path, section, record, field, value):
    changed = ImageFile(content)
    changed.set(record, field, changed.rows(section)[0], value)
    falls_back([support.write(tmp_path / "changed.img", changed.seal())])


def test_sections_that_every_image_has_are_missed(content, tmp_path):
    for section in ("registers", "process", "platform", "cpu"):
        changed = ImageFile(content)
        tables = changed.head("tables_offset")
        for at in range(tables + 8, tables + 8 + 18 * changed.format.size("Entry"), changed.format.size("Entry")):
            if changed.get("Entry", "section", at) == changed.format.sections[section]:
                changed.set("Entry", "size", at, 0)
                break
        falls_back([support.write(tmp_path / "changed.img", changed.seal())], f"no {section} section")


@pytest.mark.fault("mappings that cannot be made", "the ordinary start")
def test_mappings_that_cannot_be_made(content, tmp_path):
    """Errors while memory is being replaced: the last moment at which the fallback is possible."""
    changed = ImageFile(content)
    for row in changed.rows("mappings"):
        if changed.get("Mapping", "kind", row) == changed.format.constants["COPY"]:
            size = changed.get("Mapping", "end", row) - changed.get("Mapping", "start", row)
            changed.set("Mapping", "start", row, 0x10000)  # nothing is mapped there that bytes could be copied into
            changed.set("Mapping", "end", row, 0x10000 + size)
    falls_back([support.write(tmp_path / "changed.img", changed.seal())], "cannot map")


@support.needs_root
@pytest.mark.fault("the image belongs to another user", "the ordinary start")
def test_an_image_of_somebody_else(content, open_directory):
    image = support.write(open_directory / "theirs.img", content)
    os.chown(image, support.NOBODY, support.NOBODY)
    falls_back([image], "belongs to another user")
    result = support.run(support.as_nobody([image, *ASK]), cwd="/")
    assert result.status != 0 or result.out == ANSWER, result
    support.no_signal(result)


@pytest.mark.parametrize("mode", [0o775, 0o757, 0o777])
@pytest.mark.fault("group or others can write to the image", "the ordinary start")
def test_an_image_that_others_can_write(content, tmp_path, mode):
    image = support.write(tmp_path / "open.img", content)
    image.chmod(mode)
    falls_back([image], "can be written by group or others")


@pytest.mark.parametrize("mode", [0o700, 0o500, 0o755, 0o555])
def test_an_image_that_only_its_owner_can_write(content, tmp_path, mode):
    image = support.write(tmp_path / "closed.img", content)
    image.chmod(mode)
    assert support.thawed([image, *ASK]).out == ANSWER


def test_a_symbolic_and_a_hard_link_to_an_image(image, content, tmp_path):
    (tmp_path / "link.img").symlink_to(image)
    (tmp_path / "link to link.img").symlink_to(tmp_path / "link.img")
    copy = support.write(tmp_path / "copy.img", content)
    os.link(copy, tmp_path / "hard.img")
    for name in ("link.img", "link to link.img", "hard.img"):
        assert support.thawed([tmp_path / name, *ASK]).out == ANSWER


def test_renamed_moved_and_started_by_any_name(content, tmp_path):
    image = support.write(tmp_path / "first.img", content)
    (tmp_path / "there").mkdir()
    moved = tmp_path / "there" / "other name"
    shutil.move(image, moved)
    assert support.thawed([moved, *ASK]).out == ANSWER
    assert support.thawed(["./other name", *ASK], cwd=moved.parent).out == ANSWER
    assert support.thawed(["not its name", *ASK], executable=moved).out == ANSWER
    in_path = support.environment(PATH=f"{moved.parent}:{os.environ['PATH']}")
    assert support.thawed(["env", "other name", *ASK], env=in_path).out == ANSWER


@pytest.mark.fault("strip cuts the frozen process off", "the ordinary start")
def test_stripped(content, tmp_path):
    if not shutil.which("strip"):
        pytest.skip("there is no strip")
    image = support.write(tmp_path / "stripped.img", content)
    done = subprocess.run(["strip", image], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert image.stat().st_size < len(content)
    falls_back_or_refuses([image])


def test_appended_to(content, tmp_path):
    assert support.thawed([support.write(tmp_path / "longer.img", content + b"more"), *ASK]).out == ANSWER


def test_a_copy_with_holes(image, tmp_path):
    for how in ("always", "never"):
        subprocess.run(["cp", f"--sparse={how}", image, tmp_path / how], check=True)
        assert support.thawed([tmp_path / how, *ASK]).out == ANSWER


def test_what_is_no_image_given_to_the_launcher(tmp_path):
    text = support.write(tmp_path / "text", b"not an image" * 3000)
    os.mkfifo(tmp_path / "pipe")
    others = (tmp_path, tmp_path / "nothing", tmp_path / "pipe", "/dev/null")
    for argument in (text, support.PYTHON, support.launcher(), *others):
        result = support.run([support.launcher(), argument])
        assert result.status == 125 and result.err.startswith("snapboot: "), result
    result = support.run([support.launcher()])
    assert result.status == 125 and "expected an image" in result.err, result


def test_an_image_made_by_hand_has_no_launcher_bytes_to_trust(content, tmp_path):
    """The launcher that reads an image is the one that runs: another image's launcher is never executed."""
    foreign = bytearray(content)
    foreign[:8192] = bytes(8192)
    image = support.write(tmp_path / "headless.img", foreign)
    assert support.thawed([support.launcher(), image, *ASK]).out == ANSWER


@pytest.mark.fault("the original command is gone", "thaws go on; a fallback ends with 127 and a message")
def test_the_original_command_is_gone(content, tmp_path):
    changed = ImageFile(content)
    at = changed.head_at + changed.format.constants["COMMAND_OFFSET"]
    program = bytes(changed.bytes[at : changed.bytes.index(0, at)])
    changed.bytes[at : at + len(program)] = b"/" + b"x" * (len(program) - 1)
    changed.seal()
    assert support.thawed([support.write(tmp_path / "fresh.img", changed.bytes), *ASK]).out == ANSWER
    changed.set_head("version", 99)
    result = support.run([support.write(tmp_path / "stale.img", changed.seal()), *ASK], log=False)
    assert result.status == 127 and "cannot execute /xxx" in result.err and "version" in result.err, result


@support.needs_root
@pytest.mark.fault(
    "the image is set-uid or set-gid",
    "refused with 125: a fallback would run an interpreter with raised privileges",
)
def test_set_uid_is_refused(content, open_directory):
    for bit in (0o4755, 0o2755):
        image = support.write(open_directory / "raised.img", content)
        os.chmod(image, bit)
        result = support.run(support.as_nobody([image, *ASK]), cwd="/")
        assert result.status == 125 and "raised privileges" in result.err and result.out == "", result


@support.needs_root
@pytest.mark.fault("the image has file capabilities", "refused with 125")
def test_file_capabilities_are_refused(content, open_directory):
    image = support.write(open_directory / "capable.img", content)
    try:
        done = subprocess.run(["setcap", "cap_net_bind_service+ep", image], capture_output=True)
    except FileNotFoundError:
        pytest.skip("there is no setcap")
    if done.returncode != 0:
        pytest.skip("file capabilities are not permitted here")
    result = support.run(support.as_nobody([image, *ASK]), cwd="/")
    assert result.status == 125 and "raised privileges" in result.err and result.out == "", result


MOUNTED = """
mount -t tmpfs -o size=200m none /mnt
cp "$1" /mnt/app.img
mount -o remount,bind,ro,$2 /mnt
shift 2
exec "$@"
"""


def test_on_a_read_only_mount(image):
    argv = support.in_mount_namespace(MOUNTED, os.fspath(image), "exec", "/mnt/app.img", *ASK)
    assert support.thawed(argv).out == ANSWER


@pytest.mark.fault("the image lies on a noexec mount", "snapboot run and the launcher thaw it")
def test_on_a_noexec_mount(image):
    through = [[os.fspath(support.SNAPBOOT), "run", "/mnt/app.img"], [os.fspath(support.launcher()), "/mnt/app.img"]]
    for argv in through:
        argv = support.in_mount_namespace(MOUNTED, os.fspath(image), "noexec", *argv, *ASK)
        assert support.thawed(argv).out == ANSWER
    argv = support.in_mount_namespace(MOUNTED, os.fspath(image), "noexec", "/mnt/app.img", *ASK)
    assert support.run(argv).status == 126, "the kernel refuses, and the shell says so"


@pytest.mark.fault("/proc is not mounted", "the ordinary start")
def test_without_proc(image):
    script = 'mount -t tmpfs none /proc && exec "$@"'
    result = support.run(support.in_mount_namespace(script, os.fspath(image), *ASK))
    assert result.out == ANSWER and result.status == 0 and "/proc is not mounted" in result.err, result


def test_with_no_new_privileges(image):
    assert support.thawed(["setpriv", "--no-new-privs", image, *ASK]).out == ANSWER


@support.needs_root
def test_as_an_ordinary_user(open_directory):
    """Root's image, run by somebody else without any privilege."""
    python = support.public_python()
    home = support.environment(HOME="/nonexistent")
    image = support.frozen(open_directory / "roots.img", [python], env=home, cwd="/")
    for privileges in ([], ["setpriv", "--no-new-privs"]):
        argv = support.as_nobody([*privileges, os.fspath(image), *ASK])
        assert support.thawed(argv, cwd="/", env=home).out == ANSWER


def test_documents_of_the_format_and_files_agree(image, content):
    """The second reader, made from the document, finds what the first one wrote."""
    whole = ImageFile(content)
    assert whole.head("magic") == b"\x89SNAPBT\n"
    assert whole.head("file_size") == len(content)
    assert bytes(ImageFile(content).seal()) == bytes(content), "sealing an unchanged image changes nothing"
    # One that was not there has no times.
    there = [row for row in whole.rows("inputs") if whole.get("Input", "mtime", row)]
    inputs = [whole.text("Input", "path", row).decode() for row in there]
    assert all(pathlib.Path(name).exists() for name in inputs) and inputs
