"""Lists that say where something stands: each is complete, so that whoever looks for it finds all of it."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
CRATES = ROOT / "crates"


def head(path: pathlib.Path) -> str:
    """The comment at the top of a Rust file."""
    lines = path.read_text().splitlines()
    return "\n".join(line for line in lines[: next(at for at, line in enumerate(lines) if not line.startswith("//!"))])


def test_the_places_of_words_for_stale_images_are_listed():
    sources = [path for crate in ("launcher", "inputs") for path in (CRATES / crate / "src").rglob("*.rs")]
    places = {path.name for path in sources if '"stale: ' in path.read_text()} - {"reason.rs"}
    listed = head(CRATES / "launcher/src/reason.rs")
    assert places and [name for name in sorted(places) if name not in listed] == []


def test_the_places_that_say_that_the_start_is_an_ordinary_one_name_each_other():
    folders = [CRATES, ROOT / "python/snapboot", ROOT / "ruby/lib"]
    files = [path for folder in folders for suffix in ("rs", "py", "rb") for path in folder.glob(f"**/src/**/*.{suffix}")]
    files += [path for folder in folders[1:] for suffix in ("py", "rb") for path in folder.rglob(f"*.{suffix}")]
    # What run.rs says, it says of the store.
    saying = {path for path in files if "; starting the ordinary way" in path.read_text() and path.name != "run.rs"}
    names = {path.name for path in saying}
    assert names == {"fallback.rs", "context.py", "context.rb"}
    for path in saying:
        assert all(name in path.read_text() for name in names - {path.name}), path


def test_each_kind_of_finding_has_its_remedy():
    told = {"note"}
    freezer = (CRATES / "freezer/src/findings.rs").read_text().split("fn name(self)")[1].split("\n    }\n")[0]
    kinds = set(re.findall(r'b"(\w+)"', freezer))
    for path in (path for crate in ("freeze", "judge") for path in (CRATES / crate / "src").rglob("*.rs")):
        kinds |= set(re.findall(r'Finding::new\(\s*"(\w+)"', path.read_text().split("#[cfg(test)]")[0]))
    assert {"descriptor", "early", "made", "attribute", "secret", *told} <= kinds
    table = (ROOT / "docs/remedies.md").read_text().split("## Refusals")[1].split("\n## ")[0]
    found = " ".join(row.split("|")[1] for row in table.splitlines() if row.startswith("| "))
    missing = [kind for kind in sorted(kinds - told) if not re.search(rf"\b{kind}\b", found)]
    assert not missing, "docs/remedies.md needs a row that names the kind"


def versions(name: str) -> list[str]:
    """Of the interpreters that can be frozen: PYTHONS or RUBIES."""
    listed = re.search(rf"const {name}\b[^=]*= \[(.*?)\]", (CRATES / "runtime/src/probe.rs").read_text())
    return re.findall(r'"([\d.]+)"', listed[1])


def test_the_versions_that_can_be_frozen_are_the_same_everywhere():
    pythons, rubies = versions("PYTHONS"), versions("RUBIES")
    harness = re.search(r"^VERSIONS = \((.*)\)", (ROOT / "tests/python/harness.py").read_text(), re.MULTILINE)
    assert re.findall(r'"([\d.]+)"', harness[1]) == pythons
    for path in ("tests/runtimes/test_cpython.py", "tests/archive_python/starts.py", "tools/compiled.py"):
        suite = re.search(r"^(?:VERSIONS|NAMES) = .* range\((\d+), (\d+)\)", (ROOT / path).read_text(), re.MULTILINE)
        assert [f"3.{minor}" for minor in range(int(suite[1]), int(suite[2]))] == pythons, path
    # Whose code the archive lays out itself, each with a layout of its own.
    layouts = (CRATES / "archive-python/src/code/layout.rs").read_text()
    assert sorted(int(minor) for minor in re.findall(r"\bminor: (\d+)", layouts)) == [int(version[2:]) for version in pythons]
    front_end = (ROOT / "ruby/lib/snapboot/front_end/freeze_run.rb").read_text()
    assert re.search(r"VERSIONS = %w\[(.*?)\]", front_end)[1].split() == rubies
    compilers = (ROOT / "ruby/lib/snapboot/front_end/compilers.rb").read_text()
    yjits = rubies[rubies.index(re.search(r'YJIT_SINCE = "([\d.]+)"', compilers)[1]) :]
    assert re.findall(r'"([\d.]+)"', re.search(r"const YJIT\b.*", (CRATES / "runtime/src/jit.rs").read_text())[0]) == yjits
    archive = (CRATES / "archive-ruby/src/ruby/optional.rs").read_text()
    assert re.search(r"b'3', b'\.', b'0'\.\.=b'(\d)'", archive)[1] == rubies[-1][-1] and f"in Ruby 3.0 to {rubies[-1]}." in archive
    told = {"CPython": (pythons[0], pythons[-1]), "CRuby": (rubies[0], rubies[-1])}
    tried = (f"| CPython | {pythons[0]} to {pythons[-1]}:", f"| CRuby | CRuby {rubies[0]}.")
    assert all(words in (ROOT / "docs/limits/README.md").read_text() for words in tried)
    for name in ("README.md", "python/README.md", "CHANGELOG.md", "docs/limits/README.md", "docs/troubleshooting.md", "docs/start.md"):
        for runtime, first, last in re.findall(r"(CPython|CRuby) \(?(3\.\d+) to (3\.\d+)", (ROOT / name).read_text()):
            assert told[runtime] == (first, last), f"{name}: {runtime} {first} to {last}"
    assert "CPython {} to {}; CRuby {} to {} ".format(*told["CPython"], *told["CRuby"]) in (ROOT / "README.md").read_text()
