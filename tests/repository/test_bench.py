"""Tables and chart say what the newest stored results say, and the harness says the truth about what it measures."""

import os
import pathlib
import sys
import tomllib
from xml.etree import ElementTree

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "tools")]

import chart  # noqa: E402
import measure  # noqa: E402
import plans  # noqa: E402
import report  # noqa: E402
import run as harness  # noqa: E402
import svg  # noqa: E402
import workloads  # noqa: E402

PATHS = [*plans.PLANS.values(), ROOT / "examples/demo.toml"]
PLANS = {str(path.relative_to(ROOT)): plans.read(path) for path in PATHS}
ENVIRONMENT = {"PATH": os.defpath}


def result(**cases: float) -> dict:
    """A stored result of one scenario, `some`, with these medians."""
    entry = {"cases": {name: {"n": 20, "median": median} for name, median in cases.items()}}
    machine = {
        "cpu": "a CPU",
        "cores": 2,
        "kernel": "6",
        "system": "Linux",
        "libc": "glibc",
        "python": "3",
        "ruby": None,
    }
    return {"date": "2025-01-01T00:00:00+00:00", "commit": "0", "machine": machine, "scenarios": {"some": entry}}


def test_tables_and_chart_are_what_the_newest_results_generate():
    made = report.documents()
    assert {report.README, report.BENCHMARKS, *report.CHARTS.glob("starts-*.svg")} == set(made)
    for path, text in made.items():
        assert path.read_text() == text, "run: bench/report.py --write"


def test_no_image_is_made_of_what_is_measured_without_one():
    text = (ROOT / "examples/demo.toml").read_text()
    for name, scenario in tomllib.loads(text)["scenario"].items():
        if any(case[:2] == ["{snapboot}", "run"] for case in scenario["cases"].values()):
            assert scenario["env"]["SNAPBOOT_STORE"] == "off", name


def test_the_chart_has_a_pair_of_bars_on_one_scale_for_each_row():
    rows = [chart.Row("slow & large", 1000, 10, "1,000 ms", "10.0 ms"), chart.Row("quick", 100, 0.01, "100 ms", "0.01 ms")]
    for theme, colours in svg.THEMES.items():
        drawn = ElementTree.fromstring(chart.draw(rows, theme))
        bars = [it for it in drawn.findall(".//{*}rect") if float(it.get("height")) == chart.BAR]
        assert [float(it.get("width")) for it in bars] == [chart.SCALE, chart.SCALE / 100, chart.SCALE / 10, chart.LEAST]
        assert [it.get("fill") for it in bars] == [colours["slow"], colours["fast"]] * 2
        words = [it.text for it in drawn.findall(".//{*}text")]
        assert {"slow & large", "1,000 ms", "10.0 ms", "quick", "100 ms", "0.01 ms"} <= set(words)


def test_a_row_that_was_not_measured_has_no_bars():
    scenarios = plans.read(plans.PLANS["scenarios"])["scenario"]
    figures = {"cases": {"ordinary": {"median": 9.0}, "thawed": {"median": 1.0}}}
    entries = {name: figures for name in report.SUMMARY[1:]} | {report.SUMMARY[0]: {"skipped": "it is raining"}}
    assert len(report.bars(scenarios, entries)) == len(report.SUMMARY) - 1
    assert f"| {scenarios[report.SUMMARY[0]]['title']} | – | – | – | – | – |" in report.summary_table(
        scenarios, {"scenarios": entries, "images": {}}
    )


@pytest.mark.parametrize("path", PLANS)
def test_scenarios_refer_only_to_what_exists(path):
    plan = PLANS[path]
    places = plan.get("surroundings", {})
    images = plan.get("image", {})
    for name, table in [*images.items(), *places.items(), *plan["scenario"].items()]:
        for owner, value in harness.PLACEHOLDER.findall(str(table)):
            known = images if owner == "image" else workloads.WORKLOADS
            assert (value if owner == "image" else owner) in known, f"{name} refers to {{{owner}.{value}}}"
        assert table.get("kind", "time") in measure.KINDS
        for by_case in ("evict", "remove", "in"):
            assert set(table.get(by_case, {})) <= set(table.get("cases", {}))
        assert set(table.get("in", {}).values()) <= set(places)


def test_every_image_is_used():
    for path, plan in PLANS.items():
        used = {value for owner, value in harness.PLACEHOLDER.findall(str(plan["scenario"])) if owner == "image"}
        assert used == set(plan.get("image", {})), path


@pytest.mark.parametrize(
    "scenario, thawed, verdict",
    [
        ({"at_most": 0.2}, 20.0, "met"),
        ({"at_most": 0.2}, 20.1, "**not met**"),
        ({"at_least": 0.98}, 98.0, "met"),
        ({"at_least": 0.98}, 97.9, "**not met**"),
        ({}, 20.0, ""),
    ],
)
def test_verdict_follows_the_target(scenario, thawed, verdict):
    scenario = {"cases": {"ordinary": [], "thawed": []}, **scenario}
    entry = result(ordinary=100.0, thawed=thawed)["scenarios"]["some"]
    assert report.verdict(scenario, entry) == verdict


def test_what_was_not_measured_is_said_with_its_reason():
    scenario = {"title": "some", "cases": {"ordinary": [], "thawed": []}, "at_most": 0.2}
    entry = result(ordinary=100.0)["scenarios"]["some"]
    entry["cases"]["thawed"] = {"skipped": "it is raining"}
    assert report.verdict(scenario, entry) == "**not measured**"
    assert report.missing({"some": scenario}, {"some": entry}) == ["- Not measured: some: it is raining"]
    assert "not part of this run" in report.missing({"some": scenario}, {})[0]


def test_newest_result_is_the_one_with_the_latest_date_inside(tmp_path):
    (tmp_path / "z.json").write_text('{"date": "2025-01-01T00:00:00+00:00"}')
    (tmp_path / "a.json").write_text('{"date": "2025-02-01T00:00:00+00:00"}')
    assert report.newest_result("scenarios", tmp_path)["date"].startswith("2025-02")
    assert report.newest_result("scenarios", tmp_path / "none") is None


def test_cases_are_taken_in_turns():
    order = []
    takers = {name: (lambda name=name: order.append(name) or 1.0) for name in "ab"}
    samples = measure.interleaved(takers, rounds=2, warmup=1)
    assert order == ["a", "b"] * 3
    assert samples == {"a": [1.0, 1.0], "b": [1.0, 1.0]}


def test_time_covers_the_whole_process():
    assert 50 <= measure.time_once(["/bin/sleep", "0.05"], ENVIRONMENT) < 5000


# Answers so many requests with 200 that say they came by TLS.
SERVER = """\
import http.server, sys

class Answers(http.server.BaseHTTPRequestHandler):
    protocol_version, left = "HTTP/1.1", int(sys.argv[2])
    def do_GET(self):
        self.send_response(200 if Answers.left and self.headers["X-Forwarded-Proto"] == "https" else 404)
        Answers.left -= 1
        self.send_header("Content-Length", "0")
        self.end_headers()

http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Answers).serve_forever()
"""


@pytest.mark.parametrize("kind", measure.KINDS)
def test_a_command_that_fails_is_no_sample(kind):
    with pytest.raises(measure.MeasureError, match="sh"):
        measure.KINDS[kind](["/bin/sh", "-c", "exit 3"], ENVIRONMENT)


def test_rate_counts_the_answers_of_a_warm_server(monkeypatch, tmp_path):
    monkeypatch.setattr(measure, "WARMING", 20)
    monkeypatch.setattr(measure, "COUNTED", 50)
    program = tmp_path / "server.py"
    program.write_text(SERVER)
    assert 1 < measure.rate_once([sys.executable, str(program), "{port}", "71"], ENVIRONMENT) < 50_000
    with pytest.raises(measure.MeasureError, match="answered 404, not 200"):
        measure.rate_once([sys.executable, str(program), "{port}", "70"], ENVIRONMENT)


def test_memory_counts_all_processes():
    one = ["/bin/sh", "-c", "echo ready; read line"]
    assert 0.1 * measure.PROCESSES < measure.memory_once(one, ENVIRONMENT) < 50 * measure.PROCESSES


def test_cases_that_print_different_things_are_not_compared():
    with pytest.raises(measure.MeasureError, match="should print the same"):
        harness.same_output({"ordinary": "1\n", "thawed": "2\n"})


def test_an_image_that_was_not_used_is_no_thawed_sample():
    script = "echo 'snapboot: the kernel changed; starting the ordinary way' >&2; echo 1"
    for kind in (measure.check, measure.printed_once):
        with pytest.raises(measure.MeasureError, match="an image was not used .*the kernel changed"):
            kind(["/bin/sh", "-c", script], ENVIRONMENT)


def test_cpu_counts_children_and_not_waiting():
    used = measure.cpu_once(["/bin/sh", "-c", "sleep 0.3; sh -c 'i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done'"], ENVIRONMENT)
    assert 10 < used < 5000
    assert measure.cpu_once(["/bin/sleep", "0.3"], ENVIRONMENT) < 100


PLAN = {
    "surroundings": {"other": {"env": {"WHO": "other"}, "cwd": "{cache}", "traces": ["{cache}/trace"]}},
    "scenario": {"some": {"kind": "time", "env": {"WHO": "first"}, "cwd": "/", "in": {"b": "other"}, "cases": {}}},
}


def measured(**cases: str) -> dict:
    """The entry of a scenario with these cases, each a shell script; case b has surroundings of its own."""
    scenario = {**PLAN["scenario"]["some"], "cases": {case: ["/bin/sh", "-c", script] for case, script in cases.items()}}
    bench = harness.Bench(PLAN, "snapboot", pathlib.Path("/nonexistent"))
    return bench.measure(scenario, 2)


def test_a_case_has_surroundings_of_its_own():
    entry = measured(a="test $WHO = first -a $PWD = /", b="test $WHO = other -a $PWD != / && touch trace")
    assert {case: figures["n"] for case, figures in entry["cases"].items()} == {"a": 2, "b": 2}, entry


def test_a_case_that_leaves_no_trace_is_not_measured():
    entry = measured(a="true", b="true")
    assert "left no trace" in entry["cases"]["b"]["skipped"] and entry["cases"]["a"]["n"] == 2
    assert report.reasons(entry) == [entry["cases"]["b"]["skipped"]]


def test_what_is_to_be_removed_is_gone_before_each_sample():
    scenario = {"cases": {"a": ["/bin/sh", "-c", "mkdir {cache}/there"]}, "remove": {"a": ["{cache}/there"]}, "rounds": 3}
    entry = harness.Bench({}, "snapboot", pathlib.Path("/nonexistent")).measure(scenario, 20)
    assert entry["cases"]["a"]["n"] == 3, entry


TWO_PYTHONS = """
all = ["plain", "snapboot"]
pythons = ["3.11", "3.13"]
surroundings.old.pythons = ["3.11"]

[scenario.some]
title = "some"
in = { peer = "old" }
remove.peer = ["{cache}/there"]
cases = { plain = ["a"], peer = ["b"], snapboot = ["c"] }

[scenario.other]
title = "other"
command = ["a"]
"""


def test_a_plan_for_several_pythons_has_each_scenario_for_each_of_them(tmp_path):
    (tmp_path / "plan.toml").write_text(TWO_PYTHONS)
    scenarios = plans.read(tmp_path / "plan.toml")["scenario"]
    assert list(scenarios) == ["some-3.11", "other-3.11", "some-3.13", "other-3.13"]
    assert list(scenarios["some-3.11"]["cases"]) == ["plain", "peer", "snapboot"]
    newer = scenarios["some-3.13"]
    assert newer == {"title": "some", "python": "3.13", "cases": {"plain": ["a"], "snapboot": ["c"]}, "in": {}, "remove": {}}


def test_workloads_are_those_of_the_scenarios_python(monkeypatch, tmp_path):
    monkeypatch.setattr(harness, "interpreter", lambda version: f"python{version}")
    monkeypatch.setattr(workloads, "prepare", lambda name, python: {"python": f"{name} for {python}"})
    for version in ("3.11", "3.13"):
        assert harness.Bench({}, "snapboot", tmp_path, version).words("{web.python}") == f"web for python{version}"


def test_an_interpreter_is_the_newest_of_its_version(monkeypatch, tmp_path):
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    for version in ("3.13.2", "3.13.10", "3.13.11rc1", "3.1.9"):
        (tmp_path / "versions" / version / "bin").mkdir(parents=True)
        (tmp_path / "versions" / version / "bin/python").touch()
    assert harness.interpreter("3.13").endswith("/3.13.10/bin/python")
    with pytest.raises(workloads.Unavailable, match="CPython 3.12 was expected .*pyenv install 3.12"):
        harness.interpreter("3.12")


def test_each_python_has_a_table_with_the_version_that_was_measured():
    cases = {"plain": [], "code-data-share": [], "snapboot": []}
    scenarios = {
        "a-3.11": {"title": "a", "cases": cases, "at_most": 0.5, "python": "3.11"},
        "b-3.11": {"title": "b", "cases": {"code-data-share": [], "snapboot": []}, "at_most_itself": 1, "python": "3.11"},
        "a-3.13": {"title": "a", "cases": {"plain": [], "snapboot": []}, "python": "3.13"},
    }
    entries = {
        "a-3.11": {"python": "3.11.7", **result(**{"plain": 100.0, "code-data-share": 90.0, "snapboot": 60.0})["scenarios"]["some"]},
        "b-3.11": {"python": "3.11.7", **result(**{"code-data-share": 30.0, "snapboot": 0.5})["scenarios"]["some"]},
    }
    lines = report.python_boot_tables(scenarios, entries).splitlines()
    assert [line for line in lines if line.startswith("CPython")] == ["CPython 3.11.7:", "CPython 3.13:"]
    assert "| a | 100 ms | 90.0 ms | 60.0 ms | 0.90 | 0.60 | ≤ 0.50 | **not met** | 20 |" in lines
    assert "| b | – | 30.0 ms | 0.50 ms | – | 0.017 | ≤ 1.00 ms | met | 20 |" in lines
    assert "| a | – | – | – | – | – |  |  | 0 |" in lines


def test_a_scenario_may_ask_for_more_samples_and_for_starts_before_them(tmp_path):
    count = {"a": ["/bin/sh", "-c", f"echo >> {tmp_path}/starts"]}
    scenario = {"cases": count, "rounds_at_least": 4, "warmup": 3}
    entry = harness.Bench({}, "snapboot", pathlib.Path("/nonexistent")).measure(scenario, 2)
    assert entry["cases"]["a"]["n"] == 4, entry
    assert len((tmp_path / "starts").read_text().splitlines()) == 1 + 3 + 4  # the first one shows what it prints


def test_the_size_of_a_file_is_what_it_takes_after_the_command(tmp_path):
    program = str(ROOT / "bench/programs/python_boot/file_size.sh")
    write = ["/bin/sh", "-c", f"head -c 100000 /dev/urandom > {tmp_path}/file; echo not a number"]
    assert measure.printed_once([program, str(tmp_path / "file"), *write], ENVIRONMENT) >= 100


def test_system_calls_of_children_count():
    try:
        strace = workloads.prepare("strace")["strace"]
    except workloads.Unavailable as reason:
        pytest.skip(str(reason))
    program = str(ROOT / "bench/programs/python_boot/system_calls.sh")
    one, two = (
        measure.printed_once([program, strace, "/bin/sh", "-c", f"{script}; echo not a number"], ENVIRONMENT)
        for script in ("/bin/true", "/bin/true; /bin/true")
    )
    assert 10 < one < two < 2 * one


def test_a_target_may_be_for_the_figure_itself():
    scenario = {"cases": {"plain": [], "snapboot": []}, "at_most_itself": 500, "unit": ""}
    assert report.target(scenario) == "≤ 500"
    entry = {"cases": {"plain": {"median": 9}, "snapboot": {"median": 500}}}
    assert report.verdict(scenario, entry) == "met"
    entry["cases"]["snapboot"]["median"] = 501
    assert report.verdict(scenario, entry) == "**not met**"


def test_evicting_drops_a_file_from_the_page_cache(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"x" * 1_000_000)
    with open(path, "rb") as file:
        if measure.cached_share(file.fileno()) < 0.5:
            pytest.skip("this file system does not keep what was just written")
        measure.evict(str(path))
        assert measure.cached_share(file.fileno()) < 0.01


def test_the_page_of_an_explained_start_has_the_colours_of_the_drawings():
    style = (ROOT / "crates/explain/src/page/page.css").read_text()
    dark = style.index("@media (prefers-color-scheme: dark)")
    for theme, part in {"light": style[:dark], "dark": style[dark:]}.items():
        for name, colour in svg.THEMES[theme].items():
            assert f"--{name.replace(' ', '-')}: {colour};" in part, f"{theme}: {name}"
