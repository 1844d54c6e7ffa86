"""Runs each case of the table the ordinary way and thawed, over pipes, files and a terminal, and compares what they show."""

import contextlib
import os
import pathlib
import re
import tempfile
import zlib

import pytest
from common import support

from . import process, table
from .images import SNAPBOOT, CannotFreeze, Images, Unavailable, interpreters, with_packages
from .normalise import normalised

FELL_BACK = re.compile(rb"^snapboot: .*starting the ordinary way\r?\n", re.MULTILINE)
LONG_AGO = 1_600_000_000  # the files' time: .pyc files hold it
# `make test` runs one of the ways to start a case, of one or two cases of each group.
GROUPS = 32
INTERPRETERS = interpreters()
OTHER_PYTHONS = [name for name in INTERPRETERS if name.startswith("python")][1:]


def _version(name):
    """The version in an interpreter's name, such as ruby3.1."""
    return tuple(int(number) for number in re.findall(r"\d+", name))


def _kinds(case, name):
    """The kinds of streams with which a case runs on an interpreter. The CPythons but the first share the cases."""
    version = _version(name)
    if not name.startswith(case.language) or version < tuple(case.since):
        return ()
    if name not in OTHER_PYTHONS or os.environ.get("SNAPBOOT_PYTHONS") == "all":
        return case.kinds
    mine = case.first and OTHER_PYTHONS[zlib.crc32(case.name.encode()) % len(OTHER_PYTHONS)] == name
    return case.kinds[:1] if mine else ()


def _parameters():
    for case in table.load():
        for name, path in INTERPRETERS.items():
            for kind in _kinds(case, name):
                mark = f"{name}-{case.name}-{case.main.replace(' ', '_')}-{kind}"
                yield pytest.param(case, name, path, kind, id=mark)


# A folder that stays: images that an earlier run made there, maybe under another kernel (tools/kernels.py), are used again.
KEPT = os.environ.get("SNAPBOOT_BEHAVIOUR_FOLDER")


@pytest.fixture(scope="module")
def place():
    """A folder with a short name of always the same length; `run` in it is where programs run."""
    with contextlib.nullcontext(KEPT) if KEPT else tempfile.TemporaryDirectory(prefix="behaviour-") as folder:
        yield pathlib.Path(os.path.realpath(folder))


@pytest.fixture(scope="module")
def images(place):
    if not SNAPBOOT.exists():
        pytest.skip(f"{SNAPBOOT} is not built: run `make build`")
    (place / "images").mkdir(parents=True, exist_ok=True)
    return Images(place / "images", kept=bool(KEPT))


@pytest.mark.sample(
    10,
    each=lambda parameters: (parameters["case"].language, zlib.crc32(parameters["case"].name.encode()) % GROUPS),
    # The kinds of standard streams share an image.
    unit=lambda parameters: f"{parameters['name']} {parameters['case'].main}",
)
@pytest.mark.parametrize(("case", "name", "interpreter", "kind"), list(_parameters()))
def test_same(case, name, interpreter, kind, place, images):
    if case.workload:
        try:
            interpreter = with_packages(case.workload, interpreter)
        except Unavailable as reason:
            pytest.skip(str(reason))
    start = Start(case, interpreter, place / "run")
    ordinary = start.run(start.ordinary(), kind)
    assert FELL_BACK.search(ordinary.stdout + ordinary.stderr) is None
    if ordinary.status != case.status or case.prints not in _text(ordinary):
        pytest.fail(f"the case expects another ordinary run\n{_text(ordinary)}", pytrace=False)
    try:
        thawed = start.run(start.thawed(images), kind)
    except CannotFreeze as error:
        if case.refused and re.search(case.refused, str(error)):
            return
        raise
    if case.refused:
        pytest.fail("the freeze was expected to be refused", pytrace=False)
    said = FELL_BACK.search(thawed.stdout + thawed.stderr)
    fell_back = bool(said)
    expected = case.expects_fallback(kind, _version(name), name.endswith("t"))
    if "2>&-" in case.shell:  # nobody can say it
        fell_back = expected
    thawed.stdout, thawed.stderr = FELL_BACK.sub(b"", thawed.stdout), FELL_BACK.sub(b"", thawed.stderr)
    for seen in (ordinary, thawed):
        seen.stdout, seen.stderr, seen.pid = normalised(seen.stdout), normalised(seen.stderr), None
    if case.differs is None or (case.differs.versions and not table.is_among(_version(name), case.differs.versions)):
        _compare(ordinary, thawed)
    else:
        _differs(case.differs, ordinary, thawed)
    if fell_back != expected:
        message = said[0].decode(errors="replace") if said else "the image was expected to fall back, and does not say so"
        pytest.fail(message, pytrace=False)


def _differs(difference, ordinary, thawed):
    """Asserts that the runs differ in what the case says, and in nothing else."""
    for seen, pattern in ((ordinary, difference.ordinary), (thawed, difference.thawed)):
        both = re.compile(pattern.encode())
        assert both.search(seen.stdout + seen.stderr), f"expected {pattern!r}\n{_text(seen)}"
        seen.stdout, seen.stderr = both.sub(b"", seen.stdout), both.sub(b"", seen.stderr)
    _compare(ordinary, thawed)


def _compare(ordinary, thawed):
    """Asserts that two runs showed the same. Says what differs, and only that."""
    pairs = [(name, vars(ordinary)[name], vars(thawed)[name]) for name in vars(ordinary)]
    pairs = [pair for pair in pairs if pair[0] != "files"]
    for name in {**ordinary.files, **thawed.files}:
        pairs.append((f"file {name}", ordinary.files.get(name), thawed.files.get(name)))
    differing = [f"{name}\n  ordinary: {a!r:.4000}\n  thawed:   {b!r:.4000}" for name, a, b in pairs if a != b]
    if differing:
        pytest.fail("a thawed run differs from an ordinary one\n" + "\n".join(differing), pytrace=False)


def _text(seen):
    return f"status {seen.status}\n{seen.stdout.decode(errors='replace')}\n{seen.stderr.decode(errors='replace')}"


class Start:
    """How a case is started, the ordinary way and thawed."""

    def __init__(self, case, interpreter, folder):
        self.case = case
        self.interpreter = interpreter
        self.folder = folder
        self.places = {"scratch": folder, "interpreter": interpreter, "program": case.program_file}
        self.environment = {
            "PATH": os.path.dirname(interpreter) + ":/usr/local/bin:/usr/bin:/bin",
            "HOME": str(folder),
            "LANG": "C.UTF-8",
            "TERM": "xterm",
            **dict(word.split("=", 1) for word in os.environ.get("SNAPBOOT_BEHAVIOUR_ENV", "").split()),
        }

    def _expand(self, texts):
        return [table.expand(text, **self.places) for text in texts]

    def _main(self):
        """The words that name the program."""
        case = self.case
        way = case.main.replace("frozen ", "")
        if way == "code":
            return ["-c" if case.language == "python" else "-e", case.program]
        return {
            "script": [case.program_file],
            "module": ["-m", "program"],
            "dash": ["-"],
            "command": [],
            "stdin": [],
            "none": [],
        }[way]

    def _command(self):
        """What is frozen, and what an ordinary start begins with."""
        if self.case.main == "frozen command":
            return [str(self.folder / self.case.program_file)]
        frozen = self._main() if self.case.frozen else []
        return [self.interpreter, *self.case.frozen_options, *frozen]

    def _rest(self):
        return [*self.case.options, *([] if self.case.frozen else self._main())]

    def ordinary(self):
        """The command and its arguments, as bytes."""
        return [os.fsencode(word) for word in self._command() + self._rest()] + self._expand(self.case.args)

    def _bound(self):
        """The options for an image of this case only: each of its starts has the same locale and search path, unless the case says so."""
        changed = {*self.case.env, *self.case.unset}
        varies = self.case.shell or any(name in ("LANG", "PYTHONPATH") or name.startswith("LC_") for name in changed)
        return [] if varies else support.bound_to_variables(self.interpreter)

    def thawed(self, images):
        """The image and its arguments, as bytes."""
        self._lay_out()
        image = images.image_of(
            self._command(),
            self.case.preload,
            self.environment,
            self.folder,
            (self.interpreter, self.case.name, self.case.main) if self.case.frozen else None,
            self._bound(),
        )
        return [os.fsencode(word) for word in [image, *self._rest()]] + self._expand(self.case.args)

    def run(self, argv, kind):
        """Runs it in a new folder. Returns process.Seen."""
        case = self.case
        self._lay_out()
        environment = {os.fsencode(name): os.fsencode(value) for name, value in self.environment.items()}
        environment[b"SNAPBOOT_LOG"] = b"1"  # an image that falls back says so
        for name, value in case.env.items():
            environment[table.expand(name)] = table.expand(value, **self.places)
        for name in case.unset:
            del environment[name.encode()]
        stdin = table.expand(case.stdin, **self.places)
        if case.main in ("stdin", "dash"):
            stdin = case.program.encode() + stdin
        if case.shell:
            argv = [b"/bin/sh", b"-c", table.expand(case.shell, **self.places), b"sh", *argv]
        return process.run(argv, kind, self.folder, case.cwd, environment, stdin, case.signals)

    def _lay_out(self):
        """Makes the folder what the case says. Files that are as they should be stay: an image may depend on them."""
        case = self.case
        files = {name: table.expand(text, **self.places) for name, text in case.files.items()}
        if case.main not in ("code", "frozen code", "stdin", "dash"):
            first = f"#!{self.interpreter}\n" if case.main == "frozen command" else ""
            files[case.program_file] = (first + case.program).encode()
        wanted = {self.folder / name: content for name, content in files.items()}
        _clear(self.folder, wanted)
        for path, content in wanted.items():
            if not path.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
                path.chmod(0o755 if path.name == "tool" else 0o644)
                os.utime(path, (LONG_AGO, LONG_AGO))
        for name, target in case.links.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            os.symlink(os.fsdecode(table.expand(target, **self.places)), path)


def _clear(folder, wanted):
    """Removes everything below folder but the wanted files that nobody has touched."""
    folder.mkdir(exist_ok=True)
    for path in sorted(folder.rglob("*"), reverse=True):
        if path.is_dir() and not path.is_symlink():
            if not any(path in file.parents for file in wanted):
                path.rmdir()
        elif path.is_symlink() or path.stat().st_mtime != LONG_AGO or path.read_bytes() != wanted.get(path):
            path.unlink()
