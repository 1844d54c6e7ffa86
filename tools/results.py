"""What tools that try Snapboot elsewhere share: which commit they tried, and what pytest's report says."""

import collections
import pathlib
import subprocess
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent


def commit() -> str:
    """The commit of this tree."""
    return subprocess.run(["git", "rev-parse", "--short=8", "HEAD"], cwd=ROOT, capture_output=True, text=True).stdout.strip()


def counted(report: pathlib.Path) -> dict:
    """The numbers of tests that passed, the names of those that failed, and how often each reason kept one from running."""
    passed, failed, skipped = 0, [], {}
    for case in xml.etree.ElementTree.parse(report).iter("testcase"):
        outcomes = {child.tag: child for child in case}
        if outcomes.keys() & {"failure", "error"}:
            failed.append(case.get("name"))
        elif "skipped" in outcomes:
            reason = outcomes["skipped"].get("message")
            skipped[reason] = skipped.get(reason, 0) + 1
        else:
            passed += 1
    return {"passed": passed, "failed": sorted(failed), "not run": skipped}


def summed(parts: list[dict]) -> dict | None:
    """Several results as one; None where there is none."""
    if not parts:
        return None
    skipped = collections.Counter()
    for part in parts:
        skipped.update(part.get("not run", {}))
    return {
        "passed": sum(part["passed"] for part in parts),
        "failed": [name for part in parts for name in part["failed"]],
        "not run": dict(skipped),
    }


def figure(result: dict | None) -> str:
    """How many passed, of how many, for a table."""
    if result is None:
        return "–"
    return f"{result['passed']:,} of {result['passed'] + len(result['failed']):,}"
