"""Addresses are others in each boot: what a program keeps by them, or in their order, depends on nothing in a start."""

import pytest
from common import support

from .test_other_start import Program

pytestmark = pytest.mark.sample(8, whole=True)

CONFIG = "VALUE = os.environ.get('XDG_CONFIG_HOME') or os.path.expanduser('~/.config')"


def test_what_is_kept_by_addresses_makes_no_difference(tmp_path, homes):
    """As the types of cffi are."""
    by_address = "KEPT = object()\nBY_ADDRESS = {id(KEPT).to_bytes(8, sys.byteorder): KEPT}\n"
    program = Program(tmp_path, by_address + CONFIG, {"HOME": homes[0]})
    program.check(True, XDG_CONFIG_HOME=f"{homes[0]}/.config")
    program.check(False, XDG_CONFIG_HOME="/etc")


@pytest.mark.parametrize("length", [0, 700, 710, 760])
def test_the_order_of_addresses_makes_no_difference(length, tmp_path, homes):
    """Boots in the same environment have the same order. A long value comes from malloc, which shifts the classes that come from there."""
    first = homes[0] + "/home" * (length // 5) + "x" * (length % 5)
    classes = "CLASSES = [tuple({ValueError, type('A', (), {}), type('B', (), {})}) for _ in range(3)]\n"
    program = Program(tmp_path, f"{classes}VALUE = os.path.expanduser('~/.config')", {"HOME": first})
    program.check(True, HOME=homes[1])


def test_the_order_of_like_objects_in_a_set_makes_no_difference(tmp_path, homes):
    """As the handlers of logging, some of which have no texts that tell them apart."""
    source = (
        "Handler = type('Handler', (), {})\nboth = list({Handler(), Handler()})\n"
        "home = os.environ['HOME']\nif len(home) > 200: both.reverse()\n"
        "ONE, OTHER = both\nALL, VALUE = {ONE, OTHER}, home + '/.config'\ndel both, home\n"
    )
    program = Program(tmp_path, source, {"HOME": f"{homes[0]}/{'long' * 50}"})
    program.check(True, HOME=homes[1])


@pytest.mark.parametrize("count", [5, 9, 12, 20, 30])
def test_numbers_in_the_order_of_addresses_make_no_difference(count, tmp_path, homes):
    """As a parser numbers its states, which come from a set. Texts of another length lie between them in another start."""
    source = (
        "State = type('State', (), {})\ntexts, states = [], []\n"
        f"for number in range({count}):\n"
        "    texts.append(os.path.expanduser(f'~/{number}'))\n"
        "    states.append(State())\n"
        "    states[-1].key = f'key{number}'\n"
        "ROWS = {number: {state.key: [number], 'end': [number]} for number, state in enumerate(set(states))}\n"
        "del states, number\nVALUE = os.path.expanduser('~/.config')"
    )
    program = Program(tmp_path, source, {"HOME": homes[0]})
    program.check(True, HOME=homes[1])
    shown = support.run([support.SNAPBOOT, "inspect", program.image], log=False)
    assert "ROWS[" not in shown.out, shown


def test_rows_that_are_chosen_count(tmp_path, homes):
    chosen = "ROWS = [{'one': 1}, {'two': 2}, {'three': 3}]\nif os.environ['USER'] == 'one': ROWS.reverse()\n"
    program = Program(tmp_path, f"{chosen}VALUE = str(ROWS)", {"USER": "one", "HOME": homes[0]})
    program.check(True, HOME=homes[1])
    program.check(False, USER="two")


def test_an_order_that_is_chosen_counts(tmp_path, homes):
    chosen = "CLASSES = [ValueError, TypeError]\nif os.environ['USER'] == 'one': CLASSES.reverse()\n"
    program = Program(tmp_path, f"{chosen}VALUE = str(CLASSES)", {"USER": "one", "HOME": homes[0]})
    program.check(True, HOME=homes[1])
    program.check(False, USER="two")
