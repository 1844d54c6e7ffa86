"""What is printed while booting is missing in thaws: the freeze says so."""

from common import support
from common.languages import both

WARNING = "the program printed something while it booted"


@both
def test_a_preload_that_prints_is_told(tmp_path, language):
    said = {"python": "import os\nos.write(1, b'loading\\n')\n", "ruby": "system('echo loading')\n"}[language.name]
    (tmp_path / f"loud{language.ending}").write_text(said)
    (tmp_path / f"quiet{language.ending}").write_text("")
    prefix = "" if language.name == "python" else "./"
    for name, tells in (("quiet", False), ("loud", True)):
        result = support.freeze(tmp_path / "app.img", [language.program], "--preload", prefix + name, cwd=tmp_path)
        assert result.status == 0 and (WARNING in result.err) == tells == ("loading" in result.err), result
