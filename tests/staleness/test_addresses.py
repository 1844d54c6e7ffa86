"""Addresses are others in each boot: what a program keeps by them, or in their order, depends on nothing in a start."""

import pytest

from .test_other_start import Program

pytestmark = pytest.mark.sample(2, whole=True)

CONFIG = "VALUE = os.environ.get('XDG_CONFIG_HOME') or os.path.expanduser('~/.config')"


def test_what_is_kept_by_addresses_makes_no_difference(tmp_path, homes):
    """As the types of cffi are."""
    by_address = "KEPT = object()\nBY_ADDRESS = {id(KEPT).to_bytes(8, sys.byteorder): KEPT}\n"
    program = Program(tmp_path, by_address + CONFIG, {"HOME": homes[0]})
    program.check(True, XDG_CONFIG_HOME=f"{homes[0]}/.config")
    program.check(False, XDG_CONFIG_HOME="/etc")


def test_the_order_of_addresses_makes_no_difference(tmp_path, homes):
    """Of three classes, so that two boots have it alike by chance now and then."""
    classes = "CLASSES = tuple({ValueError, type('A', (), {}), type('B', (), {})})\n"
    program = Program(tmp_path, f"{classes}VALUE = os.path.expanduser('~/.config')", {"HOME": homes[0]})
    program.check(True, HOME=homes[1])


def test_an_order_that_is_chosen_counts(tmp_path, homes):
    chosen = "CLASSES = [ValueError, TypeError]\nif os.environ['USER'] == 'one': CLASSES.reverse()\n"
    program = Program(tmp_path, f"{chosen}VALUE = str(CLASSES)", {"USER": "one", "HOME": homes[0]})
    program.check(True, HOME=homes[1])
    program.check(False, USER="two")
