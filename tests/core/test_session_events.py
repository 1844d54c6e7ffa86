"""Another session, terminal, user's environment or boot of the machine: the image thaws, with what an ordinary start shows, or says why not."""

import os

import pytest

from . import support
from .languages import PYTHON, RUBY, both

LOCALE = "LC_ALL:LC_CTYPE:LANG"

TEXT = {
    PYTHON: "import locale, os, posix, sys\n"
    "print([(name, value) for name, value in os.environ.items() if name[:2] in ('LC', 'LA')], posix.environ.get(b'LC_CTYPE'))\n"
    "print(sys.flags.utf8_mode, locale.setlocale(locale.LC_CTYPE), sys.stdout.encoding, sys.stdout.errors, sys.stdin.errors)\n"
    "print(open(os.devnull).encoding, os.popen('echo $LC_CTYPE').read())",
    RUBY: "p ENV.select { |name, _| name.start_with?('LC', 'LA') }, Encoding.default_external, Encoding.find('locale')\n"
    "p Encoding.find('filesystem'), $stdin.external_encoding, __FILE__.encoding, `echo $LC_CTYPE`",
}
# The locale C by all its names, but for LC_ALL, which keeps Python from taking C.UTF-8 instead.
OF_C = [{}, {"LANG": ""}, {"LANG": "C"}, {"LANG": "POSIX"}, {"LC_CTYPE": "C", "LANG": "C.UTF-8"}]
OTHERS = [{"LC_ALL": "C"}, {"LC_ALL": "POSIX"}, {"LANG": "C.UTF-8"}, {"LC_ALL": "C.UTF-8"}, {"LC_ALL": "xy.UTF-8"}, {"LANG": "xy.UTF-8"}]
THE_SAME = [{0, 1, 2, 3, 4}, {5, 6}, {7, 8}, {9}, {10}]


def bare(**variables):
    """As cron starts programs, or `env -i`: hardly any variables."""
    return support.environment(**{"LANG": None, **variables})


def same(image, argv, arguments, env, thaws=True, why=None, **options):
    """The image shows what the ordinary start of argv shows, and thaws or falls back for this reason."""
    ordinary = support.run([*argv, *arguments], env=env, log=False, **options)
    result = support.run([image, *arguments], env=env, **options)
    said = [line for line in result.err.splitlines() if line.startswith("snapboot: ")]
    assert (result.status, result.out) == (ordinary.status, ordinary.out), (result, ordinary)
    assert [line for line in result.err.splitlines() if line not in said] == ordinary.err.splitlines(), (result, ordinary)
    assert result.fell_back == (not thaws), (result, env)
    assert why is None or why in result.err, result


@both
def test_the_locale_counts_by_what_the_program_gets(tmp_path, language):
    script = tmp_path / ("main" + language.ending)
    script.write_text(TEXT[language])
    locales = [*OF_C, *OTHERS]
    for made_in in (0, 2, 5, 7, 9):
        image = support.frozen(tmp_path / "app.img", [language.program], env=bare(**locales[made_in]))
        alike = next(group for group in THE_SAME if made_in in group)
        for number, variables in enumerate(locales):
            thaws = number in alike
            same(image, [language.program], [script], bare(**variables), thaws, None if thaws else LOCALE)


def test_a_program_that_changes_what_python_has_set(tmp_path):
    """Python sets LC_CTYPE itself where there is no locale; what the boot makes of that holds."""
    env = bare(PYTHONPATH=str(tmp_path))
    ask = ["-c", "import mod, os; print(os.environ.get('LC_CTYPE'), os.popen('echo $LC_CTYPE').read())"]
    for source in ("import os; del os.environ['LC_CTYPE']", "import os; os.environ['LC_CTYPE'] = 'POSIX'", "import os"):
        (tmp_path / "mod.py").write_text(source + "\n")
        image = support.frozen(tmp_path / "app.img", [support.PYTHON], "--preload", "mod", env=env)
        same(image, [support.PYTHON], ask, env)


CERTIFICATES = {
    PYTHON: ("import ssl\nVALUE = 1\n", "CONTEXT = ssl.create_default_context()\n"),
    RUBY: ("require 'json'\nVALUE = 1\n", "require 'openssl'\nOpenSSL::X509::Store.new.set_default_paths\n"),
}


@pytest.mark.parametrize("asks", [False, True])
@both
def test_certificates_count_where_they_were_looked_for(tmp_path, language, asks):
    load, ask = CERTIFICATES[language]
    env, _ = language.write(tmp_path, load + ask if asks else load)
    options = {"env": env, "cwd": tmp_path}
    image = support.frozen(tmp_path / "app.img", [language.program], "--preload", language.preload(), **options)
    result = support.run(language.argv(image), env={**env, "SSL_CERT_FILE": os.devnull}, cwd=tmp_path)
    assert result.status == 0 and result.fell_back == asks, result
    assert not asks or "SSL_CERT_FILE" in result.err, result
