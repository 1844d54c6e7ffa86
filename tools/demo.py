#!/usr/bin/env python3
"""The demo: sets up programs, freezes them, and shows what starting them costs, ordinary against thawed; and one against its boot archive.

What it runs stands in examples/demo.toml. Colours and moving progress appear on a terminal only, and never under
NO_COLOR. The exit status is 0 when all rows are there, and 1 when one is missing; the last lines say which, and why.
"""

import contextlib
import io
import os
import pathlib
import sys
import threading
import time
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "tools")]

import run as harness  # noqa: E402
import workloads  # noqa: E402
from measure import MeasureError  # noqa: E402
from report import figure, ratio_of, reasons  # noqa: E402

PAIRS = 10
BAR = 48
TERMINAL = sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
COLOUR = TERMINAL and not os.environ.get("NO_COLOR")


def paint(text: str, code: str) -> str:
    """`text` in the colour of that ANSI code, where colours are wanted."""
    return f"\033[{code}m{text}\033[0m" if COLOUR else text


def bar(share: float) -> str:
    """A bar of `share` of the full length, to an eighth of a column, and never nothing."""
    eighths = max(1, round(share * BAR * 8))
    return "█" * (eighths // 8) + " ▏▎▍▌▋▊▉"[eighths % 8].strip()


@contextlib.contextmanager
def step(text: str):
    """Show that `text` is going on, for how long, and how it ended; what it says on standard error is kept back."""
    began, ended = time.monotonic(), threading.Event()

    def tick() -> None:
        while not ended.wait(0.5):
            print(f"\r  … {text}  {time.monotonic() - began:.0f} s", end="", flush=True)

    if TERMINAL:
        ticking = threading.Thread(target=tick)
        ticking.start()
    mark = paint("✗", "31")
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            yield
        mark = paint("✓", "32")
    finally:
        ended.set()
        if TERMINAL:
            ticking.join()
        print(f"{chr(13) if TERMINAL else ''}  {mark} {text}  {time.monotonic() - began:.1f} s", flush=True)


def measured(bench: harness.Bench, name: str, scenario: dict) -> dict:
    """Set up, freeze and measure one program. Returns its results, or why there are none as `skipped`."""
    print(f"\n{paint(scenario['title'], '1')}")
    needed = sorted({owner for owner, _ in harness.PLACEHOLDER.findall(str(scenario))} - {"image"})
    try:
        for workload in needed:
            with step(f"setting up {workloads.WORKLOADS[workload].about}"):
                bench.workload(workload)
        if name in bench.plan["image"]:
            with step("freezing"):
                bench.image(name)
        with step(f"measuring {PAIRS} pairs"):
            entry = bench.measure(scenario, PAIRS)
            if missing := reasons(entry):
                raise MeasureError("; ".join(missing))
        return entry
    except (workloads.Unavailable, harness.Unfrozen, MeasureError) as reason:
        return {"skipped": harness.text_of(reason)}


def show(scenario: dict, entry: dict) -> None:
    """Print the row and the bars of one program."""
    ratio = ratio_of(scenario, entry)
    if ratio is None:
        print(f"  {scenario['title']:40} {paint('not measured', '31')}\n")
        return
    ordinary, faster_start = (entry["cases"][case]["median"] for case in scenario["cases"])
    faster = f"{1 / ratio:.1f} x" if ratio > 0.1 else f"{1 / ratio:.0f} x"
    row = f"  {scenario['title']:40} {figure(ordinary, 'ms'):>9} {figure(faster_start, 'ms'):>9} {ratio:>7.3f} "
    print(row + paint(f"{faster:>8}", "1;32"))
    longest = max(ordinary, faster_start)
    print(f"    {paint(bar(ordinary / longest), '33')}")
    print(f"    {paint(bar(faster_start / longest), '32')}\n")


def main() -> int:
    plan = tomllib.loads((ROOT / "examples/demo.toml").read_text())
    images = workloads.WORK / "demo"
    images.mkdir(parents=True, exist_ok=True)
    bench = harness.Bench(plan, os.environ.get("SNAPBOOT", str(ROOT / "target/release/snapboot")), images)
    scenarios = plan["scenario"]
    entries = {name: measured(bench, name, scenario) for name, scenario in scenarios.items()}
    print(f"\n  {paint('start to end, medians', '2'):40}")
    print(paint(f"  {'':40} {'ordinary':>9} {'snapboot':>9} {'ratio':>7} {'faster':>8}", "1"))
    for name, scenario in scenarios.items():
        show(scenario, entries[name])
    frozen = ", ".join(f"{name}.img {facts['megabytes']:.0f} MB" for name, facts in bench.frozen.items())
    print(f"  images in {os.path.relpath(images)}: {frozen or 'none'}")
    missing = {scenarios[name]["title"]: entry["skipped"] for name, entry in entries.items() if "skipped" in entry}
    for title, reason in missing.items():
        print(f"\n  {paint('missing', '31')}: {title}: {reason}")
    if missing:
        print(f"\n  {len(scenarios) - len(missing)} of {len(scenarios)} rows could be measured")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
