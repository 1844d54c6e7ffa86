"""What `snapboot explain` tells of a thaw besides its steps: checked inputs by directory, mapped files, page faults by what the page holds.

Counts are compared with what others say of the same image, `snapboot inspect` and the kernel; times only with each other.
"""

import ctypes
import json
import os
import re
import struct

import pytest
from common import languages, support

pytestmark = pytest.mark.sample(3, whole=True)

DATA = re.compile(r'<script type="application/json" id="data">(.*?)</script>', re.DOTALL)
CHECKS = ("checking inputs", "waiting for the check of inputs")
MAPS = "mapping memory and libraries"
# What an image loads, and what its main part does.
LOADED = {"python": ("json,ssl,decimal", "-c"), "ruby": ("json,set,digest", "-e")}


class Part:
    """A part of a start, with those that it contains."""

    def __init__(self, event):
        self.name, self.kind, self.detail = event["name"], event["cat"], event["args"].get("detail", "")
        self.milliseconds = event["args"]["time in ms"]
        self.children = []

    def below(self, *names):
        """Its children of these names, and theirs."""
        return [inner for child in self.children if child.name in names for inner in child.children]

    def all(self):
        return [self, *(part for child in self.children for part in child.all())]


def tree(report):
    """The last start of a report as `--json` prints it."""
    profile = report["profiles"][-1]
    events = iter([event for event in report["traceEvents"] if event["ph"] == "X" and event["pid"] == len(report["profiles"])])
    open = []
    for step in profile["events"]:
        if step["type"] == "O":
            part = Part(next(events))
            if open:
                open[-1].children.append(part)
            open.append(part)
        else:
            root = open.pop()
    return root


def explained(image, *arguments, runs=3, env=None):
    command = [support.SNAPBOOT, "explain", "--json", "-n", str(runs), image, *arguments]
    result = support.run(command, log=False, env=env)
    assert result.status == 0, result
    return tree(json.loads(result.out))


def inspected(image):
    result = support.run([support.SNAPBOOT, "inspect", "--json", image], log=False)
    return json.loads(result.out)


def number(text, unit):
    """How many of a unit a text tells of."""
    found = re.search(rf"(\d+) {unit}", text)
    return int(found[1]) if found else 0


@pytest.fixture(scope="module", params=["python", pytest.param("ruby", marks=support.needs_ruby)])
def image(request, tmp_path_factory):
    """An image of an interpreter, and the arguments of its starts."""
    language = {"python": languages.PYTHON, "ruby": languages.RUBY}[request.param]
    preload, option = LOADED[language.name]
    image = tmp_path_factory.mktemp(language.name) / "x.img"
    support.frozen(image, [language.program], "--preload", preload)
    return image, [option, "1"]


def test_checked_inputs_are_told_by_directory(image):
    image, arguments = image
    root, contents = explained(image, *arguments), inspected(image)
    groups = root.below(*CHECKS)
    assert sum(number(group.detail, "input") for group in groups) == len(contents["inputs"])
    assert sum(number(group.detail, "answer") for group in groups) == sum(len(row["answers"]) for row in contents["directories"])
    directories = sum(number(group.detail, "directories") or 1 for group in groups)
    assert directories == len(contents["directories"])
    for group in groups:
        # All of a group is in its parts, and each of them has its time.
        if group.children:
            assert sum(number(part.detail, "input") for part in group.children) == number(group.detail, "input")
            assert all(part.milliseconds <= group.milliseconds + 0.002 for part in group.children)
    (step,) = [part for part in root.children if part.name in CHECKS and part.children]
    assert sum(group.milliseconds for group in groups) <= step.milliseconds + 0.001 * len(groups)


def test_mapped_files_are_told_with_their_size(image):
    image, arguments = image
    root, contents = explained(image, *arguments), inspected(image)
    mapped = {part.name: part for part in root.below(MAPS)}
    files = {}
    for mapping in contents["mappings"]:
        if mapping["kind"] == "pages of files":
            files.setdefault(mapping["file"], []).append(int(mapping["end"], 16) - int(mapping["start"], 16))
    assert set(files) <= set(mapped) and len(files) > 3
    for path, sizes in files.items():
        assert number(mapped[path].detail, "mapping") == len(sizes)
        shown, unit = re.match(r"([\d.]+) (kB|MB|GB) in ", mapped[path].detail).groups()
        scale = {"kB": 1e3, "MB": 1e6, "GB": 1e9}[unit]
        assert float(shown) * scale == pytest.approx(sum(sizes), rel=0.02, abs=0.05 * scale + 500)
    assert "the image" in mapped
    assert sum(part.milliseconds for part in mapped.values()) > 0


def test_a_terminal_shows_how_much_of_it_there_is(image):
    image, arguments = image
    result = support.run([support.SNAPBOOT, "explain", "--all", "-n", "1", image, *arguments], log=False)
    assert re.search(r"├ .*: \d+ inputs in \d+ dir", result.out), result
    assert re.search(r"├ the image: [\d.]+ MB in \d+ mappings", result.out), result


def page_faults(root):
    """The rows that tell of all faults of a part."""
    return [row for part in root.children for row in part.children if row.name == "page faults"]


def counted_by_the_kernel(words, **variables):
    """How many page faults a process has had."""
    environment = {**support.environment(), **variables}
    closed = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in range(3)]
    process = os.posix_spawn(words[0], words, environment, file_actions=closed)
    _, status, usage = os.wait4(process, 0)
    assert status == 0
    return usage.ru_minflt + usage.ru_majflt


def test_page_faults_are_as_many_as_the_kernel_counts(image, tmp_path):
    image, arguments = image
    rows = page_faults(explained(image, *arguments))
    told = sum(number(row.detail, "fault") for row in rows)
    words = [os.fspath(image), *arguments]
    # A start that is noted as well, and one that ends where the launcher has done its work.
    whole = counted_by_the_kernel(words, SNAPBOOT_EXPLAIN=str(tmp_path / "told"))
    launcher = counted_by_the_kernel(words, SNAPBOOT_EXPLAIN=str(tmp_path / "told"), SNAPBOOT_REHEARSE="check")
    assert told == pytest.approx(whole - launcher, rel=0.1, abs=10)
    for row in rows:
        assert sum(number(holder.detail, "fault") for holder in row.children) == number(row.detail, "fault"), row.detail


def test_page_faults_are_told_by_what_the_pages_hold(image):
    image, arguments = image
    # The main part writes to memory that no image has, page by page: each is a fault.
    code = {"-c": "x = b'a' * (4 << 20)", "-e": "x = 'a' * (4 << 20)"}[arguments[0]]
    # Of one run times add up exactly, whatever else the machine does.
    root = explained(image, arguments[0], code, runs=1)
    (main,) = [part for part in root.children if part.kind == "main"]
    (faults,) = [row for row in main.children if row.name == "page faults"]
    assert faults.kind == "faults" and 0 < faults.milliseconds <= main.milliseconds + 0.001
    assert number(faults.detail, "fault") >= 1024
    rows = page_faults(root)
    held = {holder.name for row in rows for holder in row.children}
    # Some interpreters have the library of Python inside.
    library = {"-c": ("libpython", "/bin/python"), "-e": ("ruby",)}[arguments[0]]
    assert {"heap", "objects, arenas"} <= held and any("/libc" in name for name in held)
    assert any(part in name for name in held for part in library)
    (advance,) = [part for part in root.children if part.name == "pages that every start writes to"]
    assert sum(number(row.detail, "page copied") + number(row.detail, "pages copied") for row in advance.children) > 20
    # Whatever is told of them, the parts are still all of the process.
    assert sum(part.milliseconds for part in root.children) == pytest.approx(root.milliseconds, rel=0.03, abs=0.02)
    for part in [part for row in (*rows, advance) for part in row.all()]:
        assert sum(child.milliseconds for child in part.children) <= part.milliseconds + 0.001 * (1 + len(part.children))


def test_faults_of_what_the_main_part_loads_are_told_apart(image, tmp_path):
    image, arguments = image
    source = {"-c": ("import late", ".py", "x = b'a' * (4 << 20)\n"), "-e": ("require './late'", ".rb", "X = 'a' * (4 << 20)\n")}
    code, ending, late = source[arguments[0]]
    (tmp_path / ("late" + ending)).write_text(late)
    command = [support.SNAPBOOT, "explain", "--json", "-n", "1", image, arguments[0], code]
    result = support.run(command, log=False, cwd=tmp_path, env=support.environment())
    assert result.status == 0, result
    root = tree(json.loads(result.out))
    (main,) = [part for part in root.children if part.kind == "main"]
    (faults,) = [row for row in main.children if row.name == "page faults"]
    inner, cost = re.search(r"faults, (\d+) \(([\d.]+) ms\) in what it loads", faults.detail).groups()
    assert int(inner) >= 1000 and float(cost) > 0
    assert sum(child.milliseconds for child in main.children) <= main.milliseconds + 0.01


def without_tracing():
    """Has the kernel refuse ptrace to this process and all that it starts, as containers do."""
    libc = ctypes.CDLL(None, use_errno=True)
    load, jump_if_equal, give_back = 0x20, 0x15, 0x06
    refuse, allow, ptrace = 0x00050000 | 1, 0x7FFF0000, 101
    filter = [(load, 0, 0, 0), (jump_if_equal, 0, 1, ptrace), (give_back, 0, 0, refuse), (give_back, 0, 0, allow)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in filter))
    program = struct.pack("HxxxxxxP", len(filter), ctypes.addressof(code))
    set_no_new_privileges, set_seccomp, by_filter = 38, 22, 2
    assert libc.prctl(set_no_new_privileges, 1, 0, 0, 0) == 0
    assert libc.prctl(set_seccomp, by_filter, program, 0, 0) == 0


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the number of ptrace is another one there")
def test_where_nothing_may_be_traced_a_line_says_so(image):
    image, arguments = image
    command = [support.SNAPBOOT, "explain", "-n", "1", image, *arguments]
    result = support.run(command, log=False, preexec_fn=without_tracing)
    assert result.status == 0, result
    text = " ".join(result.out.split())  # the line may be wrapped anywhere
    assert "Page faults are not listed by what the pages hold:" in text
    assert "Operation not permitted" in text and "page faults:" not in text
    # What needs no tracing is there.
    assert "mapping memory and libraries" in result.out and "inputs" in result.out


def test_an_image_of_several_variants_is_told_of_as_well(tmp_path):
    image = support.frozen(tmp_path / "x.img", [support.PYTHON], "--preload", "json", "--variants", "3")
    root = explained(image, "-c", "1", runs=5)
    assert root.detail == "" and root.below(MAPS) and root.below(*CHECKS)
    assert sum(row.milliseconds for row in page_faults(root)) > 0


def test_the_page_shows_the_same(image, tmp_path):
    image, arguments = image
    page = tmp_path / "x.html"
    result = support.run([support.SNAPBOOT, "explain", "-n", "1", "--html", page, image, *arguments], log=False)
    assert result.status == 0, result
    coded = json.loads(DATA.search(page.read_text())[1])["strings"]
    strings, before = set(), ""
    for same, new in zip(coded[::2], coded[1::2], strict=True):
        before = before[:same] + new
        strings.add(before)
    assert {"the image", "page faults", "heap", "objects, arenas"} <= strings
    for told in (r"\d+ inputs in \d+ directories.*", r"[\d.]+ MB in \d+ mappings", r"\d+ faults: \d+ pages? copied.*"):
        assert any(re.fullmatch(told, text) for text in strings), told
