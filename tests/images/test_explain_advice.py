"""The advice of `snapboot explain`, followed to the letter, helps: its commands are typed as they stand, in both languages."""

import json
import os

from common import languages, support

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
