"""Lists that say where something stands: each is complete, so that whoever looks for it finds all of it."""

import re
import runpy
import subprocess

from common import sources, support
from common.pythons import VERSIONS

from python import harness

ROOT = support.ROOT
CRATES = ROOT / "crates"
RUBY_FRONT_END = ROOT / "ruby/lib/snapboot/front_end"


def test_the_places_of_words_for_stale_images_are_listed():
    files = {path: facts for path, facts in sources.product().items() if path.relative_to(CRATES).parts[0] in ("launcher", "inputs")}
    places = {path.name for path, facts in files.items() if any(text.startswith("stale: ") for text in facts.texts())} - {"reason.rs"}
    listed = files[CRATES / "launcher/src/reason.rs"].head
    assert places and [name for name in sorted(places) if name not in listed] == []


def test_the_places_that_say_that_the_start_is_an_ordinary_one_name_each_other():
    texts = {path: facts.texts() for path, facts in sources.product().items()}
    texts |= {path: facts.literals for path, facts in sources.front_ends().items()}
    # What run.rs says, it says of the store.
    saying = {path for path, all in texts.items() if any("; starting the ordinary way" in it for it in all) and path.name != "run.rs"}
    names = {path.name for path in saying}
    assert names == {"fallback.rs", "context.py", "context.rb"}
    for path in saying:
        assert all(name in path.read_text() for name in names - {path.name}), path


def test_each_kind_of_finding_has_its_remedy():
    told = {"note"}
    kinds = set(sources.crates()[CRATES / "freezer/src/findings.rs"].texts(item="name"))
    made_in = [facts for path, facts in sources.product().items() if path.relative_to(CRATES).parts[0] in ("freeze", "judge")]
    # The first argument; the other one is a sentence.
    kinds |= {text for facts in made_in for text in facts.texts(receiver="Finding::new") if text.isidentifier()}
    assert {"descriptor", "early", "made", "attribute", "secret", *told} <= kinds
    table = (ROOT / "docs/remedies.md").read_text().split("## Refusals")[1].split("\n## ")[0]
    found = " ".join(row.split("|")[1] for row in table.splitlines() if row.startswith("| "))
    missing = [kind for kind in sorted(kinds - told) if not re.search(rf"\b{kind}\b", found)]
    assert not missing, "docs/remedies.md needs a row that names the kind"


def names_of(path: str) -> dict:
    """The names that a file of Python, which imports nothing of the tests, defines."""
    return runpy.run_path(str(ROOT / path))


def versions_of_the_front_end() -> tuple[list[str], str]:
    """Of Ruby: the versions that it lets in, and the first one whose YJIT it lets in."""
    constants = "%w[VERSIONS YJIT_SINCE].map { |name| found.find { |it| it.const_defined?(name, false) }.const_get(name) }"
    files = [RUBY_FRONT_END / "freeze_run.rb", RUBY_FRONT_END / "compilers.rb"]
    code = "ARGV.each { |file| require file }; found = ObjectSpace.each_object(Module).select { |it| it.name }; "
    code += f"found.select! {{ |it| %i[VERSIONS YJIT_SINCE].any? {{ |name| it.const_defined?(name, false) }} }}; puts {constants}"
    printed = subprocess.run([support.RUBY, "-e", code, *files], capture_output=True, text=True, check=True).stdout.split()
    return printed[:-1], printed[-1]


def test_the_versions_that_can_be_frozen_are_the_same_everywhere():
    frozen = sources.tables()["versions"]
    pythons, rubies = frozen["python"], frozen["ruby"]
    minors = [int(version.removeprefix("3.")) for version in pythons]
    assert list(harness.VERSIONS) == pythons
    assert VERSIONS == [(3, minor) for minor in minors]
    assert names_of("tools/compiled.py")["NAMES"] == ["python3", *(f"python{version}" for version in pythons)]
    # Whose code the archive lays out itself, each with a layout of its own.
    layouts = sources.crates()[CRATES / "archive-python/src/code/layout.rs"]
    assert sorted(int(minor) for minor in layouts.texts(receiver="minor")) == minors
    let_in, first_yjit = versions_of_the_front_end()
    assert let_in == rubies and rubies[rubies.index(first_yjit) :] == frozen["yjit"]
    told = {"CPython": (pythons[0], pythons[-1]), "CRuby": (rubies[0], rubies[-1])}
    tried = (f"| CPython | {pythons[0]} to {pythons[-1]}:", f"| CRuby | CRuby {rubies[0]}.")
    assert all(words in (ROOT / "docs/limits/README.md").read_text() for words in tried)
    for name in ("README.md", "python/README.md", "CHANGELOG.md", "docs/limits/README.md", "docs/troubleshooting.md", "docs/start.md"):
        for runtime, first, last in re.findall(r"(CPython|CRuby) \(?(3\.\d+) to (3\.\d+)", (ROOT / name).read_text()):
            assert told[runtime] == (first, last), f"{name}: {runtime} {first} to {last}"
    assert "CPython {} to {}; CRuby {} to {} ".format(*told["CPython"], *told["CRuby"]) in (ROOT / "README.md").read_text()
