"""What is known of a single library stands in its recipe, and no other code names it."""

import pathlib
import re
import sys
import tomllib

from common import sources

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tools"))
import workloads  # noqa: E402

RULES = {path.parent.name: tomllib.loads(path.read_text()) for path in sorted((ROOT / "recipes").glob("*/recipe.toml"))}
STRANGERS = tomllib.loads((ROOT / "tests/strangers/programs.toml").read_text())
# Parts of the runtimes: interpreters with their standard libraries, and gems and libraries that come with each of them.
RUNTIMES = {"cpython", "cruby", "bundler", "irb", "reline", "openssl"}
# Words of other things, too: a colour, a request for memory, events of a page and of the system, Process.setproctitle of Ruby.
OTHER_WORDS = {"black", "requests", "click", "listen", "setproctitle"}
# What people type in examples, and what is said of options: documents, but for their place.
WORDS_OF_THE_COMMAND = "crates/cli/src"
# The boot archive serves ordinary starts, which no command accompanies that could bring recipes: its parsers of YAML and TOML, and
# searches that libraries make in whole trees, are found by the names of modules.
ARCHIVE = ("python/snapboot/archive", "ruby/lib/snapboot/archive")
PLACES = {
    "crates/freezer/src/prepare.rs": {"openmp"},  # libgomp, a part of the C compiler's runtime
    "crates/inputs/src/secret.rs": {"django"},  # how a kind of secret begins; the launcher compares it, too
}
SOURCES = {"crates": (".rs", ".html", ".js", ".css"), "python/snapboot": (".py", ".pyi"), "ruby/lib": (".rb",), "ruby/exe": ("",)}


def libraries() -> set[str]:
    """Names of libraries and programs, small: those with a recipe, and those that tests install."""
    names = set(RULES) | {rules["name"] for rules in RULES.values()}
    packages = [*workloads.WORKLOADS.values()]
    names |= {name for workload in packages for name in workload.python or ()}
    names |= {name for stranger in STRANGERS.values() for name in stranger.get("python", ())}
    names |= {name.partition("-")[2] for workload in packages for name in workload.debian if name.startswith(("ruby-", "python3-"))}
    plain = {re.match(r"[\w -]*", name)[0].lower().replace("_", "-") for name in names}
    return plain - {name.lower() for name in RUNTIMES} - OTHER_WORDS - {"", "dev", "venv"}


def pattern(names: set[str]) -> re.Pattern:
    """Finds them as whole words, or parts of a name between underscores, however they are written."""
    longest = sorted(names, key=len, reverse=True)
    one = "|".join(re.escape(name).replace(r"\-", "[-_ ]?").replace(r"\ ", "[-_ ]?") for name in longest)
    return re.compile(rf"(?<![^\W_])(?:{one})(?![^\W_])", re.IGNORECASE)


def code() -> dict[str, str]:
    """The code of the product, without its tests."""
    found = {}
    for top, endings in SOURCES.items():
        for path in sorted((ROOT / top).rglob("*")):
            name = str(path.relative_to(ROOT))
            is_test = {"tests", "examples"} & set(path.relative_to(ROOT).parts)
            if path.is_file() and path.suffix in endings and not is_test and not name.startswith((WORDS_OF_THE_COMMAND, *ARCHIVE)):
                tests = sources.crates()[path].tests if path.suffix == ".rs" else []
                lines = enumerate(path.read_text().split("\n"), 1)
                found[name] = "\n".join("" if any(first <= number <= last for first, last in tests) else line for number, line in lines)
    return found


def test_no_code_names_a_library():
    names = pattern(libraries())
    found = []
    for name, text in code().items():
        for number, line in enumerate(text.splitlines(), 1):
            words = {word.lower() for word in names.findall(line)} - PLACES.get(name, set())
            found += [f"{name}:{number} names {word}" for word in sorted(words)]
    assert found == [], "put what is known of a library into its recipe (CONTRIBUTING.md, A library)"


def test_names_are_found_however_they_are_written():
    names = pattern(libraries())
    assert len(libraries()) > len(RULES) > 30 and len(code()) > 300
    for line in (
        'READERS = ["/tqdm/utils.py"]',
        "# Rails keeps them",
        "sentry_sdk",
        "ActiveSupport::EncryptedFile",
        '("RAILS_*", WhenRead)',
        "Concurrent-Ruby",
    ):
        assert names.search(line), line
    for line in ("enriched", "a traceback", "trackback", "pack(x)", "trails"):
        assert not names.search(line), line


def test_each_exception_is_needed():
    names = pattern(libraries())
    found = code()
    for name, words in PLACES.items():
        assert {word.lower() for word in names.findall(found[name])} == words, name
    for name in OTHER_WORDS:
        assert any(pattern({name}).search(text) for text in found.values()), name


def test_each_folder_is_a_recipe_that_says_something():
    for folder in (ROOT / "recipes").iterdir():
        files = {path.name for path in folder.iterdir() if path.name != "__pycache__"}
        assert "recipe.toml" in files and files <= {"recipe.toml", "python.py", "ruby.rb"}, folder
        assert set(RULES[folder.name]) - {"name", "language"} or len(files) > 1, folder


def test_the_document_has_each_key():
    """The keys of recipes are the fields of crates/recipes rules.rs."""
    document = (ROOT / "docs/reference.md").read_text().split("\n## Recipes\n")[1].split("\n## ")[0]
    structs = sources.crates()[ROOT / "crates/recipes/src/rules.rs"].structs.values()
    read = [struct["fields"] for struct in structs if "deny_unknown_fields" in struct["attributes"]]
    keys = {key for fields in read for key, attributes in fields.items() if "skip" not in attributes}
    assert {"restarted_threads", "unless_unset", "late_plugins"} <= keys
    assert not {key for key in keys if not re.search(rf"\b{key}\b", document)}
