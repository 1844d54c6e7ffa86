"""Every file below src of a crate is compiled: it is a module that another file declares, or the root of a target."""

import json
import pathlib
import subprocess

from common import sources, support


def roots() -> set[pathlib.Path]:
    """The files with which cargo begins."""
    asked = ["cargo", "metadata", "--no-deps", "--format-version", "1", "--offline"]
    packages = json.loads(subprocess.run(asked, cwd=support.ROOT, capture_output=True, check=True).stdout)["packages"]
    return {pathlib.Path(target["src_path"]) for package in packages for target in package["targets"]}


def folder_of(path: pathlib.Path, is_root: bool) -> pathlib.Path:
    """The folder in which a file has its modules."""
    return path.parent if is_root or path.name == "mod.rs" else path.with_suffix("")


def declared(path: pathlib.Path, facts: sources.Rust, is_root: bool, own: str) -> set[pathlib.Path]:
    """The files of the modules that a file declares. own: its own path."""
    found = set()
    for name, file in facts.modules:
        # Modules within modules of this file have folders of their own.
        *within, last = name.split("::")[len(own.split("::")) if own else 0 :]
        folder = folder_of(path, is_root).joinpath(*within)
        places = [path.parent / file] if file else [folder / f"{last}.rs", folder / last / "mod.rs"]
        found |= {place.resolve() for place in places if place.exists()}
    return found


def compiled(files: dict[pathlib.Path, sources.Rust], roots: set[pathlib.Path]) -> set[pathlib.Path]:
    """The files that are reached from these."""
    seen, waiting = set(), [path for path in files if path in roots]
    while waiting:
        path = waiting.pop()
        seen.add(path)
        own = "::".join(module_of(path))
        waiting += (declared(path, files[path], path in roots, own) & set(files)) - seen
    return seen


def module_of(path: pathlib.Path) -> tuple[str, ...]:
    """The path that the facts about a file give to its module: its folders below src; none for what lies elsewhere."""
    parts = path.with_suffix("").parts
    below = parts[len(parts) - parts[::-1].index("src") :] if "src" in parts else ()
    return below[:-1] if below and below[-1] in ("mod", "lib", "main") else below


def test_every_file_is_compiled():
    reached = compiled(sources.crates(), roots())
    below = {path: path.relative_to(support.ROOT) for path in sources.crates()}
    found = [str(name) for path, name in below.items() if name.parts[2] == "src" and path not in reached]
    assert len(reached) > 400 and found == [], "declare them as modules, or remove them"


def test_a_file_that_no_other_declares_is_found(tmp_path):
    texts = {
        "lib.rs": "mod a;\n#[cfg(test)]\nmod tests;\nmod inline { mod b; }\n",
        "a/mod.rs": "mod inner;\n#[path = \"../elsewhere.rs\"]\nmod other;\n",
        "a/inner.rs": "mod below;\n",
        "a/inner/below.rs": "",
        "a/below.rs": "",
        "elsewhere.rs": "",
        "tests.rs": "// mod dead;\n",
        "inline/b.rs": "",
        "dead.rs": "mod with_it;\n",
        "dead/with_it.rs": "",
    }
    top = tmp_path / "src"
    for name, text in texts.items():
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text(text)
    files = sources.rust(sorted(top.rglob("*.rs")))
    dead = {str(path.relative_to(top)) for path in set(files) - compiled(files, {top / "lib.rs"})}
    assert dead == {"dead.rs", "dead/with_it.rs", "a/below.rs"}
