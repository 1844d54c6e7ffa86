"""A Snapboot that is impaired keeps no program from starting: each part missing, cut off, or of another version; by `run`, an installed link and an image."""

import os
import resource
import shutil
import subprocess
import sys

import pytest
from common import support
from common.languages import PYTHON, both

from store.stores import Store

LIBRARIES = ("libsnapboot_freezer.so", "libsnapboot_python.so", "libsnapboot_ruby.so")
# What a program can notice of how it was started.
SCRIPTS = {
    "python": """#!{program}
import json, os, string, sys
names = sorted(name for name in os.environ if not name.startswith("SNAPBOOT"))
print(sys.argv[1:], [(name, os.environ[name]) for name in names], sys.path, "sitecustomize" in sys.modules, sys.flags)
sys.exit(7)
""",
    "ruby": """#!{program}
require "json"
names = ENV.keys.reject { |name| name.start_with?("SNAPBOOT") }.sort
p ARGV, names.map { |name| [name, ENV[name]] }, $LOAD_PATH, $PROGRAM_NAME
exit 7
""",
}
# An image is stale under these, and an ordinary start goes on.
STALE = {"python": {"PYTHONUNBUFFERED": "1"}, "ruby": {"RUBYLIB": "/nowhere"}}


def parts():
    """Parts of an installation that starts, images and builders use, by their paths below it."""
    front_ends = ["python/snapboot/archive/run/sitecustomize.py", "python/snapboot/archive/imports.py"]
    front_ends += ["python/snapboot/front_end/freeze.py", "ruby/lib/snapboot/archive/run.rb", "ruby/lib/snapboot/setup.rb"]
    front_ends += ["ruby/lib/snapboot/archive.rb", "ruby/lib/snapboot/freeze.rb", "ruby/lib/snapboot/archive/data.rb"]
    native = [f"libexec/snapboot/{name}" for name in ("snapboot-launcher", *LIBRARIES)]
    return ["bin/snapboot", *native, *(f"libexec/snapboot/{name}" for name in front_ends)]


def install(prefix):
    """A tree as `make install` makes it."""
    built = support.SNAPBOOT.parent
    (prefix / "bin").mkdir(parents=True)
    shutil.copy(support.SNAPBOOT, prefix / "bin")
    library = prefix / "libexec/snapboot"
    if (built.parent / "libexec/snapboot").is_dir():
        shutil.copytree(built.parent / "libexec/snapboot", library)
        return
    library.mkdir(parents=True)
    for name in ("snapboot-launcher", *LIBRARIES):
        shutil.copy(built / name, library)
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(support.ROOT / "python/snapboot", library / "python/snapboot", ignore=ignore)
    shutil.copytree(support.ROOT / "ruby/lib", library / "ruby/lib", ignore=ignore)
    subprocess.run([sys.executable, support.ROOT / "tools/parts.py", library], check=True)


class Installed:
    """An installation of its own, with a program in each language, its installed link and its image."""

    def __init__(self, folder):
        self.prefix = folder / "prefix"
        install(self.prefix)
        self.snapboot = self.prefix / "bin/snapboot"
        self.store = Store(folder, PYTHONDONTWRITEBYTECODE=None)
        self.words = {}

    def prepare(self, language):
        """Installs the program of the language, and freezes it."""
        if language.name in self.words:
            return
        folder = self.store.folder / language.name
        folder.mkdir()
        tool = support.write(folder / "tool", SCRIPTS[language.name].format(program=language.program).encode())
        for words in (["install", tool], ["freeze", "-q", "-o", folder / "tool.img", "--", tool]):
            done = support.run([self.snapboot, *words], env=self.env(), log=False, cwd=folder)
            assert done.status == 0, done
        link = self.store.place / "data/bin" / "tool"
        kept = folder / "link"
        kept.symlink_to(os.readlink(link))
        starts = {"run": [self.snapboot, "run", "--", tool], "link": [kept], "image": [folder / "tool.img"]}
        if language.name == "ruby":
            # Of a program without an image, started with the archive.
            bare = [language.program, "-rjson", folder / "tool"]
        else:
            bare = [language.program, "-B", folder / "tool"]
        self.words[language.name] = (tool, {**starts, "bare": [self.snapboot, "run", "--no-freeze", "--", *bare]}, bare)

    def env(self, **more):
        return {**self.store.env, **more}

    def start(self, words, env, **more):
        """Starts a program with little room, so that no builder is left behind: what is tested are the starts."""
        room = (resource.RLIMIT_CPU, (50, 50))
        return support.run([*words, "an argument", ""], env=env, log=False, preexec_fn=lambda: resource.setrlimit(*room), **more)

    def all_right(self, language, but=(), **more):
        """Compares each kind of start with the ordinary one, fresh and stale."""
        self.prepare(language)
        tool, kinds, bare = self.words[language.name]
        for changes in ({}, STALE[language.name]):
            env = self.env(**changes)
            for kind, words in kinds.items():
                if kind in but or words[0] in but:
                    continue
                ordinary = self.start(bare if kind == "bare" else [tool], env, **more)
                assert ordinary.status == 7, ordinary
                found = self.start(words, env, **more)
                assert (found.status, found.out, found.err) == (7, named(ordinary.out, tool), ordinary.err), (kind, changes, found)


def named(text, tool):
    """What an ordinary start prints: a link has another name."""
    return text


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    return Installed(tmp_path_factory.mktemp("impaired"))


@pytest.fixture
def damaged(installed):
    """Calls with a part and its new content (None: it is missing) damage it; all are whole again afterwards."""
    kept = []

    def damage(path, content):
        part = installed.prefix / path
        aside = part.with_name(part.name + ".kept")
        part.rename(aside)
        kept.append((aside, part))
        if content is not None:
            part.write_bytes(content(aside.read_bytes()))
            part.chmod(0o755)

    yield damage
    for aside, part in reversed(kept):
        aside.replace(part)


DAMAGES = {"missing": None, "empty": lambda content: b"", "cut off": lambda content: content[: len(content) * 2 // 3]}


@both
def test_a_whole_installation_starts_all(installed, language):
    installed.all_right(language)


@both
@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.fault("a part of Snapboot is missing, empty or cut off", "the ordinary start")
def test_a_damaged_part_keeps_no_program_from_starting(installed, damaged, language, damage):
    installed.prepare(language)
    other = "ruby/" if language is PYTHON else "python/"
    for part in parts():
        if other in part:
            continue
        damaged(part, DAMAGES[damage])
        # Whoever calls what is not there is told so by the shell.
        but = (installed.snapboot,) if part == "bin/snapboot" else ()
        installed.all_right(language, but=but)
        for aside in installed.prefix.rglob("*.kept"):
            aside.replace(aside.with_name(aside.name[: -len(".kept")]))


@both
@pytest.mark.fault("half an upgrade: parts of another version", "the ordinary start")
def test_parts_of_another_version_are_left_alone(installed, damaged, language):
    damaged("libexec/snapboot/parts", lambda content: b"0.0.1" + content[content.index(b"\n") :])
    archive = {"python": "python/snapboot/archive/imports.py", "ruby": "ruby/lib/snapboot/archive.rb"}[language.name]
    damaged(f"libexec/snapboot/{archive}", lambda content: b"raise RuntimeError('of another version')\n")
    installed.all_right(language)


@both
@pytest.mark.fault("no /proc, no store, no HOME, closed streams, hardly any descriptors", "the ordinary start")
def test_what_a_start_lacks_keeps_no_program_from_starting(installed, language):
    installed.prepare(language)
    tool, kinds, bare = installed.words[language.name]

    def same(env, **more):
        for kind, words in kinds.items():
            ordinary = installed.start(bare if kind == "bare" else [tool], env, **more)
            found = installed.start(words, env, **more)
            assert (found.status, found.out, found.err) == (ordinary.status, ordinary.out, ordinary.err), (kind, env, found)

    env = installed.env()
    same({name: value for name, value in env.items() if name not in ("HOME", "SNAPBOOT_STORE", "SNAPBOOT_STATE")})
    same({**env, "SNAPBOOT_STORE": "/proc/nowhere"})
    same({**env, "HOME": "/dev/null", "XDG_CACHE_HOME": "/dev/null", "SNAPBOOT_STATE": "/dev/null"})
    wrap = 'exec "$@" <&- 2>&-'
    for kind, words in {**kinds, "ordinary": [tool]}.items():
        found = support.run(["sh", "-c", wrap, "sh", *words, "an argument", ""], env=env, log=False)
        assert found.status == 7 and found.out.startswith(("['an argument', '']", '["an argument", ""]')), (kind, found)
    script = 'mount -t tmpfs none /proc\nexec "$@"\n'
    for kind, words in kinds.items():
        ordinary = bare if kind == "bare" else [tool]
        results = [
            support.run(support.in_mount_namespace(script, *argv, "an argument", ""), env=env, log=False, cwd="/")
            for argv in (ordinary, words)
        ]
        assert (results[0].status, results[0].out, results[0].err) == (results[1].status, results[1].out, results[1].err), kind
