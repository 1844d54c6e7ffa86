"""Copies of the environment that a program makes while it boots are what they would have been in each start."""

import pytest
from common import support
from common.languages import PYTHON, RUBY, both

SHELL = {"SHELL": "/bin/sh", "EDITOR": "vi", "LOGNAME": "somebody", "PAGER": "cat", "HISTSIZE": "10"}
MADE = {
    PYTHON: "import os\nVALUE = dict(os.environ)\nVALUE['SET'] = '1'\ndel VALUE['EDITOR']",
    RUBY: "VALUE = ENV.to_h\nVALUE['SET'] = '1'\nVALUE.delete('EDITOR')",
}
SHOW = {
    PYTHON: "from boot import VALUE; print({name: VALUE.get(name) for name in NAMES})",
    RUBY: "puts NAMES.map { |name| [name, VALUE[name]] }.inspect",
}
NAMES = "['TERM', 'COLUMNS', 'SHELL', 'EDITOR', 'SET', 'MY_TOKEN', 'HOME']"


def start(language, path, program, env):
    load = f"NAMES = {NAMES}" if language is PYTHON else f"NAMES = {NAMES}; require {str(path.with_suffix(''))!r}"
    return support.run([program, "-c" if language is PYTHON else "-e", f"{load}\n{SHOW[language]}"], env=env)


@both
def test_a_copy_is_that_of_the_start(language, tmp_path):
    env, path = language.write(tmp_path, MADE[language])
    env |= SHELL
    image = tmp_path / "x.img"
    preload = "boot" if language is PYTHON else str(path.with_suffix(""))
    support.frozen(image, [language.program], "--preload", preload, env=env)
    for changed in ({}, {"TERM": "another"}, {"TERM": "x", "COLUMNS": "7"}):
        thawed, ordinary = (start(language, path, program, env | changed) for program in (image, language.program))
        assert thawed.out == ordinary.out and "ordinary way" not in thawed.err, (changed, thawed)
    assert "another" in start(language, path, image, env | {"TERM": "another"}).out


@support.needs_ruby
@pytest.mark.parametrize("token", [None, "second"])
def test_a_secret_in_a_copy_that_bundler_keeps(token, tmp_path):
    """It may be set while freezing, since Bundler does not look at it: programs do that it starts."""
    folder = tmp_path / "bundler"
    folder.mkdir()
    env, path = RUBY.write(folder, MADE[RUBY], "environment_preserver")
    env |= SHELL
    image = tmp_path / "x.img"
    support.frozen(image, [RUBY.program], "--preload", str(path.with_suffix("")), env=env | {"MY_TOKEN": "first"})
    later = env | ({"MY_TOKEN": token} if token else {})
    thawed, ordinary = (start(RUBY, path, program, later) for program in (image, RUBY.program))
    assert thawed.out == ordinary.out and "ordinary way" not in thawed.err, thawed
