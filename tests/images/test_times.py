"""A freeze says which times of its own, and which process number, the program keeps: each start of the image has them."""

import re
import time

import pytest
from common import support
from common.languages import PYTHON, RUBY, names

pytestmark = pytest.mark.sample(6)

# For each language what a preload keeps, and by what name that is told.
KEPT = {
    "seconds": (PYTHON, "import time\nSTART = time.time()", "boot.START"),
    "nanoseconds": (PYTHON, "import time\nSTART = time.time_ns()", "boot.START"),
    "another clock": (PYTHON, "import time\nSTART = time.monotonic()", "boot.START"),
    "a date": (PYTHON, "import datetime\nSTART = datetime.datetime.now()", "boot.START"),
    "in a class": (PYTHON, "import datetime\nclass A:\n    at = datetime.datetime.now(datetime.timezone.utc)", "boot.A.at"),
    "UTC without a zone": (PYTHON, "import datetime\nSTART = datetime.datetime.utcnow()", "boot.START"),
    "a day": (PYTHON, "import datetime\nSTART = datetime.date.today()", "boot.START"),
    "the parts of a time": (PYTHON, "import time\nSTART = time.gmtime()", "boot.START"),
    "a text": (PYTHON, "import datetime\nSTART = str(datetime.datetime.now())", "boot.START"),
    "a text as C writes it": (PYTHON, "import time\nSTART = time.ctime()", "boot.START"),
    "a text in a file's name": (PYTHON, "import time\nclass A:\n    log = time.strftime('app-%Y%m%d-%H%M%S.log')", "boot.A.log"),
    "Ruby's time": (RUBY, "START = Time.now", "START"),
    "Ruby's seconds": (RUBY, "module A; @at = Time.now.to_f; end", "A@at"),
    "Ruby's other clock": (RUBY, "class A; AT = Process.clock_gettime(Process::CLOCK_MONOTONIC); end", "A::AT"),
    "Ruby's day": (RUBY, "require 'date'\nSTART = Date.today", "START"),
    "Ruby's other date": (RUBY, "require 'date'\nSTART = DateTime.now", "START"),
    "Ruby's text": (RUBY, "module A; @log = Time.now.strftime('%d/%b/%Y:%H:%M:%S'); end", "A@log"),
    "Ruby's text in one": (RUBY, "LOG = Time.now.utc.strftime('%Y%m%d%H%M%S').freeze", "LOG"),
}
# What is no time of the freeze, however it looks.
OTHER = {
    "large numbers": (PYTHON, "A, B, C = 2**1100, -(2**70), 0"),
    "numbers": (PYTHON, "import datetime\nA, B, C, D = 30.0, 10**18, datetime.datetime.min, datetime.datetime.max"),
    "read and thrown away": (PYTHON, "import time\ntime.time()"),
    "the time of a log": (PYTHON, "import logging"),
    "texts": (PYTHON, "import time\nA, B, C = time.strftime('%Y-%m-%d'), time.strftime('%H:%M'), '2001-02-03 ' + time.strftime('%H:%M')"),
    "dates": (PYTHON, "import datetime\nA, B = datetime.date(2001, 2, 3), datetime.date.min"),
    "numbers like the process'": (PYTHON, "import os\nPORT = os.getpid()\n_pid = os.getpid()\nPID_MAX = os.getpid() + 1"),
    "Ruby's texts": (RUBY, "A, B = Time.now.strftime('%Y-%m-%d'), Time.now.strftime('%H:%M')"),
    "Ruby's dates": (RUBY, "require 'date'\nA = Date.new(2001, 2, 3)"),
    "numbers like the process' in Ruby": (RUBY, "PORT = Process.pid\nPID_MAX = $$ + 1\nmodule A; @pid = $$; end"),
    "Ruby's numbers": (RUBY, "A, B, C = 30.0, 10**18, Time.at(0)"),
}


def frozen(language, folder, source):
    env, path = language.write(folder, source)
    preload = "boot" if language is PYTHON else str(path.with_suffix(""))
    return support.freeze(folder / "x.img", [language.program], "--preload", preload, env=env)


@pytest.mark.parametrize("name", names(KEPT))
def test_a_time_that_is_kept_is_told(name, tmp_path):
    language, source, told = KEPT[name]
    result = frozen(language, tmp_path, source)
    assert result.status == 0, result
    assert f"the time of the freeze is kept in {told};" in result.err, result


PROCESS = {
    "Python": (PYTHON, "import os\nMAIN_PID = os.getpid()\nclass A:\n    process = os.getpid()", "boot.A.process, boot.MAIN_PID"),
    "Ruby": (RUBY, "MAIN_PID = $$\nmodule A; ProcessNumber = Process.pid; end", "A::ProcessNumber, MAIN_PID"),
}


@pytest.mark.parametrize("name", names(PROCESS))
def test_a_process_number_that_is_kept_is_told(name, tmp_path):
    language, source, told = PROCESS[name]
    result = frozen(language, tmp_path, source)
    assert result.status == 0, result
    assert f"the process number of the freeze is kept in {told};" in result.err, result


@pytest.mark.parametrize("name", names(OTHER))
def test_nothing_else_is(name, tmp_path):
    result = frozen(*OTHER[name][:1], tmp_path, OTHER[name][1])
    assert result.status == 0 and "is kept in" not in result.err, result


@support.needs_ruby
def test_rspec_counts_from_its_start(tmp_path):
    (tmp_path / "a_spec.rb").write_text('RSpec.describe(1) { it("is") { expect(1).to eq(1) } }\n')
    image = support.frozen(tmp_path / "app.img", ["rspec"], cwd=tmp_path)
    begun = time.monotonic()
    shown = support.thawed([image, "a_spec.rb"], cwd=tmp_path)
    took = time.monotonic() - begun
    loaded = re.search(r"files took ([\d.]+) seconds to load", shown.out)
    assert loaded and 0 < float(loaded[1]) < took and "1 example, 0 failures" in shown.out, shown
