"""`snapboot explain` tells where the time of a start goes: ordinary starts and thaws of both languages, by the same cases.

What a module waits for is known: it sleeps, and sleeps no shorter under load. So what is compared is never how long something took on this
machine, but what must be in what.
"""

import json
import os
import pathlib
import re

import pytest
from common import languages, support

from .unseen import UNSEEN

pytestmark = pytest.mark.sample(6, whole=True)

# Milliseconds that each of them sleeps, and what it loads in between. `middle` looks for files that are not there, too.
SLEEPS = {"slow": 80, "middle": 20, "inner": 40}
SOURCES = {
    "python": {
        "slow": "import time\ntime.sleep(0.08)\n",
        "middle": "import os, time\ntime.sleep(0.02)\nimport inner\nfor number in range(50):\n    os.path.exists('/nowhere/%d' % number)\n",
        "inner": "import time\ntime.sleep(0.04)\n",
        "app": "import slow\nimport middle\n",
    },
    "ruby": {
        "slow": "sleep 0.08\n",
        "middle": "sleep 0.02\nrequire_relative 'inner'\n50.times { |number| File.exist?(\"/nowhere/#{number}\") }\n",
        "inner": "sleep 0.04\n",
        "app": "require_relative 'slow'\nrequire_relative 'middle'\n",
    },
}
HOOKED = {
    "python": ("import snapboot, time\n\n@snapboot.after_thaw\ndef renew():\n    time.sleep(0.05)\n", "hooked.renew"),
    "ruby": ("require 'snapboot'\nSnapboot.after_thaw { sleep 0.05 }\n", "hooked.rb:2"),
}
REFUSED = {
    "python": "import socket\nkept = socket.create_server(('127.0.0.1', 0))\n",
    "ruby": "require 'socket'\nKEPT = TCPServer.new('127.0.0.1', 0)\n",
}
NO_ARGUMENTS = ("--no-freeze", "--no-archive", "-n", "1")


def explained(command, *options, env=None, cwd=None):
    return support.run([support.SNAPBOOT, "explain", *options, "--", *command], env=env, cwd=cwd, log=False)


def parts(result, process=1):
    """The parts of a start as JSON has them."""
    assert result.status == 0, result
    return [event for event in json.loads(result.out)["traceEvents"] if event["ph"] == "X" and event["pid"] == process]


def milliseconds(part):
    return part["args"]["time in ms"]


def inside(part, all):
    """Those that a part contains."""
    end = part["ts"] + part["dur"] + 1
    return [other for other in all if other is not part and part["ts"] <= other["ts"] and other["ts"] + other["dur"] <= end]


# As Bundler does it.
WITHOUT_RUBYGEMS = """
[Kernel.singleton_class, Kernel].each do |owner|
  owner.send(:define_method, :require, owner.instance_method(:gem_original_require))
end
$LOAD_PATH.unshift(__dir__)
require 'outer'
"""


@pytest.fixture(params=["python", pytest.param("ruby", marks=support.needs_ruby)])
def language(request):
    return {"python": languages.PYTHON, "ruby": languages.RUBY}[request.param]


@pytest.fixture
def program(language, tmp_path):
    """A program of several modules: its command."""
    for name, source in SOURCES[language.name].items():
        (tmp_path / (name + language.ending)).write_text(source)
    return [language.program, "app" + language.ending]


def test_parts_add_up_and_lie_where_they_are_loaded(program, tmp_path):
    all = parts(explained(program, "--json", *NO_ARGUMENTS, cwd=tmp_path))
    (process,) = [part for part in all if part["cat"] == "process"]
    top = {"interpreter", "main", "exit", "other"}
    whole = sum(milliseconds(part) for part in all if part["cat"] in top)
    assert whole == pytest.approx(milliseconds(process), rel=0.03)
    found = {}
    for name, sleep in SLEEPS.items():
        (found[name],) = [part for part in all if part["cat"] == "body" and part["name"].rpartition("/")[2] == name]
        assert milliseconds(found[name]) >= sleep
        assert name in found[name]["args"]["detail"]
    assert found["inner"] in inside(found["middle"], all) and found["slow"] not in inside(found["middle"], all)
    assert milliseconds(found["middle"]) >= SLEEPS["middle"] + SLEEPS["inner"]
    kinds = {part["cat"] for part in inside(found["middle"], all)}
    assert {"search", "code", "body"} <= kinds


def test_system_calls_are_counted_where_they_are_made(program, tmp_path):
    all = parts(explained(program, "--json", *NO_ARGUMENTS, cwd=tmp_path))
    counts = {part["name"].rpartition("/")[2]: part["args"] for part in all if part["cat"] in ("body", "process")}
    assert counts["middle"]["failed look-ups"] >= 50 > counts["inner"]["failed look-ups"]
    assert counts["process"]["system calls"] > counts["middle"]["system calls"] > counts["inner"]["system calls"] > 0


def test_the_program_sees_nothing_of_it(language, tmp_path):
    (tmp_path / ("app" + language.ending)).write_text(UNSEEN[language.name])
    result = explained([language.program, "app" + language.ending], *NO_ARGUMENTS, cwd=tmp_path)
    assert result.status == 0, result


@support.needs_ruby
def test_features_lie_in_each_other_where_bundler_has_replaced_require(tmp_path):
    (tmp_path / "outer.rb").write_text("require 'nested'\n")
    (tmp_path / "nested.rb").write_text("require 'json'\n")
    (tmp_path / "app.rb").write_text(WITHOUT_RUBYGEMS)
    all = parts(explained([support.RUBY, "app.rb"], "--json", *NO_ARGUMENTS, cwd=tmp_path))
    bodies = {part["name"]: part for part in all if part["cat"] == "body"}
    assert [part["name"] for part in all if part["cat"] == "body"].count("json") == 1
    assert bodies["nested"] in inside(bodies["outer"], all) and bodies["json"] in inside(bodies["nested"], all)


def test_every_version_of_the_interpreter_tells(tmp_path):
    versions = pathlib.Path(os.environ.get("PYENV_ROOT", pathlib.Path.home() / ".pyenv")) / "versions"
    for python in versions.glob("3.*/bin/python"):
        if not re.search(r"/3\.([89]|1[0-3])\.", str(python)):
            continue
        names = {part["name"] for part in parts(explained([python, "-c", "import json"], "--json", *NO_ARGUMENTS))}
        assert "json.decoder" in names, python


def test_a_frozen_program_beside_the_ordinary_one(program, tmp_path):
    result = explained(program, "--no-archive", "-n", "1", cwd=tmp_path)
    assert result.status == 0, result
    head = result.out.splitlines()[0].split()
    assert head == ["ordinary", "thawed"]
    assert "launcher" in result.out and "mapping memory" in result.out
    assert "1. Freeze it" in result.out and "$ snapboot freeze " in result.out
    assert "\x1b" not in result.out


def test_an_image_tells_of_its_hooks_by_name(language, tmp_path):
    source, name = HOOKED[language.name]
    path = {"python": "PYTHONPATH", "ruby": "RUBYLIB"}[language.name]
    own = {"python": support.ROOT / "python", "ruby": support.ROOT / "ruby/lib"}[language.name]
    (tmp_path / ("hooked" + language.ending)).write_text(source)
    env = support.environment(**{path: f"{tmp_path}:{own}"})
    image = tmp_path / "x.img"
    frozen = support.freeze(image, [language.program], "--preload", "hooked", env=env)
    assert frozen.status == 0, frozen
    code = [{"python": "-c", "ruby": "-e"}[language.name], "1"]
    all = parts(support.run([support.SNAPBOOT, "explain", "--json", "-n", "1", image, *code], env=env, log=False))
    (hook,) = [part for part in all if part["cat"] == "hook"]
    assert name in hook["name"] and milliseconds(hook) >= 50
    kinds = [part["cat"] for part in all]
    assert {"launcher", "mapping", "faults", "context", "main", "exit"} <= set(kinds)
    (tmp_path / ("hooked" + language.ending)).write_text(source + "\n\n")
    stale = support.run([support.SNAPBOOT, "explain", "-n", "1", image, *code], env=env, log=False)
    assert stale.status == 1 and "inspect --why" in stale.err, stale


def test_what_stands_in_the_way_is_said(language, tmp_path):
    (tmp_path / ("kept" + language.ending)).write_text(REFUSED[language.name])
    load = {"python": "import kept\n", "ruby": "require_relative 'kept'\nKEPT.fileno\n"}[language.name]
    (tmp_path / ("app" + language.ending)).write_text(load)
    result = explained([language.program, "app" + language.ending], "--no-archive", "-n", "1", cwd=tmp_path)
    assert result.status == 0, result
    if language.name == "python":
        assert "This stands in the way of freezing it" in result.out and "socket" in result.out
        assert "kept.py:" in result.out


def test_two_starts_are_compared(language, tmp_path):
    for name, sleep in (("one", "0.01"), ("other", "0.2")):
        source = f"import time\ntime.sleep({sleep})\n" if language.name == "python" else f"sleep {sleep}\n"
        (tmp_path / (name + language.ending)).write_text(source)
    other = ["--vs", language.program, "other" + language.ending]
    result = explained([language.program, "one" + language.ending, *other], "-n", "1", cwd=tmp_path)
    assert result.status == 0, result
    assert result.out.splitlines()[0].split() == ["A,", "ordinary", "B,", "ordinary"]
    differing = result.out.split("What differs most")[1].split("\n\n")[0]
    assert "+" in differing and "__main__" in differing


def test_saved_reports_are_shown_and_compared(program, tmp_path):
    saved = explained(program, "--json", *NO_ARGUMENTS, cwd=tmp_path)
    for name in ("a.json", "b.json"):
        (tmp_path / name).write_text(saved.out)
    again = explained(["a.json"], "--json", cwd=tmp_path)
    assert [part["args"] for part in parts(again)] == [part["args"] for part in parts(saved)]
    compared = explained(["a.json", "b.json"], "--diff", cwd=tmp_path)
    assert compared.status == 0 and "A, ordinary start of " in compared.out, compared
    differences = compared.out.split("What differs most")[1].split("\n\n")[0].splitlines()[2:]
    assert {line.split("ms")[2].strip() for line in differences} == {"+0.00"}, compared
    assert explained(["a.json"], "--diff", cwd=tmp_path).status == 2


def test_a_command_that_fails(language, tmp_path):
    ends = {"python": ["-c", "raise SystemExit(3)"], "ruby": ["-e", "exit 3"]}
    command = [language.program, *ends[language.name]]
    failed = explained(command, *NO_ARGUMENTS)
    assert failed.status == 1 and "--allow-failure" in failed.err, failed
    assert explained(command, "--allow-failure", *NO_ARGUMENTS).status == 0


def test_what_is_neither_python_nor_ruby_is_refused():
    result = explained(["/bin/true"], *NO_ARGUMENTS)
    assert result.status == 2 and "Name the interpreter" in result.err, result
