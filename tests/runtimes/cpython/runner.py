"""Runs one file of CPython's own tests and records the outcome of each test as soon as it is known.

    python runner.py RECORD NAME [--only PATTERN...] [--without PATTERN...]

NAME is a module below `test`, such as test_dict. The record is JSON lines, so that it is complete up to the point where a
process hangs or dies: first [exe, version], then [test id, outcome] for each test, with outcome `started` before it runs.
Patterns are those of fnmatch, matched against the test id without its leading `test.`.
"""

import argparse
import fnmatch
import importlib
import json
import os
import sys
import unittest


class Record(unittest.TestResult):
    """Writes outcomes to a file."""

    def __init__(self, path):
        super().__init__()
        # A descriptor that no test knows of, and that a child does not inherit.
        self.descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self.failed = set()

    def write(self, *entry):
        os.write(self.descriptor, json.dumps(entry).encode() + b"\n")

    def startTest(self, test):
        super().startTest(test)
        self.write(test.id(), "started")

    def addSuccess(self, test):
        # A test with failed subtests is reported here too, up to 3.10.
        if test.id() not in self.failed:
            self.write(test.id(), "ok")

    def addFailure(self, test, error):
        self.say(test, error)
        self.write(test.id(), "FAIL")

    def addError(self, test, error):
        self.say(test, error)
        self.write(test.id(), "ERROR")

    def addSubTest(self, test, subtest, error):
        if error is not None:
            self.failed.add(test.id())
            self.say(subtest, error)
            self.write(test.id(), "FAIL")

    def addSkip(self, test, reason):
        self.write(test.id(), "skip")

    def addExpectedFailure(self, test, error):
        self.write(test.id(), "ok")

    def addUnexpectedSuccess(self, test):
        self.write(test.id(), "FAIL")

    def say(self, test, error):
        print("== " + str(test.id()), self._exc_info_to_string(error, test), sep="\n", file=sys.__stderr__, flush=True)


def tests_of(suite):
    """All test cases of a suite, in its order."""
    for part in suite:
        if isinstance(part, unittest.TestSuite):
            yield from tests_of(part)
        else:
            yield part


def matches(test, patterns):
    name = test.id()[5:] if test.id().startswith("test.") else test.id()
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("record")
    parser.add_argument("name")
    parser.add_argument("--only", nargs="+", default=["*"])
    parser.add_argument("--without", nargs="+", default=[])
    options = parser.parse_args()
    sys.argv[1:] = []
    record = Record(options.record)
    record.write(os.readlink("/proc/self/exe"), sys.version)
    from test import support

    support.use_resources = []  # no network, no display, nothing large
    try:
        module = importlib.import_module("test." + options.name)
    except unittest.SkipTest:
        record.write(options.name, "skip")
        return
    loaded = unittest.defaultTestLoader.loadTestsFromModule(module)
    chosen = [t for t in tests_of(loaded) if matches(t, options.only) and not matches(t, options.without)]
    unittest.TestSuite(chosen).run(record)


if __name__ == "__main__":
    main()
