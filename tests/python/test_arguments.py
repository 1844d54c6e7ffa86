"""The parser for the interpreter's command line."""

import pytest


@pytest.mark.parametrize(
    "given, kind, value, argv",
    [
        ([], "stdin", None, [""]),
        (["-"], "stdin", None, ["-"]),
        (["-", "a"], "stdin", None, ["-", "a"]),
        (["-c", "pass"], "code", "pass", ["-c"]),
        (["-c", "pass", "-v", "--"], "code", "pass", ["-c", "-v", "--"]),
        (["-cpass", "a"], "code", "pass", ["-c", "a"]),
        (["-m", "this"], "module", "this", ["-m"]),
        (["-mthis", "-x"], "module", "this", ["-m", "-x"]),
        (["a.py"], "script", "a.py", ["a.py"]),
        (["./a.py", "-c", "b"], "script", "./a.py", ["./a.py", "-c", "b"]),
    ],
)
def test_what_it_honours(room, given, kind, value, argv):
    main = room("_arguments").parse(given)
    assert (main.kind, main.value, main.argv) == (kind, value, argv)


@pytest.mark.parametrize(
    "given",
    [
        ["-c"],
        ["-m"],
        ["-I", "a.py"],
        ["-Ic", "pass"],
        ["-V"],
        ["--version"],
        ["-X", "dev", "a.py"],
        ["--", "a.py"],
        [""],
        ["-i"],
    ],
)
def test_what_it_leaves_to_an_ordinary_start(room, given):
    assert room("_arguments").parse(given) is None
