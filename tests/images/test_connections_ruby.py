"""Pools of Ruby that a boot has connected come out of a thaw disconnected, and connect again. Real servers answer."""

import pytest
from common import servers, support

from . import connections

pytestmark = support.needs_ruby


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """By the words that stand for them."""
    with servers.redis(tmp_path_factory.mktemp("redis")) as socket, servers.postgresql() as folder, servers.web() as web:
        yield {"SOCKET": str(socket), "FOLDER": str(folder), "WEB": web}


@pytest.mark.sample(3)
@pytest.mark.parametrize("case", connections.SHARED)
def test_what_a_boot_has_connected(case, places, tmp_path):
    for feature in case.needs:
        if support.run(["ruby", "-e", f"require {feature!r}"]).status != 0:
            pytest.skip(f"this machine has none of it: {feature}")
    (tmp_path / "library.rb").write_text(connections.put(case.ruby, places, tmp_path))
    (tmp_path / "main.rb").write_text('require_relative "library"\nuse\n')
    image = tmp_path / "program.img"
    freeze = support.freeze(image, ["ruby", "main.rb"], "--preload", "./library", cwd=tmp_path)
    if refusal := case.refusal_in("ruby"):
        assert freeze.status != 0 and refusal in freeze.err and not image.exists(), freeze
        return
    assert freeze.status == 0, freeze
    ordinary = support.run(["ruby", "main.rb"], cwd=tmp_path)
    assert ordinary.status == 0, ordinary
    for _ in range(2):
        assert support.thawed([image]).out == ordinary.out.replace("same", "another")
