"""A part of the behaviour cases, for other machines: their images are made here and used there, or, with this file as a program,
made there.

    python tools/behaviour_sample.py FOLDER    run the cases with this interpreter, and leave pytest's reports in a folder

Which cases it has, the commit tells: each commit has others. The cases that share an image stay together.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import zlib

import results
import workloads
from workloads import ROOT, Unavailable

CASES = "tests/behaviour/test_behaviour.py"
SHARE = 5  # one in so many cases
LISTED = "cases.json"  # the file with all that were chosen
TOGETHER = 40  # cases in one run of pytest: a machine that is ended has lost no more than the last of them
ID = re.compile(r"::test_same\[(?P<image>.+)-(?P<streams>pipe|file|pty)\]$")


class Sample:
    """Cases in a folder of their own. `chosen`: their names, as pytest takes them."""

    def __init__(self, folder: pathlib.Path, environment: dict[str, str], share: int = SHARE, python: str = "", commit: str = ""):
        """Choose one in `share` of the cases that there are with an environment, which is that of all runs: its PATH tells which
        interpreters are tried. `python`: one that has pytest; without it that of the tests. `commit`: without it that of this tree. Raises
        Unavailable where pytest names none."""
        self.folder, self.environment, self.share = folder, environment, share
        self.python = python or workloads.prepare("tools")["python"]
        argv = [self.python, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", CASES]
        all_tests = {**environment, "SNAPBOOT_ALL_TESTS": "1"}
        listed = subprocess.run(argv, cwd=ROOT, env=all_tests, capture_output=True, text=True).stdout.splitlines()
        found = {line: match["image"] for line in listed if (match := ID.search(line))}
        seed = commit or results.commit()
        images = sorted(set(found.values()), key=lambda image: zlib.crc32(f"{seed} {image}".encode()))
        # In this order, so that a run which is ended too early has tried a sample, too.
        places = {image: place for place, image in enumerate(images[: -(-len(images) // share)])}
        self.chosen = sorted((line for line, image in found.items() if image in places), key=lambda line: places[found[line]])
        if not self.chosen:
            raise Unavailable("pytest names no behaviour cases")

    def command(self, report: pathlib.Path) -> tuple[list[str], dict[str, str]]:
        """How they are run, from any folder: the words, and the variables. Writes pytest's report."""
        listed = self.list_chosen()
        # The names have brackets, and there are too many for a command line.
        run = f"import json, os, sys, pytest; os.chdir({str(ROOT)!r}); cases = json.load(open({str(listed)!r}))\n"
        run += "sys.exit(pytest.main(sys.argv[1:] + cases))"
        options = ["-q", "-p", "no:cacheprovider", f"--junitxml={report}"]
        return [str(self.python), "-c", run, *options], {"SNAPBOOT_BEHAVIOUR_FOLDER": str(self.folder / "place")}

    def list_chosen(self) -> pathlib.Path:
        """The path of the file that names them, new."""
        self.folder.mkdir(parents=True, exist_ok=True)
        listed = self.folder / LISTED
        listed.write_text(json.dumps(self.chosen))
        return listed

    def make_images(self) -> dict:
        """Run them here, with new images. Returns what `results.counted` returns. Raises Unavailable where pytest runs none."""
        shutil.rmtree(self.folder / "place", ignore_errors=True)
        report = self.folder / "here.xml"
        argv, variables = self.command(report)
        subprocess.run(argv, env={**self.environment, **variables}, stdin=subprocess.DEVNULL)
        counted = results.counted(report)
        if not counted["passed"] and not counted["failed"]:
            raise Unavailable("pytest runs none of the behaviour cases that it names")
        return counted

    def run_in_parts(self) -> None:
        """Run them here, TOGETHER at a time, with images that are not kept. Leaves their names and the reports in the folder."""
        self.list_chosen()
        for first in range(0, len(self.chosen), TOGETHER):
            argv = [self.python, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={self.folder}/{first:04}.xml"]
            subprocess.run([*argv, *self.chosen[first : first + TOGETHER]], cwd=ROOT, env=self.environment, stdin=subprocess.DEVNULL)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, help="where the reports go, one of each %d cases" % TOGETHER)
    parser.add_argument("--share", type=int, default=SHARE, help="one in so many cases (default: %(default)s)")
    parser.add_argument("--commit", default="", help="which chooses them (default: that of this tree)")
    options = parser.parse_args()
    Sample(options.folder, dict(os.environ), options.share, sys.executable, options.commit).run_in_parts()


if __name__ == "__main__":
    main()
