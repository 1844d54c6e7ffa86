"""The load report of a thawed start from an image of the store: see also tests/store/test_telling.py."""

import importlib.machinery
import sys
import types


def begun(module):
    request = types.SimpleNamespace(profile="profile", on_news=["true"], learnt=[], known=[], told_of=[], checkouts=[])
    started = module("load_report").LoadReport(request)
    started.settle()
    started.begin({})
    return started


def test_the_functions_of_all_modules_are_looked_at_only_where_there_is_something_to_report(module, monkeypatch):
    """That writes to a page for each of them, a millisecond, and most starts have nothing to report but a built-in module."""
    started = begun(module)
    looks = []
    started._patches = types.SimpleNamespace(found=lambda: looks.append(1) or [])
    monkeypatch.setitem(sys.modules, "built_in", types.ModuleType("built_in"))
    assert not started.new_entries() and not looks
    loader = importlib.machinery.SourceFileLoader("from_file", __file__)
    spec = importlib.machinery.ModuleSpec("from_file", loader, origin=__file__)
    spec.has_location = True
    from_file = types.ModuleType("from_file")
    from_file.__spec__ = spec
    monkeypatch.setitem(sys.modules, "from_file", from_file)
    assert ("module", module("channel").record(b"from_file", __file__.encode())) in started.new_entries() and looks
