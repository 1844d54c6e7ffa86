"""The back ends of the boot archive: each reads what any other wrote, and looks for a feature only where it is."""

import shutil
import subprocess

import pytest
from common.waiting import settle

from .rubies import KINDS, archive_options, environment

pytestmark = pytest.mark.sample(3)

DIRECTORIES, FEATURES = 500, 300
MAX_LOST = 500  # look-ups for features that find nothing; without the archive they are 149,700

STORE = """
file, folder, missing = ARGV
inputs = [
  [:file, file, Snapboot::Archive.identity(file)], [:directory, folder, Snapboot::Archive.identity(folder)], [:absent, missing],
  [:variable, "HOME", ENV["HOME"]], [:variable, "SNAPBOOT_NOT_SET", nil]
]
Snapboot::Archive.store(:data, file, inputs, "payload of \\xff".b * 1000, context: "test 1")
Snapboot::Archive.store(:memo, "of none", [], "")
"""
FETCH = """
p Snapboot::Archive.instance_variable_get(:@back)
events = []
Snapboot::Archive.on_event { |event, kind, name| events << [event, kind, File.basename(name)] }
payload = Snapboot::Archive.fetch(:data, ARGV[0], context: "test 1")
p payload == "payload of \\xff".b * 1000, payload&.frozen?, payload&.encoding
p Snapboot::Archive.fetch(:memo, "of none"), Snapboot::Archive.fetch(:data, ARGV[0], context: "test 2")
p events
"""
SERVED = """Snapboot::Archive::{back_end}
true
true
#<Encoding:ASCII-8BIT>
""
nil
[[:hit, :data, "file"], [:hit, :memo, "of none"], [:miss, :data, "file"]]
"""
CHANGES = {
    "file": lambda folder: (folder / "file").write_text("other"),
    "same-size": lambda folder: (folder / "file").write_text("changed"),
    "name-added": lambda folder: (folder / "folder/new").touch(),
    "name-removed": lambda folder: (folder / "folder/old").unlink(),
    "something-appears": lambda folder: (folder / "missing").touch(),
    "file-removed": lambda folder: (folder / "file").unlink(),
}


@pytest.fixture
def boot(rubies, tmp_path):
    """Runs a program with the archive in one of the Rubies. The program's files are in `tmp_path`."""

    def boot(kind, program, *arguments):
        ruby = rubies(kind.name)
        switch, variables = archive_options(kind, tmp_path)
        (tmp_path / "main.rb").write_text(program)
        gems = ["--disable-gems"] if kind.name != "cruby" else []
        result = ruby.boot(tmp_path, [*gems, *switch, "main.rb", *arguments], **variables)
        assert (result.status, result.err) == (0, ""), result
        return result.out

    return boot


@pytest.fixture
def paths(tmp_path):
    """A file, a directory and nothing, that entries depend on."""
    (tmp_path / "file").write_text("content")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/old").touch()
    (tmp_path / "folder/link").symlink_to("old")
    return [tmp_path / "file", tmp_path / "folder", tmp_path / "missing"]


@pytest.mark.parametrize("reader", KINDS, ids=str)
@pytest.mark.parametrize("writer", KINDS, ids=str)
def test_each_reads_what_the_other_wrote(writer, reader, boot, paths):
    settle()
    boot(writer, STORE, *paths)
    printed = boot(reader, FETCH, *paths).replace("BINARY (ASCII-8BIT)", "ASCII-8BIT")  # as Ruby 3.4 has it
    assert printed == SERVED.format(back_end=reader.back_end.capitalize())


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_nothing_stale(kind, boot, paths, tmp_path):
    """Every change of an input shows; a touched one is looked into."""
    settle()
    for name, change in CHANGES.items():
        for path in tmp_path.iterdir():
            if path not in paths and path.name != "folder":
                path.unlink()
        (tmp_path / "missing").unlink(missing_ok=True)
        (tmp_path / "file").write_text("content")
        (tmp_path / "folder/old").touch()
        settle()
        boot(kind, STORE, *paths)
        assert "[[:hit" in boot(kind, FETCH, *paths)
        change(tmp_path)
        assert "[[:stale" in boot(kind, FETCH, *paths), name


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_touched_files_are_compared_and_stored_again(kind, boot, paths):
    settle()
    boot(kind, STORE, *paths)
    paths[0].touch()
    settle()
    assert "[[:revalidated" in boot(kind, FETCH, *paths)
    assert "[[:hit" in boot(kind, FETCH, *paths)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_features_are_found_without_a_search(kind, rubies, tmp_path):
    if not shutil.which("strace"):
        pytest.skip("needs strace")
    ruby = rubies(kind.name)
    folders = [tmp_path / f"load-path/{number}" for number in range(DIRECTORIES)]
    for folder in folders:
        folder.mkdir(parents=True)
        (folder / f"own_{folder.name}.rb").touch()
    for number in range(FEATURES):
        (folders[-1] / f"feature_{number}.rb").touch()
    program = tmp_path / "main.rb"
    program.write_text(
        f"$LOAD_PATH.unshift(*Array.new({DIRECTORIES}) {{ |i| \"{tmp_path}/load-path/#{{i}}\" }})\n"
        f"puts Array.new({FEATURES}) {{ |i| require \"feature_#{{i}}\" }}.count(true)\n"
    )
    switch, variables = archive_options(kind, tmp_path)
    gems = ["--disable-gems"] if kind.name != "cruby" else []
    trace = tmp_path / "trace"
    for _ in ("filling", "served"):
        argv = ["strace", "-f", "-qq", "-e", "trace=file", "-o", trace, ruby.command, *gems, *switch, program]
        done = subprocess.run(
            list(map(str, argv)), env=environment(**variables), cwd=tmp_path, capture_output=True, text=True, timeout=600
        )
        assert (done.returncode, done.stdout) == (0, f"{FEATURES}\n"), done.stderr
        lost = [line for line in trace.read_text(errors="replace").splitlines() if "load-path/" in line and "= -1 ENOENT" in line]
        assert len(lost) <= MAX_LOST, lost[:5]
