"""A Snapboot that is impaired keeps no program from starting, by `run`, an installed link or an image: parts missing, cut off, or old."""

import contextlib
import resource
import shutil
import subprocess
import sys

import pytest
from common import support
from common.languages import both

from store.stores import Store

pytestmark = pytest.mark.sample(8)

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
p ARGV, names.map { |name| [name, ENV[name]] }, $LOAD_PATH
exit 7
""",
}
# An image is stale under these, and an ordinary start goes on.
STALE = {"python": {"PYTHONUNBUFFERED": "1"}, "ruby": {"RUBYLIB": "/nowhere"}}


# Parts of an installation by the kinds of starts that need them; below libexec/snapboot, but for the command itself.
FRONT_END = {"python": "python/snapboot/front_end/freeze.py", "ruby": "ruby/lib/snapboot/freeze.rb"}
ARCHIVE = {
    "python": ["libsnapboot_python.so", *(f"python/snapboot/archive/{name}.py" for name in ("run/sitecustomize", "imports", "compiling"))],
    "ruby": ["libsnapboot_ruby.so", *(f"ruby/lib/snapboot/{name}.rb" for name in ("archive/run", "setup", "archive", "archive/data"))],
}


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
        self.store = Store(folder)
        self.words, self.known = {}, {}

    def prepare(self, language):
        """Installs the program of the language, and freezes it."""
        if language.name in self.words:
            return
        folder = self.store.folder / language.name
        folder.mkdir()
        # Each has a name of its own: of two installed commands of one name the last counts.
        name = f"tool-{language.name}"
        tool = support.write(folder / name, SCRIPTS[language.name].replace("{program}", language.program).encode())
        for words in (["install", tool], ["freeze", "-q", "-o", folder / "tool.img", "--", tool]):
            done = support.run([self.snapboot, *words], env=self.env(), log=False, cwd=folder)
            assert done.status == 0, done
        link = self.store.place / "data/bin" / name
        starts = {"run": [self.snapboot, "run", "--", tool], "link": [link], "image": [folder / "tool.img"]}
        if language.name == "ruby":
            # Of a program without an image, started with the archive.
            bare = [language.program, "-rjson", tool]
        else:
            bare = [language.program, "-B", tool]
        self.words[language.name] = (tool, {**starts, "bare": [self.snapboot, "run", "--no-freeze", "--", *bare]}, bare)

    def env(self, **more):
        return {**self.store.env, **more}

    def start(self, words, env, **more):
        """Starts a program with little room, so that no builder is left behind: what is tested are the starts."""
        room = (resource.RLIMIT_CPU, (50, 50))
        return support.run([*words, "an argument", ""], env=env, log=False, preexec_fn=lambda: resource.setrlimit(*room), **more)

    def ordinary(self, language, kind, changes):
        """How such a start ends without Snapboot; made once."""
        tool, _, bare = self.words[language.name]
        key = (language.name, kind == "bare", bool(changes))
        if key not in self.known:
            self.known[key] = self.start(bare if kind == "bare" else [tool], self.env(**changes))
            assert self.known[key].status == 7, self.known[key]
        return self.known[key]

    def all_right(self, language, kinds, stales):
        """Compares these kinds of starts with ordinary ones: where the image is fresh (False), where it is stale (True)."""
        for stale in stales:
            changes = STALE[language.name] if stale else {}
            for kind in kinds:
                ordinary = self.ordinary(language, kind, changes)
                found = self.start(self.words[language.name][1][kind], self.env(**changes))
                assert (found.status, found.out, found.err) == (7, ordinary.out, ordinary.err), (kind, changes, found)


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    return Installed(tmp_path_factory.mktemp("impaired"))


@contextlib.contextmanager
def damaged(installed, path, damage):
    """A part with other content (a function of what it has; None: it is missing), for a while."""
    part = installed.prefix / path
    aside = part.with_name(part.name + ".kept")
    part.rename(aside)
    try:
        if damage is not None:
            part.write_bytes(damage(aside.read_bytes()))
            part.chmod(0o755)
        yield
    finally:
        aside.replace(part)


DAMAGES = {"missing": None, "empty": lambda content: b"", "cut off": lambda content: content[: len(content) * 2 // 3]}


@both
def test_a_whole_installation_starts_all(installed, language):
    installed.prepare(language)
    installed.all_right(language, ("run", "link", "image", "bare"), (False, True))


@both
@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.fault("a part of Snapboot is missing, empty or cut off", "the ordinary start")
def test_a_damaged_part_keeps_no_program_from_starting(installed, language, damage):
    installed.prepare(language)
    # An image of the store hands over to the command; one that thaws needs nothing.
    with damaged(installed, "bin/snapboot", DAMAGES[damage]):
        installed.all_right(language, ("link",), (False, True))
        installed.all_right(language, ("image",), (True,))
    for part in ARCHIVE[language.name]:
        with damaged(installed, f"libexec/snapboot/{part}", DAMAGES[damage]):
            installed.all_right(language, ("bare",), (False,))
            installed.all_right(language, ("link",), (True,))
    for part in ("snapboot-launcher", "libsnapboot_freezer.so", FRONT_END[language.name]):
        with damaged(installed, f"libexec/snapboot/{part}", DAMAGES[damage]):
            installed.all_right(language, ("run",), (True,))


@both
@pytest.mark.fault("half an upgrade: parts of another version", "the ordinary start")
def test_parts_of_another_version_are_left_alone(installed, language):
    installed.prepare(language)
    archive = {"python": "python/snapboot/archive/imports.py", "ruby": "ruby/lib/snapboot/archive.rb"}[language.name]
    other = damaged(installed, f"libexec/snapboot/{archive}", lambda content: b"raise RuntimeError('of another version')\n")
    version = damaged(installed, "libexec/snapboot/parts", lambda content: b"0.0.1" + content[content.index(b"\n") :])
    # By its size, and by the version alone.
    with other:
        installed.all_right(language, ("bare",), (False,))
    with version:
        installed.all_right(language, ("bare",), (False,))


@both
@pytest.mark.fault("no /proc, no store, no HOME, closed streams, hardly any descriptors", "the ordinary start")
def test_what_a_start_lacks_keeps_no_program_from_starting(installed, language):
    installed.prepare(language)
    tool, kinds, bare = installed.words[language.name]
    env = installed.env()

    def same(env, argv, kinds, **more):
        """argv: a function of a program's words."""
        for kind in kinds:
            words = installed.words[language.name][1][kind]
            ordinary, found = (
                installed.start(argv(words), env, **more) for words in (bare if kind == "bare" else [tool], words)
            )
            assert (found.status, found.out, found.err) == (ordinary.status, ordinary.out, ordinary.err), (kind, env, found)
            assert found.status == 7, found

    def plain(words):
        return words

    nowhere = {name: value for name, value in env.items() if name not in ("HOME", "SNAPBOOT_STORE", "SNAPBOOT_STATE")}
    same(nowhere, plain, kinds)
    same({**env, "HOME": "/dev/null", "XDG_CACHE_HOME": "/dev/null", "SNAPBOOT_STORE": "/proc/nowhere"}, plain, ("run", "bare"))
    same(env, lambda words: ["sh", "-c", 'exec "$@" <&- 2>&-', "sh", *words], ("run", "link", "bare"))
    script = 'mount -t tmpfs none /proc\nexec "$@"\n'
    same(env, lambda words: support.in_mount_namespace(script, *words), kinds, cwd="/")
