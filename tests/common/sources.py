"""Facts about the sources of the repository, from their syntax trees: no test searches code by its text."""

import ast
import dataclasses
import functools
import json
import pathlib
import subprocess

from . import support

RUST_FACTS = support.ROOT / "target/release/rust-facts"  # tools/rust-facts; `make build` builds it
RUBY_FACTS = pathlib.Path(__file__).with_name("ruby_facts.rb")


@dataclasses.dataclass(frozen=True)
class Literal:
    """A literal of text: the function or constant around it, and the function or field that gets it (nothing where there is none)."""

    text: str
    item: str = ""
    receiver: str = ""


@dataclasses.dataclass(frozen=True)
class Rust:
    """A file of Rust. All facts but `functions` and `modules` leave out what is compiled for unit tests only; `tests` are the lines of
    these. `returns`: functions with the types of their results; `modules`: those in files of their own, with what `#[path]` says."""

    head: str
    functions: list[str]
    tests: list[tuple[int, int]]
    identifiers: set[str]
    paths: set[str]
    literals: list[Literal]
    returns: list[tuple[str, str]]
    types: set[str]
    modules: list[tuple[str, str | None]]
    structs: dict[str, dict]

    def texts(self, item=None, receiver=None):
        """The literals, of one function or constant, or of what gets them."""
        found = [it for it in self.literals if item in (None, it.item) and receiver in (None, it.receiver)]
        return [literal.text for literal in found]


@dataclasses.dataclass(frozen=True)
class Script:
    """A file of Python or Ruby. `assignments` are those of attributes, with the names in their values."""

    functions: list[str]
    literals: list[str]
    assignments: list[tuple[str, list[str]]]


def rust(paths) -> dict[pathlib.Path, Rust]:
    """The facts about these files."""
    assert RUST_FACTS.exists(), f"{RUST_FACTS} is missing: run `make build`"
    printed = subprocess.run([RUST_FACTS, *paths], capture_output=True, text=True)
    assert printed.returncode == 0, printed.stderr
    found = {}
    for path, facts in json.loads(printed.stdout).items():
        literals = [Literal(**literal) for literal in facts.pop("literals")]
        sets = {name: set(facts.pop(name)) for name in ("identifiers", "paths", "types")}
        found[pathlib.Path(path)] = Rust(literals=literals, **sets, **facts)
    return found


@functools.cache
def crates() -> dict[pathlib.Path, Rust]:
    """The facts about all files of the crates."""
    return rust(sorted((support.ROOT / "crates").rglob("*.rs")))


def product() -> dict[pathlib.Path, Rust]:
    """The facts about the files of the crates that are no tests, examples or scripts of the build."""
    below = {path: path.relative_to(support.ROOT).with_suffix("").parts for path in crates()}
    return {path: facts for path, facts in crates().items() if below[path][2] == "src" and "tests" not in below[path]}


def ruby(paths) -> dict[pathlib.Path, Script]:
    """The facts about these files of Ruby."""
    printed = subprocess.run([support.RUBY, RUBY_FACTS, *paths], capture_output=True, text=True)
    assert printed.returncode == 0, printed.stderr
    return {pathlib.Path(path): Script(**facts) for path, facts in json.loads(printed.stdout).items()}


def python(paths) -> dict[pathlib.Path, Script]:
    """The facts about these files of Python. Comments that document something are no literals."""
    return {path: _python(ast.parse(path.read_text(), str(path))) for path in paths}


def _python(tree) -> Script:
    nodes = list(ast.walk(tree))
    documented = [node for node in nodes if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)]
    comments = {id(node.body[0].value) for node in documented if ast.get_docstring(node) is not None}
    texts = [node for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes) and id(node) not in comments]
    assigned = [(node.targets[0], node.value) for node in nodes if isinstance(node, ast.Assign)]
    return Script(
        [node.name for node in documented if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)],
        [text.value if isinstance(text.value, str) else text.value.decode("utf-8", "replace") for text in texts],
        [
            (target.attr, [name.id for name in ast.walk(value) if isinstance(name, ast.Name)])
            for target, value in assigned
            if isinstance(target, ast.Attribute)
        ],
    )


@functools.cache
def front_ends() -> dict[pathlib.Path, Script]:
    """The facts about all files of the product in Python and Ruby, recipes included."""
    root = support.ROOT
    tops = [root / "python/snapboot", root / "ruby/lib", root / "recipes"]
    pythons, rubies = ([path for top in tops for path in sorted(top.rglob(pattern))] for pattern in ("*.py", "*.rb"))
    return {**python(pythons), **ruby(rubies)}


@functools.cache
def tables() -> dict:
    """Tables of the program (crates/cli tables.rs)."""
    printed = subprocess.run([support.SNAPBOOT, "tables"], capture_output=True, text=True)
    assert printed.returncode == 0, printed.stderr
    return json.loads(printed.stdout)
