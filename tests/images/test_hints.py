"""A freeze that gains little says so."""

import pytest
from common import support

pytestmark = pytest.mark.sample(2, whole=True)


def frozen(folder, command, name, source, *options, **variables):
    (folder / name).write_text(source)
    env = support.environment(PYTHONPATH=str(folder), **variables)
    result = support.freeze(folder / "x.img", [command, name], *options, env=env, cwd=folder)
    assert result.status == 0, result
    return result.out


@pytest.mark.parametrize("cause", ["print(1)", "import sys; sys.stdout.isatty()", "raise ImportError"])
def test_an_import_that_is_left(cause, tmp_path):
    (tmp_path / "module.py").write_text(cause + "\n")
    source = "import json\nimport module\nimport os\n"
    assert "leaves the import of module and what follows to each start" in frozen(tmp_path, support.PYTHON, "app.py", source)
    (tmp_path / "module.py").write_text("")
    assert "leaves" not in frozen(tmp_path, support.PYTHON, "app.py", source)


@support.needs_ruby
def test_a_ruby_script_of_which_nothing_is_loaded(tmp_path):
    says = "holds Ruby and RubyGems only"
    source = "require 'json'\nputs JSON.generate([1])\n"
    assert says in frozen(tmp_path, support.RUBY, "app.rb", source)
    assert says not in frozen(tmp_path, support.RUBY, "app.rb", source, "--preload", "json")
    assert says not in frozen(tmp_path, support.RUBY, "app.rb", "puts 1\n")
