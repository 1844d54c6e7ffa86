"""The standard streams after a thaw, for what descriptors 0, 1 and 2 are then."""

import os
import pty
import subprocess

import harness
import pytest

SHOW = """
import sys
for stream in (sys.stdin, sys.stdout, sys.stderr):
    print(stream, stream is not None and (
        stream.line_buffering, stream.encoding, stream.errors, stream.isatty(), stream.mode, stream.seekable(),
    ), file=sys.stderr if sys.stdout is None else sys.stdout)
"""


def under_pty(argv, env, **options):
    """Runs a command with all three streams on a terminal; returns what it wrote."""
    parent, child = pty.openpty()
    process = subprocess.Popen(argv, stdin=child, stdout=child, stderr=child, env=env, **options)
    os.close(child)
    written = b""
    try:
        while True:
            written += os.read(parent, 4096)
    except OSError:
        pass
    os.close(parent)
    process.wait()
    return written


@pytest.mark.parametrize(
    "redirection", ["", "</dev/null", ">out", "2>err", "<&-", ">&-", "2>&-", "<in >out", ">/dev/full"]
)
def test_redirected(python, real, redirection, tmp_path):
    (tmp_path / "in").write_text("a line\n")

    def through_shell(command, **options):
        return subprocess.run(
            ["sh", "-c", '"$@" ' + redirection, "sh"] + command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=str(tmp_path),
            **options,
        )

    env = harness.clean_environment()
    results = []
    for command in ([python], [real.path]):
        done = through_shell(command + ["-c", SHOW], env=env)
        files = [(tmp_path / name).read_bytes() for name in ("out", "err") if (tmp_path / name).exists()]
        results.append((done.returncode, done.stdout, done.stderr, files))
    assert results[1] == results[0]


def test_terminal(python, real):
    env = harness.clean_environment()
    assert under_pty([real.path, "-c", SHOW], env) == under_pty([python, "-c", SHOW], env)


def test_captured_streams_keep_their_identity(python, tmp_path):
    (tmp_path / "captures.py").write_text(
        "import sys, logging\n"
        "text, buffer = sys.stdout, sys.stdout.buffer\n"
        "logging.basicConfig(stream=sys.stderr, level=0, format='%(message)s')\n"
    )
    image = harness.Simulated([python], 1, "bare", preload=["captures"], cwd=str(tmp_path))
    code = "import captures, sys, logging; print(captures.text is sys.stdout, captures.buffer is sys.stdout.buffer)\n"
    code += "captures.buffer.write(b'bytes'); captures.text.write('text'); logging.info('told')"
    result = image.run(["-c", code], cwd=str(tmp_path))
    image.close()
    assert result == harness.Result(0, b"True True\nbytestext"[0:0] + b"bytesTrue True\ntext", b"told\n")


def test_what_the_program_set_up_is_kept(python, tmp_path):
    (tmp_path / "sets.py").write_text("import sys; sys.stdout.reconfigure(encoding='latin-1', line_buffering=True)\n")
    image = harness.Simulated([python], 1, "bare", preload=["sets"], cwd=str(tmp_path))
    result = image.run(["-c", "import sys; print(sys.stdout.encoding, sys.stdout.line_buffering)"])
    image.close()
    assert result.stdout == "latin-1 True\n" or result.stdout == "iso8859-1 True\n"
