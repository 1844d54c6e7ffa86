"""The parser for the interpreter's command line."""

import linecache

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
def test_what_it_honours(module, given, kind, value, argv):
    main = module("command_line").parse(given)
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
def test_what_it_leaves_to_an_ordinary_start(module, given):
    assert module("command_line").parse(given) is None


@pytest.mark.parametrize("by_code", [False, True])
def test_the_source_of_code_is_kept_for_tracebacks(module, monkeypatch, by_code):
    """CPython 3.13.0 keeps it under the file's name, later releases for the code object."""
    kept = []
    monkeypatch.setattr(linecache, "_register_code", lambda key, text, name: kept.append((key, text)), raising=False)
    if by_code:
        monkeypatch.setattr(linecache, "_interactive_cache", {}, raising=False)
    else:
        monkeypatch.delattr(linecache, "_interactive_cache", raising=False)
    main = module("main_part")
    main.code_lines.IS_USED = True
    code = main._compile_code("1 + 1")
    assert kept == [(code if by_code else "<string>", "1 + 1\n")]
