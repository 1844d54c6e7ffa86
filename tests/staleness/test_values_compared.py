"""A program that compares a value with a text of its own: one other start shows nothing, since it does the same with all others."""

import pytest
from common import support
from common.languages import both

from .programs import frozen_with_module
from .test_facts import another_host
from .test_other_start import LANGUAGES, Program, cases

pytestmark = pytest.mark.sample(24, whole=True)

# What is done with a value V of another start, O, which the image's boot and the other starts of its freeze do not have.
WAYS = {
    "equal": ("V == O", "V == O"),
    "equal the other way around": ("O == V", "O == V"),
    "among several": ("V in ('x', O)", "['x', O].include?(V)"),
    "in a table": ("{O: 1}.get(V)", "{ O => 1 }[V]"),
    "in a set": ("V in {O, 'x'}", "Set[O].include?(V)"),
    "a branch": ("1 if V == O else 2", "case V when O then 1 else 2 end"),
    "its beginning": ("V.startswith(O)", "V.start_with?(O)"),
    "its end": ("V.endswith(O[-4:])", "V.end_with?(O[-4..])"),
    "a part": ("O[-4:] in V", "V.include?(O[-4..])"),
    "where a part is": ("V.find(O[-4:])", None),
    "the last name": ("os.path.basename(V) == O[-4:]", "File.basename(V) == O[-4..]"),
    "one of its parts": ("V.split('/')[-1] == O[-4:]", "V.split('/').last == O[-4..]"),
    "in capitals": ("V.upper() == O.upper()", "V.upcase == O.upcase"),
    "as bytes": ("os.environb[{name!r}.encode()] == O.encode()", "V.b == O.b"),
    "by a default": ("os.environ.get({name!r}, '').strip() == O", "ENV.fetch({name!r}, '').strip == O"),
}


@pytest.mark.parametrize("variable", ["SITE", "USER"])
@pytest.mark.parametrize("language, way", list(cases(WAYS)))
def test_what_is_compared_binds(language, way, variable, tmp_path, homes):
    expression = dict(zip(LANGUAGES, WAYS[way], strict=True))[language]
    (tmp_path / "live").mkdir()
    value, other = (homes[0], f"{tmp_path}/live") if variable == "SITE" else ("sam", "live")
    get = {"python": f"os.environ[{variable!r}]", "ruby": f"ENV[{variable!r}]"}[language]
    source = f"V, O = {get}, {other!r}\nVALUE = {expression.replace('{name!r}', repr(variable))}\n"
    source += {"python": "del V, O", "ruby": "%i[V O].each { |name| Object.send(:remove_const, name) }"}[language]
    source = ("require 'set'\n" if language == "ruby" else "") + source
    program = Program(tmp_path, source, {variable: value}, language)
    program.check(True)
    program.check(False, **{variable: other})


def test_the_name_of_a_host_that_a_program_knows(tmp_path):
    decides = "import socket\nDEBUG = socket.gethostname().split('.')[0] not in ('production', 'another-host')\n"
    image, env = frozen_with_module(tmp_path, decides)
    ask = ["-c", "import module; print(module.DEBUG)"]
    result = support.run([*another_host(), image, *ask], env=env)
    assert result.out == "False\n" and result.fell_back, result


@both
def test_what_says_nothing_of_its_own_does_not_bind(language, tmp_path, homes):
    source = {
        "python": "VALUE = os.environ['SITE'] if os.environ['SITE'].startswith('/') else ''",
        "ruby": "VALUE = ENV['SITE'].start_with?('/') && ENV['SITE'] != '' ? ENV['SITE'] : ''",
    }
    program = Program(tmp_path, source[language.name], {"SITE": homes[0]}, language.name)
    program.check(True, SITE=homes[1])


@both
def test_a_program_that_takes_no_text_but_its_own_is_bound(language, tmp_path, homes):
    source = {
        "python": "V = os.environ['SITE']\nassert type(V) is str\nVALUE = V\ndel V",
        "ruby": "VALUE = ENV.fetch('SITE').dup",
    }
    program = Program(tmp_path, source[language.name], {"SITE": homes[0]}, language.name)
    program.check(True)
    program.check(language.name == "ruby", SITE=homes[1])
