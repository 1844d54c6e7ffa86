"""Code that the interpreter runs before any front end: Python's sitecustomize and .pth files, the libraries that -r and RUBYOPT
name for Ruby."""

import os

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
