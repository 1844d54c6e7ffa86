"""The back end in plain Ruby, over its own files: the format as documented, places, damage, and what it makes of full archives."""

import hashlib
import json
import pathlib
import re
import subprocess

import pytest

from .rubies import KINDS, ROOT, archive_options, environment

PURE = ROOT / "ruby/lib/snapboot/archive/pure"
SNAPBOOT = ROOT / "target/release/snapboot"
DOCUMENT = (ROOT / "docs/internals/archive-format.md").read_text()
RECORDS = {"SegmentHead": "SEGMENT_HEAD", "Slot": "SLOT", "EntryHead": "ENTRY_HEAD", "Input": "INPUT", "Header": "HEADER"}
PLACES = pathlib.Path(__file__).parent / "locations.json"

OPEN = f"""
require {str(PURE.parent / "pure")!r}
PURE = Snapboot::Archive::Pure
def open_archive = PURE.tap {{ |pure| reason = pure.open($PROGRAM_NAME) and abort(reason) }}
"""


@pytest.fixture
def ruby(rubies, tmp_path):
    """Runs a program in plain Ruby and returns what it prints; its archive is `archive` in `tmp_path`."""

    def run(program, *arguments, **variables):
        done = rubies("cruby").boot(tmp_path, ["-e", OPEN + program, *arguments], SNAPBOOT_ARCHIVE=str(tmp_path / "archive"), **variables)
        assert (done.status, done.err) == (0, ""), done
        return done.out

    return run


def packed(format):
    """The sizes of the fields of a pack format."""
    sizes = {"L<": 4, "Q<": 8, "q<": 8}
    fields = re.findall(r"(a)(\d+)|([LQq]<)(\d*)", format)
    return [size for a, width, kind, times in fields for size in ([int(width)] if a else [sizes[kind]] * int(times or 1))]


@pytest.mark.parametrize("record", RECORDS)
def test_records_are_as_documented(record):
    source = (PURE / "records.rb").read_text()
    table = DOCUMENT.split(f"### {record}\n")[1].split("\n###")[0].split("\n## ")[0]
    documented = [int(size) for size in re.findall(r"^\| \w+ \| \d+ \| (\d+) \|", table, re.MULTILINE)]
    name = RECORDS[record]
    assert packed(re.search(rf'^ *{name} = "([^"]*)"', source, re.MULTILINE)[1]) == documented
    assert int(re.search(rf"^ *{name}_SIZE = (\d+)", source, re.MULTILINE)[1]) == sum(documented)


def test_constants_are_as_documented(ruby):
    documented = dict(re.findall(r"^\| ([A-Z_]{3,}) \| (\d+) \|", DOCUMENT, re.MULTILINE))
    for name in ("PACKED", "MAX_BLOCK"):  # what cannot be read here
        documented.pop(name)
    shared = json.loads(ruby("""
      values = PURE::Records.constants.to_h { |name| [name, PURE::Records.const_get(name)] }
      puts "{" + values.select { |_, value| value.is_a?(Integer) }.map { |name, value| "\\"#{name}\\": #{value}" }.join(", ") + "}"
    """))
    differing = {name: (int(value), shared.get(name)) for name, value in documented.items() if shared.get(name, -1) != int(value)}
    # LINK and OTHER are names in a directory; their FILE and DIRECTORY have the same numbers as among the inputs.
    assert not {name for name in differing if name not in ("LINK", "OTHER")}, differing


@pytest.mark.parametrize("case", json.loads(PLACES.read_text())["cases"], ids=lambda case: case["what"].replace(" ", "-")[:40])
def test_places(case, ruby, tmp_path):
    def here(path):
        return path and path.replace("TOP", str(tmp_path))

    def digest(match):
        return hashlib.sha256(here(match[1]).encode()).hexdigest()[:16]

    for name in case["files"]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    for name in case["directories"]:
        (tmp_path / name).mkdir(parents=True, exist_ok=True)
    given = [here(case[name]) for name in ("gemfile", "script", "cwd", "cache_home", "home")]
    source = ", ".join("nil" if value is None else repr(value) for value in given)
    found = ruby(f"""
      gemfile, script, cwd, cache_home, home = {source}
      application = PURE::Application.new(gemfile, script, cwd)
      puts application.root
      puts application.place(cache_home, home) {{ |bytes| Digest::SHA256.digest(bytes) }} || "none"
    """.replace("gemfile, script", "require 'digest'; gemfile, script", 1))
    place = case["place"] and here(re.sub(r"\{(.*?)\}", digest, case["place"]))
    assert found.splitlines() == [here(case["root"]), place or "none"]


def test_damage_is_a_miss(ruby, tmp_path):
    """Random flips and truncations: what is fetched is right or missing, and the next flush makes the archive whole."""
    (tmp_path / "source").write_text("x")
    printed = ruby("""
      sleep 0.05
      payloads = Array.new(8) { |number| "#{number} payload ".b * 20 }
      open_archive
      payloads.each_slice(3) do |some|
        some.each { |payload| PURE.store(2, "/#{payload[0]}", [[0, "#{Dir.pwd}/source", PURE.identity("source")]], payload, "test") }
        abort(PURE.flush.to_s) if PURE.flush
      end
      whole = File.binread("archive")
      random = Random.new(7)
      found = 0
      400.times do
        bytes = whole.dup
        if random.rand(4).zero?
          bytes = bytes[0, random.rand(bytes.size)]
        else
          at = [random.rand(32), 4096 + random.rand(bytes.size - 4096)][random.rand(8) == 0 ? 0 : 1]
          bytes.setbyte(at, bytes.getbyte(at) ^ (1 << random.rand(8)))
        end
        File.binwrite("damaged", bytes, perm: 0o600)
        ENV["SNAPBOOT_ARCHIVE"] = "damaged"
        PURE.remove_instance_variable(:@batch) if PURE.instance_variable_defined?(:@batch)
        reason = PURE.open($PROGRAM_NAME) and next
        payloads.each do |payload|
          _, fetched = PURE.fetch(2, "/#{payload[0]}", "test")
          found += 1 if fetched
          abort("wrong: #{fetched.inspect}") if fetched && fetched != payload
        end
        PURE.store(2, "/new", [], "new", "test")
        reason = PURE.flush and next
        PURE.open($PROGRAM_NAME)
        abort("lost") unless PURE.fetch(2, "/new", "test") == [0, "new"]
        abort("not whole") unless PURE.instance_variable_get(:@reader).whole?
      end
      p found > 1000
    """)
    assert printed == "true\n"


def test_an_archive_stays_small_and_whole(ruby, tmp_path):
    """Beyond eight segments, with superseded entries, and beyond its bound the archive is written anew; verify finds it whole."""
    for number in range(12):
        store_same = f"PURE.store(2, '/same', [], '{number} ' * 2000, 'test')"
        ruby(f"open_archive; {store_same}; PURE.store(2, '/{number}', [], 'own', 'test'); p PURE.flush")
    assert ruby("open_archive; p PURE.fetch(2, '/same', 'test') == [0, '11 ' * 2000]") == "true\n"
    assert ruby("open_archive; p 12.times.all? { |n| PURE.fetch(2, \"/#{n}\", 'test')[1] }") == "true\n"
    assert (tmp_path / "archive").stat().st_size < 30_000
    for number in range(6):
        ruby(
            f"open_archive; PURE.store(2, '/big/{number}', [], Random.bytes(300_000), 'test'); p PURE.flush",
            SNAPBOOT_ARCHIVE_MAX="1",
        )
        assert (tmp_path / "archive").stat().st_size <= 1 << 20
    assert ruby("open_archive; p [0, 5].map { |n| PURE.fetch(2, \"/big/#{n}\", 'test')[0] }") == "[1, 0]\n"
    if not SNAPBOOT.exists():
        pytest.skip("target/release/snapboot is not built")
    verified = subprocess.run([SNAPBOOT, "archive", "verify", tmp_path / "archive"], capture_output=True, text=True, env=environment())
    assert verified.returncode == 0, verified.stdout + verified.stderr


def test_what_cruby_has_packed_is_kept(ruby, rubies, tmp_path):
    """Entries that cannot be unpacked here are neither served nor lost, however often something is added."""
    if not SNAPBOOT.exists():
        pytest.skip("target/release/snapboot is not built")
    (tmp_path / "feature.rb").write_text("".join(f"def method_{number} = {number}\n" for number in range(200)))
    shell_out = {"capture_output": True, "text": True, "env": environment()}
    switch, variables = archive_options(KINDS[0], tmp_path)
    variables["SNAPBOOT_ARCHIVE"] = str(tmp_path / "archive")
    ruby("sleep 0.05")
    rubies("cruby").boot(tmp_path, [*switch, "-e", "require './feature'"], **variables)
    listed = [SNAPBOOT, "archive", "list", tmp_path / "archive"]
    assert "feature.rb" in subprocess.run(listed, **shell_out).stdout
    for number in range(12):
        ruby(f"open_archive; PURE.store(2, '/same', [], '{number}' * 9000, 'test'); p PURE.flush")
    assert "feature.rb" in subprocess.run(listed, **shell_out).stdout
    verified = subprocess.run([SNAPBOOT, "archive", "verify", tmp_path / "archive"], **shell_out)
    assert verified.returncode == 0, verified.stdout + verified.stderr


def test_only_its_own_files_are_used(ruby, tmp_path):
    archive = tmp_path / "archive"
    other = tmp_path / "other"
    other.write_text("some text")
    for make in (lambda: archive.symlink_to(other), lambda: archive.write_text("some text"), archive.mkdir):
        make()
        assert ruby("p PURE.open($PROGRAM_NAME)").strip().strip('"').startswith(str(archive)[:1])
        archive.rmdir() if archive.is_dir() and not archive.is_symlink() else archive.unlink()
    ruby("open_archive; PURE.store(2, '/a', [], 'a', 'test'); p PURE.flush")
    assert archive.stat().st_mode & 0o777 == 0o600
    archive.chmod(0o620)
    assert "can be written by others" in ruby("p PURE.open($PROGRAM_NAME)")
    assert other.read_text() == "some text"


def test_a_file_that_is_replaced_while_it_is_opened(ruby):
    """A writer's rename falls between opening and looking what was opened."""
    printed = ruby("""
      open_archive
      PURE.store(2, "/a", [], "a", "test")
      abort(PURE.flush.to_s) if PURE.flush
      $rest = 2
      module Replaced
        def open(path, *)
          super.tap do
            if path.end_with?("archive") && ($rest -= 1) >= 0
              File.binwrite("new", File.binread(path), perm: 0o600)
              File.rename("new", path)
            end
          end
        end
      end
      File.singleton_class.prepend(Replaced)
      p PURE.open($PROGRAM_NAME), PURE.fetch(2, "/a", "test"), $rest
    """)
    assert printed == 'nil\n[0, "a"]\n-1\n'


def test_two_writers_lose_nothing(ruby, tmp_path):
    """Four processes that store at once, several times."""
    ruby("""
      children = Array.new(4) do |child|
        fork do
          open_archive
          10.times { |turn| PURE.store(2, "/#{child}/#{turn}", [], "x" * 999, "test"); reason = PURE.flush and abort(reason) }
          exit!(0)
        end
      end
      children.each { |child| Process.wait(child); abort unless $?.success? }
      open_archive
      abort("lost") unless 4.times.all? { |child| 10.times.all? { |turn| PURE.fetch(2, "/#{child}/#{turn}", "test")[1] } }
    """)
