"""Starts beside faults: each one is right, and after each fault images are made again within two starts.

A round has every fault once, in an order that a seed gives. SNAPBOOT_FAULT_ROUNDS says how many there are (`make faults`); the seed is
printed, and SNAPBOOT_SEED repeats it.
"""

import os
import random
import shutil
import signal

import pytest
from common import support
from common.languages import both
from common.waiting import random_moment

from store.stores import Store, is_thawed

ROUNDS = int(os.environ.get("SNAPBOOT_FAULT_ROUNDS", "1"))
SCRIPTS = {"python": "import sys\nprint({value}, sys.argv[1:])\n", "ruby": 'puts "{value} #{{ARGV}}"\n'}
ARGUMENTS = {"python": "['a']", "ruby": '["a"]'}
# Of which an image is for one.
ENVIRONMENTS = {"python": ("PYTHONHASHSEED", ["1", "2"]), "ruby": ("RUBYOPT", ["-W0", "-W1"])}


class Faults:
    """A program in a store, and what may happen to its starts."""

    def __init__(self, folder, language, choice):
        self.store = Store(folder)
        self.language = language
        self.choice = choice
        self.script = folder / ("tool" + language.ending)
        self.value = 0
        self.words = [language.program, str(self.script)]
        self.edit()

    def start(self, before=(), **more):
        """Starts it in one of the environments, and looks at what it prints."""
        name, values = ENVIRONMENTS[self.language.name]
        # For the whole fault, and for what comes after it.
        env = {**self.store.env, name: values[self.turn % 2]}
        argv = [*before, support.SNAPBOOT, "run", "--", *self.words, "a"]
        result = support.run(argv, env=env, cwd=more.pop("cwd", self.store.folder), **more)
        expected = f"{self.value} {ARGUMENTS[self.language.name]}\n"
        assert (result.status, result.out) == (0, expected), (self.fault, result)
        return result

    def bring_about(self, fault, turn):
        self.fault, self.turn = fault, turn
        getattr(self, fault)()
        self.end_builders()
        # Where a builder at work had heard of nothing, a second start may be needed.
        for _ in range(3):
            if is_thawed(self.start()):
                return
            self.end_builders()
        raise AssertionError(f"after {fault}, no image is made: {self.store.list()}, {self.start()}")

    def end_builders(self):
        self.store.wait_until(lambda: not self.store.is_busy(), "the builder goes on")

    def edit(self):
        self.value += 1
        self.script.write_text(SCRIPTS[self.language.name].format(value=self.value))

    def a_builder_is_killed(self):
        self.edit()
        self.start()
        random_moment(self.choice, 0.7)
        for number in self.store.builders():
            try:
                os.kill(number, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def a_container_ends(self):
        self.edit()
        script = '"$@"; sleep ' + str(self.choice.uniform(0, 0.5))
        self.start(["unshare", "-pf", "--kill-child", "--mount-proc", "sh", "-c", script, "sh"])

    def the_disk_is_full(self):
        self.edit()
        self.start(self.mounted("mount -t tmpfs -o size=1M tmpfs"))

    def nothing_can_be_written(self):
        self.edit()
        self.start(self.mounted('mount --bind "$1/store" "$1/store" && mount -o remount,bind,ro'))

    def mounted(self, how):
        """What starts a command where the store is mounted in another way, and ends after its builder."""
        script = how + ' "$1/store" || exit 77\nshift\n"$@"\nwhile pgrep -f "build-image.*$PWD/store" > /dev/null; do sleep 0.1; done\n'
        (self.store.place).mkdir(exist_ok=True, mode=0o700)
        return support.in_mount_namespace(script, self.store.folder)

    def the_store_is_removed(self):
        self.edit()
        self.start()
        random_moment(self.choice, 0.7)
        shutil.rmtree(self.store.place, ignore_errors=True)

    def the_directory_is_removed(self):
        self.edit()
        place = self.store.folder / "place"
        place.mkdir()
        self.start(cwd=place)
        place.rmdir()


FAULTS = [name for name in vars(Faults) if name.startswith(("a_", "the_", "nothing_"))]


@both
@pytest.mark.skipif(not support.IS_ROOT, reason="only root may mount a full disk")
@pytest.mark.fault(
    "a builder is killed, its container ends, the disk is full, the store is read-only or removed, its directory is gone",
    "each start is right, and an image is made again within two starts",
)
def test_after_each_fault_images_are_made_again(tmp_path, language):
    seed = int(os.environ.get("SNAPBOOT_SEED") or random.randrange(1 << 32))
    print(f"SNAPBOOT_SEED={seed}")
    choice = random.Random(seed)
    faults = Faults(tmp_path, language, choice)
    turns = [(fault, turn) for turn in range(ROUNDS) for fault in choice.sample(FAULTS, len(FAULTS))]
    for number, (fault, turn) in enumerate(turns):
        faults.bring_about(fault, turn + number)
