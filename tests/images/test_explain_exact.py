"""What `snapboot explain` notes changes a start as little as can be: the collector runs where it runs in other starts."""

from common import languages, support

# Loads the same file again and again, and tells what that cost: Python's collections, Ruby's objects.
LOADS = 1000
COUNTED = {
    "python": f"""
import gc, sys
import inner
before = gc.get_stats()[0]["collections"]
for _ in range({LOADS}):
    del sys.modules["inner"]
    import inner
print(gc.get_stats()[0]["collections"] - before, file=open("told", "a"))
""",
    "ruby": f"""
path = File.expand_path("inner.rb")
load path
before = GC.stat(:total_allocated_objects)
{LOADS}.times {{ load path }}
File.write("told", "#{{(GC.stat(:total_allocated_objects) - before) / {LOADS}}}\\n", mode: "a")
""",
}
# A tuple for each entry would be eight collections more; an array, four objects more for each file.
MORE = {"python": 2, "ruby": 4}


@languages.both
def test_the_collector_runs_where_it_does_in_other_starts(language, tmp_path):
    (tmp_path / ("inner" + language.ending)).write_text("1\n")
    (tmp_path / ("app" + language.ending)).write_text(COUNTED[language.name])
    command = [support.SNAPBOOT, "explain", "--no-freeze", "-n", "1", "--", language.program, "app" + language.ending]
    result = support.run(command, cwd=tmp_path, log=False)
    assert result.status == 0, result
    _, plain, noted, _ = (int(line) for line in (tmp_path / "told").read_text().splitlines())
    assert plain <= noted <= plain + MORE[language.name]
