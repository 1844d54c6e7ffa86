"""A store in a folder of its own, and what the tests of it have in common."""

import json
import os

from common import support
from common.waiting import wait_until


class Store:
    """folder: holds the store and the programs. variables: of the environment, besides the usual."""

    def __init__(self, folder, **variables):
        self.folder = folder
        self.place = folder / "store"
        self.env = support.environment(
            SNAPBOOT_STORE=str(self.place), SNAPBOOT_STATE=str(folder / "state"), PYTHONDONTWRITEBYTECODE="1", **variables
        )

    def write_program(self, language, sources):
        """Writes a program into the folder. sources: by name of file, the script first. Returns its command."""
        for name, source in sources.items():
            (self.folder / name).write_text(source)
        return [language.program, self.folder / next(iter(sources))]

    def run(self, *words, options=(), **more):
        """`snapboot run -- WORDS`."""
        return self.snapboot("run", *options, "--", *words, **more)

    def snapboot(self, *words, env=None, **more):
        """The command with these words. env: variables that are other ones."""
        return support.run([support.SNAPBOOT, *words], env={**self.env, **(env or {})}, cwd=more.pop("cwd", self.folder), **more)

    def list(self, **more):
        """What `snapboot list --json` prints."""
        result = self.snapboot("list", "--json", log=False, **more)
        assert result.status == 0, result
        return json.loads(result.out)

    def wait(self, **more):
        """Waits until there is an image, or a reason why there is none, and nobody makes one any more. Returns the list."""
        def is_done():
            return not self.is_busy() and (rows := self.list(**more)) and all(row["state"] != "building" for row in rows)

        self.wait_until(is_done, "the image is not done")
        return self.list(**more)

    def is_busy(self):
        """Whether anybody makes an image, or is about to."""
        # A start that leaves a builder behind may end between two looks: it takes a second one.
        return bool(self.starts()) or any(self._builders(with_unknown=True)) or any(self._builders(with_unknown=True))

    def wait_until(self, condition, what):
        """As `waiting.wait_until`; the error shows the store, too."""
        wait_until(condition, lambda: f"{what}: {self.list()}")

    def builders(self):
        """The numbers of the processes that make images for this store."""
        return list(self._builders())

    def starts(self):
        """The numbers of the processes of `snapboot run` for this store, and of builders that have not got to their own words yet."""
        return list(self._commands(lambda number, words: words[:1] == [b"run"] and self._is_mine(number)))

    def _builders(self, with_unknown=False):
        """with_unknown: also processes that have just begun to execute the command. They have no words yet, so any of them may be one,
        and whoever has started it may have ended."""
        def is_builder(number, words):
            if not words:
                return with_unknown and os.path.realpath(f"/proc/{number}/exe") == os.path.realpath(support.SNAPBOOT)
            return words[0] in (b"build-image", b"learn") and self._is_named(words)

        return self._commands(is_builder)

    def _commands(self, is_wanted):
        for number in filter(str.isdecimal, os.listdir("/proc")):
            try:
                with open(f"/proc/{number}/cmdline", "rb") as file:
                    _, *words = file.read().split(b"\0")
                if is_wanted(number, words):
                    yield int(number)
            except OSError:
                continue

    def _is_named(self, words):
        return any(os.fsencode(self.place) in word for word in words)

    def _is_mine(self, number):
        with open(f"/proc/{number}/environ", "rb") as file:
            return os.fsencode(f"SNAPBOOT_STORE={self.place}") in file.read().split(b"\0")


def is_thawed(result):
    """Whether a start was from an image: nothing was said."""
    return result.status == 0 and result.err == ""
