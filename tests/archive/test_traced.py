"""A program that traces compiling sees each file that it loads, also where the archive has its code."""

from common import support
from common.waiting import settle

MAIN = """\
TracePoint.new(:script_compiled) { |point| puts "compiled #{point.instruction_sequence.path.split("/").last}" }.enable
require_relative "part"
require_relative "remarks"
"""
FILES = {"main.rb": MAIN, "part.rb": "def part = 1\n", "remarks.rb": "# There is no code in here.\n"}


def test_a_tracer_of_compiled_code(tmp_path):
    app, archive = tmp_path / "app", tmp_path / "archives"
    app.mkdir()
    archive.mkdir(mode=0o700)
    for name, text in FILES.items():
        (app / name).write_text(text)
    settle()
    options = {"RUBYOPT": "-rsnapboot/setup", "RUBYLIB": str(support.ROOT / "ruby/lib")}
    env = support.environment(**options, SNAPBOOT_ARCHIVE=str(archive / "boot.archive"))
    loads = ["ruby", "-e", "require './part'; require './remarks'"]
    # The first two start without a tracer, and fill the archive.
    for argv, out in [(loads, ""), (loads, ""), (["ruby", "main.rb"], "compiled part.rb\ncompiled remarks.rb\n")]:
        done = support.run(argv, env=env, cwd=app, log=False)
        assert (done.status, done.out) == (0, out), done
