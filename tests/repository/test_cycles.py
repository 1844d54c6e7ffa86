"""No crate depends on itself through others, and no modules of a crate import each other in a circle."""

import pathlib
import re
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[2]
CRATES = sorted(path.parent for path in (ROOT / "crates").glob("*/Cargo.toml"))
# What a compiler does not read, and tests in the file of what they test, which stand at its end.
UNREAD = re.compile(r"//[^\n]*|^#\[cfg\((?:all\()?test\b.*?\)\]\s*mod \w+ \{.*\Z", re.MULTILINE | re.DOTALL)
PATH = re.compile(r"\b(crate|self|super(?:::super)*)::((?:\w+::)*)(\{|\w+)")


def circles(edges: dict[str, set[str]]) -> list[set[str]]:
    """The sets of nodes that reach each other."""
    reached = {}
    for start in edges:
        seen, waiting = set(), [start]
        while waiting:
            for node in edges.get(waiting.pop(), set()) - seen:
                seen.add(node)
                waiting.append(node)
        reached[start] = seen
    found = {frozenset(other for other in seen if start in reached.get(other, ())) for start, seen in reached.items() if start in seen}
    return [set(circle) for circle in found]


def crates() -> dict[str, set[str]]:
    """Which crates of the workspace each one names in its Cargo.toml, for its tests too: cargo refuses only the other circles."""
    manifests = {path: tomllib.loads((path / "Cargo.toml").read_text()) for path in CRATES}
    names = {path: manifest["package"]["name"] for path, manifest in manifests.items()}
    named = {}
    for path, manifest in manifests.items():
        tables = [manifest, *manifest.get("target", {}).values()]
        found = named[path.name] = set()
        for table in tables:
            for kind in ("dependencies", "build-dependencies", "dev-dependencies"):
                for name, details in table.get(kind, {}).items():
                    package = details.get("package", name) if isinstance(details, dict) else name
                    found |= {other.name for other in CRATES if package in (names[other], other.name)}
    return named


def places(text: str, start: int) -> list[str]:
    """The first names of each branch of a group `{a::b, c}` that begins before `start`."""
    depth, found, word = 1, [], ""
    while depth and start < len(text):
        sign = text[start]
        depth += {"{": 1, "}": -1}.get(sign, 0)
        if depth == 1 and sign == "," or depth == 0:
            found.append(word.strip())
            word = ""
        elif depth == 1:
            word += sign
        start += 1
    return [re.match(r"\w*", branch).group() for branch in found if branch]


def module_of(source: pathlib.Path, top: pathlib.Path) -> tuple[str, ...]:
    """The path of the module that a file holds; () for the root."""
    parts = source.relative_to(top).with_suffix("").parts
    return parts[:-1] if parts[-1] in ("mod", "lib", "main") else parts


def modules(crate: pathlib.Path) -> dict[str, set[str]]:
    """Which other modules each module of a crate names. A folder's `mod.rs` and its crate's root stand above the modules in them:
    what these share they may find there."""
    top = crate / "src"
    files = {module_of(path, top): path for path in top.rglob("*.rs") if "tests" not in path.relative_to(top).parts}
    files = {module: path for module, path in files.items() if module[-1:] != ("tests",)}
    edges = {}
    for module, path in files.items():
        text = UNREAD.sub("", path.read_text())
        found = edges["::".join(module)] = set()
        for match in PATH.finditer(text):
            base, middle, last = match.groups()
            above = {"crate": (), "self": module}.get(base)
            if above is None:
                above = module[: len(module) - base.count("super")]
            ends = places(text, match.end()) if last == "{" else [last]
            for end in ends:
                target = (*above, *filter(None, middle.split("::")), end)
                while target and target not in files:
                    target = target[:-1]
                if target and target != module and target != module[: len(target)] and module != target[: len(module)]:
                    found.add("::".join(target))
    return edges


def test_no_crate_depends_on_itself():
    assert len(crates()) > 10 and crates()["cli"]
    assert circles(crates()) == [], "tests that need both crates belong to the one that uses the other"


def test_modules_do_not_import_each_other_in_a_circle():
    found = {path.name: [sorted(circle) for circle in circles(modules(path))] for path in CRATES}
    found = {crate: sorted(those) for crate, those in found.items() if those}
    assert found == {}, "have one of them pass on what the other needs, or put what both need into a module of its own"


def test_circles_are_found():
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"d"}}) in ([{"b", "c"}, {"d"}], [{"d"}, {"b", "c"}])
    assert circles({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []


def test_what_a_module_imports_is_found(tmp_path):
    sources = {
        "lib.rs": "pub mod a; pub mod b;",
        "a/mod.rs": "use crate::{b::Thing, c};",
        "a/inner.rs": "use super::other; // crate::b::Thing",
        "a/other.rs": "fn f() { super::super::b::g() }",
        "b.rs": "use crate::Root;\n#[cfg(test)]\nmod tests {\n    use crate::a::inner;\n}\n",
        "c.rs": "",
    }
    (tmp_path / "src/a").mkdir(parents=True)
    for name, text in sources.items():
        (tmp_path / "src" / name).write_text(text)
    expected = {"": set(), "a": {"b", "c"}, "a::inner": {"a::other"}, "a::other": {"b"}, "b": set(), "c": set()}
    assert modules(tmp_path) == expected
