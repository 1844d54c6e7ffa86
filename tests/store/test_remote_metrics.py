"""What a machine counts of the remote store, in `snapboot list --json` and as OpenMetrics text."""

import json
import os
import subprocess

import pytest
from common.languages import PYTHON
from common.ready import prepared

from store.fleets import Fleet, said
from store.stores import is_thawed

# Prints name, labels and value of each sample that the parser of prometheus_client finds.
READS = """
import json, sys
from prometheus_client.openmetrics.parser import text_string_to_metric_families
families = list(text_string_to_metric_families(sys.stdin.read()))
print(json.dumps([[sample.name, sample.labels, sample.value] for family in families for sample in family.samples]))
"""


@pytest.fixture(scope="module")
def read_by_prometheus():
    """Parses OpenMetrics text. Returns the values, by names of samples and the values of their labels."""
    python = prepared("storages")["bin"] + "/python"

    def parsed(text):
        done = subprocess.run([python, "-c", READS], input=text, capture_output=True, text=True)
        assert done.returncode == 0, (text, done.stderr)
        return {(name, *labels.values()): value for name, labels, value in json.loads(done.stdout)}

    return parsed


def metrics(machine, read):
    listed = machine.snapboot("list", "--openmetrics", log=False)
    assert listed.status == 0 and listed.out.endswith("# EOF\n"), listed
    return read(listed.out)


def test_each_look_and_each_gift_counts(tmp_path, read_by_prometheus):
    fleet = Fleet(tmp_path, PYTHON)
    one, other = fleet.machine("one"), fleet.machine("other")
    fleet.start(one)
    (row,) = one.wait()
    values = metrics(one, read_by_prometheus)
    chunks = sorted(path.stat().st_size for path in fleet.objects("chunks"))
    given = {"hits": 0, "misses": 1, "left": 0, "given": 1, "errors": 0, "chunks_fetched": 0, "chunks_given": len(chunks)}
    assert {name: row["remote"][name] for name in given} == given, row["remote"]
    assert values["snapboot_remote_looks_total", "miss"] == 1 and values["snapboot_remote_given_images_total",] == 1, values
    assert values["snapboot_remote_chunks_total", "given"] == len(chunks)
    assert sum(chunks) < values["snapboot_remote_traffic_bytes_total", "given"] < sum(chunks) + 20_000

    fleet.start(other)
    (row,) = other.wait()
    assert is_thawed(fleet.start(other))
    values = metrics(other, read_by_prometheus)
    assert (row["remote"]["hits"], row["remote"]["misses"], row["remote"]["errors"]) == (1, 0, 0), (row, said(other))
    saved = row["remote"]["seconds_saved"]
    assert saved > 0 and values["snapboot_remote_saved_seconds_total",] == pytest.approx(saved)
    assert values["snapboot_remote_chunks_total", "fetched"] == len(chunks) and values["snapboot_remote_requests_total",] > len(chunks)
    image = row["path"]
    assert values["snapboot_starts_total", "show.py", image, "thawed"] == 1 and values["snapboot_image_size_bytes", "show.py", image] > 0

    # What is wrong counts as well, and the sums of a machine outlive its images.
    os.truncate(max(fleet.objects("chunks"), key=lambda path: path.stat().st_size), 100)
    for left in (other.place / "cache").glob("show*/*.img"):
        left.unlink()
    assert fleet.pull(other).status == 1
    values = metrics(other, read_by_prometheus)
    assert values["snapboot_remote_errors_total",] == 1 and values["snapboot_remote_looks_total", "hit"] == 1, values


def test_a_machine_without_a_remote_store_has_metrics(tmp_path, read_by_prometheus):
    fleet = Fleet(tmp_path, PYTHON)
    name = 'a"b\\c.py'
    fleet.script.rename(fleet.files / name)
    one = fleet.machine("one", SNAPBOOT_REMOTE="")
    assert metrics(one, read_by_prometheus)["snapboot_remote_looks_total", "hit"] == 0
    one.run(PYTHON.program, fleet.files / name, cwd=fleet.files)
    (row,) = one.wait()
    assert row["remote"] is None
    assert metrics(one, read_by_prometheus)["snapboot_starts_total", name, row["path"], "thawed"] == 0
