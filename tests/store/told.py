"""Enabled interpreters of both languages, and scripts that tell what their process is."""

import json
import os
import pathlib
import shutil
import subprocess

import pytest
from common import support

PYTHON_FACTS = """\
import json, os, signal, sys, sysconfig
fields = dict(line.split(":", 1) for line in open("/proc/self/status"))
names = ["executable", "_base_executable", "prefix", "base_prefix", "exec_prefix", "path", "argv", "orig_argv", "flags"]
facts = {name: list(value) if name == "flags" else value for name in names if (value := getattr(sys, name, None)) is not None}
facts.update({name: fields[name].strip() for name in ("Name", "SigBlk", "SigIgn", "SigCgt")})
facts.update(paths=sysconfig.get_paths(), exe=os.readlink("/proc/self/exe"), open=sorted(map(int, os.listdir("/proc/self/fd")))[:-1])
facts.update(words=open("/proc/self/cmdline").read().split("\\0"), variables={k: v for k, v in os.environ.items() if k != "SNAPBOOT"})
open(os.environ["TOLD"], "w").write(json.dumps(facts, sort_keys=True))
"""
RUBY_FACTS = """\
facts = File.readlines("/proc/self/status", chomp: true).map { |line| line.split(":", 2) }.to_h
facts = facts.slice("Name", "SigBlk", "SigIgn", "SigCgt").transform_values(&:strip)
facts.update(program: $0, file: __FILE__, first: Process.argv0, words: ARGV, here: Dir.pwd, path: $LOAD_PATH, level: $VERBOSE)
facts.update(line: File.binread("/proc/self/cmdline").split("\\0"), open: Dir.children("/proc/self/fd").map(&:to_i).sort[0...-1])
facts.update(exe: File.readlink("/proc/self/exe").delete_suffix(".snapboot"), variables: ENV.to_h.except("SNAPBOOT"))
facts.update(ruby: RbConfig.ruby, config: RbConfig::CONFIG, gem: [Gem.ruby, Gem.path, Gem.default_dir, Gem.bindir]) if defined?(Gem)
require "json"
File.write(ENV["TOLD"], JSON.generate(facts))
"""


class Told:
    """A script that tells what its process is, and the interpreter that runs it. Has `directory`, what `snapboot enable` gets; `bin`, its
    folder with interpreters; `name`, of one; `behind`, where that is once an entry has its place; `nothing`, words that start nothing."""

    def __init__(self, folder, directory, name):
        self.folder, self.told, self.directory, self.name = folder, folder / "told", directory, name
        self.bin, self.interpreter = directory / "bin", directory / "bin" / name
        self.script = folder / "a rather long name"
        self.env = support.environment(TOLD=str(self.told), SNAPBOOT="off")

    def write(self, facts):
        """Writes the script."""
        self.script.write_text(f"#!{self.interpreter}\n{facts}")
        self.script.chmod(0o755)

    def facts(self, words, before_it=None, **variables):
        """What a start tells. before_it: what the new process does before it executes the words."""
        self.told.unlink(missing_ok=True)
        env = {**self.env, "PATH": f"{self.bin}:/usr/bin:/bin", **variables}
        subprocess.run(words, env=env, cwd=self.folder, preexec_fn=before_it, check=True)
        return json.loads(self.told.read_text())

    def switch(self, word, before=()):
        """`snapboot enable`, or another word. before: the words of a program that executes it."""
        return support.run(self.inside([*before, str(support.SNAPBOOT), word, "-q", str(self.directory)]), log=False)

    def inside(self, argv):
        """The argv that runs another one where the interpreter can be enabled."""
        return argv

    def left(self):
        """What is there of Snapboot's."""
        return [path for path in (self.directory / ".snapboot", self.bin / "ruby.snapboot") if path.exists()]

    def same_but_name(self, facts, expected):
        """Whether a process differs in its name at most, and in what it says of the interpreter that the environment was made from."""
        names = "Name", "_base_executable", "exe"
        return {**facts, **dict.fromkeys(names)} == {**expected, **dict.fromkeys(names)}


class PythonTold(Told):
    """That of a virtual environment."""

    def __init__(self, folder, python=support.PYTHON):
        directory = folder / "venv"
        subprocess.run([python, "-m", "venv", "--without-pip", directory], check=True)
        super().__init__(folder, directory, "python3")
        self.behind = directory / ".snapboot/python3"
        self.nothing = ["-c", "pass"]
        self.write(PYTHON_FACTS)


class RubyTold(Told):
    """That of a Ruby in a prefix: a given one, or a copy of the tests' Ruby, which finds its files where they are. Where that has its own
    folder for what a site adds, a mount namespace has another one."""

    def __init__(self, folder, prefix=None):
        super().__init__(folder, prefix or folder / "prefix", "ruby")
        self.over = None
        if not prefix:
            self.bin.mkdir(parents=True)
            shutil.copy(os.path.realpath(support.RUBY), self.interpreter)
            self.over = pathlib.Path("/usr/local/lib")
            assert site_folder(self.interpreter).startswith(f"{self.over}/"), "this Ruby is no Debian's"
            for name in ("added", "work"):
                (folder / name).mkdir()
        self.behind = self.bin / "ruby.snapboot"
        self.nothing = ["-e", "1"]
        self.write(RUBY_FACTS)

    def inside(self, argv):
        if not self.over:
            return argv
        options = f"lowerdir={self.over},upperdir={self.folder}/added,workdir={self.folder}/work"
        script = 'mount -t overlay overlay -o "$1" "$2"; shift 2; exec "$@"'
        return support.in_mount_namespace(script, options, str(self.over), *map(str, argv))


def site_folder(ruby):
    """Where a Ruby looks first."""
    return subprocess.run([ruby, "--disable=gems", "-e", "print $LOAD_PATH[0]"], capture_output=True, text=True, check=True).stdout


def is_entry(path):
    """Whether a file is an entry."""
    return not path.is_symlink() and b"snapboot's entry\0" in path.read_bytes()[:4096]


def state_of(folder):
    """All files, with what identifies each and when it was changed."""
    status = {path: path.lstat() for path in [*folder.rglob("*")] if "__pycache__" not in path.parts}
    return {path: (of.st_ino, of.st_mtime_ns, of.st_mode) for path, of in status.items() if path.is_symlink() or path.is_file()}


# Rubies in prefixes, to be tried besides: enabled and disabled, and left as they were.
PREFIXES = [pathlib.Path(name) for name in os.environ.get("SNAPBOOT_RUBY_PREFIXES", "").split(":") if name]
RUBIES = [
    pytest.param(None, marks=[support.needs_ruby, support.needs_root], id="ruby"),
    *(pytest.param(prefix, id=f"ruby in {prefix.name}") for prefix in PREFIXES),
]
