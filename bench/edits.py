#!/usr/bin/env python3
"""Edits projects, a hundred times each, and starts them after each edit by `snapboot run` and the ordinary way.

    bench/edits.py                100 edits of each project, into bench/results/<machine>-edits-<date>.json
    bench/edits.py -n 8 django    a few of one; stored nowhere
    bench/edits.py --seed 7       other edits in another order

Both starts must print the same and end the same way, or the exit status is 1. A project is a checkout in a folder of its own. The first
starts make its image, and no edit of the project's own files may retire it; an edit of what is installed does, and the store then makes
another one, for which nobody waits here but the next edit.
"""

import argparse
import dataclasses
import json
import os
import pathlib
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "tools")]

import measure  # noqa: E402
import report  # noqa: E402
import run as harness  # noqa: E402
import workloads  # noqa: E402

SNAPBOOT = pathlib.Path(os.environ.get("SNAPBOOT", ROOT / "target/release/snapboot"))
PROGRAMS = ROOT / "bench/programs"
# Starts before the first edit: the first image has what training says, the next one what starts have reported.
FIRST_STARTS = 4
IDLE = 300  # seconds that a builder may take


class Folder:
    """A project, and what its edits have in common: each makes a file longer, as bytecode is told apart by size and second."""

    def __init__(self, top: pathlib.Path):
        self.top = top
        self.count = 0

    def append(self, name: str, line: str) -> None:
        """Append a line, in which `{n}` is the number of the edit."""
        self.count += 1
        path = self.top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        text = path.read_text() if path.exists() else ""
        path.write_text(text + line.replace("{n}", str(self.count)) + "\n")

    def toggle(self, name: str, line: str) -> None:
        """Make a new file, or remove it if it is there."""
        if (self.top / name).exists():
            (self.top / name).unlink()
        else:
            self.append(name, line)

    def insert(self, name: str, mark: str, line: str) -> None:
        """Insert a line behind the one that contains `mark`."""
        self.count += 1
        lines = (self.top / name).read_text().splitlines()
        at = next(number for number, text in enumerate(lines) if mark in text)
        lines.insert(at + 1, line.replace("{n}", str(self.count)))
        (self.top / name).write_text("\n".join(lines) + "\n")


Edit = Callable[[Folder], None]


@dataclasses.dataclass(frozen=True)
class Project:
    """A project, what is started in it, and the kinds of edits by name. Those of `installed` retire an image."""

    prepare: Callable[[Folder], tuple[list[str], dict[str, str]]]  # returns the command, and variables
    edits: dict[str, Edit]
    installed: tuple[str, ...] = ("dependency",)


def add_shop(folder: Folder) -> None:
    """Adds an application, its tests and a package that is installed to a new project of Django."""
    shutil.copytree(PROGRAMS / "shop", folder.top, dirs_exist_ok=True)
    settings = folder.top / "skel/settings.py"
    text = settings.read_text().replace("INSTALLED_APPS = [", 'INSTALLED_APPS = [\n    "items",')
    settings.write_text(text.replace("'DIRS': []", "'DIRS': [BASE_DIR / 'templates']") + "ROOT_URLCONF = 'items.urls'\nSHOWN = [0]\n")


def prepare_django(folder: Folder) -> tuple[list[str], dict[str, str]]:
    offered = workloads.prepare("development")
    shutil.copytree(offered["dir"], folder.top, dirs_exist_ok=True, ignore=shutil.ignore_patterns("venv", "ready.json"))
    add_shop(folder)
    return [offered["python"], "manage.py", "show"], {"PYTHONPATH": str(folder.top / "lib/site-packages")}


def prepare_pytest(folder: Folder) -> tuple[list[str], dict[str, str]]:
    (python, *_), variables = prepare_django(folder)
    return [str(pathlib.Path(python).with_name("pytest")), "-q", "-p", "no:cacheprovider", "-p", "no:terminal", "-s"], variables


def prepare_rails(folder: Folder) -> tuple[list[str], dict[str, str]]:
    offered = workloads.prepare("rails")
    ignored = shutil.ignore_patterns("log", "tmp")
    shutil.copytree(offered["dir"], folder.top, symlinks=True, ignore=ignored, dirs_exist_ok=True)
    for name in ("log", "tmp", "app/models", "config/locales"):
        (folder.top / name).mkdir(parents=True, exist_ok=True)
    shutil.copy(PROGRAMS / "edited/home_controller.rb", folder.top / "app/controllers")
    shutil.copy(PROGRAMS / "edited/show.html.erb", folder.top / "app/views/home")
    shutil.copy(PROGRAMS / "edited/part.rb", folder.top / "app/models")
    return ["bin/rails", "runner", (PROGRAMS / "edited/show.rb").read_text()], {"RAILS_ENV": "test"}


DJANGO = {
    "view": lambda folder: folder.append("items/views.py", "SHOWN.append('view {n}')"),
    "model": lambda folder: folder.append("items/models.py", "    field{n} = models.IntegerField(default={n})"),
    "settings": lambda folder: folder.append("skel/settings.py", "SHOWN.append({n})"),
    "template": lambda folder: folder.append("templates/items/index.html", "<p>{n}</p>"),
    "route": lambda folder: folder.append("items/urls.py", "urlpatterns.append(path('more/{n}', views.index))"),
    "new or removed template": lambda folder: folder.toggle("templates/items/part.html", "<i>{n}</i>"),
    "new or removed module": lambda folder: folder.toggle("items/extra.py", "TEXT = 'extra {n}'"),
    "data file": lambda folder: folder.append("data.txt", "{n}"),
    "main script": lambda folder: folder.append("manage.py", "# {n}"),
    "command": lambda folder: folder.append("items/management/commands/show.py", "# {n}"),
    "dependency": lambda folder: folder.append("lib/site-packages/pricing.py", "PRICE = {n}"),
}
PYTEST = {
    **{name: DJANGO[name] for name in ("view", "model", "settings", "template", "route", "data file", "dependency")},
    "test": lambda folder: folder.append("tests/test_shop.py", "\n\ndef test_{n}():\n    print('test {n}')"),
    "new or removed test": lambda folder: folder.toggle("tests/test_more.py", "def test_more():\n    print('more {n}')"),
    "failing test": lambda folder: folder.append("tests/test_shop.py", "\n\ndef test_{n}():\n    assert {n} == 0"),
    "conftest": lambda folder: folder.append("conftest.py", "print('conftest {n}')"),
    "pytest.ini": lambda folder: folder.append("pytest.ini", "# {n}"),
}
RAILS = {
    "controller": lambda folder: folder.insert("app/controllers/home_controller.rb", "@shown =", "    @shown << 'view {n}'"),
    "model": lambda folder: folder.insert("app/models/part.rb", "def self.texts", "  texts << {n}"),
    "setting": lambda folder: folder.insert("config/application.rb", "class Application", "    config.x.shown = [{n}, *config.x.shown]"),
    "environment": lambda folder: folder.insert("config/environments/test.rb", ".configure do", "  config.x.environment = {n}"),
    "initializer": lambda folder: folder.append("config/initializers/shown.rb", "Rails.application.config.x.initialised = {n}"),
    "new or removed initializer": lambda folder: folder.toggle("config/initializers/more.rb", "Rails.application.config.x.more = {n}"),
    "template": lambda folder: folder.append("app/views/home/show.html.erb", "<p><%= 'text' %> {n}</p>"),
    "route": lambda folder: folder.insert("config/routes.rb", "routes.draw do", "  get 'more{n}', to: 'home#show'"),
    "locale": lambda folder: folder.append("config/locales/en.yml", "  shown{n}: 'text {n}'"),
    "new or removed model": lambda folder: folder.toggle("app/models/extra.rb", "class Extra; TEXT = 'extra {n}'; end"),
    "dependency": lambda folder: folder.append("Gemfile", "# {n}"),
}
PROJECTS = {
    "django": Project(prepare_django, DJANGO),
    "pytest": Project(prepare_pytest, PYTEST),
    "rails": Project(prepare_rails, RAILS),
}


class Starts:
    """Starts of one project, with a store of its own."""

    def __init__(self, project: Project, top: pathlib.Path):
        self.folder, self.store = Folder(top / "project"), top / "store"
        self.folder.top.mkdir()
        (top / "home").mkdir()
        self.command, variables = project.prepare(self.folder)
        (self.folder.top / ".git").mkdir()
        variables |= {"HOME": str(top / "home"), "SNAPBOOT_STORE": str(self.store), "SNAPBOOT_STATE": ""}
        self.env = workloads.clean_environment(SNAPBOOT_LOG="1", **variables)

    def timed(self, words: list[str]) -> tuple[float, subprocess.CompletedProcess]:
        begun = time.perf_counter()
        done = subprocess.run(words, cwd=self.folder.top, env=self.env, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        return (time.perf_counter() - begun) * 1000, done

    def pair(self) -> dict:
        """A start by the store and an ordinary one: their times, whether the former thawed, and what differs."""
        ours, one = self.timed([str(SNAPBOOT), "run", "--", *self.command])
        ordinary, other = self.timed(self.command)
        is_same = (one.returncode, one.stdout) == (other.returncode, other.stdout)
        thawed = measure.FALLBACK not in one.stderr and "no image for this start" not in one.stderr
        wrong = None if is_same else {"snapboot run": one.stdout + one.stderr, "ordinary": other.stdout + other.stderr}
        return {"ordinary": ordinary, "thawed": ours, "is thawed": thawed, "wrong": wrong}


def wait_until_idle(store: pathlib.Path) -> None:
    """Wait until nobody makes an image for this store."""
    time.sleep(0.5)
    end = time.monotonic() + IDLE
    while is_busy(store) and time.monotonic() < end:
        time.sleep(0.2)


def is_busy(store: pathlib.Path) -> bool:
    for process in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = process.read_bytes().split(b"\0")
        except OSError:
            continue
        if {b"build-image", b"learn"} & set(words[1:2]) and any(os.fsencode(store) in word for word in words):
            return True
    return False


def chosen_edits(project: Project, count: int, seed: int) -> list[str]:
    """The kinds of `count` edits: each kind as often as another, in an order that the seed decides."""
    names = [name for number, name in enumerate(list(project.edits) * count) if number < count]
    random.Random(seed).shuffle(names)
    return names


def lived(project: Project, count: int, seed: int) -> dict:
    """Edit a project so often, and start it each time. Returns the figures, by kind of edit and all together."""
    with tempfile.TemporaryDirectory(prefix="snapboot-edits-") as top:
        starts = Starts(project, pathlib.Path(top))
        for _ in range(FIRST_STARTS):
            starts.pair()
            wait_until_idle(starts.store)
        made = []
        for name in chosen_edits(project, count, seed):
            project.edits[name](starts.folder)
            made.append({"kind": name, **starts.pair()})
            wait_until_idle(starts.store)
    return entry_with(project, made)


def entry_with(project: Project, made: list[dict]) -> dict:
    """The entry of a project in the results."""
    kinds = {name: [pair for pair in made if pair["kind"] == name] for name in project.edits}
    own = [pair for pair in made if pair["kind"] not in project.installed]
    ratio = statistics.median(pair["thawed"] / pair["ordinary"] for pair in made)
    return {
        "cases": {case: measure.summed_up([pair[case] for pair in made]) for case in report.PAIR},
        "median ratio": ratio,
        "kinds": {
            name: {"n": len(pairs), "median ratio": statistics.median(pair["thawed"] / pair["ordinary"] for pair in pairs)}
            for name, pairs in kinds.items()
            if pairs
        },
        "retired by an own file": sorted({pair["kind"] for pair in own if not pair["is thawed"]}),
        "wrong": [{"kind": pair["kind"], **pair["wrong"]} for pair in made if pair["wrong"]],
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="PROJECT", help=f"{', '.join(PROJECTS)}: what is named is not stored (default: all)")
    parser.add_argument("-n", type=int, default=100, metavar="N", help="edits of each (default 100)")
    parser.add_argument("--seed", type=int, default=1, help="decides their order (default 1)")
    options = parser.parse_args()
    if unknown := set(options.names) - set(PROJECTS):
        parser.error(f"no such project: {', '.join(sorted(unknown))}; there are: {', '.join(PROJECTS)}")
    result = harness.new_result("edits") | {"seed": options.seed}
    status = 0
    for name in options.names or PROJECTS:
        entry = result["scenarios"][name] = lived(PROJECTS[name], options.n, options.seed)
        print(f"{name}: {options.n} edits, median of the ratios {entry['median ratio']:.2f}, {harness.spoken(entry)}", flush=True)
        for kind, figures in entry["kinds"].items():
            print(f"  {figures['median ratio']:.2f}  {kind} ({figures['n']})")
        print(f"  retired by an own file: {', '.join(entry['retired by an own file']) or 'none'}; wrong: {len(entry['wrong'])}")
        for wrong in entry["wrong"]:
            print(json.dumps(wrong, indent=1), file=sys.stderr)
            status = 1
    if status == 0 and not options.names:
        harness.store(result, harness.result_path(result))
    return status


if __name__ == "__main__":
    sys.exit(main())
