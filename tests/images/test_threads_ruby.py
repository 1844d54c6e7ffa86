"""A thread that a library starts when it is loaded: a thaw starts those again that are known, and the others are left to each start."""

import pytest
from common import support

from .test_training_ruby import Program

pytestmark = pytest.mark.sample(4, whole=True)

FEATURE = "concurrent/atomic/ruby_thread_local_var"
# What the lines of the gem that start its thread need around them, and what a program does with it.
AROUND = """module Concurrent
  class RubyThreadLocalVar
    FREE, LOCK, ARRAYS, QUEUE = [], Mutex.new, {{}}, Queue.new
{thread}
    private_constant :FREE, :LOCK, :ARRAYS, :QUEUE, :THREAD

    def self.forget(place)
      QUEUE.push([:thread_local_finalizer, place])
      sleep 0.01 while FREE.empty?
      FREE
    end

    def self.thread = THREAD
  end
end
"""
FIND = f"""
folder = Gem::Specification.find_by_name("concurrent-ruby", "<= 1.1.6").full_require_paths.first
print File.read("#{{folder}}/{FEATURE}.rb")[/^ +THREAD = .*?^    end\n/m]
"""
PROGRAM = r"""$LOAD_PATH.unshift("#{__dir__}/lib")
require ARGV.shift
variable = Concurrent::RubyThreadLocalVar
p Thread.list.size, variable.constants, variable.thread.inspect[/ \S+:\d+/]
p variable.thread.then { |thread| [thread.alive?, thread.name, thread.report_on_exception, Thread.list.include?(thread)] }
p variable.forget(7) if ARGV.first == "forget"
p Process.wait2(fork { exit!(Thread.list.size) }).last.exitstatus
"""
NOT_IN_THE_IMAGE = "is not in the image"


@pytest.fixture(scope="module")
def library():
    """As the gem has it, in the version whose thread is known."""
    found = support.run([support.RUBY, "-e", FIND], log=False)
    if found.status != 0:
        pytest.skip("needs the gem concurrent-ruby up to 1.1.6")
    return AROUND.format(thread=found.out)


@pytest.fixture
def program(tmp_path):
    (tmp_path / "app").mkdir()
    program = Program(tmp_path / "app", PROGRAM)
    (program.folder / "lib/concurrent/atomic").mkdir(parents=True)
    return program


@pytest.mark.parametrize("first", ["", "Thread.report_on_exception = false\n"])
def test_a_thread_that_a_thaw_starts_again(program, library, first):
    program.feature(FEATURE, first + library)
    said = program.freeze(FEATURE)
    assert "must be left" not in said.out
    assert NOT_IN_THE_IMAGE not in said.err
    assert program.learnt() == [FEATURE]
    assert program.starts_alike(FEATURE, "forget").startswith("2\n[]\n")
    assert program.starts_alike(FEATURE).endswith("true]\n1\n")


def test_a_preload_starts_it_as_well(program, library):
    program.feature(FEATURE, library)
    said = support.freeze(
        program.image, [support.RUBY, "app.rb"], "--preload", f"./lib/{FEATURE}.rb", cwd=program.folder, env=support.environment()
    )
    assert said.status == 0, said
    assert NOT_IN_THE_IMAGE not in said.err
    program.starts_alike(FEATURE, "forget")


OTHERS = {
    "does something else": lambda library: library.replace("ARRAYS.delete(i)", "ARRAYS.delete(i + 1)"),
    "is started otherwise": lambda library: library.replace("Thread.new do", "Thread.start do"),
    "is not alone": lambda library: library + "Thread.new { sleep }\n",
}


@pytest.mark.parametrize("other", OTHERS)
def test_other_threads_are_left_to_each_start(program, library, other):
    source = OTHERS[other](library)
    assert source != library
    program.feature(FEATURE, source)
    said = program.freeze(FEATURE)
    assert "changes the running threads" in said.out
    assert program.learnt() == []
    program.starts_alike(FEATURE)


# What a feature defines, and what is printed of it at the end.
FINALIZERS = {
    "ObjectSpace.define_finalizer(KEPT, proc { puts 'freed' })": "main\nfreed\n",
    "at_end = Object.new\ndef at_end.call(_) = puts('freed')\nObjectSpace.define_finalizer(KEPT, at_end)": "main\nfreed\n",
    "ObjectSpace.define_finalizer(KEPT, proc {})": "main\n",
}


@pytest.mark.parametrize("source", FINALIZERS)
def test_finalizers_that_are_defined_before_the_freeze_point_run_at_the_end(tmp_path, source):
    program = Program(tmp_path, """$LOAD_PATH.unshift("#{__dir__}/lib")\nrequire ARGV.first\nputs "main"\n""")
    program.feature("kept", f"KEPT = Object.new\n{source}\n")
    program.freeze("kept")
    assert program.learnt() == ["kept"]
    assert program.starts_alike("kept") == FINALIZERS[source]
    made = support.freeze(program.image, [support.RUBY, "app.rb"], "--preload", "./lib/kept.rb", cwd=program.folder)
    assert made.status == 0, made
    assert program.starts_alike("kept") == FINALIZERS[source]
