#!/usr/bin/env python3
"""Makes the tables of docs/benchmarks.md and the README from the newest results, between markers, so that no figure is ever typed.

    bench/report.py           print the tables
    bench/report.py --write   put them into the documents, and draw the README's chart (chart.py)

Targets stand in the plans (plans.py); each is marked as met, not met or not measured, whatever it may look like.
"""

import argparse
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path += [str(ROOT / "bench"), str(ROOT / "tools")]
import chart  # noqa: E402
import marked  # noqa: E402
import plans  # noqa: E402
import svg  # noqa: E402

RESULTS = ROOT / "bench/results"
BENCHMARKS = ROOT / "docs/benchmarks.md"
README = ROOT / "README.md"
CHARTS = ROOT / "docs/images"
PAIR = ["ordinary", "thawed"]
# The README's rows: starts of programs of some size, the slowest last.
SUMMARY = ["black", "flask-response", "django-check", "pandas", "rails-runner"]
IMAGE = re.compile(r"\{image\.([^}]*)\}")


def newest_result(plan: str, directory: pathlib.Path = RESULTS) -> dict | None:
    """The stored result of a plan with the latest date inside, or None."""
    results = [json.loads(path.read_text()) for path in directory.glob("*.json")]
    results = [result for result in results if result.get("plan", "scenarios") == plan]
    return max(results, key=lambda result: result["date"], default=None)


def median_of(entry: dict, case: str) -> float | None:
    """The median of a case, or None if it was not measured."""
    return entry.get("cases", {}).get(case, {}).get("median")


def ratio_of(scenario: dict, entry: dict) -> float | None:
    """Median of the last case by median of the first, or None if one of them is missing."""
    cases = list(scenario["cases"])
    first, last = median_of(entry, cases[0]), median_of(entry, cases[-1])
    return last / first if first and last is not None else None


def reasons(entry: dict) -> list[str]:
    """Why something of an entry was not measured, each reason once."""
    said = [entry.get("skipped"), *(case.get("skipped") for case in entry.get("cases", {}).values())]
    return [reason for reason in dict.fromkeys(said) if reason]


def figure(value: float | None, unit: str) -> str:
    """A figure with three significant digits, as a reader wants it."""
    if value is None:
        return "–"
    if not unit:
        return f"{value:,.0f}"
    digits = 0 if value >= 100 else 1 if value >= 10 else 2
    return f"{value:,.{digits}f}{'/s' if unit == '1/s' else ' ' + unit}".rstrip()


def ratio(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}" if value >= 0.1 else f"{value:.3f}"


def target(scenario: dict) -> str:
    """What the ratio should be, in words; empty where nothing was promised."""
    if "at_most_itself" in scenario:
        return "≤ " + figure(scenario["at_most_itself"], scenario.get("unit", "ms"))
    if "at_most" in scenario:
        return f"≤ {scenario['at_most']:.2f}" if scenario["at_most"] >= 0.02 else f"≤ {scenario['at_most']:.3f}"
    return f"≥ {scenario['at_least']:.2f}" if "at_least" in scenario else ""


def verdict(scenario: dict, entry: dict) -> str:
    """Met, not met or not measured; empty where nothing was promised."""
    if not target(scenario):
        return ""
    absolute = "at_most_itself" in scenario
    value = median_of(entry, list(scenario["cases"])[-1]) if absolute else ratio_of(scenario, entry)
    if value is None:
        return "**not measured**"
    at_most = scenario.get("at_most_itself", scenario.get("at_most"))
    met = value >= scenario["at_least"] if at_most is None else value <= at_most
    return "met" if met else "**not met**"


def table(heading: list[str], rows: list[list[str]]) -> str:
    """A Markdown table; all columns but the first are figures."""
    rule = ["---"] + ["---:"] * (len(heading) - 1)
    return "\n".join("| " + " | ".join(row) + " |" for row in [heading, rule, *rows])


def pairs_table(scenarios: dict, entries: dict) -> str:
    """Ordinary against thawed, a row for each scenario of that form."""
    rows = []
    for name, scenario in scenarios.items():
        if list(scenario["cases"]) != PAIR:
            continue
        entry, unit = entries.get(name, {}), scenario.get("unit", "ms")
        medians = [figure(median_of(entry, case), unit) for case in PAIR]
        value = ratio(ratio_of(scenario, entry))
        rows.append([scenario["title"], *medians, value, target(scenario), verdict(scenario, entry)])
    return table(["", "ordinary", "thawed", "thawed / ordinary", "target", ""], rows)


def sizes_table(scenarios: dict, entries: dict) -> str:
    """The cost by image size."""
    sized = {name: scenario for name, scenario in scenarios.items() if name.startswith("heap-")}
    sizes = list(next(iter(sized.values()))["cases"])
    rows = []
    for name, scenario in sized.items():
        entry = entries.get(name, {})
        medians = [figure(median_of(entry, case), "ms") for case in sizes]
        value = ratio(ratio_of(scenario, entry))
        rows.append([scenario["title"], *medians, value, target(scenario), verdict(scenario, entry)])
    return table(["thawed around a heap of", *sizes, f"{sizes[-1]} / {sizes[0]}", "target", ""], rows)


def floors_table(scenarios: dict, entries: dict) -> str:
    """What starting any process costs on the same machine."""
    entry = entries.get("floors", {})
    rows = [[case, figure(median_of(entry, case), "ms")] for case in scenarios["floors"]["cases"]]
    return table([scenarios["floors"]["title"], "whole process"], rows)


def missing(scenarios: dict, entries: dict) -> list[str]:
    """A line for each reason why something was not measured, with what it concerns."""
    concerned: dict[str, list[str]] = {}
    for name in scenarios:
        entry = entries.get(name, {"skipped": "not part of this run"})
        for reason in reasons(entry):
            concerned.setdefault(" ".join(reason.split()), []).append(name)
    return [f"- Not measured: {', '.join(names)}: {reason}" for reason, names in concerned.items()]


def sample_sizes(entries: dict) -> str:
    """How many samples there are of each case: one number, or from the least to the most."""
    numbers = {case["n"] for entry in entries.values() for case in entry.get("cases", {}).values() if "n" in case}
    return "0" if not numbers else "–".join(str(number) for number in sorted({min(numbers), max(numbers)}))


def origin(result: dict) -> str:
    """Where the figures of a result come from."""
    entries, machine = result["scenarios"], result["machine"]
    runtimes = f"CPython {machine['python']}" + (f", {machine['ruby'].split(' (')[0]}" if machine["ruby"] else "")
    return (
        f"Medians of n = {sample_sizes(entries)} interleaved runs (A B A B), whole processes unless said otherwise, "
        f"{result['date'][:10]}, commit {result['commit']}. {machine['cpu']}, {machine['cores']} cores, "
        f"Linux {machine['kernel']}, {machine['system']}, {machine['libc']}, {runtimes}."
    )


def archives_table(peer: str, scenarios: dict, entries: dict) -> str:
    """Plain, a peer and Snapboot, a row for each scenario; each compared with the first that the row has. peer: its name."""
    cases = ["plain", peer.lower(), "snapboot"]
    rows = []
    for name, scenario in scenarios.items():
        if list(scenario["cases"]) == PAIR:
            continue
        entry, unit = entries.get(name, {}), scenario.get("unit", "ms")
        medians = {case: median_of(entry, case) for case in cases}
        first = next(iter(scenario["cases"]))
        base = medians[first]
        compared = [medians[case] if case != first else None for case in cases[1:]]
        ratios = [ratio(median / base if base and median is not None else None) for median in compared]
        numbers = sample_sizes({name: entry})
        figures = [figure(medians[case], unit) for case in cases]
        wanted = target(scenario) + (f" of {peer}" if first == cases[1] and "at_most" in scenario else "")
        rows.append([scenario["title"], *figures, *ratios, wanted, verdict(scenario, entry), numbers])
    return table(["", "plain", peer, "Snapboot", f"{peer} / plain", "Snapboot / plain", "target", "", "n"], rows)


def cold_boot_table(scenarios: dict, entries: dict) -> str:
    """Ruby's archive, and Bootsnap."""
    return archives_table("Bootsnap", scenarios, entries)


def python_boot_tables(scenarios: dict, entries: dict) -> str:
    """Python's archive, and the package code-data-share: a table for each CPython."""
    parts = []
    for python in dict.fromkeys(scenario["python"] for scenario in scenarios.values()):
        its = {name: scenario for name, scenario in scenarios.items() if scenario["python"] == python}
        told = [entries[name]["python"] for name in its if "python" in entries.get(name, {})]
        parts += [f"CPython {(told or [python])[0]}:", archives_table("code-data-share", its, entries)]
    return "\n\n".join(parts)


TABLES = {
    "scenarios": [pairs_table, sizes_table, floors_table],
    "cold-boot": [cold_boot_table],
    "python-boot": [python_boot_tables],
    "models": [pairs_table],
    "rails-7": [pairs_table, cold_boot_table],
    "yjit": [pairs_table],
    "levels": [pairs_table],
    "servers": [pairs_table],
    "containers": [pairs_table],
    "half-hour": [pairs_table],
}


def report(name: str, result: dict | None, plan: dict) -> str:
    """The Markdown of a plan. `result` None: nothing was measured yet."""
    if result is None:
        command = f"bench/run.py --plan {name}" if name in plans.PLANS else f"make {name}"
        return f"No results are stored yet: `{command}` measures and fills in this table."
    scenarios, entries = plan["scenario"], result["scenarios"]
    parts = [make(scenarios, entries) for make in TABLES[name]]
    parts += [origin(result), "\n".join(missing(scenarios, entries))]
    return "\n\n".join(part for part in parts if part)


def summary_table(scenarios: dict, result: dict) -> str:
    """The README's rows, each with the size of its image and how long freezing it took."""
    rows = []
    for name in SUMMARY:
        scenario, entry = scenarios[name], result["scenarios"].get(name, {})
        image = result["images"].get(IMAGE.search(str(scenario["cases"]["thawed"])).group(1), {})
        times = [figure(median_of(entry, case), "ms") for case in PAIR]
        cost = [figure(image.get("megabytes"), "MB"), figure(image.get("seconds"), "s")]
        rows.append([scenario["title"], *times, ratio(ratio_of(scenario, entry)), *cost])
    return table(["", "ordinary", "thawed", "ratio", "image", "freeze"], rows)


def summary(result: dict | None, plan: dict) -> str:
    """The README's table and where its figures come from. `result` None: nothing was measured yet."""
    return report("scenarios", None, plan) if result is None else f"{summary_table(plan['scenario'], result)}\n\n{origin(result)}"


def bars(scenarios: dict, entries: dict) -> list[chart.Row]:
    """The same rows as bars; a row that was not measured has none."""
    medians = {name: [median_of(entries.get(name, {}), case) for case in PAIR] for name in SUMMARY}
    return [
        chart.Row(scenarios[name]["title"].replace("`", ""), *values, *(figure(value, "ms") for value in values))
        for name, values in medians.items()
        if None not in values
    ]


def documents() -> dict[pathlib.Path, str]:
    """What each generated file should hold now, by path: two documents and the chart in two themes."""
    results = {name: newest_result(name) for name in plans.REPORTED}
    read = {name: plans.read(path) for name, path in plans.REPORTED.items()}
    benchmarks, readme = BENCHMARKS.read_text(), README.read_text()
    for name, plan in read.items():
        benchmarks = marked.filled_in(benchmarks, report(name, results[name], plan), tool=f"bench/report.py {name}")
    readme = marked.filled_in(readme, summary(results["scenarios"], read["scenarios"]), tool="bench/report.py summary")
    made = {BENCHMARKS: benchmarks, README: readme}
    if results["scenarios"]:
        rows = bars(read["scenarios"]["scenario"], results["scenarios"]["scenarios"])
        made |= {CHARTS / f"starts-{theme}.svg": chart.draw(rows, theme) for theme in svg.THEMES}
    return made


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="write the documents and the chart instead of printing the tables")
    options = parser.parse_args()
    for path, text in documents().items() if options.write else ():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    if not options.write:
        print("\n\n".join(report(name, newest_result(name), plans.read(path)) for name, path in plans.REPORTED.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
