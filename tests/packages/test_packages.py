"""The wheel and the gem: `pip install FILE` or `gem install FILE` is all that a user needs, and removing them leaves nothing."""

import os
import pathlib
import re
import shutil
import tarfile
import zipfile

import packages
import pytest
import workloads
from common import support

pytestmark = pytest.mark.sample(2, whole=True)

LICENCES = {"LICENSE", "LICENSE-APACHE", "LICENSE-MIT"}
HOOKS = {
    "python": "import snapboot, argparse\n\nsnapboot.after_thaw(lambda: print('thawed'))\n",
    "ruby": "require 'snapboot'\nrequire 'optparse'\nSnapboot.after_thaw { puts 'thawed' }\n",
}


def run(words, **variables):
    """The Result of a command that must succeed; its environment has the variables, and what any login has."""
    base = {"PATH": os.defpath, "HOME": "/nonexistent", "LANG": "C.UTF-8", "SNAPBOOT_STATE": ""}
    done = support.run(words, env={**base, **variables}, log=False)
    assert done.status == 0, done
    return done


def succeed(words, **variables):
    """What a command that must succeed prints."""
    return run(words, **variables).out


def thaw(image, **variables):
    """What an image that must not fall back prints."""
    return succeed([image], SNAPBOOT_ON_STALE="error", **variables)


def files(folder):
    return {str(path.relative_to(folder)) for path in pathlib.Path(folder).rglob("*") if not path.is_dir()}


# ---- what is in them ----


def test_the_wheel_says_truly_where_it_runs(wheel):
    assert f"-manylinux_{packages.GLIBC.replace('.', '_')}_x86_64" in wheel.name
    auditwheel = pathlib.Path(workloads.prepare("packages")["bin"], "auditwheel")
    shown = " ".join(succeed([auditwheel, "show", wheel]).split())
    tag = re.search(r'is consistent with the following platform tag: "manylinux_(\d+)_(\d+)_x86_64"', shown)
    assert tag, shown
    assert (int(tag[1]), int(tag[2])) <= tuple(map(int, packages.GLIBC.split("."))), shown


def test_the_freezer_asks_the_c_library_for_nothing_new():
    """Its symbols have no versions, since it is linked against no C library: auditwheel cannot see which they would be."""
    maps = pathlib.Path("/proc/self/maps").read_text()
    library = re.search(r"/\S+/libc\.so\.6$", maps, re.MULTILINE)
    if not library or not shutil.which("nm"):
        pytest.skip("missing here: binutils, or glibc")
    offered = succeed(["nm", "-D", "--defined-only", library[0]])
    asked = succeed(["nm", "-D", "--undefined-only", support.launcher().with_name("libsnapboot_freezer.so")])
    symbols = re.findall(r"^ +U (\w+)$", asked, re.MULTILINE)
    limit = tuple(map(int, packages.GLIBC.split(".")))
    assert "__register_atfork" in symbols
    for symbol in symbols:
        versions = re.findall(rf" {symbol}@@?GLIBC_([\d.]+)$", offered, re.MULTILINE)
        assert any(tuple(map(int, version.split("."))) <= limit for version in versions), (symbol, versions)


def test_the_freezer_needs_no_library(wheel, tmp_path):
    """It becomes a part of programs with any C library."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith("/libsnapboot_freezer.so")]
        freezer = archive.extract(name, tmp_path)
    shown = succeed(["readelf", "-dW", freezer])
    assert "SYMTAB" in shown and "NEEDED" not in shown, shown


def test_the_command_needs_no_c_library_of_the_machine(wheel, tmp_path):
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith("/scripts/snapboot")]
        command = archive.extract(name, tmp_path)
    assert "INTERP" not in succeed(["readelf", "-lW", command])


def test_both_packages_hold_the_same_parts_and_the_licences(wheel, gem, version):
    with zipfile.ZipFile(wheel) as archive:
        prefix = re.compile(rf"snapboot-{version}\.data/(data/|(?=scripts/))")
        parts = {prefix.sub("", name).replace("scripts/", "bin/"): archive.read(name) for name in archive.namelist() if prefix.match(name)}
        licences = {pathlib.PurePath(name).name for name in archive.namelist() if "/licenses/" in name}
        api = {name for name in archive.namelist() if name.startswith("snapboot/")}
    assert licences == LICENCES
    assert api == {f"snapboot/{name}" for name in ("__init__.py", "__init__.pyi", "__main__.py", "py.typed", "archive/__main__.py")}
    with tarfile.open(gem) as outer, tarfile.open(fileobj=outer.extractfile("data.tar.gz")) as inner:
        packed = {member.name: inner.extractfile(member).read() for member in inner if member.isfile()}
    assert LICENCES <= set(packed)
    assert {name: packed[name] for name in packed if name.startswith(("bin/", "libexec/", "share/"))} == parts
    native = {"snapboot-launcher", "snapboot-entry", "snapboot-remote"}
    native |= {"libsnapboot_freezer.so", "libsnapboot_ruby.so", "libsnapboot_python.so"}
    described = {"share/man/man1/snapboot-freeze.1", "share/bash-completion/completions/snapboot"}
    assert {"bin/snapboot", *described, *(f"libexec/snapboot/{name}" for name in native)} <= set(parts)


# ---- pip ----


def pip(python, *words, **variables):
    """Run the test machine's pip for another Python, which needs none of its own."""
    own = workloads.prepare("packages")["python"]
    return succeed([own, "-m", "pip", "--python", python, "--disable-pip-version-check", *words], **variables)


@pytest.mark.parametrize("scheme", ["venv", "user", "target", "prefix"])
def test_pip_installs_all_of_it_wherever_and_takes_it_away(wheel, version, tmp_path, scheme):
    top, python, variables = tmp_path / "chosen", support.PYTHON, {}
    options = {"venv": [], "user": ["--user"], "target": ["--target", top], "prefix": ["--prefix", top]}[scheme]
    if scheme == "venv":
        succeed([python, "-m", "venv", "--without-pip", top])
        python = top / "bin/python"
    if scheme == "user":
        variables = {"PYTHONUSERBASE": str(top), "PIP_BREAK_SYSTEM_PACKAGES": "1"}
    before = files(top)
    pip(python, "install", "-q", "--no-index", "--no-deps", *options, wheel, **variables)

    command = top / "bin/snapboot"
    packaged = next(path.parent.parent for path in top.rglob("snapboot/__main__.py") if "libexec" not in path.parts)
    reached = {"target": {"PYTHONPATH": str(top)}, "prefix": {"PYTHONPATH": str(packaged)}}.get(scheme, variables)
    assert succeed([command, "--version"]) == f"snapboot {version}\n"
    assert succeed([python, "-m", "snapboot", "--version"], **reached) == f"snapboot {version}\n"
    told = "import snapboot; print(snapboot.__file__, snapboot.__version__, snapboot.state())"
    assert succeed([python, "-c", told], **reached) == f"{packaged}/snapboot/__init__.py {version} ordinary\n"

    (tmp_path / "hooked.py").write_text(HOOKS["python"])
    (tmp_path / "tool.py").write_text("import hooked\n\nhooked.argparse.ArgumentParser().print_usage()\n")
    words = ["freeze", "-o", tmp_path / "tool.img", "--", python, tmp_path / "tool.py"]
    succeed([command, *words], **reached)
    assert thaw(tmp_path / "tool.img", **reached) == "thawed\nusage: tool.py [-h]\n"

    if scheme in ("venv", "user"):
        pip(python, "uninstall", "-q", "-y", "snapboot", **variables)
        assert files(top) == before


# ---- gem ----


@pytest.fixture
def gems(gem, tmp_path):
    """The environment of an empty folder of gems into which the gem was installed."""
    if not support.RUBY:
        pytest.skip("there is no ruby")
    home = tmp_path / "gems"
    variables = {"GEM_HOME": str(home), "GEM_PATH": str(home), "PATH": f"{home}/bin:{os.defpath}"}
    succeed(["gem", "install", "--local", "--no-document", gem], **variables)
    return variables


def test_gem_installs_all_of_it_and_takes_it_away(gems, version, tmp_path):
    home = pathlib.Path(gems["GEM_HOME"])
    assert succeed([home / "bin/snapboot", "--version"], **gems) == f"snapboot {version}\n"
    told = "require 'snapboot'; puts Snapboot::VERSION, Snapboot.state"
    assert succeed([support.RUBY, "-e", told], **gems) == f"{version}\nordinary\n"

    (tmp_path / "hooked.rb").write_text(HOOKS["ruby"])
    (tmp_path / "tool.rb").write_text("puts OptionParser.new.help\n")
    words = ["freeze", "-o", tmp_path / "tool.img", "--preload", tmp_path / "hooked.rb", "--", support.RUBY, tmp_path / "tool.rb"]
    succeed([home / "bin/snapboot", *words], **gems)
    assert thaw(tmp_path / "tool.img", **gems) == "thawed\nUsage: tool [options]\n"

    succeed(["gem", "uninstall", "--executables", "snapboot"], **gems)
    assert not {name for name in files(home) if "snapboot" in name}


def test_the_gem_brings_the_boot_archive_with_its_native_part(gems, version, tmp_path):
    script = tmp_path / "script.rb"
    script.write_text("require 'snapboot/setup'\nrequire 'optparse'\nputs $LOADED_FEATURES.grep(/libsnapboot_ruby/)\n")
    native = f"{gems['GEM_HOME']}/gems/snapboot-{version}-x86_64-linux/libexec/snapboot/libsnapboot_ruby.so\n"
    archive = {"SNAPBOOT_ARCHIVE": str(tmp_path / "script.archive"), "SNAPBOOT_STATS": "1"}
    first, second = (run([support.RUBY, script], **gems, **archive) for _ in range(2))
    assert first.out == second.out == native
    assert " 0 hit," in first.err and " 0 hit," not in second.err, (first, second)
