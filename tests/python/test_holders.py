"""Where something is held: in words, whatever else the program holds."""

import sys
import types


class Meta(type):
    """Of classes that cannot be compared."""

    __hash__ = None

    def __eq__(cls, other):
        raise ValueError

    def __getattribute__(cls, name):
        raise ValueError


class Odd(metaclass=Meta):
    pass


def test_classes_that_cannot_be_compared_are_passed_by(module, monkeypatch):
    holding, wanted = types.ModuleType("holding"), object()
    holding.odd, holding.below = Odd(), {"first": Odd(), "second": [wanted]}
    monkeypatch.setitem(sys.modules, "holding", holding)
    assert module("holder_paths").paths_to([wanted]) == ["holding.below['second'][0]"]
