"""What `snapboot explain` notes changes a start as little as can be; and what it can, it tells of starts that end early or elsewhere."""

import json
import os
import signal
import subprocess

import pytest
from common import languages, support

# Loads the same file again and again, and tells what that cost: Python's collections, Ruby's objects.
LOADS = 1000
COUNTED = {
    "python": f"""
import gc, sys
import inner
before = gc.get_stats()[0]["collections"]
for _ in range({LOADS}):
    del sys.modules["inner"]
    import inner
print(gc.get_stats()[0]["collections"] - before, file=open("told", "a"))
""",
    "ruby": f"""
path = File.expand_path("inner.rb")
load path
before = GC.stat(:total_allocated_objects)
{LOADS}.times {{ load path }}
File.write("told", "#{{(GC.stat(:total_allocated_objects) - before) / {LOADS}}}\\n", mode: "a")
""",
}
# A tuple for each entry would be eight collections more; an array, four objects more for each file.
MORE = {"python": 2, "ruby": 4}


@languages.both
def test_the_collector_runs_where_it_does_in_other_starts(language, tmp_path):
    (tmp_path / ("inner" + language.ending)).write_text("1\n")
    (tmp_path / ("app" + language.ending)).write_text(COUNTED[language.name])
    command = [support.SNAPBOOT, "explain", "--no-freeze", "--no-archive", "-n", "1", "--", language.program, "app" + language.ending]
    result = support.run(command, cwd=tmp_path, log=False)
    assert result.status == 0, result
    _, plain, noted, _ = (int(line) for line in (tmp_path / "told").read_text().splitlines())
    assert plain <= noted <= plain + MORE[language.name]


# Tells what lies beneath a module's body: on CPython 3.11 and later even the place of a frame can make one slow.
BENEATH = """
import sys
frame, names = sys._getframe(), []
while frame:
    names.append(frame.f_code.co_name)
    frame = frame.f_back
print(*names, file=open("told", "a"))
"""


def test_a_module_is_executed_on_top_of_the_same_frames(tmp_path):
    (tmp_path / "inner.py").write_text(BENEATH)
    (tmp_path / "outer.py").write_text("import inner\n")
    result = support.run(
        [support.SNAPBOOT, "explain", "--no-freeze", "--no-archive", "-n", "1", "--", languages.PYTHON.program, "-c", "import outer"],
        cwd=tmp_path, log=False,
    )  # fmt: skip
    assert result.status == 0, result
    starts = (tmp_path / "told").read_text().splitlines()
    # One to warm up, one as it is, one that is noted, one whose system calls are counted.
    assert len(starts) == 4 and len(set(starts)) == 1, starts


# While `dies` is loaded, the process ends without its exit handlers, or goes on as another program.
ENDS = {
    "python": {"exit": "import os\nos._exit(0)\n", "exec": "import os\nos.execvp('sleep', ['sleep', '0'])\n"},
    "ruby": {"exit": "exit! 0\n", "exec": "begin\n  exec '/nowhere'\nrescue SystemCallError\n  exec 'sleep', '0'\nend\n"},
}
LOADS_IT = {"python": "import json\nimport dies\n", "ruby": "require 'json'\nrequire_relative 'dies'\n"}


def parts_and_advice(command, *options, cwd=None):
    alone = ["--no-freeze", "--no-archive", "-n", "1"]
    result = support.run([support.SNAPBOOT, "explain", "--json", *alone, *options, "--", *command], cwd=cwd, log=False)
    assert result.status == 0, result
    report = json.loads(result.out)
    return [event for event in report["traceEvents"] if event["ph"] == "X"], report["otherData"]["advice"]


@languages.both
@pytest.mark.parametrize("end", ["exit", "exec"])
def test_a_process_that_ends_early_tells_first(language, end, tmp_path):
    (tmp_path / ("dies" + language.ending)).write_text(ENDS[language.name][end])
    (tmp_path / ("app" + language.ending)).write_text(LOADS_IT[language.name])
    parts, advice = parts_and_advice([language.program, "app" + language.ending], cwd=tmp_path)
    names = [part["name"].rpartition("/")[2] for part in parts if part["cat"] == "body"]
    assert {"json", "dies"} <= set(names)
    executed = [part["name"] for part in parts if part["name"].startswith("executed: ")]
    assert len(executed) == (end == "exec") and all("sleep" in name for name in executed)
    assert any("sleep" in piece["headline"] for piece in advice) == (end == "exec")


def test_a_python_that_ignores_its_environment_is_told_of_from_outside():
    for command, why in [
        ([support.PYTHON, "-I", "-c", "import json.tool"], "-I"),
        ([support.PYTHON, "-S", "-c", "import json.tool"], "-S"),
        ([support.PYTHON, "-c", "import os, json.tool; os.kill(os.getpid(), 9)"], "signal 9"),
    ]:
        parts, _ = parts_and_advice(command, "--allow-failure")
        assert "json.tool" in [part["name"] for part in parts]
        assert why in parts[0]["args"]["detail"]


@support.needs_ruby
def test_a_ruby_that_ignores_its_environment_is_told_of_as_a_whole():
    parts, _ = parts_and_advice([support.RUBY, "--disable=rubyopt", "-e", "1"])
    assert "Only the whole" in parts[0]["args"]["detail"] and [part["name"] for part in parts[1:]] == ["not broken down"]


@pytest.mark.parametrize("option", ["--no-freeze", "--quiet"])
def test_an_interrupted_explanation_leaves_nothing_behind(option, tmp_path):
    # The program says when it has begun, and waits to be interrupted; the last start that is measured, or a freeze, does.
    os.mkfifo(tmp_path / "begun")
    waits = "import time\nopen('begun', 'w').close()\ntime.sleep(60)\n"
    (tmp_path / "app.py").write_text(waits)
    (tmp_path / "temporary").mkdir()
    env = support.environment(TMPDIR=tmp_path / "temporary")
    command = [support.SNAPBOOT, "explain", option, "--no-archive", "--", support.PYTHON, "app.py"]
    with subprocess.Popen(command, cwd=tmp_path, env=env, start_new_session=True, stderr=subprocess.DEVNULL) as process:
        with open(tmp_path / "begun"):
            pass
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(support.SECONDS) == -signal.SIGINT
    assert not list((tmp_path / "temporary").iterdir())
