"""`snapboot freeze --at`: the program runs up to a function of its own, with its arguments, and each start goes on there."""

import pytest
from common import languages, support

pytestmark = pytest.mark.sample(3, whole=True)

PROGRAMS = {
    "python": """\
import argparse, functools, os, sys, threading, traceback

class Base:
    def begin(self, what):
        print(what, len(traceback.extract_stack()), sys.argv[1:], self.port, os.environ.get("OTHER"))

class Server(Base):
    def __init__(self, port):
        self.port = port
        print("made")

    @staticmethod
    def still(): print("still", sys._getframe(1).f_code.co_name)

    @functools.lru_cache
    def cached(self): print("cached", sys.getprofile())

    def raises(self): raise KeyError(3)

def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int)
    server = Server(parser.parse_args().port)
    thread = threading.Thread(target=server.begin, args=["thread"])
    thread.start(), thread.join()
    server.begin("first"), server.begin("second"), server.still(), server.cached()
    try:
        server.raises()
    except KeyError:
        traceback.print_exc()
        print("raised")
    sys.exit(server.port)

if __name__ == "__main__":
    main()
""",
    "ruby": """\
require "optparse"

class Base
  def begin(what) = puts([what, caller.size, ARGV, @port, ENV["OTHER"]].inspect)
end

class Server < Base
  def initialize(port)
    @port = port
    puts "made"
  end

  def self.still = puts(["still", caller(1, 1)].inspect)
  def cached = puts("cached")
  def raises = raise(KeyError, "3")
end

options = {}
OptionParser.new { |parser| parser.on("--port N", Integer) { |port| options[:port] = port } }.parse!(ARGV.dup)
server = Server.new(options[:port])
Thread.new { server.begin("thread") }.join
server.begin("first")
server.begin("second")
Server.still
server.cached
begin
  server.raises
rescue KeyError => e
  puts e.full_message(highlight: false)
end
exit options[:port]
""",
}
PLACES = {
    "python": ["__main__:Base.begin", "__main__:Server.begin", "__main__:Server.still", "__main__:Server.cached", "__main__:Server.raises"],
    "ruby": ["Base#begin", "Server#begin", "Server.still", "Server#cached", "Server#raises"],
}


def program(folder, language):
    script = folder / f"server{language.ending}"
    script.write_text(PROGRAMS[language.name])
    return [language.program, str(script), "--port", "7"]


@languages.both
@pytest.mark.parametrize("number", range(len(PLACES["python"])))
def test_starts_go_on_at_the_first_call(language, number, tmp_path):
    command, image = program(tmp_path, language), tmp_path / "server.img"
    support.frozen(image, command, "--at", PLACES[language.name][number])
    ordinary = support.run(command)
    for _ in range(2):
        started = support.thawed([image])
        # What came before the call was printed while the program was frozen.
        assert ordinary.out.endswith(started.out) and "made" not in started.out and started.out, started
        assert (started.status, started.err) == (7, ordinary.err)
    assert ("second" in started.out) == ("begin" in PLACES[language.name][number])


@languages.both
def test_other_arguments_and_another_name_start_the_ordinary_way(language, tmp_path):
    command, image = program(tmp_path, language), tmp_path / "server.img"
    support.frozen(image, command, "--at", PLACES[language.name][0])
    for more in (["--port", "9"], ["--port=7"]):
        ordinary, started = support.run([*command, *more]), support.run([image, *more])
        assert started.fell_back and "--at" in started.err, started
        assert (started.status, started.out) == (ordinary.status, ordinary.out)


@languages.both
def test_a_call_that_does_not_come(language, tmp_path):
    command = program(tmp_path, language)
    unknown = {"python": ["server", "__main__:Server.nothing", "nosuch:begin"], "ruby": ["server", "Server#nothing", "No::Such#begin"]}
    for place, why in zip(unknown[language.name], ["--at wants", "Name another one", "it has not loaded"], strict=True):
        result = support.freeze(tmp_path / "x.img", command, "--at", place)
        why = why.replace("Name another one", "Check the name") if language is languages.PYTHON else why
        assert result.status == 2 and f"without calling {place}" in result.err and why in result.err, result
        assert not (tmp_path / "x.img").exists()


SERVERS = {
    "python": """\
import os, socket, sys
if sys.argv[1] == "child" and os.fork():
    os.wait()
    sys.exit(1)
if sys.argv[1] == "group":
    os.setpgid(0, 0)
server = socket.create_server(("127.0.0.1", 0))
open("serving", "w").close()
server.accept()
""",
    "ruby": """\
require "socket"
if ARGV[0] == "child" && (child = fork)
  Process.wait(child)
  exit(false)
end
Process.setpgid(0, 0) if ARGV[0] == "group"
server = TCPServer.new("127.0.0.1", 0)
File.write("serving", "")
server.accept
""",
}


@languages.both
@pytest.mark.parametrize("argument", ["alone", "child", "group"])
def test_a_server_that_does_not_come_to_its_place_serves_nobody(language, argument, tmp_path):
    script = tmp_path / f"server{language.ending}"
    script.write_text(SERVERS[language.name])
    result = support.freeze(tmp_path / "x.img", [language.program, str(script), argument], "--at", PLACES[language.name][0], cwd=tmp_path)
    assert result.status == 2 and "was about to listen for connections before it called" in result.err, result
    assert not (tmp_path / "serving").exists() and not (tmp_path / "x.img").exists()


def test_what_the_program_learns_by_then_counts(tmp_path):
    """A variable that is read before the call."""
    command, image = program(tmp_path, languages.PYTHON), tmp_path / "server.img"
    text = PROGRAMS["python"].replace('print("made")', 'self.other = os.environ.get("OTHER")')
    (tmp_path / "server.py").write_text(text.replace("print(what,", "print(self.other, what,"))
    support.frozen(image, command, "--at", PLACES["python"][0])
    assert support.thawed([image]).out.startswith("None first")
    changed = support.run([image], env=support.environment(OTHER="1"))
    assert changed.fell_back and changed.out.startswith("1 thread"), changed


def test_a_module_of_python(tmp_path):
    (tmp_path / "served.py").write_text(PROGRAMS["python"])
    env = support.environment(PYTHONPATH=str(tmp_path))
    command, image = [support.PYTHON, "-m", "served", "--port", "3"], tmp_path / "served.img"
    support.frozen(image, command, "--at", "__main__:Server.begin", env=env)
    started = support.thawed([image], env=env)
    assert started.status == 3 and started.out.startswith("first") and support.run(command, env=env).out.endswith(started.out), started


def test_training_runs_have_no_sense_then(tmp_path):
    result = support.freeze(tmp_path / "x.img", program(tmp_path, languages.PYTHON), "--at", "__main__:main", "--train=--help")
    assert result.status == 2 and "--at" in result.err and "--train" in result.err, result


# Values of the start are in local variables, receivers and half an expression when the program is frozen.
FRAMES = """\
class Server
  def begin(what) = puts([what, @home].inspect)
  def initialize = @home = ENV["HOME"]
end

def run
  note = "#{ENV["HOME"]}/notes"
  %s
  puts [ENV["HOME"] + "/half", Server.new.begin("first"), note, size].inspect
end
run
"""


@support.needs_ruby
def test_what_frames_hold_is_renewed_or_binds_in_ruby(tmp_path):
    homes = [tmp_path / name for name in ("home", "else", "elsewhere")]
    for home in homes:
        home.mkdir()
    envs = [support.environment(HOME=str(home)) for home in homes]
    for line, serves in (("size = 4", True), ('size = ENV["HOME"].size', False)):
        (tmp_path / "server.rb").write_text(FRAMES % line)
        command, image = ["ruby", str(tmp_path / "server.rb")], tmp_path / "server.img"
        support.frozen(image, command, "--at", "Server#begin", env=envs[0])
        for env in envs[1:]:
            ordinary, started = support.run(command, env=env), support.run([image], env=env)
            assert started.out == ordinary.out and started.fell_back != serves, (line, ordinary, started)
        image.unlink()
