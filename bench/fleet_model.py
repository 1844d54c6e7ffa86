"""What a fleet asks of its remote store, reckoned from what single machines ask for; and the tables of docs/fleets.md.

A *step* is what one machine does once: it makes and gives an image, takes one, takes what differs from the one before, leaves one to
another machine, or looks at one that does not fit. Its *load* is what that costs: requests that write or list, requests that read, and
bytes.
"""

import dataclasses
from collections.abc import Mapping

STEPS = {
    "makes": "finds no image, makes one and gives it",
    "makes next": "the same for the next version, with the difference to the one before",
    "takes": "takes an image",
    "takes next": "takes what differs from the version before, which it has",
    "leaves": "finds that another machine makes the image, and leaves it to that one",
    "looks": "looks at an image that does not fit, before one that does",
}
COLUMNS = ["requests that write or list", "requests that read", "MB to the store", "MB from the store"]
MEGABYTE = 1e6
GIGABYTE = 1e9


@dataclasses.dataclass(frozen=True)
class Load:
    """What is asked of the remote store. `writes` and `reads` are requests, `given` and `fetched` bytes."""

    writes: float = 0
    reads: float = 0
    given: float = 0
    fetched: float = 0

    def __add__(self, other: "Load") -> "Load":
        return Load(*(one + two for one, two in zip(dataclasses.astuple(self), dataclasses.astuple(other), strict=True)))

    def __mul__(self, times: float) -> "Load":
        return Load(*(times * one for one in dataclasses.astuple(self)))

    def __sub__(self, other: "Load") -> "Load":
        return self + other * -1

    def cells(self) -> list[str]:
        """As cells of a table, in the order of COLUMNS."""
        megabytes = [f"{value / MEGABYTE:,.2f}" for value in (self.given, self.fetched)]
        return [f"{self.writes:,.0f}", f"{self.reads:,.0f}", *megabytes]


Steps = Mapping[str, Load]


def of_empty(steps: Steps, machines: int) -> Load:
    """All start at once, and nobody has the image: one makes it, the others leave it to that one."""
    return steps["makes"] + steps["leaves"] * (machines - 1)


def of_second_look(steps: Steps, machines: int) -> Load:
    """Afterwards all others take it."""
    return steps["takes"] * (machines - 1)


def of_next(steps: Steps, machines: int) -> Load:
    """The program is upgraded everywhere: one makes the next version, the others take what differs."""
    return steps["makes next"] + steps["takes next"] * (machines - 1)


def of_month(steps: Steps, example: Mapping) -> dict[str, Load]:
    """A month of the example's fleet, by what happens."""
    programs, machines = example["programs"], example["machines"]
    return {
        "new versions": of_next(steps, machines) * (programs * example["versions_a_month"]),
        "new machines": steps["takes"] * (programs * example["new_machines_a_day"] * example["days"]),
    }


def stored(steps: Steps, example: Mapping) -> float:
    """The bytes that lie in the remote store."""
    return example["programs"] * (steps["makes"].given + steps["makes next"].given * (example["kept_versions"] - 1))


def cost(load: Load, prices: Mapping) -> float:
    """What requests cost."""
    return load.writes * prices["write"] + load.reads * prices["read"]


def page(result: dict, plan: dict) -> str:
    """The tables, from a stored result of bench/fleet.py."""
    steps = {name: Load(**load) for name, load in result["steps"].items()}
    checked = result["checked"]
    parts = [
        steps_table(steps, result),
        check_table(checked["machines"], checked["phases"]),
        month_table(steps, plan["example"], plan["prices"]),
        second_table(result["second"], plan["second"]["latency"]),
    ]
    return "\n\n".join(parts)


def table(head: list[str], rows: list[list[str]]) -> str:
    """A table whose first column is text and whose others are numbers."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def steps_table(steps: Steps, result: dict) -> str:
    shown = [[STEPS[name], *steps[name].cells()] for name in STEPS if name in steps]
    said = f"What one machine asks of an S3 store, by the store's own log ({result['program']}; {result['date'].partition('T')[0]}):"
    return said + "\n\n" + table(["a machine", *COLUMNS], shown)


def check_table(machines: int, phases: dict) -> str:
    rows = []
    for name, phase in phases.items():
        reckoned, measured = Load(**phase["reckoned"]), Load(**phase["measured"])
        for of, load in (("reckoned", reckoned), ("measured", measured)):
            rows.append([f"{name}, {of}", *load.cells()])
    return f"{machines} machines, reckoned from these figures, and measured:\n\n" + table(["", *COLUMNS], rows)


def month_table(steps: Steps, example: Mapping, prices: Mapping) -> str:
    month = of_month(steps, example)
    total = sum(month.values(), Load())
    rows = [[name, *load.cells(), f"{cost(load, prices):.2f}"] for name, load in {**month, "all": total}.items()]
    lie = stored(steps, example)
    said = (
        f"A month of {example['machines']:,} machines with {example['programs']} such programs, of each of which "
        f"{example['versions_a_month']} versions come out; each day {example['new_machines_a_day']} of the machines are new, with empty "
        "stores:"
    )
    rest = (
        f"The last {example['kept_versions']} versions of each program take {lie / GIGABYTE:.2f} GB, "
        f"{lie / GIGABYTE * prices['storage']:.2f} dollars a month. A start at once of all machines with an empty remote store asks for "
        f"{of_empty(steps, example['machines']).cells()[0]} requests that write or list and "
        f"{of_empty(steps, example['machines']).cells()[1]} that read, for each program."
    )
    return "\n\n".join([said, table(["", *COLUMNS, "US dollars"], rows), rest])


def second_table(second: dict, latency: float) -> str:
    rows = []
    for name, entry in second.items():
        medians = {case: figures["median"] for case, figures in entry["cases"].items()}
        ordinary = medians["ordinary"]
        ratios = [f"{medians[case]:,.0f} ({medians[case] / ordinary:.3f})" for case in ("first", "second")]
        rows.append([name, f"{ordinary:,.0f}", *ratios, str(entry["cases"]["second"]["n"])])
    said = f"Starts of a machine with an empty store and a remote store that answers {latency} ms late (median ms, ratio to ordinary):"
    return said + "\n\n" + table(["program", "ordinary", "first start", "second start", "n"], rows)
