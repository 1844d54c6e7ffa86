"""Some of what `make half-hour` types in enabled environments: from the third start on, each thaws and shows what an ordinary one shows.
`snapboot disable` leaves nothing behind."""

import os
import pathlib
import sys

import pytest
from common import support

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "tools")]

import half_hour  # noqa: E402
import workloads  # noqa: E402

pytestmark = pytest.mark.sample(2)


class Python(half_hour.Python):
    """The environment with what is typed here alone."""

    packages = ("django", "pytest", "pytest-django", "requests", "jinja2")


TYPED = {
    Python: ["python-script", "python-check", "python-pytest"],
    half_hour.Ruby: ["ruby-script", "ruby-rspec"],
}


@pytest.mark.parametrize("kind", [Python, pytest.param(half_hour.Ruby, marks=[support.needs_ruby, support.needs_root])])
def test_each_start_from_the_third_on_thaws(kind, tmp_path):
    if kind is half_hour.Ruby and not os.environ.get(half_hour.HAS_MOUNTS):
        words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__, "-k", kind.__name__]
        argv = support.in_mount_namespace('exec "$@"', *words)
        inside = support.run(argv, env={**os.environ, half_hour.HAS_MOUNTS: "1"}, cwd=ROOT, log=False)
        assert inside.status == 0, inside
        return
    try:
        place = kind(tmp_path)
    except workloads.Unavailable as reason:
        pytest.skip(str(reason))
    pairs, changed = half_hour.lived(place, TYPED[kind], 1)
    assert not changed
    for name, of_thing in pairs.items():
        assert half_hour.is_right(of_thing), (name, of_thing)
