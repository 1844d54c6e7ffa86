"""What `snapboot explain` tells of a thaw besides its steps: checked inputs by directory, mapped files, page faults by what the page holds.

Counts are compared with what others say of the same image, `snapboot inspect` and the kernel; times only with each other.
"""

import json
import re

import pytest
from common import languages, support

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
