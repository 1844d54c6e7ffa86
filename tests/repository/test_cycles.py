"""No crate depends on itself through others, and no modules of a crate import each other in a circle."""

import json
import pathlib
import subprocess

from common import sources, support

CRATES = sorted(path.parent for path in (support.ROOT / "crates").glob("*/Cargo.toml"))


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
    """Which crates of the workspace each one depends on, for its tests too: cargo refuses only the other circles."""
    asked = ["cargo", "metadata", "--no-deps", "--format-version", "1", "--offline"]
    packages = json.loads(subprocess.run(asked, cwd=support.ROOT, capture_output=True, check=True).stdout)["packages"]
    names = {package["name"] for package in packages}
    return {package["name"]: {it["name"] for it in package["dependencies"]} & names for package in packages}


def module_of(source: pathlib.Path, top: pathlib.Path) -> tuple[str, ...]:
    """The path of the module that a file holds; () for the root."""
    parts = source.relative_to(top).with_suffix("").parts
    return parts[:-1] if parts[-1] in ("mod", "lib", "main") else parts


def modules(crate: pathlib.Path, facts: dict[pathlib.Path, sources.Rust]) -> dict[str, set[str]]:
    """Which other modules each module of a crate names. A folder's `mod.rs` and its crate's root stand above the modules in them:
    what these share they may find there."""
    top = crate / "src"
    files = {module_of(path, top): path for path in facts if path.is_relative_to(top) and "tests" not in path.with_suffix("").parts}
    edges = {}
    for module, path in files.items():
        found = edges["::".join(module)] = set()
        for names in (path.split("::") for path in facts[path].paths):
            target = tuple(names[1:]) if names[0] == "crate" else ()
            while target and target not in files:
                target = target[:-1]
            if target and target != module and target != module[: len(target)] and module != target[: len(module)]:
                found.add("::".join(target))
    return edges


def test_no_crate_depends_on_itself():
    assert len(crates()) > 10 and crates()["snapboot-cli"]
    assert circles(crates()) == [], "tests that need both crates belong to the one that uses the other"


def test_modules_do_not_import_each_other_in_a_circle():
    found = {path.name: [sorted(circle) for circle in circles(modules(path, sources.crates()))] for path in CRATES}
    found = {crate: sorted(those) for crate, those in found.items() if those}
    assert found == {}, "have one of them pass on what the other needs, or put what both need into a module of its own"


def test_circles_are_found():
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"d"}}) in ([{"b", "c"}, {"d"}], [{"d"}, {"b", "c"}])
    assert circles({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []


def test_what_a_module_imports_is_found(tmp_path):
    texts = {
        "lib.rs": "pub mod a; pub mod b;",
        "a/mod.rs": "use crate::{b::Thing, c};",
        "a/inner.rs": "use super::other; // crate::b::Thing",
        "a/other.rs": "fn f() { super::super::b::g() }",
        "b.rs": "use crate::Root;\n#[cfg(test)]\nmod tests {\n    use crate::a::inner;\n}\n",
        "c.rs": "",
    }
    (tmp_path / "src/a").mkdir(parents=True)
    for name, text in texts.items():
        (tmp_path / "src" / name).write_text(text)
    expected = {"": set(), "a": {"b", "c"}, "a::inner": {"a::other"}, "a::other": {"b"}, "b": set(), "c": set()}
    assert modules(tmp_path, sources.rust(sorted(tmp_path.rglob("*.rs")))) == expected


# Which parts of crates/freeze use nothing of which others, also through others.
APART = {
    "writing": {"programs", "progress", "pipeline"},
    "boot_inputs": {"programs", "progress", "pipeline", "writing"},
    "programs": {"writing", "pipeline"},
}
PRINTS = {"print", "println", "eprint", "eprintln"}


def uses(edges: dict[str, set[str]], part: str, others: set[str]) -> list[str]:
    """The modules of others that a part of a crate reaches."""
    seen, waiting = set(), [module for module in edges if module.split("::")[0] == part]
    while waiting:
        for module in edges[waiting.pop()] - seen:
            seen.add(module)
            waiting.append(module)
    return sorted(module for module in seen if module.split("::")[0] in others)


def starts_or_prints(facts: sources.Rust) -> bool:
    """Whether a file starts a program, waits for one, or prints."""
    is_start = any("process::Command" in path or "deadline" in path.split("::") for path in facts.paths)
    return is_start or bool(facts.identifiers & PRINTS)


def test_what_writes_an_image_uses_nothing_of_what_runs_programs():
    freeze = support.ROOT / "crates/freeze"
    edges = modules(freeze, sources.crates())
    assert all(any(module.split("::")[0] == part for module in edges) for part in APART)
    assert {part: uses(edges, part, others) for part, others in APART.items()} == {part: [] for part in APART}
    parts = {part: [it for it in sources.crates() if it.is_relative_to(freeze / "src" / part)] for part in APART}
    found = {part: [path.name for path in paths if starts_or_prints(sources.crates()[path])] for part, paths in parts.items()}
    assert found["writing"] == found["boot_inputs"] == [] and found["programs"], found


def test_a_use_through_another_module_is_found():
    edges = {"a": {"b::inner"}, "b::inner": {"c"}, "c": set(), "d": set()}
    assert uses(edges, "a", {"c", "d"}) == ["c"] and uses(edges, "c", {"a", "b"}) == []
