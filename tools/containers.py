#!/usr/bin/env python3
"""What containers are built from without a registry, in .work/containers: roots with this machine's own Python or Rails, and wheels.

    tools/containers.py     makes all ready, and installs podman where that is missing and allowed

A root holds the files of Debian packages that are installed here. Copying those takes seconds; debootstrap takes minutes.
"""

import dataclasses
import io
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile

import podman
import workloads
from workloads import ROOT, Unavailable

# What all roots have: a shell and its tools, and what pip wants.
COMMON = ("dash", "coreutils", "base-passwd", "debianutils", "findutils", "grep", "hostname", "sed", "tzdata")
PYTHON = ("python3", "python3-venv")
RAILS = ("ruby", "ruby-rails", "ruby-sqlite3", "puma", "ruby-bundler", "bundler", "ruby-sass-rails", "ruby-jbuilder")
FOLDER = workloads.WORK / "containers"
WHEELS = "/wheels"  # where pip of the base looks, and nowhere else
DOCUMENTS = (ROOT / "docs/containers.md", ROOT / "docs/fleets.md")
DOCKERFILE = re.compile(r"^```dockerfile\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PROGRAMS = ROOT / "bench/programs/containers"
LEFT_OUT = re.compile(r"/usr/share/(?:doc|info|lintian|locale|man|ri)/.")
LINKS = ("bin", "lib", "lib64", "sbin")  # to folders of /usr, where they are merged
FOLDERS = ("dev", "proc", "root", "run", "sys", "tmp", "var/tmp")
FILES = {
    "etc/group": "root:x:0:\nnogroup:x:65534:\n",
    "etc/passwd": "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
    "etc/pip.conf": f"[global]\nno-index = true\nfind-links = {WHEELS}\n",
}


@dataclasses.dataclass(frozen=True)
class Recipe:
    """A Dockerfile of the document, and what is built with it."""

    image: str  # the name of the file that `snapboot freeze` writes, by which the Dockerfile is found
    packages: tuple[str, ...]  # what its pip installs
    files: tuple[str, ...] = ()  # of PROGRAMS
    project: bool = False  # whether it needs a new Django project

    def dockerfile(self) -> str:
        """The text that stands in the documents."""
        return dockerfile(self.image)


RECIPES = {
    "black": Recipe("black.img", ("black",)),
    "shared": Recipe("shared.img", ("black",)),
    "flask": Recipe("flask.img", ("flask", "gunicorn"), files=("app.py",)),
    "django": Recipe("django.img", ("django", "gunicorn"), project=True),
    "handler": Recipe("handler.img", ("requests",), files=("handler.py", "main.py")),
}


def dockerfile(image: str) -> str:
    """The Dockerfile of the documents that makes an image of that name."""
    (found,) = [block for document in DOCUMENTS for block in DOCKERFILE.findall(document.read_text()) if image in block]
    return found


def build(engine: podman.Podman, name: str, base: str, wheel: pathlib.Path, context: pathlib.Path, *options) -> None:
    """Build the container `name` from its recipe in an empty folder. Raises Unavailable if what it needs cannot be had."""
    recipe = RECIPES[name]
    for file in (wheel, *(PROGRAMS / file for file in recipe.files)):
        shutil.copy(file, context)
    if recipe.project:
        (context / "project").mkdir()
        workloads.run([workloads.prepare("django")["python"], "-m", "django", "startproject", "shop", context / "project"])
    place = f"{wheels(name)}:{WHEELS}:ro"
    engine.build(recipe.dockerfile(), name, context, "--build-arg", f"BASE={base}", "-v", place, *options)


def prepare(packages: tuple[str, ...] = PYTHON) -> pathlib.Path:
    """The archive of a root with PYTHON or RAILS. Raises Unavailable when it cannot be had."""
    base = FOLDER / f"root-{packages[0]}.tar"
    with workloads.locked("containers"):
        workloads.install_debian_packages(("podman", "runc"))
        if not base.exists():
            workloads.install_debian_packages(packages)
            FOLDER.mkdir(parents=True, exist_ok=True)
            partial = FOLDER / "partial.tar"
            write_root(partial, packages)
            partial.replace(base)
    return base


def write_root(archive: pathlib.Path, packages: tuple[str, ...]) -> None:
    """Write a root with these Debian packages, and all that they depend on."""
    with tarfile.open(archive, "w") as tar:
        for name in filter(os.path.islink, (f"/{name}" for name in LINKS)):
            tar.add(name)
        for name in FOLDERS:
            folder = tarfile.TarInfo(name)
            folder.type, folder.mode = tarfile.DIRTYPE, 0o1777 if "tmp" in name else 0o755
            tar.addfile(folder)
        for name, text in FILES.items():
            file = tarfile.TarInfo(name)
            file.size = len(text)
            tar.addfile(file, io.BytesIO(text.encode()))
        for path in files_of((*COMMON, *packages)):
            if path[1:] not in (*LINKS, *FOLDERS, *FILES):
                tar.add(path, recursive=False)


def files_of(packages: tuple[str, ...]) -> list[str]:
    """Files and folders of installed Debian packages and of those that they depend on, by paths without links to folders."""
    kinds = ("recommends", "suggests", "conflicts", "breaks", "replaces", "enhances")
    listed = printed("apt-cache", "depends", "--recurse", "--installed", *(f"--no-{kind}" for kind in kinds), *packages)
    names = {line for line in listed.splitlines() if not line.startswith((" ", "<"))}
    query = printed("dpkg-query", "-W", "-f", "${db:Status-Status} ${binary:Package}\n").splitlines()
    installed = [name for status, _, name in (line.partition(" ") for line in query) if status == "installed"]
    wanted = [name for name in installed if name.split(":")[0] in names]
    paths = {without_links(path) for path in printed("dpkg", "-L", *wanted).splitlines()}
    compiled = {str(file) for path in paths if path.endswith(".py") for file in compiled_files(pathlib.Path(path))}
    folders = {str(pathlib.Path(path).parent) for path in compiled}
    return [path for path in sorted(paths | compiled | folders) if os.path.lexists(path) and path != "/." and not LEFT_OUT.match(path)]


def without_links(path: str) -> str:
    """The path of a file without links to folders; the file itself may be one."""
    return os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))


def compiled_files(source: pathlib.Path) -> list[pathlib.Path]:
    """What a Debian package has compiled from a source when it was installed."""
    return list(source.parent.glob(f"__pycache__/{source.stem}.*.pyc"))


def printed(*words: str) -> str:
    """What a command prints. Raises Unavailable if it fails."""
    try:
        done = subprocess.run(words, capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"})
    except FileNotFoundError:
        raise Unavailable(f"{words[0]} is not there: this is no Debian") from None
    if done.returncode != 0:
        raise Unavailable(f"`{' '.join(words[:2])}` failed: {done.stderr.strip()[-500:]}")
    return done.stdout


def wheels(name: str) -> pathlib.Path:
    """A folder for WHEELS with what this recipe installs. Raises Unavailable when that cannot be had."""
    version = printed("/usr/bin/python3", "-c", "import sys; print('%d.%d' % sys.version_info[:2])").strip()
    folder = FOLDER / f"wheels-{version}-{name}"
    with workloads.locked("containers"):
        if not folder.exists():
            partial = FOLDER / "partial"
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir(parents=True)
            pip = [workloads.prepare("packages")["python"], "-m", "pip", "download", "-q", "-d", partial]
            workloads.run([*pip, "--only-binary", ":all:", "--python-version", version, *RECIPES[name].packages])
            partial.replace(folder)
    return folder


def unpacked(command: str, *packages: str) -> pathlib.Path:
    """A command from these Debian packages, unpacked but not installed: podman would take another runtime as soon as that is installed.
    Raises Unavailable when it cannot be had."""
    folder = FOLDER / command
    with workloads.locked("containers"):
        if not folder.exists():
            partial = FOLDER / "partial"
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir(parents=True)
            workloads.run(["apt-get", "download", *packages], cwd=partial)
            for package in partial.glob("*.deb"):
                workloads.run(["dpkg-deb", "--extract", package, partial])
            libraries = folder / "usr/lib/x86_64-linux-gnu"
            (partial / command).write_text(f'#!/bin/sh\nLD_LIBRARY_PATH={libraries} exec {folder}/usr/bin/{command} "$@"\n')
            (partial / command).chmod(0o755)
            partial.replace(folder)
    return folder / command


if __name__ == "__main__":
    try:
        prepare()
        prepare(RAILS)
        for recipe in RECIPES:
            wheels(recipe)
    except Unavailable as reason:
        sys.exit(f"containers cannot be built here: {reason}")
