"""A part of the behaviour cases, for other machines: their images are made here and used there.

Which cases it has, the commit tells: each commit has others. The cases that share an image stay together.
"""

import json
import pathlib
import re
import shutil
import subprocess
import zlib

import results
import workloads
from workloads import ROOT, Unavailable

CASES = "tests/behaviour/test_behaviour.py"
SHARE = 5  # one in so many cases
ID = re.compile(r"::test_same\[(?P<image>.+)-(?P<streams>pipe|file|pty)\]$")


class Sample:
    """Cases in a folder of their own. `chosen`: their names, as pytest takes them."""

    def __init__(self, folder: pathlib.Path, environment: dict[str, str], share: int = SHARE):
        """Choose one in `share` of the cases that there are with an environment, which is that of all runs: its PATH tells which
        interpreters are tried. Raises Unavailable where pytest names none."""
        self.folder, self.environment, self.share = folder, environment, share
        self.python = workloads.prepare("tools")["python"]
        argv = [self.python, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", CASES]
        all_tests = {**environment, "SNAPBOOT_ALL_TESTS": "1"}
        listed = subprocess.run(argv, cwd=ROOT, env=all_tests, capture_output=True, text=True).stdout.splitlines()
        found = {line: match["image"] for line in listed if (match := ID.search(line))}
        seed = results.commit()
        images = sorted(set(found.values()), key=lambda image: zlib.crc32(f"{seed} {image}".encode()))
        wanted = set(images[: -(-len(images) // share)])
        self.chosen = [line for line, image in found.items() if image in wanted]
        if not self.chosen:
            raise Unavailable("pytest names no behaviour cases")

    def command(self, report: pathlib.Path) -> tuple[list[str], dict[str, str]]:
        """How they are run, from any folder: the words, and the variables. Writes pytest's report."""
        listed = self.folder / "cases.json"
        listed.parent.mkdir(parents=True, exist_ok=True)
        listed.write_text(json.dumps(self.chosen))
        # The names have brackets, and there are too many for a command line.
        run = f"import json, os, sys, pytest; os.chdir({str(ROOT)!r}); cases = json.load(open({str(listed)!r}))\n"
        run += "sys.exit(pytest.main(sys.argv[1:] + cases))"
        options = ["-q", "-p", "no:cacheprovider", f"--junitxml={report}"]
        return [str(self.python), "-c", run, *options], {"SNAPBOOT_BEHAVIOUR_FOLDER": str(self.folder / "place")}

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
