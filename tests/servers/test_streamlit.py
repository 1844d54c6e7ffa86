"""`streamlit run` starts from an image by recipe: sessions, secrets and edits are those of each start."""

import re
import shutil
import signal
import subprocess

import pytest
from common.ready import prepared
from common.servers import free_port
from common.waiting import SECONDS, wait_until

from .test_server_recipes import edit, environment, frozen, page, started

pytestmark = pytest.mark.sample(1, whole=True)

APPLICATION = """import streamlit
from streamlit import config

state = streamlit.session_state
state.count = state.get("count", 0) + 1
streamlit.write(f"hello {state.count} {config.get_option('client.toolbarMode')} secret {config.get_option('server.cookieSecret')}")
"""
# What a browser does: a session, in which the script runs twice. Prints what the script writes.
BROWSER = """import asyncio, sys, websockets
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

async def session(port):
    address = f"ws://127.0.0.1:{port}/_stcore/stream"
    async with websockets.connect(address, subprotocols=["streamlit"], max_size=None) as socket:
        for _ in range(2):
            asked = BackMsg()
            asked.rerun_script.query_string = ""
            await socket.send(asked.SerializeToString())
            kind = None
            while kind != "script_finished":
                message = ForwardMsg.FromString(await socket.recv())
                kind = message.WhichOneof("type")
                text = message.delta.new_element.markdown.body
                if text:
                    print(text)

asyncio.run(asyncio.wait_for(session(sys.argv[1]), 60))
"""


@pytest.fixture
def ready():
    return prepared("streamlit")


@pytest.fixture
def shop(tmp_path):
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "pages.py").write_text(APPLICATION)
    return folder


def command(ready, port):
    options = ["--server.headless", "true", "--browser.gatherUsageStats", "false", "--server.port", str(port)]
    return [f"{ready['bin']}/streamlit", "run", "pages.py", *options]


def visit(ready, port):
    """What two runs of the script in one session have written, without the secret, which is returned too."""
    shown = subprocess.run(
        [ready["python"], "-c", BROWSER, str(port)], env=environment(), capture_output=True, text=True, timeout=SECONDS, check=True
    ).stdout
    (secret,) = set(re.findall(r"secret (\w+)", shown))
    assert len(secret) == 64
    return re.sub(r" secret \w+", "", shown).splitlines(), secret


def test_each_start_has_its_own_sessions_and_secrets(ready, shop, tmp_path):
    port, log = free_port(), tmp_path / "log"
    image = frozen(shop, tmp_path / "shop.img", command(ready, port))
    said, secrets = {}, set()
    for name, argv in (("ordinary", command(ready, port)), ("first", [image]), ("second", [image])):
        with started(argv, shop, log) as server:
            wait_until(lambda: "Streamlit" in (page(port) or ""), log.read_text)
            for _ in range(2):
                shown, secret = visit(ready, port)
                assert shown == ["hello 1 auto", "hello 2 auto"], log.read_text()
            secrets.add(secret)
            edit(shop, "pages.py", "hello", "good day")
            assert visit(ready, port)[0] == ["good day 1 auto", "good day 2 auto"], log.read_text()
            # A thread polls for settings.
            settings = shop / ".streamlit/config.toml"
            settings.parent.mkdir()
            settings.write_text("[client]\ntoolbarMode = 'minimal'\n")
            wait_until(lambda: visit(ready, port)[0] == ["good day 1 minimal", "good day 2 minimal"], log.read_text)
            server.send_signal(signal.SIGINT)
            assert server.wait(SECONDS) == 0, log.read_text()
        edit(shop, "pages.py", "good day", "hello")
        shutil.rmtree(settings.parent)
        # There may be a network, and how often a browser came is a matter of time.
        lines = re.sub(r"(?m)^[-\d]+ [:.\d]+|127.0.0.1:\d+", "", log.read_text()).splitlines()
        said[name] = {line for line in lines if not re.search("External|Network|auto detect|Please go", line)}
    assert len(secrets) == 3
    assert said["first"] == said["second"] == said["ordinary"]
