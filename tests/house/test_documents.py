"""What documents and sources promise about themselves: links lead somewhere, versions agree, files stay small."""

import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
LINK = re.compile(r"\[[^\]]*\]\((?!https?:|#)([^)#]+)[^)]*\)")
MOST_LINES = 600
SOURCES = (".rs", ".py", ".rb", ".c", ".h", ".sh")


def tracked(*suffixes: str) -> list[pathlib.Path]:
    """The repository's own files with these suffixes."""
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip("this is not a git work tree")
    return [ROOT / name for name in done.stdout.splitlines() if name.endswith(suffixes) and (ROOT / name).is_file()]


def test_links_lead_to_files():
    lost = []
    for document in tracked(".md"):
        lost += [
            f"{document.name} -> {to}"
            for to in LINK.findall(document.read_text())
            if not (document.parent / to).exists()
        ]
    assert not lost


def test_one_version_everywhere():
    versions = {
        "Cargo.toml": r'^version = "(.*)"',
        "ruby/lib/snapboot/version.rb": r"VERSION = [\"'](.*)[\"']",
    }
    found = {}
    for path, pattern in versions.items():
        match = re.search(pattern, (ROOT / path).read_text(), re.MULTILINE)
        assert match, f"{path} names no version in the form {pattern}"
        found[path] = match.group(1)
    assert len(set(found.values())) == 1, found
    # The wheel takes its version from Cargo.toml when it is built.
    assert 'dynamic = ["version"]' in (ROOT / "python/pyproject.toml").read_text()
    code = "import sys, types, runpy; sys.modules['setuptools'] = types.SimpleNamespace(setup=lambda version: print(version));"
    code += "runpy.run_path('setup.py')"
    told = subprocess.run([sys.executable, "-c", code], cwd=ROOT / "python", capture_output=True, text=True)
    assert told.stdout.strip() == found["Cargo.toml"], told.stderr


def test_files_stay_small():
    long = {str(path.relative_to(ROOT)): path.read_bytes().count(b"\n") for path in tracked(*SOURCES)}
    assert not {name: lines for name, lines in long.items() if lines > MOST_LINES}
