"""Two thaws of one image never repeat a random value, though their pids are equal; what the program seeded goes on as seeded.

`make uniqueness` makes ten thousand thaws; otherwise SNAPBOOT_THAWS says how many there are for each program.
"""

import concurrent.futures
import json
import os
import shutil
import subprocess

import pytest
from common import support
from common.ready import prepared

pytestmark = pytest.mark.sample(4, whole=True)

THAWS = int(os.environ.get("SNAPBOOT_THAWS", "150"))
WORKERS = os.cpu_count() or 1

# `drawn()` must never repeat a value; `given()` must always be that of an ordinary start. Values are so large that chance
# repeats none.
PYTHON = """
import importlib.util
importlib.util.find_spec("random")
import copy, hashlib, json, multiprocessing, os, random, secrets, ssl, sys, tempfile, uuid

class Holder:
    attribute = random.Random()

def closure():
    hidden = random.Random()
    return lambda: hidden.random()

class Inherited(random.Random):
    pass

holder = Holder()
holder.instance = random.Random()
holder.instance.gauss(0, 1)
hidden, inherited, copied = closure(), [Inherited()], copy.deepcopy(holder.instance)
explicit = random.Random(7)
explicit.random()
explicit_copy = copy.deepcopy(explicit)
loaded = random.Random()
loaded.setstate(random.Random(8).getstate())
state = random.getstate()
random.seed(0)
random.setstate(state)
tempfile.mktemp(), uuid.uuid1(), uuid.uuid4(), secrets.token_bytes(8), ssl.RAND_bytes(8)

def drawn():
    return {
        "random": random.random(), "randbytes": random.getrandbits(64), "class": Holder.attribute.random(),
        "instance": holder.instance.gauss(0, 1), "closure": hidden(), "inherited": inherited[0].random(),
        "copied": copied.random(), "secrets": secrets.token_hex(8), "urandom": os.urandom(8).hex(),
        "tempfile": tempfile.mktemp(), "uuid1": str(uuid.uuid1()), "uuid4": str(uuid.uuid4()),
        "ssl": ssl.RAND_bytes(8).hex(), "new": random.Random().random(),
        "authkey": bytes(multiprocessing.current_process().authkey).hex(),
    }

def given():
    return {"explicit": explicit.random(), "copy": explicit_copy.random(), "state": loaded.random()}
"""

NUMPY = """
import json, os
import numpy as np

np.random.randn()
generator, philox = np.random.default_rng(), np.random.Generator(np.random.Philox())
children = np.random.SeedSequence().spawn(2)
sequence, spawning = np.random.SeedSequence(), np.random.default_rng()
legacy, reseeded = np.random.RandomState(), np.random.RandomState(3)
reseeded.seed()
reseeded.randn(20001)
seeds = {"int": 5, "long": 2**100 + 1, "list": [1, 2]}
explicit = {name: np.random.default_rng(seed) for name, seed in seeds.items()}
explicit["state"] = np.random.RandomState(5)
explicit["mt"] = np.random.Generator(np.random.MT19937(6))

def drawn():
    return {
        "numpy": np.random.randn(), "generator": generator.random(), "philox": philox.random(),
        "child": np.random.default_rng(children[0]).random(), "sequence": sequence.generate_state(2, "uint64")[0].item(),
        "spawned": np.random.default_rng(spawning.bit_generator._seed_seq.spawn(1)[0]).random(),
        "legacy": legacy.random_sample(), "reseeded": reseeded.randn(), "new": np.random.default_rng().random(),
    }

def given():
    return {name: (rng.random_sample() if name == "state" else rng.random()) for name, rng in explicit.items()}
"""

GLOBALLY_SEEDED = """
import json, multiprocessing, os, random
random.seed(42)
random.random(), random.gauss(0, 1)
multiprocessing.current_process().authkey = b"the program's own"
try:
    import numpy as np
except ImportError:
    np = None
else:
    np.random.seed(1)
    np.random.randn(1001)

def drawn():
    return {}

def given():
    numpy = None if np is None else np.random.randn()
    return {"random": random.random(), "gauss": random.gauss(0, 1), "numpy": numpy,
            "authkey": bytes(multiprocessing.current_process().authkey).hex()}
"""

RUBY = """
require "json"; require "openssl"; require "securerandom"; require "tempfile"

CONSTANT = Random.new
class Holder
  INSIDE = Random.new(Random.new_seed)
  @instance = Random.new
  class << self; attr_reader :instance; end
end
def closure = Random.new.then { |hidden| -> { hidden.rand } }
HIDDEN = closure
COPIED = CONSTANT.dup
EXPLICIT, LONG = Random.new(5), Random.new(2**100 + 1)
EXPLICIT.rand
Tempfile.create { }
SecureRandom.hex; OpenSSL::Random.random_bytes(8); rand; [1, 2].shuffle; Random.rand

def drawn
  { rand: rand, random: Random.rand, kernel: Kernel.rand, shuffle: [*1..30].shuffle.join(","), bytes: Random.bytes(8).unpack1("H*"),
    sample: (1..30).to_a.sample(20).join(","), constant: CONSTANT.rand, inside: Holder::INSIDE.rand, instance: Holder.instance.rand,
    hidden: HIDDEN.call, copied: COPIED.rand, secure: SecureRandom.hex(8), openssl: OpenSSL::Random.random_bytes(8).unpack1("H*"),
    new_seed: Random.new_seed.to_s, seed: Random.seed.to_s, new: Random.new.rand,
    tempfile: Tempfile.create { |file| file.path } }
end

def given = { explicit: EXPLICIT.rand, long: LONG.rand }
"""

# An extension that was linked with an OpenSSL of its own, which draws anew only where it sees another pid.
CRYPTOGRAPHY = """
import json, os
from cryptography.hazmat.primitives.asymmetric import ec

def key():
    return hex(ec.generate_private_key(ec.SECP256R1()).private_numbers().private_value)

key()

def drawn():
    return {"key": key()}

def given():
    return {}
"""

RUBY_GLOBALLY_SEEDED = """
require "json"
srand(3)
700.times { rand }
[1, 2, 3].shuffle

def drawn = {}
def given = { rand: rand, random: Random.rand, shuffle: [*1..9].shuffle, seed: Random.seed, bytes: Random.bytes(3).unpack1("H*") }
"""

ASK_PYTHON = "import app, json, os; print(json.dumps([os.getpid(), app.drawn(), app.given()]))"
ASK_RUBY = "puts JSON.generate([Process.pid, drawn, given])"


def in_new_pid_namespace(argv):
    """The argv that runs argv with the pid 1. Skips where that is not permitted."""
    prefix = ["unshare", "-pf"] if support.IS_ROOT else ["unshare", "-Urpf"]
    if not shutil.which("unshare") or subprocess.run([*prefix, "true"], capture_output=True).returncode:
        pytest.skip("pid namespaces are not permitted here, so the pids of two thaws cannot be equal")
    return [*prefix, *argv]


def in_pid_namespace_as(pid, argv):
    """The argv that runs argv with that pid, which is not 1. Skips where that is not permitted."""
    script = 'echo "$1" > /proc/sys/kernel/ns_last_pid; shift; "$@"; true'
    argv = ["unshare", "-pf", "--mount-proc", "sh", "-ec", script, "sh", str(pid - 1), *argv]
    if not support.IS_ROOT or subprocess.run([*argv[:8], "true"], capture_output=True).returncode:
        pytest.skip("pids cannot be chosen here")
    return argv


def python_of(workload):
    """The Python of a workload, with its packages."""
    return prepared(workload, support.PYTHON)["python"]


def with_numpy():
    """A Python that has numpy."""
    return python_of("pandas")


PROGRAMS = {
    "python": (PYTHON, lambda: support.PYTHON),
    "numpy": (NUMPY, with_numpy),
    "python seeded": (GLOBALLY_SEEDED, lambda: support.PYTHON),
    "numpy seeded": (GLOBALLY_SEEDED, with_numpy),
    "ruby": (RUBY, lambda: support.RUBY),
    "ruby seeded": (RUBY_GLOBALLY_SEEDED, lambda: support.RUBY),
}


class Program:
    """A program in a folder, with its image."""

    def __init__(self, folder, text, interpreter):
        if interpreter is None:
            pytest.skip("there is no ruby")
        self.is_ruby = interpreter == support.RUBY
        self.folder, self.interpreter = folder, interpreter
        (folder / ("app.rb" if self.is_ruby else "app.py")).write_text(text)
        self.env = support.environment(PYTHONPATH=str(folder), PYTHONDONTWRITEBYTECODE="1")
        self.preload = str(folder / "app") if self.is_ruby else "app"

    def frozen(self, *options):
        image = self.folder / "app.img"
        self.said = support.freeze(image, [self.interpreter], "--preload", self.preload, *options, env=self.env)
        assert self.said.status == 0, self.said
        return image

    def ordinary(self, code):
        load = ["-r", self.preload] if self.is_ruby else []
        return support.run([self.interpreter, *load, "-e" if self.is_ruby else "-c", code], env=self.env).out

    def asked(self, image, code):
        return [str(image), "-e" if self.is_ruby else "-c", code]


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_value_comes_twice(tmp_path, name):
    text, interpreter = PROGRAMS[name]
    program = Program(tmp_path, text, interpreter())
    ask = ASK_RUBY if program.is_ruby else ASK_PYTHON
    image = program.frozen()
    assert "warning" not in program.said.err, program.said
    argv = in_new_pid_namespace(program.asked(image, ask))
    with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
        answers = list(pool.map(lambda _: support.thawed(argv, env=program.env).out, range(THAWS)))
    _, _, given = json.loads(program.ordinary(ask))
    values = {}
    for index, answer in enumerate(answers):
        pid, drawn, again = json.loads(answer)
        assert pid == 1
        assert again == given, f"thaw {index} did not go on as seeded"
        for source, value in drawn.items():
            assert value not in values, f"{source} of thaw {index} repeats {values[value]}"
            values[value] = f"{source} of thaw {index}"
    assert name.endswith("seeded") or len(values) >= 9 * THAWS


IN_BOOT = {
    "python": (PYTHON, lambda: support.PYTHON),
    "cryptography": (CRYPTOGRAPHY, lambda: python_of("cryptography")),
    "ruby": (RUBY, lambda: support.RUBY),
}


@pytest.mark.parametrize("name", IN_BOOT)
def test_not_even_with_the_pid_of_the_boot(tmp_path, name):
    """What tells a fork by its pid takes such a thaw for the process that booted."""
    text, interpreter = IN_BOOT[name]
    program = Program(tmp_path, text, interpreter())
    pid_file = tmp_path / "pid"
    source = tmp_path / ("app.rb" if program.is_ruby else "app.py")
    tell = "File.write(%r, Process.pid)" if program.is_ruby else "open(%r, 'w').write(str(os.getpid()))"
    source.write_text(text + "\n" + tell % str(pid_file) + "\n")
    image = program.frozen()
    pid = int(pid_file.read_text())
    argv = in_pid_namespace_as(pid, program.asked(image, ASK_RUBY if program.is_ruby else ASK_PYTHON))
    answers = [json.loads(support.thawed(argv, env=program.env).out) for _ in range(8)]
    assert {answer[0] for answer in answers} == {pid}
    for source in answers[0][1]:
        assert len({answer[1][source] for answer in answers}) == len(answers), source


OWN_SEED = """
import random

class Own(random.Random):
    def seed(self, *arguments):
        self.state = 1

    def random(self):
        return self.state

class Holder:
    pass

class Pretends:
    @property
    def __class__(self):
        return type

pretends, loop = Pretends(), []
loop.append(loop)
rng = Holder()
rng._gen = Own()
"""


def test_what_cannot_be_renewed_is_named(tmp_path):
    program = Program(tmp_path, OWN_SEED, support.PYTHON)
    program.frozen()
    assert "warning: app.rng._gen holds random state that cannot be renewed" in program.said.err, program.said


def test_what_cannot_be_renewed_is_named_in_ruby(tmp_path):
    program = Program(tmp_path, "module App\n  RNG = Random.new.freeze\nend", support.RUBY)
    program.frozen()
    assert "warning: App::RNG holds random state that cannot be renewed" in program.said.err, program.said


LOOK = (
    "import random, sys, uuid, multiprocessing.process; "
    "print(random.seed.__func__.__code__.co_filename == random.__file__, random.Random.getstate.__kwdefaults__, "
    "uuid.uuid1.__code__.co_filename, uuid._generate_time_safe, [type(finder).__name__ for finder in sys.meta_path], "
    "vars(random.__loader__), random.seed.__func__ is random.Random.seed)"
)


def test_nothing_of_the_watching_is_left(tmp_path):
    program = Program(tmp_path, "import random, uuid, multiprocessing.process", support.PYTHON)
    image = program.frozen()
    assert support.thawed(program.asked(image, LOOK), env=program.env).out == program.ordinary("import app; " + LOOK)


LOOK_IN_RUBY = """
p [Random, Random.singleton_class, Kernel, Kernel.singleton_class].map { |owner|
  [owner.instance_methods(false).sort, owner.private_instance_methods(false).sort] }
p Random.instance_method(:initialize), method(:srand), Kernel.method(:srand), Random.method(:new_seed)
"""


def test_nothing_of_the_watching_is_left_in_ruby(tmp_path):
    program = Program(tmp_path, "RNG = Random.new(3)", support.RUBY)
    image = program.frozen()
    assert support.thawed(program.asked(image, LOOK_IN_RUBY), env=program.env).out == program.ordinary(LOOK_IN_RUBY)
