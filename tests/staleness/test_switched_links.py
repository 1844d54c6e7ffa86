"""A program below a link that is switched to another release, as deployment tools do it: an image is of the release it was made of."""

import os

import pytest
from common import support
from common.languages import PYTHON, RUBY

LIBRARY = {
    "ruby": ("shop.rb", "module Shop\n  def self.release = {0}\n  def self.only{0} = 1\nend\n"),
    "python": ("shop.py", "release = {0}\nonly{0} = 1\n"),
}
SHOW = {
    "ruby": 'puts "#{Shop.release} #{Shop.methods(false).grep(/only/)} #{$LOADED_FEATURES.grep(/shop/).size}"\n',
    "python": "print(shop.release, [name for name in dir(shop) if 'only' in name])\n",
}
REAL = "import sys, os; sys.path.insert(0, os.path.realpath(__file__)[:-7] + 'lib'); import shop\n"
# The main script's first line and the words that start it, below the folder that has `current`.
WAYS = {
    "ruby script": (RUBY, 'require_relative "lib/shop"\n', ["{0}/current/main.rb"]),
    "ruby script from beside the link": (RUBY, 'require_relative "lib/shop"\n', ["current/main.rb"]),
    "ruby -I": (RUBY, 'require "shop"\n', ["-I{0}/current/lib", "{0}/current/main.rb"]),
    "python script": (PYTHON, REAL, ["{0}/current/main.py"]),
}


@pytest.mark.parametrize("way", [pytest.param(way, marks=support.needs_ruby) if "ruby" in way else way for way in WAYS])
def test_a_link_is_switched(tmp_path, way):
    language, load, words = WAYS[way]
    file, text = LIBRARY[language.name]
    for release in ("1", "2"):
        (tmp_path / release / "lib").mkdir(parents=True)
        (tmp_path / release / "lib" / file).write_text(text.format(release))
        (tmp_path / release / f"main{language.ending}").write_text(load + SHOW[language.name])

    def switch(release):
        (tmp_path / "new").symlink_to(release)
        os.replace(tmp_path / "new", tmp_path / "current")

    switch("1")
    command = [language.program, *(word.format(tmp_path) for word in words)]
    image = support.frozen(tmp_path / "app.img", command, "--train", "", cwd=tmp_path)
    for release in ("1", "2", "1"):
        switch(release)
        expected, got = (support.run(argv, cwd=tmp_path).out for argv in (command, [image]))
        assert got == expected and expected.startswith(release), (way, release, got)
