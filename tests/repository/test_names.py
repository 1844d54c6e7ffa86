"""Names of functions say what they return or do."""

from common import sources, support

# What functions must not be called, with `_`, `?` or `=` around it or without: such a name says nothing where it is used.
SAYS_NOTHING = {"of", "at", "told", "known", "holds", "is_in", "note", "tell", "noted", "noting", "hear", "heard"}


def nameless(files) -> dict[str, list[str]]:
    """The files with functions whose names say nothing, and these names."""
    names = {
        str(path.relative_to(support.ROOT)): sorted(name for name in facts.functions if name.strip("_?!=") in SAYS_NOTHING)
        for path, facts in files.items()
    }
    return {path: found for path, found in names.items() if found}


def test_functions_of_crates_say_what_they_return_or_do():
    assert not nameless(sources.crates())


def test_functions_of_front_ends_say_what_they_return_or_do():
    assert not nameless(sources.front_ends())


def test_functions_of_tests_and_tools_say_what_they_return_or_do():
    tops = [support.ROOT / top for top in ("tests", "tools", "bench")]
    pythons, rubies, rusts = ([path for top in tops for path in sorted(top.rglob(ending))] for ending in ("*.py", "*.rb", "*.rs"))
    assert not nameless({**sources.python(pythons), **sources.ruby(rubies), **sources.rust(rusts)})


def test_names_that_say_nothing_are_found():
    file = sources.Script(["of", "told?", "_note", "known=", "known_form?", "at_end", "note_of"], [], [])
    assert nameless({support.ROOT / "a.rb": file}) == {"a.rb": ["_note", "known=", "of", "told?"]}
