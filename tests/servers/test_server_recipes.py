"""Real servers and workers start from images by recipe: nobody names a function, and nothing differs but the time."""

import http.client
import http.server
import shutil
import signal
import threading
import urllib.error
import urllib.request

import pytest
from common import servers, support
from common.ready import prepared
from common.servers import free_port
from common.waiting import SECONDS, wait_until
from store.stores import Store

pytestmark = pytest.mark.sample(3, whole=True)


@pytest.fixture(scope="module")
def ready():
    return prepared("servers")


@pytest.fixture
def shop(tmp_path):
    """A folder with the applications, for each test its own."""
    folder = tmp_path / "shop"
    shutil.copytree(support.ROOT / "bench/programs/servers", folder, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def environment(**more):
    return support.environment(PYTHONDONTWRITEBYTECODE="1", **more)


def started(argv, folder, log, **variables):
    """As `servers.started`."""
    return servers.started(argv, folder, environment(SNAPBOOT_LOG="1", **variables), log)


def page(port):
    """What the front page says; None while nobody answers."""
    try:
        return urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=SECONDS).read().decode()
    except (urllib.error.URLError, http.client.HTTPException, OSError):
        return None


def wait_for(port, text, log):
    wait_until(lambda: text in (page(port) or ""), lambda: f"{text}: {page(port)}, {log.read_text()}")


def frozen(folder, image, command):
    """Freezes it as its recipe says. Returns the image."""
    result = support.freeze(image, command, cwd=folder, env=environment())
    assert result.status == 0 and "the application is not in the image" not in result.err, result
    shown = support.run([support.SNAPBOOT, "inspect", image], log=False).out
    assert "\n guards       *\n" in shown, shown
    return image


def edit(folder, name, old, new):
    """Changes a file of the shop."""
    text = (folder / name).read_text()
    assert old in text
    (folder / name).write_text(text.replace(old, new))


@pytest.mark.parametrize("options", [["--preload"], [], ["--preload", "--worker-class", "gthread", "--threads", "2"]], ids=" ".join)
def test_gunicorn_restarts_as_ever(options, ready, shop, tmp_path):
    port, log = free_port(), tmp_path / "log"
    command = [f"{ready['bin']}/gunicorn", *options, "-w", "2", "-b", f"127.0.0.1:{port}", "flask_shop:app"]
    image = frozen(shop, tmp_path / "shop.img", command)
    with started([image], shop, log, GREETING="first") as server:
        wait_for(port, "hello first", log)
        assert all("hello first" in page(port) for _ in range(50))
        edit(shop, "flask_shop.py", "hello", "good day")
        server.send_signal(signal.SIGHUP)
        wait_until(lambda: log.read_text().count("Booting worker") >= 4, log.read_text)
        # With --preload a HUP keeps the application, and another process has the new one.
        wait_for(port, "hello first" if "--preload" in options else "good day first", log)
        server.send_signal(signal.SIGUSR2)
        wait_until(lambda: log.read_text().count("Booting worker") >= 6, log.read_text)
        server.send_signal(signal.SIGTERM)
        server.wait(SECONDS)
        wait_for(port, "good day first", log)
    assert log.read_text().count("starting the ordinary way") == 0, log.read_text()


def test_gunicorn_thaws_from_the_store_for_each_port(ready, shop, tmp_path):
    tmp_path.chmod(0o755)
    store = Store(tmp_path)
    own = {name: store.env[name] for name in ("SNAPBOOT_STORE", "SNAPBOOT_STATE")}
    for port in (free_port(), free_port()):
        words = [f"{ready['bin']}/gunicorn", "--preload", "-w", "1", "-b", f"127.0.0.1:{port}", "flask_shop:app"]
        for is_thawed in (False, True, True):
            log = tmp_path / "log"
            with started([support.SNAPBOOT, "run", "--", *words], shop, log, **own, UNRELATED=str(port)):
                wait_for(port, "hello nobody", log)
                assert ("starting the ordinary way" in log.read_text()) != is_thawed, log.read_text()
            store.wait()


def test_django_under_gunicorn(ready, shop, tmp_path):
    port, log = free_port(), tmp_path / "log"
    image = frozen(shop, tmp_path / "shop.img", [f"{ready['bin']}/gunicorn", "--preload", "-b", f"127.0.0.1:{port}", "shop.wsgi"])
    with started([image], shop, log):
        wait_for(port, "hello", log)
    assert "ordinary way" not in log.read_text()


def test_uvicorn(ready, shop, tmp_path):
    port, log = free_port(), tmp_path / "log"
    image = frozen(shop, tmp_path / "shop.img", [f"{ready['bin']}/uvicorn", "--port", str(port), "fastapi_shop:app"])
    with started([image], shop, log, GREETING="you") as server:
        wait_for(port, "hello you", log)
        server.send_signal(signal.SIGINT)
        server.wait(SECONDS)
    assert "ordinary way" not in log.read_text() and "Finished server process" in log.read_text()
    edit(shop, "fastapi_shop.py", "hello", "good day")
    with started([image], shop, log):
        wait_for(port, "good day nobody", log)
    assert "ordinary way" in log.read_text()


def test_a_worker_of_celery(ready, shop, tmp_path):
    command = [f"{ready['bin']}/celery", "-A", "celery_shop", "worker", "-c", "1"]
    image = frozen(shop, tmp_path / "worker.img", command)
    ordinary = support.run(command, cwd=shop, env=environment(END_AT_READY="1"))
    thawed = support.thawed([image], cwd=shop, env=environment(END_AT_READY="1"))
    assert ordinary.out.endswith("ready\n") and thawed.status == 0, thawed
    plain = [line for line in ordinary.out.splitlines() if "app:" not in line and "Linux-" not in line]
    assert [line for line in thawed.out.splitlines() if "app:" not in line and "Linux-" not in line] == plain


def test_the_development_server_of_django(ready, shop, tmp_path):
    for options in (["--noreload"], []):
        port, log = free_port(), tmp_path / "log"
        command = [ready["python"], "manage.py", "runserver", *options, str(port)]
        image = frozen(shop, tmp_path / "runserver.img", command)
        said = {}
        for argv in (command, [image]):
            with started(argv, shop, log):
                wait_for(port, "hello", log)
            said[argv[0]] = [line for line in log.read_text().splitlines() if "GET" not in line and " - " not in line]
        assert said[image] == said[ready["python"]]


class Runtime(http.server.BaseHTTPRequestHandler):
    """The other side of a function: one event, and what comes back."""

    protocol_version = "HTTP/1.1"
    answers = []
    given = threading.Event()

    def do_GET(self):
        if self.given.is_set():
            self.close_connection = True
            return
        self.given.set()
        body = b'{"number": 7}'
        self.send_response(200)
        self.send_header("Lambda-Runtime-Aws-Request-Id", "one")
        self.send_header("Lambda-Runtime-Deadline-Ms", "9999999999999")
        self.send_header("Lambda-Runtime-Invoked-Function-Arn", "arn")
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        self.answers.append((self.path, self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(202)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


def test_a_function(ready, shop, tmp_path):
    runtime = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Runtime)
    threading.Thread(target=runtime.serve_forever, daemon=True).start()
    address = "127.0.0.1:%d" % runtime.server_address[1]
    command = [ready["python"], "-m", "awslambdaric", "function.handler"]
    env = environment(AWS_LAMBDA_RUNTIME_API=address)
    result = support.freeze(tmp_path / "function.img", command, "--env", "AWS_LAMBDA_RUNTIME_API", cwd=shop, env=env)
    assert result.status == 0 and not Runtime.answers and not Runtime.given.is_set(), result
    with started([tmp_path / "function.img"], shop, tmp_path / "log", AWS_LAMBDA_RUNTIME_API=address):
        wait_until(lambda: Runtime.answers, lambda: (tmp_path / "log").read_text())
    runtime.shutdown()
    (answer,) = Runtime.answers
    assert answer == ("/2018-06-01/runtime/invocation/one/response", b'{"got": {"number": 7}}')
    assert "ordinary way" not in (tmp_path / "log").read_text()
