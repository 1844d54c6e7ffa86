"""Code that the interpreter runs before any front end: Python's sitecustomize and .pth files, the libraries that -r and RUBYOPT
name for Ruby."""

import os
import subprocess

import pytest
from common import support

pytestmark = pytest.mark.sample(3)

# What such code may keep of its start, in Python and in Ruby.
KEPT = {
    "directory": ("os.getcwd()", "Dir.pwd"),
    "umask": ("(lambda now: (os.umask(now), now)[1])(os.umask(0))", "File.umask"),
    "variables": (
        "sorted(name for name in os.environ if name != 'PYTHONHASHSEED' and name[:9] != 'SNAPBOOT_')",
        "ENV.keys.grep_v(/^SNAPBOOT_/).sort",
    ),
}
# What no image can be bound to.
REFUSED = {
    "arguments": ("list(sys.argv)", "ARGV.dup"),
    "some arguments": ("sys.argv[1:]", "ARGV.drop(1)"),
    "parent": ("os.getppid()", "Process.ppid"),
}
WAYS = pytest.mark.parametrize(
    "way", ["sitecustomize", pytest.param("-r", marks=support.needs_ruby), pytest.param("RUBYOPT", marks=support.needs_ruby)]
)


def start_up_file(folder, way, expressions):
    """Writes a file that keeps a value before the front end is there. Returns the command and the environment that load it, and the
    words that show the value."""
    if way == "sitecustomize":
        (folder / "sitecustomize.py").write_text(f"import os, sys\nsys.kept = {expressions[0]}\n")
        return [support.PYTHON], support.environment(PYTHONPATH=str(folder)), ["-c", "import sys; print(sys.kept)"]
    (folder / "keeps.rb").write_text(f"KEPT = {expressions[1]}\n")
    options, variables = ([], {"RUBYOPT": "-rkeeps"}) if way == "RUBYOPT" else (["-rkeeps"], {})
    return [support.RUBY, *options], support.environment(RUBYLIB=str(folder), **variables), ["-e", "p KEPT"]


@WAYS
@pytest.mark.parametrize("what", KEPT)
def test_what_it_keeps_is_that_of_each_start(tmp_path, way, what):
    command, env, show = start_up_file(tmp_path, way, KEPT[what])
    image = support.frozen(tmp_path / "app.img", command, env=env, cwd=tmp_path)
    umask = os.umask(0o77)
    try:
        other = {"env": {**env, "ONE_MORE": "1"}, "cwd": "/usr"}
        started, ordinary = support.run([image, *show], **other), support.run([*command, *show], **other)
    finally:
        os.umask(umask)
    assert (started.out, started.status) == (ordinary.out, 0), (started, ordinary)
    same = support.thawed([image, *show], env=env, cwd=tmp_path)
    assert same.out == support.run([*command, *show], env=env, cwd=tmp_path).out


@WAYS
@pytest.mark.parametrize("what", REFUSED)
def test_what_differs_in_each_start_is_refused(tmp_path, way, what):
    command, env, _ = start_up_file(tmp_path, way, REFUSED[what])
    refused = support.freeze(tmp_path / "app.img", command, env=env)
    assert refused.status == 2 and "which differs at each start" in refused.err, refused


def test_changes_of_the_environment_are_made_in_each_start(tmp_path):
    """By Python's start-up files. What they read counts: it is in what they set."""
    venv = tmp_path / "venv"
    subprocess.run([support.PYTHON, "-m", "venv", "--without-pip", venv], check=True)
    (packages,) = venv.glob("lib/python3.*/site-packages")
    # A Python may have a sitecustomize of its own in front of the environment's.
    (packages / "start_up.pth").write_text("import start_up\n")
    text = "import os\nos.environ.update(SET='1')\nos.environ.pop('REMOVED', None)\nos.environ.setdefault('DEFAULT', '2')\n"
    (packages / "start_up.py").write_text(text + "os.environ['MORE'] = os.environ.get('SOME', '') + '/more'\n")
    code = "import os; os.execvp('env', ['env'])"
    command, env = [str(venv / "bin/python"), "-c", code], support.environment(REMOVED="x", SOME="y")
    image = support.frozen(tmp_path / "app.img", command, env=env)
    shown = {}
    starts = {"same": {}, "other": {"OTHER": "1"}, "set": {"SET": "3"}, "some": {"SOME": "z"}, "default": {"DEFAULT": "4"}}
    for name, more in starts.items():
        started, ordinary = (support.run(argv, env={**env, **more}) for argv in ([image], command))
        assert sorted(variables(started.out)) == sorted(variables(ordinary.out)), name
        shown[name] = started.fell_back
    assert shown == {"same": False, "other": False, "set": False, "some": True, "default": True}


def variables(text):
    """What `env` shows of the variables that the program may see."""
    return [line for line in text.splitlines() if not line.startswith(("SNAPBOOT_", "_="))]
