"""The plans: what is measured, as data. scenarios.toml is about thawing, cold_boot.toml and python_boot.toml about starts that no
image serves, in Ruby and in Python, models.toml about machine learning, rails_7.toml about Rails 7.2, which needs Debian 13,
yjit.toml about the same with a Ruby that has YJIT, levels.toml about images for levels of CPUs, and servers.toml about servers that
recipes freeze. containers.toml is measured by bench/container_starts.py, half_hour.toml, about enabled environments, by
bench/half_hour.py, all others by bench/run.py."""

import pathlib
import tomllib

BENCH = pathlib.Path(__file__).resolve().parent
NAMES = ("scenarios", "cold-boot", "python-boot", "models", "rails-7", "yjit", "levels", "servers")
PLANS = {name: BENCH / f"{name.replace('-', '_')}.toml" for name in NAMES}
CONTAINERS = BENCH / "containers.toml"
HALF_HOUR = BENCH / "half_hour.toml"
REPORTED = {**PLANS, "containers": CONTAINERS, "half-hour": HALF_HOUR}


def read(path: pathlib.Path) -> dict:
    """A plan. A scenario that names one command for all gets a case with it for each name in the plan's `all`.

    Where a plan names `pythons`, it has each scenario once for each of them.
    """
    plan = tomllib.loads(path.read_text())
    for scenario in plan["scenario"].values():
        if "command" in scenario:
            scenario["cases"] = dict.fromkeys(scenario.get("all", plan["all"]), scenario.pop("command"))
    if "pythons" in plan:
        plan["scenario"] = {
            f"{name}-{python}": for_python(scenario, python, plan["surroundings"])
            for python in plan["pythons"]
            for name, scenario in plan["scenario"].items()
        }
    return plan


def for_python(scenario: dict, python: str, surroundings: dict) -> dict:
    """The scenario on that CPython, such as "3.11", without cases whose surroundings are for others."""
    places = {case: surroundings.get(scenario.get("in", {}).get(case, case), {}) for case in scenario["cases"]}
    left = [case for case, place in places.items() if python in place.get("pythons", [python])]
    by_case = {
        key: {case: value for case, value in scenario[key].items() if case in left}
        for key in ("cases", "in", "evict", "remove")
        if key in scenario
    }
    return {**scenario, **by_case, "python": python}
