"""`snapboot explain` hands on what it has measured: as a page for browsers, as JSON for viewers of traces.

What page and JSON look like is tested in crates/explain.
"""

import json
import re

from common import support

DATA = re.compile(r'<script type="application/json" id="data">(.*?)</script>', re.DOTALL)


def explained(*options):
    command = [support.PYTHON, "-c", "import json"]
    return support.run([support.SNAPBOOT, "explain", "--no-freeze", "--no-archive", "-n", "1", *options, "--", *command], log=False)


def test_page_and_json_hold_the_measured_start(tmp_path):
    page = tmp_path / "start.html"
    result = explained("--json", "--html", page)
    assert result.status == 0, result.err
    trace = json.loads(result.out)
    parts = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    assert {"json", "json.decoder"} <= {part["name"] for part in parts}
    assert trace["$schema"].endswith("file-format-schema.json") and trace["profiles"][0]["events"]
    data = json.loads(DATA.search(page.read_text())[1])
    assert len(data["starts"][0]["depth"]) == len(parts)
    assert support.PYTHON in data["starts"][0]["command"]


def test_a_page_that_cannot_be_written_does_not_lose_the_summary(tmp_path):
    result = explained("--html", tmp_path / "missing/start.html")
    assert result.status == 2
    assert "the whole process" in result.out
    assert "cannot write" in result.err and "missing/start.html" in result.err
