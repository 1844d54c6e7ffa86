"""The advice of `snapboot explain`, followed to the letter, helps: its commands are typed as they stand, in both languages."""

import json
import os

import pytest
from common import languages, support

pytestmark = pytest.mark.sample(10, whole=True)

# What prints while it is loaded, no freeze takes into an image by itself. How long it sleeps is what a start gains.
SOURCES = {
    "python": {
        "slow": "import sys, time\nprint('loading', file=sys.stderr)\ntime.sleep(0.25)\n",
        "app": "import sys\nimport slow\nprint(sys.argv[1:])\n",
    },
    "ruby": {"slow": "warn 'loading'\nsleep 0.25\n", "app": "require_relative 'slow'\np ARGV\n"},
}


@languages.both
def test_the_commands_advised_make_a_start_that_loads_less(language, tmp_path):
    folder, state = tmp_path / "program", tmp_path / "state"
    folder.mkdir()
    for name, source in SOURCES[language.name].items():
        (folder / (name + language.ending)).write_text(source)
    bin = tmp_path / "bin"
    bin.mkdir()
    (bin / "snapboot").symlink_to(support.SNAPBOOT)
    env = support.environment(SNAPBOOT_STATE=state, PATH=f"{bin}:{os.environ['PATH']}")
    command = ["snapboot", "explain", "--json", "--no-archive", "-n", "1", "--", language.program, "app" + language.ending, "one word"]
    explained = support.run(command, cwd=folder, env=env, log=False)
    assert explained.status == 0, explained
    assert not list(state.rglob("starts/*")), "what was counted of a trial is of no use to anybody"
    first = json.loads(explained.out)["otherData"]["advice"][0]
    assert "--preload" in first["remedy"] and "1 line to standard error" in first["text"], first
    frozen = support.run(["sh", "-c", first["remedy"]], cwd=folder, env=env)
    assert frozen.status == 0, frozen
    ordinary = support.run([language.program, "app" + language.ending, "one word"], cwd=folder, env=env)
    started = support.run(["sh", "-c", first["start"]], cwd=folder, env=env)
    assert (started.status, started.out) == (0, ordinary.out) and "one word" in ordinary.out, started
    assert "loading" in ordinary.err and "loading" not in started.err, started


# What keeps a socket cannot be frozen. What else it loads takes long to compile, which Python does at each start where it may keep nothing.
KEPT = {
    "python": "import socket\nkept = socket.create_server(('127.0.0.1', 0))\n",
    "ruby": "require 'socket'\nKEPT = TCPServer.new('127.0.0.1', 0)\n",
}
LARGE = {
    "python": "".join(f"def function_{number}(one):\n    return [one, {number}, *range({number})]\n" for number in range(4000)),
    "ruby": "".join(f"def method_{number}(one)\n  [one, {number}, *(1..{number})]\nend\n" for number in range(8000)),
}
USES = {"python": "import json, textwrap, large\nprint(large.function_3(1))\n", "ruby": "require_relative 'large'\np method_3(1)\n"}


@languages.both
def test_the_archive_is_advised_where_a_program_cannot_be_frozen(language, tmp_path):
    for name, sources in {"kept": KEPT, "large": LARGE, "app": USES}.items():
        (tmp_path / (name + language.ending)).write_text(sources[language.name])
    option = {"python": ["-c", "import kept, runpy; runpy.run_path('app.py')"], "ruby": ["-r./kept", "app.rb"]}[language.name]
    bin = tmp_path / "bin"
    bin.mkdir()
    (bin / "snapboot").symlink_to(support.SNAPBOOT)
    archive = tmp_path / "boot.archive"
    env = support.environment(PATH=f"{bin}:{os.environ['PATH']}", PYTHONDONTWRITEBYTECODE="1", SNAPBOOT_ARCHIVE=archive)
    command = [language.program, *option]
    # One run has no spread that could be too large; on a machine that is busy with something else one start may still be held up.
    for _ in range(5):
        explained = support.run(["snapboot", "explain", "--json", "-n", "1", "--", *command], cwd=tmp_path, env=env, log=False)
        assert explained.status == 0, explained
        report = json.loads(explained.out)
        if report["otherData"]["advice"][0]["headline"].startswith("Start it"):
            break
    titles = [event["args"]["name"] for event in report["traceEvents"] if event["name"] == "process_name"]
    assert titles == ["ordinary", "with archive"], explained.err
    first, *others = report["otherData"]["advice"]
    assert first["headline"].startswith("Start it with the boot archive") and first["saves"] > 0, first
    assert "could not be frozen" in first["text"]
    assert any("in the way" in other["headline"] for other in others)
    assert not archive.exists(), "explain filled the archive of the program's own"
    started = support.run(["sh", "-c", first["remedy"]], cwd=tmp_path, env=env)
    assert started.out == support.run(command, cwd=tmp_path, env=env).out and started.status == 0, started
    assert archive.exists()
