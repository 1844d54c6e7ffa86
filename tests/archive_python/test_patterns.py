"""Regular expressions that differ from start to start do not fill the archive."""

import json
import os

import pytest
from common import pythons, support
from common.waiting import settle

from . import starts

FILES = {
    "main.py": "import one, two, three, json, made",
    "made.py": "import os, re\nSTABLE = re.compile('[a-f]+x')\nOTHER = re.compile('[a-f]+%d' % os.getpid())\n",
    **dict.fromkeys(["one.py", "two.py", "three.py"], ""),
}


def patterns(archive):
    """The names of the regular expressions in it."""
    listed = support.run([support.SNAPBOOT, "archive", "list", "--json", archive])
    names = [entry["name"] for entry in json.loads(listed.out)["entries"] if entry["kind"] == "memo"]
    return [name for name in names if "[a-f]+" in name]


OLDEST_AND_NEWEST = [pythons.VERSIONS[0], max(starts.interpreters(), default=pythons.VERSIONS[-1])]


@pytest.mark.parametrize("version", OLDEST_AND_NEWEST, ids="{0[0]}.{0[1]}".format)
def test_patterns_that_differ_are_not_kept_for_ever(version, tmp_path):
    if version not in starts.interpreters():
        pytest.skip("CPython %d.%d is not installed here" % version)
    starts.write(tmp_path / "app", FILES)
    program = starts.Starts(starts.interpreters()[version], tmp_path / "app")
    settle()
    seen = []
    for _ in range(6):
        program.compared(["main.py"], times=1)
        seen.append(patterns(program.archive))
    assert any("[a-f]+x" in name for name in seen[0])
    assert len(seen[0]) < len(seen[1]) < len(seen[2]) == len(seen[5])
    size = os.path.getsize(program.archive)
    program.compared(["main.py"], times=2)
    assert os.path.getsize(program.archive) == size
