"""Pools of Ruby that a boot has connected come out of a thaw disconnected, and connect again. Real servers answer."""

import pytest
from common import servers, support
from common.waiting import SECONDS

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


REAPED = f"""\
require "active_record"
ActiveRecord::Base.establish_connection(adapter: "sqlite3", database: "file.db", reaping_frequency: 0.2, idle_timeout: 0.2)
ActiveRecord::Base.connection.execute("select 1")
def use
  ActiveRecord::Base.connection.execute("select 1")
  pool = ActiveRecord::Base.connection_pool
  pool.release_connection
  deadline = Time.now + {SECONDS}
  sleep 0.05 until pool.connections.empty? || Time.now > deadline
  p pool.connections.size, Thread.list.size
end
"""


def test_idle_connections_are_closed_after_a_thaw_too(tmp_path):
    if support.run(["ruby", "-e", "require 'active_record'"]).status != 0:
        pytest.skip("this machine has none of it: active_record")
    (tmp_path / "library.rb").write_text(REAPED)
    (tmp_path / "main.rb").write_text('require_relative "library"\nuse\n')
    freeze = support.freeze(tmp_path / "program.img", ["ruby", "main.rb"], "--preload", "./library", cwd=tmp_path)
    assert freeze.status == 0 and "connection_poo" not in freeze.err, freeze
    ordinary = support.run(["ruby", "main.rb"], cwd=tmp_path)
    assert ordinary.out.startswith("0\n") and support.thawed([tmp_path / "program.img"], cwd=tmp_path).out == ordinary.out, ordinary
