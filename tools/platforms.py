#!/usr/bin/env python3
"""The stored results of the tools that try images on other machines, and the README's table of them.

    tools/platforms.py --write    write the table from the stored results

tools/kernels.py, tools/cpus.py and tools/aarch64.py store theirs here.
"""

import argparse
import datetime
import json
import pathlib

import marked
import results

ROOT = pathlib.Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench/results/platforms.json"
README = ROOT / "README.md"
# The kinds of platforms, in the table's order, and what makes them.
KINDS = {"kernel": "make kernels", "cpu": "make cpus", "architecture": "make test-aarch64"}
PARTS = {"programs": "programs, each way", "behaviour": "behaviour cases", "images": "tests of images, a part"}


def stored() -> dict:
    """All results: by kind, by platform, by part."""
    return json.loads(RESULTS.read_text()) if RESULTS.exists() else {"plan": "platforms", "date": "", **{kind: {} for kind in KINDS}}


def store(kind: str, name: str, title: str, parts: dict[str, dict]) -> None:
    """Add the results of a platform: `name` is what they are known by, `title` what the table shows. Platforms
    with one title have one row."""
    today = datetime.date.today().isoformat()
    everything = stored()
    everything["date"] = today
    dated = {part: {"date": today, "commit": results.commit(), **result} for part, result in parts.items()}
    platform = everything[kind].setdefault(name, {"title": title, "parts": {}})
    platform["title"] = title
    platform["parts"].update(dated)
    RESULTS.write_text(json.dumps(everything, indent=1, ensure_ascii=False) + "\n")


def table(everything: dict) -> str:
    """The README's table of stored results; nothing where there are none."""
    rows = [["tried under", *PARTS.values(), "by"], ["---", *["---:"] * len(PARTS), "---"]]
    failed, dates = [], set()
    for kind, command in KINDS.items():
        for title in dict.fromkeys(platform["title"] for platform in everything[kind].values()):
            alike = {name: platform["parts"] for name, platform in everything[kind].items() if platform["title"] == title}
            sums = {part: results.summed([parts[part] for parts in alike.values() if part in parts]) for part in PARTS}
            names = f" ({', '.join(alike)})" if len(alike) > 1 else ""
            rows.append([title + names, *(results.figure(sums[part]) for part in PARTS), f"`{command}`"])
            for name, parts in alike.items():
                failed += [f"`{name}: {case}`" for result in parts.values() for case in result["failed"]]
                dates |= {result["date"] for result in parts.values()}
    if not dates:
        return ""
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    when = " to ".join(dict.fromkeys([min(dates), max(dates)]))
    text = f"Images that thawed on emulated machines and gave what an ordinary start gives, of all ({when}). "
    text += "Of the behaviour cases each had a part."
    if failed:
        text += " Failed: " + ", ".join(failed) + "."
    return "\n".join([*lines, "", text])


def write() -> None:
    """Write the table into the README."""
    README.write_text(marked.filled_in(README.read_text(), table(stored()), tool="tools/platforms.py"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", required=True, help="write the README's table")
    parser.parse_args()
    write()


if __name__ == "__main__":
    main()
