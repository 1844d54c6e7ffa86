"""Everyday values of variables, each tried in a boot of its own: an image serves those with which the program comes to the same state.

Each program is started with the image and in the ordinary way: the same must come out, thawed or not.
"""

import locale

import pytest
from common import support

from .test_other_start import Program

pytestmark = pytest.mark.sample(16, whole=True)

BASE = {"LANG": "C.UTF-8", "LC_ALL": None, "LANGUAGE": None, "XDG_CONFIG_HOME": None}


@pytest.fixture
def home(tmp_path):
    folder = tmp_path / "home"
    folder.mkdir()
    return str(folder)


def program(tmp_path, home, source, language="python"):
    return Program(tmp_path, source, {name: value for name, value in {**BASE, "HOME": home}.items() if value is not None}, language)


def test_without_home_the_users_directory_stands_for_it(tmp_path, home):
    path = "os.path.expanduser('~/.config/no-such-thing')"
    made = program(tmp_path, home, f"VALUE = {path}, os.path.exists({path})")
    made.check(True)
    made.check(True, HOME=None)


def test_who_asks_whether_home_is_set_is_bound_to_it(tmp_path, home):
    made = program(tmp_path, home, "VALUE = os.environ.get('HOME') is None")
    made.check(True)
    made.check(False, HOME=None)


SAYS = {
    "python": "VALUE = os.path.expanduser('~')\nif 'HOME' not in os.environ: print('no HOME')",
    "ruby": "VALUE = Dir.home\nputs('no HOME') unless ENV['HOME']",
}


@pytest.mark.parametrize("language", ["python", pytest.param("ruby", marks=support.needs_ruby)])
def test_what_is_said_in_one_kind_of_start_is_said(tmp_path, home, language):
    made = program(tmp_path, home, SAYS[language], language)
    made.check(True)
    made.check(False, HOME=None)


def test_directories_below_home_may_be_named(tmp_path, home):
    made = program(tmp_path, home, "VALUE = os.environ.get('XDG_CONFIG_HOME') or os.path.expanduser('~/.config')")
    made.check(True, XDG_CONFIG_HOME=f"{home}/.config")
    made.check(True, HOME="/elsewhere", XDG_CONFIG_HOME="/elsewhere/.config")
    made.check(False, HOME="/elsewhere", XDG_CONFIG_HOME=f"{home}/.config")
    made.check(False, XDG_CONFIG_HOME="/etc/xdg")
    made = program(tmp_path, home, "VALUE = 'XDG_CONFIG_HOME' in os.environ, os.path.expanduser('~/.config')")
    made.check(True)
    made.check(False, XDG_CONFIG_HOME=f"{home}/.config")


LANGUAGES = [{"LANG": None}, {"LANG": "en_US.UTF-8"}, {"LC_ALL": "C"}]


def test_who_looks_for_translations_serves_everyday_languages(tmp_path, home):
    made = program(tmp_path, home, f"import gettext\nVALUE = gettext.translation('x', {str(tmp_path)!r}, fallback=True).gettext('word')")
    for language in LANGUAGES:
        made.check(True, **language)
    made.check(False, LANG="fr_FR.UTF-8")
    made.check(False, LANG="en_US.UTF-8", LC_ALL="C")
    messages = tmp_path / "en_US" / "LC_MESSAGES"
    messages.mkdir(parents=True)
    (messages / "x.mo").write_bytes(catalogue("word", "other word"))
    for language in LANGUAGES:
        made.check(False, **language)


def test_a_translation_that_is_there_binds(tmp_path, home):
    stands_for_it = locale.normalize("C.UTF-8")  # en_US.UTF-8, up to some version
    messages = tmp_path / stands_for_it / "LC_MESSAGES"
    messages.mkdir(parents=True)
    (messages / "x.mo").write_bytes(catalogue("word", "other word"))
    made = program(tmp_path, home, f"import gettext\nVALUE = gettext.translation('x', {str(tmp_path)!r}, fallback=True).gettext('word')")
    made.check(True, LANG=stands_for_it)
    made.check(False, LANG=None)
    made.check(False, LC_ALL="C")


def test_each_value_of_a_boot_is_tried_alone_where_one_makes_a_difference(tmp_path, home):
    made = program(tmp_path, home, "VALUE = os.environ.get('LANG') is None, os.environ.get('LANGUAGE'), os.path.expanduser('~')")
    made.check(False, LANG=None)
    made.check(True, HOME=None)
    made.check(True, LANG="en_US.UTF-8")


CONFIG = "os.environ.get('XDG_CONFIG_HOME') or os.path.expanduser('~/.config')"


def test_a_locale_that_counts_takes_no_boots_from_the_rest(tmp_path, home):
    made = program(tmp_path, home, f"VALUE = os.environ.get('LANG'), {CONFIG}")
    made.check(True, HOME=None)
    made.check(True, XDG_CONFIG_HOME=f"{home}/.config")
    made.check(False, LANG=None)


@support.needs_ruby
def test_rubygems_makes_directories_of_the_user_when_they_are_asked_for(tmp_path, home):
    asked = "def VALUE.inspect\n  [Gem.data_home, Gem.data_home.frozen?, Gem.config_home.frozen?].inspect\nend"
    made = program(tmp_path, home, f"VALUE = Object.new\nGem.data_home\n{asked}", "ruby")
    made.check(True)
    made.check(True, XDG_DATA_HOME=f"{home}/.local/share")
    made.check(False, XDG_DATA_HOME="/usr/share")


def test_values_of_several_boots_do_not_go_together(tmp_path, home):
    both = "os.environ.get('LANG') == 'en_US.UTF-8' and os.environ.get('LC_ALL') == 'C'"
    made = program(tmp_path, home, f"VALUE = {both}")
    made.check(True, LANG="en_US.UTF-8")
    made.check(True, LC_ALL="C")
    made.check(False, LANG="en_US.UTF-8", LC_ALL="C")


def test_what_c_code_reads_has_no_other_values(tmp_path, home):
    getenv = "C = __import__('ctypes').CDLL(None); C.getenv.restype = __import__('ctypes').c_char_p\n"
    made = program(tmp_path, home, getenv + "VALUE = C.getenv(b'XDG_CONFIG_HOME')")
    made.check(True)
    made.check(False, XDG_CONFIG_HOME=f"{home}/.config")


def catalogue(text, translation):
    """A file of translations with one in it, in the format of GNU gettext: two tables of lengths and offsets, and the texts."""
    import struct

    texts = [text.encode(), translation.encode()]
    begin = 28 + 16
    tables = struct.pack("<4I", len(texts[0]), begin, len(texts[1]), begin + len(texts[0]) + 1)
    return struct.pack("<7I", 0x950412DE, 0, 1, 28, 36, 0, 44) + tables + b"".join(text + b"\0" for text in texts)


WITHOUT_EFFECT = "import _locale\nVALUE = len(_locale.nl_langinfo(_locale.CODESET)) > 100"
WITH_EFFECT = "import _locale\nVALUE = _locale.nl_langinfo(_locale.CODESET), os.environ.get('LC_CTYPE')"


def test_who_reads_the_locale_without_effect_serves_others(tmp_path, home):
    made = program(tmp_path, home, WITHOUT_EFFECT)
    for language in ({}, *LANGUAGES):
        made.check(True, **language)
    made.check(False, LANG="C", LC_CTYPE="de_DE.ISO-8859-1")


def test_who_keeps_something_of_the_locale_is_bound_to_it(tmp_path, home):
    made = program(tmp_path, home, WITH_EFFECT)
    made.check(True)
    made.check(False, LC_ALL="C")
