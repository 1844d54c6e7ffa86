"""The entry that `snapboot enable` puts in the place of a virtual environment's interpreter: programs and tools see the interpreter that
was there, starts with an image do without one, and `snapboot disable` leaves the environment as it was."""

import json
import os
import signal
import subprocess
import threading

import pytest
from archive_python import starts
from common import installed, pythons, support

from .test_enabled import PythonEnvironment

FACTS = """\
import json, os, signal, sys, sysconfig
fields = dict(line.split(":", 1) for line in open("/proc/self/status"))
names = ["executable", "_base_executable", "prefix", "base_prefix", "exec_prefix", "path", "argv", "orig_argv", "flags"]
facts = {name: list(value) if name == "flags" else value for name in names if (value := getattr(sys, name, None)) is not None}
facts.update({name: fields[name].strip() for name in ("Name", "SigBlk", "SigIgn", "SigCgt")})
facts.update(paths=sysconfig.get_paths(), exe=os.readlink("/proc/self/exe"), open=sorted(map(int, os.listdir("/proc/self/fd")))[:-1])
facts.update(words=open("/proc/self/cmdline").read().split("\\0"), variables={k: v for k, v in os.environ.items() if k != "SNAPBOOT"})
open(os.environ["TOLD"], "w").write(json.dumps(facts, sort_keys=True))
"""


class Told:
    """A script that tells what its process is, and environments in which it does so."""

    def __init__(self, folder, python):
        self.folder, self.told = folder, folder / "told"
        subprocess.run([python, "-m", "venv", "--without-pip", folder / "venv"], check=True)
        self.bin = folder / "venv/bin"
        self.script = folder / "a rather long name"
        self.script.write_text(f"#!{self.bin}/python3\n{FACTS}")
        self.script.chmod(0o755)
        self.env = support.environment(TOLD=str(self.told), SNAPBOOT="off")

    def facts(self, words, before_it=None, **variables):
        """What a start tells. before_it: what the new process does before it executes the words."""
        self.told.unlink(missing_ok=True)
        env = {**self.env, "PATH": f"{self.bin}:/usr/bin:/bin", **variables}
        subprocess.run(words, env=env, cwd=self.folder, preexec_fn=before_it, check=True)
        return json.loads(self.told.read_text())

    def switch(self, word):
        return support.run([str(support.SNAPBOOT), word, "-q", str(self.folder / "venv")], log=False)


def is_entry(path):
    return not path.is_symlink() and b"snapboot's entry\0" in path.read_bytes()[:4096]


def state_of(folder):
    """All files, with what identifies each and when it was changed."""
    status = {path: path.lstat() for path in [*folder.rglob("*")] if "__pycache__" not in path.parts}
    return {path: (of.st_ino, of.st_mtime_ns, of.st_mode) for path, of in status.items() if path.is_symlink() or path.is_file()}


@pytest.fixture(name="told")
def told_environment(tmp_path):
    return Told(tmp_path, support.PYTHON)


@pytest.mark.parametrize("version", pythons.VERSIONS, ids="{0[0]}.{0[1]}".format)
def test_the_interpreter_is_called_as_before(version, tmp_path):
    python = starts.interpreters().get(version) or pytest.skip("there is no Python %d.%d" % version)
    told = Told(tmp_path, python)
    (tmp_path / "other").symlink_to(told.bin / "python")
    script = str(told.script)
    ways = [
        [str(told.bin / "python"), script, "one", ""],
        [str(told.bin / ("python%d.%d" % version)), "-I", script],
        ["python3", "-u", script],
        ["./venv/bin/python", script],
        ["venv/bin/../bin/python", script],
        [script, "two words"],
        [str(tmp_path / "other"), script],
    ]
    before = [told.facts(words) for words in ways]
    assert told.switch("enable").status == 0 and is_entry(told.bin / "python3")
    # The name of the process is kept by a link that the first start makes.
    assert [[told.facts(words) for words in ways] for _ in range(2)] == [before, before]


def test_signals_and_descriptors_are_kept(told):
    def ignoring():
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])

    def closing():
        os.close(0), os.close(2)

    ways = [([str(told.script)], before_it) for before_it in (ignoring, closing)]
    before = [told.facts(*way) for way in ways]
    told.switch("enable")
    assert [told.facts(*way) for way in ways] == before


def test_environments_that_are_made_from_an_enabled_one(told):
    told.switch("enable")
    for options in ([], ["--copies"]):
        other = told.folder / "other"
        subprocess.run([told.bin / "python", "-m", "venv", "--without-pip", "--clear", *options, other], env=told.env, check=True)
        facts = told.facts([str(other / "bin/python"), str(told.script)])
        assert facts["prefix"] == str(other) and not is_entry(other / "bin/python")
        assert facts["base_prefix"] == told.facts([str(told.script)])["base_prefix"]


def test_disable_leaves_the_environment_as_it_was(told):
    before = state_of(told.folder)
    for _ in range(2):
        assert told.switch("enable").status == 0
    told.facts([str(told.script)])
    told.told.unlink()
    assert (told.bin.parent / ".snapboot/names" / told.script.name[:15]).is_symlink()
    for _ in range(2):
        assert told.switch("disable").status == 0
    assert state_of(told.folder) == before and not (told.bin.parent / ".snapboot").exists()


def test_an_interpreter_that_somebody_has_put_there_stays(told):
    told.switch("enable")
    python = told.bin / "python"
    python.unlink()
    python.symlink_to(os.path.realpath(support.PYTHON))
    assert told.facts([str(python), str(told.script)])["prefix"] == str(told.bin.parent)
    told.switch("disable")
    assert os.readlink(python) == os.path.realpath(support.PYTHON) and not (told.bin.parent / ".snapboot").exists()
    told.switch("enable")
    assert is_entry(python)


def test_environments_of_copies_are_left_alone(tmp_path):
    subprocess.run([support.PYTHON, "-m", "venv", "--copies", "--without-pip", tmp_path / "venv"], check=True)
    before = (tmp_path / "venv/bin/python").read_bytes()
    assert support.run([str(support.SNAPBOOT), "enable", str(tmp_path / "venv")], log=False).status == 0
    assert (tmp_path / "venv/bin/python").read_bytes() == before and not (tmp_path / "venv/.snapboot").exists()


def test_a_moved_environment_works(told):
    told.switch("enable")
    told.bin.parent.rename(told.folder / "moved")
    facts = told.facts([str(told.folder / "moved/bin/python"), str(told.script)])
    assert facts["prefix"] == str(told.folder / "moved")


def test_a_missing_interpreter_is_named(told):
    told.switch("enable")
    kept = told.bin.parent / ".snapboot/python"
    kept.unlink()
    kept.symlink_to("/nonexistent/python")
    done = support.run([told.bin / "python", "-V"], env=told.env, log=False)
    assert done.status == 126 and f"cannot execute {kept}" in done.err and "Make the environment anew" in done.err, done


def test_starts_go_on_while_it_is_enabled_and_disabled(told):
    failed, ended = [], threading.Event()

    def start():
        while not ended.is_set():
            done = subprocess.run([told.bin / "python3", "-c", "pass"], env=told.env, capture_output=True, text=True)
            if done.returncode:
                failed.append(done)

    starting = threading.Thread(target=start)
    starting.start()
    try:
        for _ in range(20):
            assert [told.switch(word).status for word in ("enable", "disable")] == [0, 0]
    finally:
        ended.set()
        starting.join()
    assert not failed, failed[0]


def enabled_by_copy(folder):
    """An environment that a copy of Snapboot has enabled, and the copy's command."""
    command, environment = installed.copy(folder / "copy"), PythonEnvironment(folder)
    assert support.run([command, "enable", "-q", environment.directory], env=environment.env, log=False).status == 0
    return environment, command


def test_an_image_needs_no_interpreter(tmp_path):
    """What a Python would execute is gone, so only the entry leads to the image."""
    environment, command = enabled_by_copy(tmp_path)
    (environment.packages / "tool.py").write_text(environment.template.format(loaded=""))
    tool = environment.directory / "bin/tool"
    tool.write_text(f"#!{environment.interpreter}\nimport sys\nfrom tool import main\nsys.exit(main())\n")
    tool.chmod(0o755)
    code = "import argparse, asyncio, json, os, sys; print(sys.argv, sys.stdin.read())"
    ways = (["main.py", "a"], ["-m", "tool", "-x"], ["-u", str(tool), "x"], ["-c", code, "x"])
    ordinary = [environment.become_frozen(*words) for words in ways]
    command.unlink()
    assert [environment.start(*words) for words in ways] == [(shown, False) for shown in ordinary]
    link = environment.directory / ".snapboot/snapboot"
    link.unlink()
    link.symlink_to(support.SNAPBOOT)
    assert [environment.start(*words) for words in ways] == [(shown, True) for shown in ordinary]
