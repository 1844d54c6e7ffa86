"""bench/fleet_model.py: what a fleet asks of its store, and the tables of docs/fleets.md."""

import sys
import tomllib

import pytest
from common import support

sys.path.insert(0, str(support.ROOT / "bench"))
import fleet_model  # noqa: E402
import report  # noqa: E402
from fleet_model import Load  # noqa: E402

STEPS = {
    "makes": Load(10, 20, 1000, 0),
    "makes next": Load(11, 22, 1100, 50),
    "takes": Load(1, 20, 0, 1000),
    "takes next": Load(1, 2, 0, 100),
    "leaves": Load(2, 2, 0, 0),
}


def test_the_page_has_the_newest_results():
    plan = tomllib.loads((support.ROOT / "bench/fleet.toml").read_text())
    assert fleet_model.page(report.newest_result("fleet"), plan) in (support.ROOT / "docs/fleets.md").read_text()


@pytest.mark.parametrize(
    "reckons, expected",
    [
        (fleet_model.of_empty, Load(14, 24, 1000, 0)),
        (fleet_model.of_second_look, Load(2, 40, 0, 2000)),
        (fleet_model.of_next, Load(13, 26, 1100, 250)),
    ],
)
def test_one_machine_makes_what_all_others_take(reckons, expected):
    assert reckons(STEPS, 3) == expected


def test_a_month_has_versions_and_new_machines():
    example = {"programs": 2, "machines": 3, "versions_a_month": 5, "new_machines_a_day": 4, "days": 10, "kept_versions": 3}
    month = fleet_model.of_month(STEPS, example)
    assert month == {"new versions": Load(130, 260, 11000, 2500), "new machines": Load(80, 1600, 0, 80000)}
    assert fleet_model.stored(STEPS, example) == 2 * (1000 + 2 * 1100)
    assert fleet_model.cost(Load(3, 5), {"write": 10, "read": 1}) == 35
