"""Puma, Sidekiq and Unicorn start from images by recipe: nobody names a method, and nothing differs but the time."""

import contextlib
import re
import shutil
import signal
import subprocess
import urllib.request

import pytest
from common import servers, support
from common.servers import free_port
from common.waiting import SECONDS, wait_until

pytestmark = [pytest.mark.sample(3, whole=True), support.needs_ruby]

APPLICATION = """\
require "json"
class App
  WHERE = "#{ENV["HOME"]}/notes"
  def call(_) = [200, {}, [JSON.dump(["first", WHERE, ENV["OTHER"], Process.pid])]]
end
"""

# What Puma and Unicorn print when a worker is there.
WORKER = re.compile(r"Worker \d .* booted|worker=\d ready")


def needs(*programs):
    for name in programs:
        if not shutil.which(name):
            pytest.skip(f"this machine has none of it: {name}")


class Server:
    """An application of Rack in a folder, the command of its server, and an image of it."""

    def __init__(self, folder, command, configuration):
        self.folder, self.port, self.workers = folder, free_port(), 2 if re.search("(workers|processes) 2", configuration) else 0
        (folder / "app.rb").write_text(APPLICATION)
        (folder / "config.ru").write_text('require_relative "app"\nrun App.new\n')
        (folder / "server.rb").write_text(configuration.replace("PORT", str(self.port)))
        self.command = [word.replace("PORT", str(self.port)) for word in command]
        self.image, self.log = folder / "server.img", folder / "log"
        for name in ("home", "other"):
            (folder / name).mkdir()
        support.frozen(self.image, self.command, env=support.environment(HOME=str(folder / "home")), cwd=folder)

    @contextlib.contextmanager
    def started(self, argv, home="home", **variables):
        env = support.environment(SNAPBOOT_LOG="1", HOME=str(self.folder / home), **variables)
        with servers.started(argv, self.folder, env, self.log) as self.process:
            yield self.process

    def answer(self):
        """The first answer."""

        def ask():
            assert self.process.poll() is None, self.log.read_text()
            with contextlib.suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{self.port}/") as response:
                return response.read().decode()

        return wait_until(ask, "an answer")

    def printed(self, argv, **more):
        """What it prints from its start to its end, without numbers of processes, and its status."""
        with self.started(argv, **more) as process:
            wait_until(lambda: process.poll() is not None or len(WORKER.findall(self.log.read_text())) == self.workers, "workers")
            answer = self.answer()
            process.terminate()
            status = process.wait(SECONDS)
        return re.sub(r"\d{2,}", "N", self.log.read_text()), status, answer


@pytest.fixture
def puma(tmp_path):
    needs("puma")
    return lambda configuration: Server(tmp_path, ["puma", "-C", "server.rb"], configuration)


def test_puma_has_the_application_loaded(puma):
    server = puma("port PORT\n")
    ordinary = server.printed(server.command)
    thawed = server.printed([server.image])
    assert thawed[:2] == ordinary[:2] and "Puma starting in single mode" in thawed[0]
    # Neither another home directory nor another variable retires it.
    log, _, answer = server.printed([server.image], home="other", OTHER="7")
    assert "starting the ordinary way" not in log
    assert f'["first","{server.folder}/other/notes","7",' in answer
    # The application is in the image, and an edit retires that.
    (server.folder / "app.rb").write_text(APPLICATION.replace("first", "edited"))
    log, _, answer = server.printed([server.image])
    assert "starting the ordinary way" in log and "edited" in answer


def test_puma_keeps_the_environment_of_its_start_for_a_restart(puma):
    server = puma("port PORT\n")
    with server.started([server.image], home="other", OTHER="7") as process:
        assert "first" in server.answer()
        (server.folder / "app.rb").write_text(APPLICATION.replace("first", "edited"))
        process.send_signal(signal.SIGUSR2)
        wait_until(lambda: "Inherited" in server.log.read_text(), "a restart")
        assert f'["edited","{server.folder}/other/notes","7",{process.pid}]' == server.answer()
    assert "starting the ordinary way" not in server.log.read_text()


def test_workers_of_puma_load_what_they_load_ordinarily(puma):
    """Without `preload_app!` a phased restart has new code."""
    server = puma("port PORT\nworkers 2\n")
    with server.started([server.image]) as process:
        wait_until(lambda: server.log.read_text().count("booted") == 2, "two workers")
        assert "first" in server.answer()
        (server.folder / "app.rb").write_text(APPLICATION.replace("first", "edited"))
        process.send_signal(signal.SIGUSR1)
        wait_until(lambda: server.log.read_text().count("booted") == 4, "two more")
        assert "edited" in server.answer()
    assert "starting the ordinary way" not in server.log.read_text()


def test_a_cluster_with_preload_app_forks_what_the_image_has(puma):
    server = puma("port PORT\nworkers 2\npreload_app!\n")
    ordinary, thawed = (server.printed(argv) for argv in (server.command, [server.image]))
    lines = [sorted(re.sub(r"Worker \d|[\d.N]+s,", "", log).splitlines()) for log, *_ in (ordinary, thawed)]
    assert lines[0] == lines[1] and "Preloading application" in thawed[0] and thawed[1] == ordinary[1]


@pytest.mark.parametrize("command", ["bundle exec puma -p PORT", "rackup -s puma -p PORT -E production"])
def test_puma_behind_another_command(command, tmp_path):
    """Debian's script of Puma is loaded by `bundle exec`, which executes it ordinarily."""
    needs("puma", "bundle", "rackup")
    (tmp_path / "Gemfile").write_text('source "https://rubygems.org"\ngem "puma"\ngem "rack"\n')
    assert support.run(["bundle", "lock", "--local"], cwd=tmp_path).status == 0
    server = Server(tmp_path, command.split(), "")
    ordinary, thawed = (server.printed(argv) for argv in (server.command, [server.image]))
    assert thawed[:2] == ordinary[:2] and "Puma starting in single mode" in thawed[0]
    # The application is in the image.
    (tmp_path / "app.rb").write_text(APPLICATION.replace("first", "edited"))
    log, _, answer = server.printed([server.image])
    assert "starting the ordinary way" in log and "edited" in answer


def test_unicorn_with_preload_app(tmp_path):
    needs("unicorn")
    configuration = 'listen "127.0.0.1:PORT"\nworker_processes 2\npreload_app true\n'
    server = Server(tmp_path, ["unicorn", "-c", "server.rb", "config.ru"], configuration)
    logs = [server.printed(argv) for argv in (server.command, [server.image])]
    lines = [sorted(re.sub(r"\S*\d\S*", "", line) for line in log.splitlines()) for log, *_ in logs]
    assert lines[0] == lines[1] and "first" in logs[1][2]


def test_sidekiq_has_the_application_loaded(tmp_path):
    needs("sidekiq", "redis-server")
    socket_file, done = tmp_path / "redis", tmp_path / "done"
    (tmp_path / "app.rb").write_text(f"class Work\n  include Sidekiq::Worker\n  def perform(x) = File.write('{done}', x)\nend\n")
    (tmp_path / "push.rb").write_text("require 'sidekiq'\nSidekiq::Client.push('class' => 'Work', 'args' => ['7'])\n")
    env = support.environment(REDIS_URL=f"unix://{socket_file}", SNAPBOOT_LOG="1")
    command, image = ["sidekiq", "-r", "./app.rb", "-c", "2"], tmp_path / "sidekiq.img"
    support.frozen(image, command, env=env, cwd=tmp_path)
    server = ["redis-server", "--port", "0", "--unixsocket", str(socket_file), "--save", "", "--dir", str(tmp_path)]
    log = open(tmp_path / "log", "w")
    redis = subprocess.Popen(server, stdout=subprocess.DEVNULL)
    worker = None
    try:
        wait_until(socket_file.exists, "a server")
        assert support.run(["ruby", "-W0", "push.rb"], env=env, cwd=tmp_path).status == 0
        worker = subprocess.Popen([image], env={**env, "OTHER": "1"}, cwd=tmp_path, stdout=log, stderr=log)
        wait_until(lambda: done.exists() and done.read_text() == "7", "a job")
        worker.terminate()
        assert worker.wait(SECONDS) == 0
        assert "starting the ordinary way" not in (tmp_path / "log").read_text()
    finally:
        for process in filter(None, (worker, redis)):
            process.kill()
            process.wait(SECONDS)
        log.close()
