"""The plans: what is measured, as data. scenarios.toml is about thawing, cold_boot.toml about starts that no image serves,
models.toml about machine learning."""

import pathlib
import tomllib

BENCH = pathlib.Path(__file__).resolve().parent
PLANS = {name: BENCH / f"{name.replace('-', '_')}.toml" for name in ("scenarios", "cold-boot", "models")}


def read(path: pathlib.Path) -> dict:
    """A plan. A scenario that names one command for all gets a case with it for each name in the plan's `all`."""
    plan = tomllib.loads(path.read_text())
    for scenario in plan["scenario"].values():
        if "command" in scenario:
            scenario["cases"] = dict.fromkeys(scenario.get("all", plan["all"]), scenario.pop("command"))
    return plan
