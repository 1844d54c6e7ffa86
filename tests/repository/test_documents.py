"""What documents and sources promise about themselves: links lead somewhere, versions agree, drawings are current, files stay small."""

import ast
import pathlib
import re
import subprocess
import sys
import tomllib

import pytest
from common import support

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import diagram  # noqa: E402

LINK = re.compile(r"(?:\]\(|(?:src|srcset)=\")(?!https?:)([^)#\"\s]*)(?:#([^)\"\s]*))?[)\"]")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
# A document of this repository, named from its top.
NAMED = re.compile(r"(?<![\w./-])(?:docs/[\w./-]+|ARCHITECTURE|CONTRIBUTING|CHANGELOG)\.md\b(?:#([\w-]+))?")
# A source file as prose names it, after its crate: "crates/cli order.rs", "crates/inputs/src/place.rs".
SOURCE = re.compile(r"\b(crates/[a-z-]+)[ /]((?:[\w-]+/)*[\w-]+(?:\.rs)?)\b")
# One that prose names by its folder, such as "programs/boot.rs".
BELOW = re.compile(r"(?<![\w./-])(?:[\w-]+/)+[\w-]+\.rs\b")
# One that a comment names alone, such as "boot.rs"; names in backquotes may be anybody's.
ALONE = re.compile(r"(?<![\w./*{}<`-])[a-z_]+\.(?:rs|py|rb)\b(?!`)")
COMMENT = re.compile(r"^\s*(?:///?!?|//!|#)\s(.*)$", re.MULTILINE)
QUOTED = re.compile(r"`[^`\n]*`?")
# Words that only this project would understand, and what its documents say instead.
PRIVATE = {
    "in vain": "looked up and not found",
    "the house": "the architecture, the project",
    "rooms": "crates, modules",
    "looked at aside": "compared by a helper process",
}
MAX_LINES = 500
MAX_ROWS = 40
MAX_FILES_OF_A_ROW = 5
SOURCES = (".rs", ".py", ".rb", ".c", ".h", ".sh")


def tracked(*suffixes: str) -> list[pathlib.Path]:
    """The repository's own files with these suffixes."""
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip("this is not a git work tree")
    return [ROOT / name for name in done.stdout.splitlines() if name.endswith(suffixes) and (ROOT / name).is_file()]


def anchors(document: pathlib.Path) -> set[str]:
    """What a link into a document may name: its headings as GitHub and others write them."""
    headings = HEADING.findall(FENCED.sub("", document.read_text()))
    plain = [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower() for heading in headings]
    return {re.sub(r"[^\w -]", "", heading).strip().replace(" ", "-") for heading in plain}


def lost(document: pathlib.Path, links: list[tuple[str, str]]) -> list[str]:
    """Those links of a document that lead nowhere."""
    found = []
    for to, anchor in links:
        target = document.parent / to if to else document
        if not target.exists() or (anchor and anchor not in anchors(target)):
            found.append(f"{document.relative_to(ROOT)} -> {to}{'#' if anchor else ''}{anchor}")
    return found


def test_links_lead_to_files_and_headings():
    documents = tracked(".md")
    assert not [link for path in documents for link in lost(path, LINK.findall(FENCED.sub("", path.read_text())))]


def test_links_into_nowhere_are_found():
    path = ROOT / "docs/how-it-works.md"
    assert lost(path, [("limits/README.md", "what-is-supported"), ("", "thawing"), ("../README.md", "how-it-compares")]) == []
    assert len(lost(path, [("no.md", ""), ("", "no-such-heading"), ("limits/README.md", "no-such-heading")])) == 3
    assert LINK.findall('[a](b.md#c) [d](#e) <img src="f.svg"> [g](https://h)') == [("b.md", "c"), ("", "e"), ("f.svg", "")]


def test_documents_that_sources_name_exist():
    wrong = []
    for path in tracked(*SOURCES, ".md", "Makefile"):
        for match in NAMED.finditer(path.read_text()):
            document, anchor = ROOT / match.group(0).split("#")[0], match.group(1)
            if not document.exists() or (anchor and anchor not in anchors(document)):
                wrong.append(f"{path.relative_to(ROOT)} names {match.group(0)}")
    assert not wrong


def test_sources_that_documents_name_exist():
    wrong = []
    for document in tracked(".md"):
        for crate, name in SOURCE.findall(document.read_text()):
            if name.endswith(".rs") and not list((ROOT / crate).rglob(name)):
                wrong.append(f"{document.relative_to(ROOT)} names {crate} {name}")
    ends = {"/".join(path.parts[start:]) for path in tracked(".rs") for start in range(len(path.parts))}
    for document in tracked(".md"):
        wrong += [f"{document.relative_to(ROOT)} names {name}" for name in BELOW.findall(document.read_text()) if name not in ends]
    assert not wrong


def test_sources_that_other_sources_name_exist():
    wrong = []
    for source in tracked(*SOURCES):
        if source == pathlib.Path(__file__).resolve():
            continue
        comments = "\n".join(line.strip().lstrip("/!# ") for line in source.read_text().splitlines())
        for crate, name in SOURCE.findall(comments):
            if name.endswith(".rs") and not list((ROOT / crate).rglob(name)):
                wrong.append(f"{source.relative_to(ROOT)} names {crate} {name}")
    assert not wrong


def test_files_that_comments_name_exist():
    names = {path.name for path in tracked(*SOURCES)}
    wrong = []
    for source in tracked(".rs", ".py", ".rb"):
        if "tests" not in source.parts:
            comments = QUOTED.sub("", "\n".join(COMMENT.findall(source.read_text())))
            wrong += [f"{source.relative_to(ROOT)} names {name}" for name in ALONE.findall(comments) if name not in names]
    assert not wrong


def test_the_table_of_contributing_names_what_exists():
    table = (ROOT / "CONTRIBUTING.md").read_text().split("## Where to change what")[1].split("\n## ")[0]
    rows = [row for row in table.splitlines() if row.startswith("| ") and not row.startswith(("| to change |", "| --- |"))]
    cells = [cell for row in rows for cell in row.split("|")[2:4]]
    wrong = []
    for cell in cells:
        folder = ROOT
        for name in re.findall(r"`([^`]+)`", cell):
            # A bare name lies beside the one before it.
            found = sorted(ROOT.glob(name)) if "/" in name else sorted(folder.glob(name)) or sorted(ROOT.glob(name))
            if found and found[0] != ROOT:
                folder = found[0].parent
            elif not name.startswith("make "):
                wrong.append(name)
    assert not wrong
    assert 0 < len(rows) <= MAX_ROWS, "names of files and folders should say the rest"
    long = [cell for cell in cells if cell.count("`") > 2 * MAX_FILES_OF_A_ROW]
    assert not long, "a row that names so many files is about several things"


def test_the_index_lists_every_document():
    listed = {to for to, _ in LINK.findall((ROOT / "docs/README.md").read_text())}
    for document in [*(ROOT / "docs").glob("*.md"), *(ROOT / "docs/internals").glob("*.md"), *(ROOT / "docs/limits").glob("*.md")]:
        name = str(document.relative_to(ROOT / "docs"))
        assert name in listed or name == "README.md", f"docs/README.md has no row for {name}"
    decisions = ROOT / "docs/decisions"
    records = {path.name for path in decisions.glob("*.md")} - {"README.md"}
    assert sorted(records) == [to for to, _ in LINK.findall((decisions / "README.md").read_text())], "one row for each, in their order"
    for name in records:
        parts = re.findall(r"^\*\*(.*?)\.\*\*", (decisions / name).read_text(), re.MULTILINE)
        assert parts == ["Context", "Decision", "Consequences"], name


def test_documents_use_the_words_of_the_field():
    for document in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "ARCHITECTURE.md", *(ROOT / "docs").rglob("*.md")]:
        text = " ".join(document.read_text().split())
        for word, instead in PRIVATE.items():
            assert not re.search(rf"\b{word}\b", text), f"{document.name} says {word}; readers know: {instead}"


def test_the_picture_is_up_to_date():
    for path, drawn in diagram.pictures().items():
        assert path.read_text() == drawn, f"run: tools/diagram.py (it writes {path.name})"


@support.needs_ruby
def test_one_version_everywhere():
    workspace = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    asked = {
        "python": [support.PYTHON, "-c", "import snapboot; print(snapboot.__version__)"],
        "ruby": [support.RUBY, "-e", "puts Gem::Specification.load('snapboot.gemspec').version"],
    }
    answers = {folder: support.run(argv, log=False, cwd=ROOT / folder) for folder, argv in asked.items()}
    assert {folder: answer.out for folder, answer in answers.items()} == dict.fromkeys(asked, f"{workspace}\n"), answers
    # The wheel takes its version from that file; tests/packages builds both.
    project = tomllib.loads((ROOT / "python/pyproject.toml").read_text())
    assert "version" in project["project"]["dynamic"]
    assert project["tool"]["hatch"]["version"] == {"path": "snapboot/__init__.py"}


def test_files_stay_small():
    long = {str(path.relative_to(ROOT)): path.read_bytes().count(b"\n") for path in tracked(*SOURCES)}
    assert not {name: lines for name, lines in long.items() if lines > MAX_LINES}


def test_the_type_hints_are_of_what_is_there():
    source, hints = (ast.parse((ROOT / f"python/snapboot/__init__.{ending}").read_text()) for ending in ("py", "pyi"))
    names = [[node.name, [it.arg for it in node.args.args]] for node in source.body if isinstance(node, ast.FunctionDef)]
    hinted = [[node.name, [it.arg for it in node.args.args]] for node in hints.body if isinstance(node, ast.FunctionDef)]
    assert sorted(names) == sorted(hinted)
    assert len(names) == 5
