"""The recipe of docs/fleets.md for CI jobs, as it stands there, with tools that only stand for pytest and mypy."""

import pathlib
import re
import shutil

from common import support
from common.languages import PYTHON

from store.fleets import Fleet

PAGE = support.ROOT / "docs/fleets.md"
TOOL = "#!{python}\nimport sys\nfrom {name} import main\nif __name__ == '__main__':\n    sys.exit(main())\n"
MODULE = "import sys\ndef main():\n    print({name!r}, sys.argv[1:])\n"


def steps():
    """The shell commands of a job with Python."""
    return re.search(r"^## CI jobs$.*?^```sh\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)[1]


def run_job(fleet, folder, script, **variables):
    """Runs a job in an empty checkout. Returns its result, and its machine."""
    shutil.rmtree(folder, ignore_errors=True)
    version = support.run([PYTHON.program, "-c", "import sys; print('python%d.%d' % sys.version_info[:2])"]).out.strip()
    libraries = folder / "tools/lib" / version / "site-packages"
    libraries.mkdir(parents=True)
    (folder / "tools/bin").mkdir()
    for name in ("pytest", "mypy"):
        tool = folder / "tools/bin" / name
        tool.write_text(TOOL.format(python=folder / ".venv/bin/python", name=name))
        tool.chmod(0o755)
        (libraries / f"{name}.py").write_text(MODULE.format(name=name))
    machine = fleet.machine(f"machine-{len(list(fleet.top.glob('machine-*')))}")
    path = [str(support.SNAPBOOT.parent), str(pathlib.Path(PYTHON.program).parent), "/usr/bin", "/bin"]
    env = {**machine.env, "PATH": ":".join(path), **variables}
    return support.run(["sh", "-ec", script], env=env, cwd=folder, log=False), machine


def test_a_job_starts_its_tools_from_images_of_the_job_before(tmp_path):
    fleet = Fleet(tmp_path, PYTHON)
    recipe = steps()
    assert "snapboot install" in recipe and "pip install -r" in recipe, recipe
    script = recipe.replace("-m venv .venv", "-m venv --without-pip .venv")
    script = script.replace(".venv/bin/pip install -r requirements.txt", "cp -a tools/. .venv")
    first, _ = run_job(fleet, tmp_path / "checkout", script)
    assert first.status == 0 and len(fleet.objects("images")) == 2, first
    second, machine = run_job(fleet, tmp_path / "checkout", script, SNAPBOOT_ON_STALE="error")
    assert second.status == 0 and second.out.count("from the remote store") == 2, second
    assert second.out.splitlines()[-2:] == first.out.splitlines()[-2:] == ["pytest []", "mypy ['src']"], second
    assert [(row["thawed"], row["remote"]["hits"]) for row in machine.list()] == [(1, 1)] * 2
