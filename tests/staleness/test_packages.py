"""What installing packages does to an image: one that has nothing to do with the program leaves it fresh, one that the boot would have
found, or that it used, makes it stale."""

import importlib.metadata
import pathlib
import re
import shutil
import subprocess

import pytest
from common import support


def write(path, text=""):
    """A file, and the folders on the way to it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def distribution(folder, name, version="1.0", points=""):
    """What an installer puts into a folder of packages: a module and what tells of it. Returns the latter."""
    info = folder / f"{name}-{version}.dist-info"
    write(folder / name / "__init__.py")
    write(info / "METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    write(info / "entry_points.txt", points)
    return info


class Venv:
    """A virtual environment with one package, whose boot asks something and has it in VALUE."""

    def __init__(self, folder, boot):
        subprocess.run([support.PYTHON, "-m", "venv", "--without-pip", folder], check=True)
        self.python = folder / "bin/python"
        self.packages = next(folder.glob("lib/python3*/site-packages"))
        self.asked = distribution(self.packages, "some_package")
        write(self.packages / "boot.py", boot)
        self.env = support.environment(PYTHONDONTWRITEBYTECODE="1")
        self.image = support.frozen(folder.parent / "app.img", [self.python], "--preload", "boot", env=self.env)

    def thawed(self):
        return support.thawed(self.argv(), env=self.env).out

    def stale(self):
        """The image must start the ordinary way. Returns what that prints, and why."""
        result = support.run(self.argv(), env=self.env)
        assert result.fell_back and result.status == 0, result
        return result.out, result.err

    def argv(self):
        return [self.image, "-c", "import boot; print(boot.VALUE)"]

    def install_foreign(self):
        """As an installer does it: modules, scripts, and what tells of them."""
        distribution(self.packages, "foreign", points="[console_scripts]\nforeign = foreign:main\n")
        write(self.packages / "foreign.py")
        distribution(self.packages, "some_package_more")
        write(self.python.parent / "foreign", "#!/bin/sh\n").chmod(0o755)


VERSION = "from importlib.metadata import version\nVALUE = version('Some.Package')"
ALL = """
from importlib.metadata import distributions
VALUE = sorted(d.metadata['Name'] for d in distributions() if d.metadata['Name'] in ('some_package', 'foreign'))
"""


def test_a_foreign_package_in_the_same_environment(tmp_path):
    venv = Venv(tmp_path / "venv", VERSION)
    assert venv.thawed() == "1.0\n"
    venv.install_foreign()
    for _ in range(2):
        assert venv.thawed() == "1.0\n"
    why = support.run([support.SNAPBOOT, "inspect", "--why", venv.image], env=venv.env, log=False)
    assert why.out == f"{venv.image}: fresh\n"


def test_the_package_that_was_asked_for_in_another_version(tmp_path):
    """As a new folder beside the old one, which is removed."""
    venv = Venv(tmp_path / "venv", VERSION)
    new = distribution(venv.packages, "some_package", "2.0")
    said = "this directory lists other Python packages, or other versions, among those that the boot looked up"
    assert f"{said}: {new.parent}" in venv.stale()[1]
    why = support.run([support.SNAPBOOT, "inspect", "--why", venv.image], env=venv.env, log=False)
    assert f"{new.parent}: lists other Python packages (Some.Package) than when the program booted" in why.out
    shutil.rmtree(venv.asked)
    assert venv.stale()[0] == "2.0\n"


def test_the_package_that_was_asked_for_edited_in_place(tmp_path):
    venv = Venv(tmp_path / "venv", VERSION)
    metadata = venv.asked / "METADATA"
    metadata.write_text(metadata.read_text().replace("1.0", "1.1"))
    out, err = venv.stale()
    assert out == "1.1\n" and str(metadata) in err


def test_a_package_that_was_looked_for_in_vain(tmp_path):
    boot = "import importlib.metadata as m\ntry: VALUE = m.version('foreign')\nexcept m.PackageNotFoundError: VALUE = None"
    venv = Venv(tmp_path / "venv", boot)
    write(venv.packages / "foreign_more-1.0.dist-info/METADATA")
    assert venv.thawed() == "None\n"
    venv.install_foreign()
    assert venv.stale()[0] == "1.0\n"


def test_who_asks_for_all_packages_depends_on_packages_only(tmp_path):
    venv = Venv(tmp_path / "venv", ALL)
    write(venv.packages / "plain/__init__.py")
    write(venv.packages / "plain.txt")
    assert venv.thawed() == "['some_package']\n"
    venv.install_foreign()
    assert venv.stale()[0] == "['foreign', 'some_package']\n"


def test_the_main_part_finds_what_was_installed_since(tmp_path):
    venv = Venv(tmp_path / "venv", VERSION)
    venv.install_foreign()
    code = "import boot, foreign; from importlib.metadata import version; print(boot.VALUE, version('foreign'))"
    assert support.thawed([venv.image, "-c", code], env=venv.env).out == "1.0 1.0\n"


LISTED = {
    "itself": "import os, boot\nVALUE = version('some-package'), len(os.listdir(os.path.dirname(boot.__file__)))",
    "by its own methods": "from importlib.metadata import FastPath\nimport os, boot\n"
    "VALUE = version('some-package'), len(FastPath(os.path.dirname(boot.__file__)).children())",
}


@pytest.mark.parametrize("how", LISTED)
def test_who_lists_the_folder_depends_on_all_of_it(how, tmp_path):
    boot = "from importlib.metadata import version\n" + LISTED[how]
    venv = Venv(tmp_path / "venv", boot)
    before = venv.thawed()
    write(venv.packages / "plain.txt")
    assert venv.stale()[0] not in ("", before)


def with_backport(folder):
    """Python's own module under the name by which it is installed for older versions."""
    own = pathlib.Path(importlib.metadata.__file__)
    if own.name == "__init__.py":
        shutil.copytree(own.parent, folder / "importlib_metadata", ignore=shutil.ignore_patterns("__pycache__"))
    else:
        shutil.copy(own, folder / "importlib_metadata.py")


@pytest.mark.parametrize("known", [True, False], ids=["known", "unknown"])
def test_a_backport_counts_where_it_is_known(known, tmp_path):
    """One that compares names in a way that nobody knows here may depend on any."""
    folder = tmp_path / "folder"
    distribution(folder, "some_package")
    with_backport(folder)
    if not known:
        module = folder / "importlib_metadata.py"
        module = module if module.exists() else folder / "importlib_metadata/__init__.py"
        module.write_text(re.sub("""(['"])egg-info(['"])""", r"\1egg-data\2", module.read_text()))
    boot = """
from importlib_metadata import DistributionFinder, MetadataPathFinder
VALUE, = [found.version for found in MetadataPathFinder.find_distributions(DistributionFinder.Context(name="some_package"))]
"""
    write(folder / "boot.py", boot)
    env = support.environment(PYTHONPATH=str(folder), PYTHONDONTWRITEBYTECODE="1")
    image = support.frozen(tmp_path / "app.img", [support.PYTHON], "--preload", "boot", env=env)
    write(folder / "foreign.txt")
    result = support.run([image, "-c", "import boot; print(boot.VALUE)"], env=env)
    assert result.out == "1.0\n" and result.fell_back is not known, result


def test_nothing_of_the_watch_is_left(tmp_path):
    boot = VERSION + """
import importlib.metadata
def places():
    path = importlib.metadata.FastPath
    loader = importlib.metadata.__spec__.loader
    return path.search.__module__, path.children.__module__, 'exec_module' in vars(loader)
"""
    venv = Venv(tmp_path / "venv", boot)
    result = support.thawed([venv.image, "-c", "import boot; print(*boot.places())"], env=venv.env)
    assert result.out == "importlib.metadata importlib.metadata False\n"
