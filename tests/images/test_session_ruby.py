"""irb and pry: the same session at a terminal after a thaw as in an ordinary start, and without a terminal too."""

import re
import shutil

import pytest
from common import support, terminal

pytestmark = pytest.mark.sample(4, whole=True)

IRB = shutil.which("irb")
PRY = shutil.which("pry")
needs_irb = pytest.mark.skipif(IRB is None, reason="there is no irb")
ANSWERS = re.compile(r"^(?:.*?)((?:=> |\S*Error|irb: |RC |Interrupt|Abort).*?)\r?$", re.MULTILINE)


def prompt(number, level=0):
    return rb"irb\(main\):0*%d:?%d?[>*] " % (number, level)


FACTS = rb"[$0 == __FILE__, ARGV, $stdin.tty?, $stdout.tty?, defined?(JSON), Reline::IOGate.to_s[/\w+::\w+/]]"
KEYS = [
    (prompt(1), b"1 + 1\r"),
    (rb"=> 2\r?\n.*" + prompt(2), b"def f\r"),
    (prompt(3, 1), b"  3\r"),
    (prompt(4, 1), b"end\r"),
    (rb"=> :f.*" + prompt(5), b"f\r"),
    (rb"=> 3.*" + prompt(6), b"\x1b[A\x1b[A\x1b[D\r"),  # the method again, and its line before the cursor's
    (rb"=> :f.*irb\(main\)", b"raise 'x'\r"),
    (rb"RuntimeError.*irb\(main\)", b"%s\r" % FACTS),
    (rb"=> \[.*irb\(main\)", b"puts 'go' + 'ing'; sleep 100\r"),
    (rb"going", b"\x03"),
    (rb"(Interrupt|Abort).*irb\(main\)", b"[4, 5].inject\x01p(\x05(:+))\r"),
    (rb"=> 9.*irb\(main\)", b"exit\r"),
]


def both(tmp_path, argv, image, env, steps):
    """What the answers are, ordinary and thawed; and the history after each."""
    results = []
    for words in ([argv[0], *argv[1:]], [image, *argv[1:]]):
        for name in (".irb_history", ".pry_history", ".local"):
            path = tmp_path / "home" / name
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        text, status = terminal.talk(words, env, steps)
        assert "starting the ordinary way" not in text, text
        history = [path for path in sorted((tmp_path / "home").rglob("*history*")) if path.is_file()]
        results.append((ANSWERS.findall(text), status, [path.read_text() for path in history]))
    return results


def home(tmp_path, **more):
    (tmp_path / "home").mkdir()
    return support.environment(HOME=str(tmp_path / "home"), TERM="xterm", SNAPBOOT_LOG="1", **more)


@needs_irb
@pytest.mark.parametrize("preload", [(), ("json", "irb")], ids=["bare", "preload"])
def test_irb_at_a_terminal(tmp_path, preload):
    env = home(tmp_path)
    options = [word for name in preload for word in ("--preload", name)]
    image = support.frozen(tmp_path / "irb.img", [IRB], *options, env=env)
    ordinary, thawed = both(tmp_path, [IRB], image, env, KEYS)
    loaded = [answer.replace('"constant"', "nil") if preload else answer for answer in thawed[0]]
    assert (loaded, *thawed[1:]) == ordinary
    assert len(ordinary[0]) >= 8 and ordinary[2], ordinary
    assert any("Reline::ANSI" in answer for answer in thawed[0])


@needs_irb
def test_irb_reads_its_startup_file_at_each_start(tmp_path):
    env = home(tmp_path)
    image = support.frozen(tmp_path / "irb.img", [IRB], env=env)
    for value in (1, 2):
        (tmp_path / "home/.irbrc").write_text(f"puts 'RC {value}'\nIRB.conf[:SAVE_HISTORY] = nil\n")
        ordinary, thawed = both(tmp_path, [IRB], image, env, [(prompt(1), b"exit\r")])
        assert thawed == ordinary
        assert f"RC {value}" in thawed[0]
    ordinary, thawed = both(tmp_path, [IRB, "-f"], image, env, [(prompt(1), b"exit\r")])
    assert thawed == ordinary and thawed[0] == []


@needs_irb
def test_irb_without_a_terminal(tmp_path):
    env = home(tmp_path)
    image = support.frozen(tmp_path / "irb.img", [IRB], env=env)
    (tmp_path / "script.rb").write_text("p [ARGV, __FILE__]\n")
    script = str(tmp_path / "script.rb")
    for arguments, text in [([], b"p 1\n"), (["-f"], b"1 +\n"), (["--version"], b""), ([script, "a"], b""), (["-no"], b"")]:
        for term in ("xterm", "dumb"):
            ordinary = support.run([IRB, *arguments], env={**env, "TERM": term}, input=text)
            thawed = support.thawed([image, *arguments], env={**env, "TERM": term}, input=text)
            assert (thawed.status, thawed.out, thawed.err) == (ordinary.status, ordinary.out, ordinary.err)
    # Another version of irb is not what is loaded.
    ordinary, other = (support.run([words, "_0.0.1_"], env=env, log=False) for words in (IRB, image))
    assert other.fell_back
    assert (other.status, other.err.splitlines()[1:]) == (ordinary.status, ordinary.err.splitlines())


@pytest.mark.skipif(PRY is None, reason="there is no pry")
def test_pry_at_a_terminal(tmp_path):
    env = home(tmp_path)
    image = support.frozen(tmp_path / "pry.img", [PRY], env=env)
    keys = [
        (rb"\[1\] pry\(main\)> ", b"1 + 1\r"),
        (rb"=> 2.*\[2\] pry\(main\)> ", b"[4].siz\t\r"),
        (rb"=> 1.*\[3\] pry\(main\)> ", b"\x1b[A\r"),
        (rb"=> 1.*\[4\] pry\(main\)> ", b"raise 'x'\r"),
        (rb"RuntimeError.*\[5\] pry\(main\)> ", b"exit\r"),
    ]
    ordinary, thawed = both(tmp_path, [PRY], image, env, keys)
    assert thawed == ordinary and len(ordinary[0]) == 4


RELINE = """
require "reline/io"
require "reline/face"
module Reline
  VERSION = "0.6.0"
  IOGate = Reline::IO.decide_io_gate
end
"""
RELINE_IO = """
module Reline
  class Dumb; end
  class ANSI; end
  class IO
    def self.decide_io_gate
      ENV["TERM"] == "dumb" ? Dumb.new : ANSI.new
    end
  end
end
"""
RELINE_FACE = """
module Reline::Face
  def self.truecolor?
    ENV["COLORTERM"] == "truecolor"
  end
  def self.configure
    @shown = truecolor?
  end
  def self.reconfigure = configure
  def self.shown = @shown
  configure
  @configs = {default: self}
end
"""


@support.needs_ruby
def test_a_line_editor_that_asks_for_variables_only(tmp_path):
    """Reline from 0.5 on, which chooses by TERM, and its colours by COLORTERM."""
    (tmp_path / "reline").mkdir()
    (tmp_path / "reline.rb").write_text(RELINE)
    (tmp_path / "reline/io.rb").write_text(RELINE_IO)
    (tmp_path / "reline/face.rb").write_text(RELINE_FACE)
    env = home(tmp_path, RUBYLIB=str(tmp_path))
    del env["TERM"]
    command = [support.RUBY, "-e", "p Reline::IOGate.class, Reline::Face.shown"]
    image = support.frozen(tmp_path / "app.img", command, "--preload", "reline", env=env)
    for more in ({}, {"TERM": "dumb"}, {"TERM": "xterm", "COLORTERM": "truecolor"}):
        thawed = support.thawed([image], env={**env, **more})
        kind = "Dumb" if more.get("TERM") == "dumb" else "ANSI"
        assert thawed.out == f"Reline::{kind}\n{'true' if 'COLORTERM' in more else 'false'}\n"


@support.needs_ruby
def test_what_else_asks_for_the_terminal_still_counts(tmp_path):
    (tmp_path / "asks.rb").write_text("require 'reline'\nTERMINAL = [$stdout.tty?, ENV['TERM']]\n")
    env = home(tmp_path)
    made = support.freeze(tmp_path / "app.img", [support.RUBY, "-e", "p 1"], "--preload", str(tmp_path / "asks.rb"), env=env)
    assert made.status == 0
    shown = made.out + made.err
    assert "asks.rb:2" in shown and "TERM" in shown and "reline.rb" not in shown, shown
    assert "do not preload the code that asks" in shown, shown
