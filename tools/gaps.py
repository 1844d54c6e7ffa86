"""What cannot be tested on a machine. Elsewhere that is said; in CI only what tests/known_gaps.toml names may be left out."""

import os
import re
import tomllib

from workloads import ROOT

TABLE = ROOT / "tests/known_gaps.toml"


def in_ci() -> bool:
    """Whether this is continuous integration: such systems set the variable CI."""
    return os.environ.get("CI", "").lower() not in ("", "0", "false")


def why_known(reason: str) -> str | None:
    """Why a test may be left out that says `reason`. None: that is not a known gap."""
    for gap in tomllib.loads(TABLE.read_text())["gap"]:
        if re.search(gap["reason"], reason):
            return gap["why"]
    return None


def is_allowed(reason: str) -> bool:
    """Whether something may be left out for that reason here."""
    return not in_ci() or why_known(reason) is not None
