"""Reasons have types: who gets one matches on it, and nobody looks into its words."""

import pytest
from common import sources, support

# What a text is written into, or read as. An error that is one of these says nothing but words.
TEXTS = {"String", "&str", "Box<str>", "Cow<str>", "Box<String>", "&String", "Arc<str>", "Rc<str>"}


def arguments(of: str) -> tuple[str, list[str]]:
    """The name of a type, and its arguments: of Result<(A, B), C> the list [(A, B), C]."""
    name, _, rest = of.partition("<")
    found, depth = [""], 0
    for letter in rest.removesuffix(">") if rest else "":
        depth += (letter in "<([") - (letter in ">)]")
        if letter == "," and depth == 0:
            found.append("")
        else:
            found[-1] += letter
    return name, [text.strip() for text in found if text.strip()]


def fails_with_a_text(of: str) -> bool:
    """Whether a type is a Result whose error is a text."""
    name, those = arguments(of)
    return name == "Result" and len(those) == 2 and those[1] in TEXTS


def test_no_error_is_a_text():
    texts = {path: sorted(filter(fails_with_a_text, facts.types)) for path, facts in sources.product().items()}
    found = {str(path.relative_to(support.ROOT)): those for path, those in texts.items() if those}
    assert len(texts) > 300 and found == {}, "give it a type with its words beside it, as crates/store/src/no_image_reason.rs does"


@pytest.mark.parametrize(
    "of, expected",
    [
        ("Result<(), String>", True),
        ("Result<Result<Start, String>>", False),
        ("Result<Vec<Result<u8, String>>, &str>", True),
        ("Result<(String, String), Failure>", False),
        ("Result<String>", False),
        ("Option<String>", False),
    ],
)
def test_an_error_that_is_a_text_is_found(of, expected):
    assert fails_with_a_text(of) == expected


def test_inner_results_are_found(tmp_path):
    source = tmp_path / "a.rs"
    source.write_text("fn a() -> io::Result<std::result::Result<u8, String>> {}\n#[cfg(test)]\nfn b() -> Result<(), &'static str> {}\n")
    facts = sources.rust([source])[source]
    assert list(filter(fails_with_a_text, facts.types)) == ["Result<u8, String>"]


# Functions that may return a text, and what it is: none is a reason. What fails, is stale, left out or not used has a type for that.
DATA = {
    "archive-python/src/cwd.rs path": "a path",
    "archive-python/src/json.rs kind_of": "a name",
    "archive-python/src/methods.rs flush": "the words of an error, for Python",
    "archive-python/src/methods.rs open": "the words of an error, for Python",
    "archive-python/src/sys_path.rs text": "an argument",
    "archive-python/src/search.rs cached": "a path",
    "cli/src/check/host.rs glibc_version": "a version",
    "cli/src/check/host.rs vdso_flags": "flags of a mapping",
    "cli/src/check/watching.rs field": "a field of a file",
    "cli/src/explain/advice.rs place_in": "a place",
    "cli/src/explain/advice.rs withheld": "a command line",
    "cli/src/explain/rows.rs amount": "a number with its unit",
    "cli/src/explain/trial.rs place": "a place",
    "cli/src/explain/trial.rs typed_start": "a command line",
    "cli/src/freeze/summary.rs hint": "a line of the summary",
    "explain/src/thaw/inputs.rs root": "a path",
    "explain/src/thaw/mod.rs count": "a number with its unit",
    "freeze/src/late_plugins.rs warning": "a recipe's sentence",
    "freeze/src/program.rs depends_on_cpu": "an input, with the reason that an Unfit holds",
    "freeze/src/programs/first_start.rs last_word": "what a start has printed",
    "freeze/src/programs/report.rs kept_as": "a warning about names that a boot has reported",
    "freeze/src/programs/training.rs last_line": "what a run has printed",
    "image-file/src/differences.rs name": "a name",
    "image-file/src/info.rs loads": "a name",
    "inputs/src/arch/aarch64/names.rs bit_name": "a name",
    "inputs/src/arch/aarch64/names.rs name": "a name",
    "inputs/src/arch/x86_64/names.rs bit_name": "a name",
    "inputs/src/cpu.rs name": "a name",
    "inputs/src/facts/difference.rs terminal_message": "the words beside a comparison",
    "judge/src/reads.rs place": "a place",
    "launcher/src/arch/aarch64.rs refusal": "the words beside a check",
    "launcher/src/arch/x86_64.rs refusal": "the words beside a check",
    "recipes/src/lib.rs remedy": "a recipe's sentence",
    "remote/src/sign_command.rs decoded": "a signature",
    "store/src/command.rs text": "a file's text",
}


def may_be_a_text(of: str) -> bool:
    """Whether a type is an optional text, or a result that may be one."""
    name, those = arguments(of)
    return name == "Option" and those[0] in TEXTS or name in ("Option", "Result") and bool(those) and may_be_a_text(those[0])


def test_texts_that_functions_may_return_are_data():
    crates = support.ROOT / "crates"
    returned = [
        f"{path.relative_to(crates)} {function}"
        for path, facts in sources.product().items()
        for function, of in facts.returns
        if may_be_a_text(of)
    ]
    assert sorted(set(returned)) == sorted(DATA), "a reason has a type; add what returns other texts to DATA, and remove what is gone"


@pytest.mark.parametrize(
    "of, expected",
    [
        ("Option<String>", True),
        ("Result<Option<&str>>", True),
        ("Option<Result<Option<String>, Failure>>", True),
        ("Option<PathBuf>", False),
        ("Result<String>", False),
        ("(Option<String>, u8)", False),
    ],
)
def test_a_text_that_may_be_returned_is_found(of, expected):
    assert may_be_a_text(of) == expected


def test_only_the_commands_print():
    """What a boot or another process has printed is a value. snapboot-remote is what `snapboot remote` executes."""
    prints = {"print", "println", "eprint", "eprintln", "dbg"}
    crates = support.ROOT / "crates"
    found = [
        str(path.relative_to(crates))
        for path, facts in sources.product().items()
        if path.relative_to(crates).parts[0] != "cli" and path != crates / "remote/src/main.rs" and facts.identifiers & prints
    ]
    assert found == []
