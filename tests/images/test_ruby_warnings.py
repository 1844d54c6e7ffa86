"""Under `ruby -w` a freeze and its image print what Ruby itself prints, and nothing of the front end's."""

import pytest
from common import support

pytestmark = pytest.mark.sample(6)

# It warns when it is parsed, and when it runs.
SCRIPT = "def one; end\ndef one; end\nunused = 1\nputs 7\n"


@support.needs_ruby
@pytest.mark.parametrize("option", ["-w", "-W2", "-W:experimental"])
def test_a_boot_with_warnings_is_as_silent_as_without(option, tmp_path):
    (tmp_path / "app.rb").write_text(SCRIPT)
    for words in (["app.rb"], ["-rset", "-e", "p 1"]):
        command = [support.RUBY, option, *words]
        made = support.freeze(tmp_path / "app.img", command, cwd=tmp_path)
        assert made.status == 0 and made.err == "", made
        image, ordinary = (support.run(argv, cwd=tmp_path, log=False) for argv in ([tmp_path / "app.img"], command))
        assert (image.out, image.err) == (ordinary.out, ordinary.err)
