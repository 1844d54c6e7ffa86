"""`snapboot time` of an image: what falls back is not timed in silence."""

import json

from common import support
from common.languages import both

SCRIPTS = {"python": "print('one')\n", "ruby": "puts 'one'\n"}


@both
def test_starts_that_do_not_thaw_are_told(tmp_path, language):
    script = tmp_path / ("tool" + language.ending)
    script.write_text(SCRIPTS[language.name])
    image = support.frozen(tmp_path / "tool.img", [language.program, script], "-q")

    def time(*words):
        return support.run([support.SNAPBOOT, "time", "-n", "2", *words], log=False)

    fresh = time("--", image, "--vs", "true")
    assert fresh.status == 0 and "did not thaw" not in fresh.out, fresh
    assert json.loads(time("--json", "--", image).out)["commands"][0]["image"] == {"thaws": 2, "fallbacks": 0, "reason": None}
    script.write_text(SCRIPTS[language.name] + "\n# changed\n")
    stale = time("--", "true", "--vs", image)
    assert stale.status == 1 and " B is an image, but 2 of 2 runs did not thaw: stale: " in stale.out, stale
    assert str(script) in stale.out and " A is an image" not in stale.out
    allowed = time("--allow-failure", "--json", "--", image)
    counted = json.loads(allowed.out)["commands"][0]["image"]
    assert allowed.status == 0 and (counted["thaws"], counted["fallbacks"]) == (0, 2) and str(script) in counted["reason"], allowed
