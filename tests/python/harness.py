"""Runs a command the ordinary way and thawed, and gives both results in one form."""

import os
import shutil
import subprocess
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
FRONT_END = os.path.join(ROOT, "python", "snapboot", "front_end")
RECIPES = os.path.join(ROOT, "recipes")
SNAPBOOT = os.path.join(ROOT, "target", "release", "snapboot")
# What a test machine may have set, and a test must not depend on.
# Those of PYTHONS in crates/runtime probe.rs.
VERSIONS = ("3.8", "3.9", "3.10", "3.11", "3.12", "3.13", "3.14", "3.15")
UNWANTED = ("PYTEST_CURRENT_TEST", "PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED", "PYTHONWARNINGS")


class Result:
    """How a process ended."""

    def __init__(self, status, stdout, stderr):
        self.status = status
        self.stdout = stdout.decode("utf-8", "backslashreplace")
        self.stderr = stderr.decode("utf-8", "backslashreplace")

    def __eq__(self, other):
        return vars(self) == vars(other)

    def __repr__(self):
        return "status %r\n--- stdout\n%s--- stderr\n%s" % (self.status, self.stdout, self.stderr)


def clean_environment(**extra):
    """The environment for programs under test."""
    environment = {name: value for name, value in os.environ.items() if name not in UNWANTED}
    environment.update(extra)
    return environment


def ordinary(argv, input=b"", cwd=None, env=None, **streams):
    """Runs a command as it is."""
    return _run(argv, input, cwd, env or clean_environment(), **streams)


def _run(argv, input, cwd, env, **streams):
    done = subprocess.run(
        argv, input=input, cwd=cwd, env=env, timeout=600, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **streams
    )
    return Result(done.returncode, done.stdout, done.stderr)


class Simulated:
    """An image that is none: each run boots the program, forks, and continues in the child (see simulate.py)."""

    def __init__(self, command, main_index, kind, preload=(), script=None, cwd=None, env=None, origins=False):
        self.origins = origins
        self.command = list(command)
        self.main_index = main_index
        self.kind = kind
        self.preload = preload
        self.script = script
        self.cwd = cwd
        self.env = env or clean_environment()
        self.folder = tempfile.mkdtemp(prefix="simulated-")

    def close(self):
        """Removes the control directory."""
        shutil.rmtree(self.folder)

    def request(self):
        """Writes the request."""
        entries = [("main", self.kind), ("main_index", str(self.main_index))]
        entries += [("argv", one) for one in self.command]
        entries += [("preload", one) for one in self.preload]
        if self.script is not None:
            entries.append(("script", self.script))
        if self.origins:
            entries.append(("origins", "1"))
        for name in sorted(os.listdir(RECIPES)):
            code = os.path.join(RECIPES, name, "python.py")
            if os.path.exists(code):
                with open(code, encoding="utf-8") as file:
                    fields = name, os.path.dirname(code), file.read()
                entries.append(("recipe_code", "".join("%d:%s" % (len(os.fsencode(field)), field) for field in fields)))
        self._write("request", ["%s=%s" % entry for entry in entries])
        self._write("on_demand", [])

    def _write(self, name, strings):
        with open(os.path.join(self.folder, name), "wb") as file:
            file.write(b"".join(os.fsencode(one) + b"\0" for one in strings))

    def report(self):
        """The report of the last run, as a list of (key, value)."""
        with open(os.path.join(self.folder, "report"), "rb") as file:
            entries = file.read().split(b"\0")[:-1]
        return [tuple(entry.decode().split("=", 1)) for entry in entries]

    def run(self, arguments=(), input=b"", cwd=None, env=None):
        """What running the image with `arguments` gives."""
        self.request()
        env = env or self.env
        self._write("arguments", self.command + list(arguments))
        self._write("directory", [os.path.abspath(cwd or os.getcwd())])
        self._write("environment", ["%s=%s" % entry for entry in env.items()])
        boot = dict(self.env, SNAPBOOT_FREEZE_DIR=self.folder, SNAPBOOT_FRONT_END=FRONT_END)
        argv = self.command[: self.main_index] + [os.path.join(HERE, "simulate.py")]
        # The shell gives the thawed process' descriptors their places, and the freezing one others.
        script = 'exec 7<&0 8>&1 9>&2 </dev/null; cd "$1"; shift; exec "$@"'
        return _run(["sh", "-c", script, "sh", self.cwd or os.getcwd()] + argv, input, cwd, boot)


class Image:
    """A real image, made by `snapboot freeze`; the same interface as Simulated."""

    def __init__(self, command, preload=(), cwd=None, env=None):
        self.cwd = cwd
        self.env = env or clean_environment()
        self.folder = tempfile.mkdtemp(prefix="image-")
        self.path = os.path.join(self.folder, "program.img")
        options = ["--preload", ",".join(preload)] if preload else []
        done = _run([SNAPBOOT, "freeze", "-o", self.path] + options + ["--"] + list(command), b"", cwd, self.env)
        assert done.status == 0, done

    def close(self):
        """Removes the image."""
        shutil.rmtree(self.folder)

    def run(self, arguments=(), input=b"", cwd=None, env=None):
        """What running the image with `arguments` gives."""
        return _run([self.path] + list(arguments), input, cwd, env or self.env)


def find_pythons():
    """Every CPython of VERSIONS here: pyenv's, and those on PATH; one for each version, as {"3.11": path}."""
    found = {}
    versions = os.path.join(os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv")), "versions")
    candidates = []
    if os.path.isdir(versions):
        candidates += [os.path.join(versions, name, "bin", "python") for name in sorted(os.listdir(versions))]
    for version in VERSIONS:
        candidates += [os.path.join(folder, "python" + version) for folder in os.environ.get("PATH", "").split(":")]
    for path in candidates:
        if not os.access(path, os.X_OK):
            continue
        told = ordinary([path, "-c", "import sys; print(sys.implementation.name, '%d.%d' % sys.version_info[:2])"])
        name, _, version = told.stdout.strip().partition(" ")
        if name == "cpython" and version in VERSIONS:
            found.setdefault(version, path)
    return found
