"""Which imports of a main part are surely run."""

import sys

import pytest

LAZY = pytest.mark.skipif(sys.version_info < (3, 15), reason="no lazy imports before CPython 3.15")


def names(module, source):
    return [(one.name, one.names, one.level, one.guarded) for one in module("imports").leading_imports(source)]


@pytest.mark.parametrize(
    "source, expected",
    [
        ("import a, b.c", ["a", "b.c"]),
        ("'''doc'''\nfrom __future__ import annotations\nimport a", ["a"]),
        ("X = 1\nimport a\ndef f(x=1): import c\nimport b", ["a", "b"]),
        ("import a\nimport sys; sys.path.insert(0, 'x')\nimport b", ["a", "sys"]),
        ("import a\nif a.x: import b", ["a"]),
        ("import a\nclass C: pass\nimport b", ["a"]),
        ("@d\ndef f(): pass\nimport b", []),
        ("def f(x: print(1)): pass\nimport b", []),
        ("import a\n__lazy_modules__ = ['b']\nimport b", ["a"]),
        pytest.param("import a\nlazy import b\nlazy from c import d\nimport e", ["a", "e"], marks=LAZY),
        ("this is not Python", []),
        (b"\xff\xff", []),
    ],
)
def test_only_those_before_other_effects(module, source, expected):
    assert [one[0] for one in names(module, source)] == expected


def test_forms(module):
    assert names(module, "from ..x import y, z") == [("x", ("y", "z"), 2, False)]
    assert names(module, "try:\n import a\nexcept ImportError:\n a = None\nimport b") == [
        ("a", (), 0, True),
        ("b", (), 0, False),
    ]
