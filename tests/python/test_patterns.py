"""Regular expressions of training runs, from one process to another: with each version of `re`, and where nobody has loaded `warnings`."""

import os
import subprocess

import harness
import pytest

PYTHON_FOLDER = os.path.join(harness.ROOT, "python")
# What loads the front end, as its own scripts do.
LOAD = """
import sys
folder = sys.argv[1] + "/snapboot/front_end"
names = {"__name__": "snapboot.front_end.loader"}
with open(folder + "/loader.py", encoding="utf-8") as file:
    exec(file.read(), names)
patterns = names["loader"](folder)("patterns")
"""
TELL = """
import re, warnings
warnings.simplefilter("ignore")
SECRETS = {"TOKEN": "the-secret", b"TOKEN": b"the-secret", b"OTHER": b"the.secret", b"BYTES": b"caf\\xc3\\xa9-secret", b"SHORT": b"a"}
for pattern, flags in (("a\\\\b \\\\d=\\0\\u2028\\n", 0), (b"\\xff\\0", re.S), ("[[warns]", re.I)):
    re.compile(pattern, flags)
for secret in list(SECRETS.values())[:4]:
    re.compile(secret)
for name, value in patterns.entries({name: value for name, value in SECRETS.items() if type(name) is bytes}):
    print(ascii(value))
"""
TAKE = """
import ast, re
texts = [ast.literal_eval(line) for line in sys.stdin]
sys.modules.pop("warnings", None) if sys.argv[2] == "without" else __import__("warnings")
order = list(sys.modules)
re.purge()
print(patterns.load(texts), patterns.load(texts), list(sys.modules) == order)
print(sorted(ascii(key[1:]) for key in re._cache))
"""


def run(python, code, *arguments, stdin=""):
    env = dict(harness.clean_environment(), PYTHONIOENCODING="utf-8")
    argv = [python, "-I", "-S", "-c", LOAD + code, PYTHON_FOLDER, *arguments]
    return subprocess.run(argv, input=stdin, env=env, check=True, stdout=subprocess.PIPE, text=True).stdout


@pytest.mark.parametrize("warnings", ["with", "without"])
def test_what_one_process_has_compiled_another_one_compiles(python, warnings):
    told = run(python, TELL)
    assert "secret" not in told
    count, kept = run(python, TAKE, warnings, stdin=told).splitlines()
    assert count == "2 0 True"
    assert kept == str(sorted([ascii(("a\\b \\d=\0\u2028\n", 0)), ascii((b"\xff\0", 16))]))
