"""Whole programs on real libraries: the same output, errors and status thawed as in an ordinary start.

Each program ends by printing what it is an instance of (/proc/self/exe), which shows that the image really thawed.
"""

import dataclasses
import os
import shutil
import subprocess

import pytest
from common.ready import prepared

from . import comparison
from .test_cpython import interpreters

pytestmark = pytest.mark.sample(3)

PROGRAMS = comparison.HERE / "programs"


@dataclasses.dataclass
class Shown:
    """What a program showed. exe: the last line that it printed."""

    status: int
    output: str
    exe: str
    errors: str


def show(argv, cwd, **variables):
    """Runs a program to its end."""
    done = subprocess.run(
        argv,
        cwd=cwd,
        env=comparison.environment(**variables),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=600,
    )
    output, _, exe = done.stdout.rstrip("\n").rpartition("\n")
    return Shown(done.returncode, output, exe, done.stderr)


def compare(ordinary, image, cwd, **variables):
    """Both must end well, and show the same."""
    first = show(ordinary, cwd, **variables)
    assert first.status == 0, f"fails in an ordinary start:\n{first.errors}"
    second = show(image, cwd, **variables)
    assert second.exe == image[0], f"not thawed: {second}"
    second.exe = first.exe
    assert second == first


@pytest.mark.parametrize(
    ("workload", "program", "preload"),
    [
        ("web", "web", ["flask", "requests", "pymongo", "http.server"]),
        ("django", "django_client", ["django.contrib.auth.hashers", "django.test", "django.core.management"]),
        ("pandas", "arrays", ["pandas"]),
        ("sqlalchemy", "database", ["sqlalchemy.orm", "sqlalchemy.dialects.sqlite"]),
    ],
)
def test_python(workload, program, preload, tmp_path):
    ready = prepared(workload)
    cwd = tmp_path / "cwd"
    if program == "django_client":
        shutil.copytree(ready["dir"], cwd, ignore=shutil.ignore_patterns("venv"))
    else:
        cwd.mkdir()
    image = comparison.freeze(tmp_path / "python.img", [ready["python"]], preload)
    script = str(PROGRAMS / f"{program}.py")
    compare([ready["python"], script], [image, script], cwd)


def test_django_command(tmp_path):
    """manage.py itself as the frozen program."""
    ready = prepared("django")
    manage = os.path.join(ready["dir"], "manage.py")
    image = comparison.freeze(tmp_path / "manage.img", [ready["python"], manage], ["django.core.management"])
    for arguments in (["check"], ["check", "--deploy"], ["diffsettings"], ["nonsense"], ["sqlmigrate", "auth", "0001"], ["--version"]):
        ordinary = show([ready["python"], manage, *arguments], ready["dir"])
        thawed = show([image, *arguments], ready["dir"])
        assert thawed == ordinary
        assert "the ordinary way" not in thawed.errors


@pytest.mark.parametrize("version", sorted(interpreters()), ids="{0[0]}.{0[1]}".format)
def test_concurrency(version, images, tmp_path):
    interpreter, _ = interpreters()[version]
    image = images.get("python%d.%d-concurrency" % version, [interpreter], ["asyncio", "multiprocessing"])
    script = str(PROGRAMS / "concurrency.py")
    compare([interpreter, script], [image, script], tmp_path)


PRODUCTION = {"RAILS_ENV": "production", "SECRET_KEY_BASE": "fixed"}
# Arguments with which bin/rails would have booted otherwise, and some with which it would not: see recipes/rails.rb.
OTHERWISE = "new plugin test t test:all test:db test:system test:models test:jobs -e -etest -edevelopment --environment"
OTHERWISE += " --environment=test --environment=development"
ALIKE = ["server", "console", "routes", "runner", "db:migrate", "-eproduction", "--environment=production", "--help"]


def frozen_rails(folder, skel):
    """An image of bin/rails in production."""
    options = ["--env", "SECRET_KEY_BASE"]
    environment = comparison.environment(**PRODUCTION)
    return comparison.freeze(folder / "rails.img", ["bin/rails"], ["./config/environment"], cwd=skel, env=environment, options=options)


def test_rails_requests(tmp_path):
    skel = prepared("rails")["dir"]
    image = frozen_rails(tmp_path, skel)
    program = str(PROGRAMS / "rails_requests.rb")
    compare(["bin/rails", "runner", program], [image, "runner", program], skel, **PRODUCTION)


def test_rails_guards(tmp_path):
    skel = prepared("rails")["dir"]
    image = frozen_rails(tmp_path, skel)

    def start(*arguments, **variables):
        env = comparison.environment(**PRODUCTION, **variables)
        return subprocess.run([image, *arguments], cwd=skel, env=env, capture_output=True, text=True, timeout=600)

    def refusal(argument):
        """Why a start with this argument would be an ordinary one; nothing of Rails runs."""
        return start(argument, SNAPBOOT_REHEARSE="check").stderr

    guarded = {argument: refusal(argument) for argument in OTHERWISE.split()}
    assert {argument: said for argument, said in guarded.items() if f"it matches the guard {argument}" not in said} == {}
    assert {argument: refusal(argument) for argument in ALIKE} == dict.fromkeys(ALIKE, "")
    other = start("runner", "--environment=test", "puts Rails.env")
    assert other.stdout == "test\n" and "it matches the guard --environment=test; starting the ordinary way" in other.stderr, other
