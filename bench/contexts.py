#!/usr/bin/env python3
"""Counts how many everyday starts one image serves, and compares what each of them prints and writes with the ordinary start.

    bench/contexts.py                      all programs of contexts.toml, in all its contexts
    bench/contexts.py --only jc 'mk*'      these
    bench/contexts.py --again              without the results that an earlier run has stored
    bench/contexts.py --report             measures nothing: the tables of what is stored
    bench/contexts.py --snapboot PATH      with another build
    bench/contexts.py --against FILE       and what has changed since the table.json of another build

An image is made once for each program, by `snapboot freeze` in the base context, with the training that an installed command gets. Each
context changes something of the base. A start counts as served where that one image thaws: SNAPBOOT_ON_STALE=error turns any other start
into status 125. `snapboot inspect --why` then says all that differs. The store would make further images for those starts; this table tells
how often it has to.

Results lie in .work/contexts/BUILD: one file for each program, table.txt and table.json.
"""

import argparse
import concurrent.futures
import dataclasses
import fnmatch
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "tools")]

import contexts_table  # noqa: E402
import started  # noqa: E402
import workloads  # noqa: E402
from workloads import Unavailable, Workload  # noqa: E402

PLAN = ROOT / "bench/contexts.toml"
FREEZE_SECONDS = 600
SYSTEM = ("/usr/bin", "/bin")
# What a start says that does not thaw, on standard error or at the terminal.
NOT_USED = re.compile(rb"snapboot: cannot use the image: (.*?) \(an error, since SNAPBOOT_ON_STALE=error\)", re.DOTALL)
# Ordinary starts that are made to find out whether any two of them are alike.
REPEATS = 3


@dataclasses.dataclass(frozen=True)
class Context:
    """A row [context.NAME] of contexts.toml, which says what the keys mean."""

    name: str
    about: str
    set: dict = dataclasses.field(default_factory=dict)
    unset: tuple = ()
    only: dict | None = None
    directory: str = "project"
    umask: int = 0o022
    stdin: str = "pipe"
    terminal: tuple | None = None


@dataclasses.dataclass(frozen=True)
class Program:
    """A row [program.NAME] of contexts.toml, which says what the keys mean."""

    name: str
    language: str
    command: str
    task: tuple
    version: tuple = ("--version",)
    python: tuple | None = None
    debian: tuple = ()
    workload: str | None = None
    files: dict = dataclasses.field(default_factory=dict)
    equal: tuple = ()
    ignored: tuple = ()

    def prepare(self) -> pathlib.Path:
        """Installs the program. Returns the path of its command. Raises Unavailable."""
        name = self.workload or f"contexts-{self.name}"
        row = Workload(f"{self.name}, of contexts.toml", python=self.python, debian=self.debian)
        workloads.WORKLOADS.setdefault(name, row)
        offered = workloads.prepare(name)
        found = shutil.which(self.command, path=offered.get("bin", os.pathsep.join(SYSTEM)))
        if not found:
            raise Unavailable(f"{self.name} was installed, and has no command {self.command}")
        return pathlib.Path(found)


@dataclasses.dataclass(frozen=True)
class Plan:
    """What contexts.toml says. `base` is the environment in which images are made."""

    base: dict
    contexts: tuple[Context, ...]
    programs: tuple[Program, ...]


def read_plan(path: pathlib.Path = PLAN) -> Plan:
    tables = tomllib.loads(path.read_text())
    base_context = Context("base", "the context of the freeze")
    return Plan(
        tables["base"],
        (base_context, *rows(Context, tables["context"])),
        tuple(rows(Program, tables["program"])),
    )


def rows(kind: type, tables: dict) -> list:
    """The rows of one kind, with tuples in place of lists."""
    return [
        kind(name=name, **{key: tuple(value) if isinstance(value, list) else value for key, value in row.items()})
        for name, row in tables.items()
    ]


class Place:
    """The folders of one program's starts. Each start finds them as the freeze left them."""

    def __init__(self, plan: Plan, program: Program, command: pathlib.Path, top: pathlib.Path):
        self.plan, self.program, self.command, self.top = plan, program, command, top
        self.start = top / "start"
        self.saved_home = top / "home-after-freeze"
        self.image = top / "images" / f"{command.name}.img"
        self.image.parent.mkdir(parents=True)
        self.folders = {
            "home": self.start / "home",
            "other_home": self.start / "other-home",
            "bin": command.parent,
            "extra": top / "extra",
            "venv": top / "venv",
        }
        self.folders["extra"].mkdir()
        own = self.folders["extra"] / "own-command"
        own.write_text("#!/bin/sh\necho own\n")
        own.chmod(0o755)
        workloads.run([sys.executable, "-m", "venv", "--without-pip", self.folders["venv"]])
        (self.start / "home").mkdir(parents=True)

    def directory(self, context: Context) -> pathlib.Path:
        return self.start / context.directory

    def environment(self, context: Context) -> dict[str, str]:
        """The variables of a start."""
        words = {name: str(path) for name, path in self.folders.items()}
        words["directory"] = str(self.directory(context))
        words["tools"] = "" if words["bin"] in SYSTEM else words["bin"] + os.pathsep
        words["path"] = self.plan.base["PATH"].format(**words)
        chosen = {**self.plan.base, **context.set} if context.only is None else context.only
        return {name: value.format(**words) for name, value in chosen.items() if name not in context.unset}

    def reset(self, context: Context) -> None:
        """Makes the folders as they are before each start."""
        if self.saved_home.exists():
            shutil.rmtree(self.start)
            shutil.copytree(self.saved_home, self.start / "home", symlinks=True)
        (self.start / "other-home").mkdir(exist_ok=True)
        directory = self.directory(context)
        directory.mkdir(parents=True, exist_ok=True)
        for name, text in self.program.files.items():
            path = directory / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def run(self, argv: list, context: Context, **env: str) -> started.Seen:
        """One start. Raises TimeoutExpired."""
        return started.run(
            [str(word) for word in argv],
            cwd=self.directory(context),
            env={**self.environment(context), **env},
            umask=context.umask,
            stdin=context.stdin,
            terminal=context.terminal,
        )

    def observe(self, argv: list, context: Context, **env: str) -> dict:
        """One start in fresh folders: what can be compared of it."""
        self.reset(context)
        seen = self.run(argv, context, **env)
        files = started.contents(self.start, self.program.ignored)
        compared = {"stdout": self.equalled(seen.stdout), "stderr": self.equalled(seen.stderr), "status": seen.status}
        return compared | {
            f"file {name}": (mode, self.equalled(content) if content is not None else None)
            for name, (mode, content) in files.items()
        }

    def equalled(self, data: bytes) -> bytes:
        for pattern in self.program.equal:
            data = re.sub(pattern.encode(), b"EQUAL", data)
        return data

    def shortened(self, text: str) -> str:
        """A text with the names of this run's folders replaced by what they are for."""
        names = {str(self.directory(context)): "{directory}" for context in self.plan.contexts if context.directory != "home"}
        names |= {str(path): f"{{{name}}}" for name, path in self.folders.items() if str(path) not in SYSTEM}
        names |= {str(self.start): "{start}", str(self.top): "{top}", str(self.command.parents[1]): "{prefix}"}
        for path in sorted(names, key=len, reverse=True):
            if path not in ("/", "/usr"):
                text = text.replace(path, names[path])
        return text


class Measurement:
    """One program in all contexts."""

    def __init__(self, place: Place, snapboot: pathlib.Path):
        self.place, self.snapboot, self.program = place, snapboot, place.program
        self.contexts = place.plan.contexts

    def results(self) -> dict:
        """What is stored of a program."""
        base = self.contexts[0]
        starts = {"version": self.program.version, "task": self.program.task}
        for arguments in starts.values():  # they leave their caches
            self.place.reset(base)
            self.place.run([self.place.command, *arguments], base)
        status, said, depends = self.freeze(base)
        rows = []
        for context in self.contexts if status == 0 else ():
            why = None
            for kind, arguments in starts.items():
                row = {"context": context.name, "start": kind, **self.compared(context, list(arguments))}
                if row["outcome"] == "not served":
                    if why is None:
                        why = self.why(context)
                    row["reasons"] = why or [row["said"]]
                rows.append(row)
        return {"froze": status, "said": said, "depends": depends, "starts": rows}

    def freeze(self, base: Context) -> tuple[int, str, list[str]]:
        """Makes the image. Returns the status, what was said, and what the image depends on that nobody may expect."""
        self.place.reset(base)
        done = subprocess.run(
            [self.snapboot, "freeze", "--json", "-o", self.place.image, "--", self.place.command],
            cwd=self.place.directory(base),
            env=self.place.environment(base),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=FREEZE_SECONDS,
        )
        shutil.copytree(self.place.folders["home"], self.place.saved_home, symlinks=True)
        answer = json.loads(done.stdout or b"{}")
        said = answer.get("message") or "\n".join(map(str, answer.get("findings", []))) or done.stderr.decode(errors="replace")
        return done.returncode, self.place.shortened(said), [self.place.shortened(it) for it in answer.get("depends", [])]

    def compared(self, context: Context, arguments: list) -> dict:
        """What came of one start from the image."""
        # An empty SNAPBOOT_STATE keeps starts from being counted in the home.
        own = {"SNAPBOOT_ON_STALE": "error", "SNAPBOOT_STATE": ""}
        try:
            thawed = self.place.observe([self.place.image, *arguments], context, **own)
        except subprocess.TimeoutExpired:
            return {"outcome": "wrong", "difference": f"the image did not end within {started.SECONDS} s"}
        said = NOT_USED.search(thawed["stderr"] + thawed["stdout"])
        if thawed["status"] == 125 and said:
            return {"outcome": "not served", "said": self.place.shortened(said.group(1).decode(errors="replace"))}
        ordinary: list[dict] = []
        while len(ordinary) < REPEATS:
            ordinary.append(self.place.observe([self.place.command, *arguments], context))
            if thawed == ordinary[-1]:
                return {"outcome": "same", "status": thawed["status"]}
        unlike = next((other for other in ordinary if other != ordinary[0]), None)
        outcome, one, other = ("wrong", ordinary[0], thawed) if unlike is None else ("unstable", ordinary[0], unlike)
        return {"outcome": outcome, "status": thawed["status"], "difference": self.place.shortened(difference(one, other))}

    def why(self, context: Context) -> list[str]:
        """All that differs, for people."""
        self.place.reset(context)
        seen = self.place.run([self.snapboot, "inspect", "--why", "--json", self.place.image], context)
        text = seen.stdout.decode(errors="replace")
        try:
            found = json.loads(text[text.index("{") : text.rindex("}") + 1])["why"]
        except ValueError:
            return []
        return [self.place.shortened(line) for line in found]


def difference(one: dict, other: dict) -> str:
    """The first thing that differs between what was seen of two starts: from ... to ..."""
    for key in [*one, *other]:
        before, after = one.get(key), other.get(key)
        if before == after:
            continue
        if isinstance(before, bytes) and isinstance(after, bytes):
            same = len(os.path.commonprefix([before, after]))
            begin = max(0, same - 60)
            return f"{key}: {before[begin : same + 200]!r} and {after[begin : same + 200]!r}"
        return f"{key}: {before!r} and {after!r}"[:600]
    return "nothing"


def build_digest(snapboot: pathlib.Path) -> str:
    """Names a build: what its parts hold."""
    digest = hashlib.sha256()
    top = snapboot.parents[2]  # the repository, where it was built there
    beside = [path for path in snapboot.parent.glob("*snapboot*") if path.suffix in ("", ".so") and path.is_file()]
    folders = [*(top / it for it in ("python/snapboot", "ruby/lib", "recipes")), snapboot.parents[1] / "libexec/snapboot"]
    sources = [path for folder in folders for path in folder.rglob("*") if path.suffix in (".py", ".rb", ".toml", ".so")]
    for path in sorted({*beside, *sources}):
        digest.update(str(path.relative_to(top)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]


def plan_digest(plan: Plan, program: Program) -> str:
    """Names what a stored result of a program was made from."""
    sources = [path.read_bytes() for path in (pathlib.Path(__file__), pathlib.Path(started.__file__))]
    return hashlib.sha256(repr((plan.base, plan.contexts, program, sources)).encode()).hexdigest()[:12]


def measured(plan: Plan, program: Program, options: argparse.Namespace, results: pathlib.Path) -> dict:
    """The stored result of a program, or one that is made now."""
    stored, digest = results / f"{program.name}.json", plan_digest(plan, program)
    if stored.exists() and not options.again:
        result = json.loads(stored.read_text())
        if result["plan"] == digest or options.report:
            return result
    result = {"name": program.name, "language": program.language, "plan": digest, "starts": []}
    if options.report:
        return result | {"missing": "it was not measured"}
    try:
        command = program.prepare()
    except Unavailable as reason:
        return result | {"missing": str(reason)}
    top = pathlib.Path(tempfile.mkdtemp(prefix=f"contexts-{program.name}-"))
    try:
        result |= Measurement(Place(plan, program, command, top), options.snapboot).results()
    except subprocess.TimeoutExpired as late:
        return result | {"missing": f"{late.cmd} took longer than {late.timeout} s"}
    finally:
        if options.keep:
            print(f"{program.name}: kept {top}", flush=True)
        else:
            shutil.rmtree(top, ignore_errors=True)
    stored.write_text(json.dumps(result, indent=1) + "\n")
    print(contexts_table.line(result), flush=True)
    return result


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", metavar="NAME", default=["*"], help="programs, or patterns")
    parser.add_argument("--again", action="store_true", help="measure again what is stored")
    parser.add_argument("--report", action="store_true", help="measure nothing")
    parser.add_argument("--keep", action="store_true", help="leave folders and images, and print where they are")
    default = os.environ.get("SNAPBOOT", ROOT / "target/release/snapboot")
    parser.add_argument("--snapboot", type=pathlib.Path, default=default, metavar="PATH", help="the build that is measured")
    parser.add_argument("--against", type=pathlib.Path, metavar="FILE", help="a table.json to compare with")
    parser.add_argument("-j", type=int, default=os.cpu_count(), metavar="N", help="programs at a time (default: the CPUs)")
    options = parser.parse_args()
    plan = read_plan()
    chosen = [it for it in plan.programs if any(fnmatch.fnmatch(it.name, pattern) for pattern in options.only)]
    if not chosen:
        parser.error(f"no such program; there are: {', '.join(it.name for it in plan.programs)}")
    options.snapboot = options.snapboot.resolve()
    if not options.snapboot.exists():
        parser.error(f"{options.snapboot} is not there; `make build` makes it")
    results = workloads.WORK / "contexts" / build_digest(options.snapboot)
    results.mkdir(parents=True, exist_ok=True)
    os.nice(10)  # nothing is timed
    with concurrent.futures.ThreadPoolExecutor(options.j) as pool:
        programs = list(pool.map(lambda program: measured(plan, program, options, results), chosen))
    table = contexts_table.Table({context.name: context.about for context in plan.contexts}, programs)
    text = table.text()
    if options.against:
        text += "\n" + contexts_table.changes(json.loads(options.against.read_text())["programs"], programs)
    print(text)
    if options.only == ["*"]:
        (results / "table.txt").write_text(text)
        (results / "table.json").write_text(json.dumps(table.summary(), indent=1) + "\n")
        print(f"stored in {os.path.relpath(results)}")
    return 1 if table.is_wrong() else 0


if __name__ == "__main__":
    sys.exit(main())
