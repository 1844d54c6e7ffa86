"""Variables whose values are paths: a directory is as good as another one where a program only keeps it, a program is not."""

import pytest
from common.languages import both

from .test_other_start import Program

pytestmark = pytest.mark.sample(16, whole=True)


@both
def test_what_was_looked_for_below_a_directory_counts_where_that_is(language, tmp_path, homes):
    first, second = homes
    source = {
        "python": "SITE = os.environ['SITE']\nVALUE = SITE, os.path.exists(SITE + '/site.toml')",
        "ruby": "SITE = ENV.fetch('SITE')\nVALUE = SITE, File.exist?(SITE + '/site.toml')",
    }
    program = Program(tmp_path, source[language.name], {"SITE": first}, language.name)
    program.check(True, SITE=second)
    program.check(False, SITE=f"{tmp_path}/with a space")
    with open(f"{second}/site.toml", "w"):
        program.check(True)
        program.check(False, SITE=second)


@both
def test_another_program_is_not_as_good(language, tmp_path):
    """What a shell or an editor can do its name says, and patterns take that apart where nobody sees it."""
    source = {
        "python": "VALUE = bool(re.search('bash', os.environ['SHELL']))",
        "ruby": "VALUE = ENV['SHELL'] =~ /bash/ ? 1 : 2",
    }
    program = Program(tmp_path, source[language.name], {"SHELL": "/bin/sh"}, language.name)
    program.check(True)
    program.check(False, SHELL="/bin/bash")
