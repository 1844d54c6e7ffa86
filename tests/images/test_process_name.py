"""The name that the kernel gives a process (comm): that of the file which it executes last."""

import pathlib

import pytest
from common import support

PRINTS = {support.PYTHON: "print(open('/proc/self/comm').read().strip())", support.RUBY: "puts File.read('/proc/self/comm')"}


@support.needs_ruby
@pytest.mark.parametrize("interpreter", PRINTS, ids=["python", "ruby"])
@pytest.mark.parametrize(
    "line, is_script",
    [
        ("#!{path}", True),
        ("#!/usr/bin/env {name}", False),
        ("#!/usr/bin/env -S {name} -W0", False),
    ],
)
def test_a_script_has_its_name_where_its_first_line_names_the_interpreter(interpreter, line, is_script, tmp_path):
    # Ruby wants its name in the line.
    link = tmp_path / "bin" / ("own-" + pathlib.Path(interpreter).name)
    link.parent.mkdir()
    link.symlink_to(interpreter)
    script = tmp_path / "script"
    script.write_text(line.format(path=link, name=link.name) + "\n" + PRINTS[interpreter] + "\n")
    script.chmod(0o755)
    env = support.environment(PATH=f"{link.parent}:/usr/bin:/bin")
    ordinary = support.run([script], env=env)
    assert ordinary.out == ("script\n" if is_script else link.name + "\n"), ordinary
    image = support.frozen(tmp_path / "x.img", [script], env=env)
    assert support.thawed([image], env=env).out == ordinary.out


def test_a_shell_that_starts_the_interpreter_is_not_the_last(tmp_path):
    script = tmp_path / "script"
    script.write_text(f"#!/bin/sh\n'''exec' {support.PYTHON} \"$0\" \"$@\"\n' '''\n{PRINTS[support.PYTHON]}\n")
    script.chmod(0o755)
    ordinary = support.run([script])
    image = support.frozen(tmp_path / "x.img", [script])
    assert support.thawed([image]).out == ordinary.out
    assert ordinary.out != "script\n"
