"""What a program does again and again costs no more memory each time, whether its archive has the answer or not."""

import pytest
from common.waiting import settle

from . import boots

pytestmark = pytest.mark.sample(2)

MAX_GROWTH = 4_000  # kB; a tenth of it is usual
SHOW = """\
def memory
  GC.start
  File.read("/proc/self/status")[/^RssAnon:\\s+(\\d+)/, 1].to_i
end
def repeat(times)
  times.times { |number| yield number }
  before = memory
  times.times { |number| yield number }
  grown = memory - before
  abort "#{grown} kB more" if grown > MOST
  puts "repeated"
end
begin; require "nowhere"; rescue LoadError; end
"""
REPEATED = {
    "a feature that is nowhere": 'repeat(1000) { begin; require "no/where"; rescue LoadError; end }',
    "features that are nowhere": 'repeat(1000) { |number| begin; require "no/where#{number % 100}"; rescue LoadError; end }',
    "a file that is loaded": 'repeat(2000) { load "#{__dir__}/again.rb" }',
    "a document that is loaded": 'require "yaml"; repeat(1000) { YAML.load_file("#{__dir__}/again.yml") }',
    "a feature that is taken out and loaded again": 'repeat(1000) { require "first"; $LOADED_FEATURES.pop }',
    "forks": 'repeat(100) { Process.wait(fork { exit! }) }',
    "writing": 'repeat(1000) { |number| Snapboot::Archive.store(:memo, "again", [], number.to_s * 10) if defined?(Snapboot) }',
}


@pytest.mark.parametrize("back_end", ["native", "pure"])
@pytest.mark.parametrize("what", REPEATED)
def test_memory_does_not_grow(tmp_path, what, back_end):
    boots_of = boots.made(boots.tiny, tmp_path, SNAPBOOT_ARCHIVE_BACK_END=back_end)
    app = boots_of.program.folder
    # With RubyGems, which searches all gems for what is nowhere.
    boots_of.program.command.remove("--disable-gems")
    (app / "again.rb").write_text("$again = 1\n" + "def again(one, two) = one + two\n" * 50)
    (app / "again.yml").write_text("".join(f"key {number}: [{number}, text]\n" for number in range(100)))
    (app / "main.rb").write_text(f"MOST = {MAX_GROWTH}\n{SHOW}{REPEATED[what]}\n")
    settle()
    for _ in range(2):
        result = boots_of.boot(RUBYOPT="-W0 -rsnapboot/setup")
        assert (result.status, result.out) == (0, "repeated\n"), result


def test_what_was_found_out_once_is_not_found_out_again(tmp_path):
    """A process that cannot have it from the archive keeps it."""
    boots_of = boots.made(boots.tiny, tmp_path)
    boots_of.program.command.remove("--disable-gems")
    (boots_of.program.folder / "again.yml").write_text("key: value\n")
    (boots_of.program.folder / "main.rb").write_text("""\
require "yaml"
stored = []
watch = Module.new { define_method(:store) { |kind, name, *rest, **more| stored << name; super(kind, name, *rest, **more) } }
Snapboot::Archive.singleton_class.prepend(watch)
20.times do
  begin; require "no/where"; rescue LoadError; end
  YAML.load_file("#{__dir__}/again.yml")
end
puts stored.tally.values.max
""")
    settle()
    result = boots_of.boot()
    assert result.out == "1\n", result
