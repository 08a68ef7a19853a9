"""Each panel and each rule on a real Prometheus: of a real demo, and of series whose figures are known."""

from __future__ import annotations

import json
import re
import subprocess
import time
import urllib.parse
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.dashboards import RULES, Panel, boards, expanded, panels
from tests.support.demo_run import DemoRun
from tests.support.prometheus import PrometheusServer
from tests.support.requirements import need
from tests.support.waiting import free_port, http_get

pytestmark = pytest.mark.prometheus
PANELS = [pytest.param(panel, id=f"{panel.board}: {panel.title}") for panel in panels()]


# -- a real demo --------------------------------------------------------------------------------------------


class Demo:
    """A demo that has run, scraped, and a time after its failure at which it was up again."""

    def __init__(self, server: PrometheusServer, at: float) -> None:
        self.server, self.at = server, at

    def ask(self, expr: str) -> dict[Any, float]:
        return self.server.query(
            expanded(expr, 120, {"__rate_interval": "10s", "__interval": "1s", "__interval_ms": "1000"}),
            self.at,
        )


@pytest.fixture
def demo(demo_run: DemoRun) -> Demo:
    need("prometheus", "prometheus")
    assert demo_run.server is not None
    return Demo(demo_run.server, demo_run.restarted_s)


@pytest.mark.spark
@pytest.mark.parametrize("panel", PANELS)
def test_panel_has_data(demo: Demo, panel: Panel) -> None:
    """Each query of each panel gives series whose labels are those of its legend."""
    for target in panel.targets:
        found = demo.ask(target["expr"])
        if "app:spark_application_streaming:group" in target["expr"] and "vector(0)" not in target["expr"]:
            assert not found, "the demo has a query: it is not a batch application"
            continue
        assert found, target["expr"]
        for labels in found:
            names = {name for name, value in labels if value}
            legend = set(wanted_labels(target.get("legendFormat", "")))
            assert legend <= names, (target["expr"], labels)


MAY_BE_EMPTY = {
    "app_query:spark_query_checkpoint_overdue:age_seconds",  # nothing is
    "app:spark_application_last_heard:age_seconds",  # without heartbeats
}


@pytest.mark.spark
def test_rules_are_evaluated(demo: Demo) -> None:
    """Prometheus has taken all, and evaluates them without an error."""
    groups = json.loads(http_get(f"{demo.server.url}/api/v1/rules"))["data"]["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    told = [yaml.safe_load(path.read_text()) for path in RULES.glob("*.yml")]
    assert len(rules) == sum(len(group["rules"]) for file in told for group in file["groups"])
    assert {rule["health"] for rule in rules} == {"ok"}, rules
    for rule in rules:
        if rule["type"] == "recording":
            assert demo.server.query(rule["name"], demo.at) or rule["name"] in MAY_BE_EMPTY, rule["name"]


def wanted_labels(legend: str) -> list[str]:
    return re.findall(r"\{\{(\w+)\}\}", legend)


# -- series whose figures are known -------------------------------------------------------------------------

STEP_S, HOURS = 15, 4
SAMPLES = HOURS * 3600 // STEP_S
BEFORE = 20
MOMENT_S = 7
FAILS, RUNS = 400, 460  # samples: 15 minutes from the one to the other
NAMES = 'app_name="shop",query_name="orders"'


def series() -> Iterator[tuple[str, Callable[[int], float | None]]]:
    """Yield series with their values, sample by sample: a query that is down for 15 minutes out of 4 hours.

    Sample 0 is at the begin of the time that is asked for; there are some before.
    """
    down = range(FAILS, RUNS)
    for status, is_it in (
        ("RUNNING", lambda n: n not in down),
        ("FAILED", lambda n: n in down),
        ("CREATED", lambda n: False),
    ):
        yield f'spark_query_status{{{NAMES},status="{status}"}}', lambda n, is_it=is_it: float(is_it(n))
    yield f'spark_query_info{{{NAMES},run_id="1"}}', lambda n: 1 if n < RUNS else None
    yield f'spark_query_info{{{NAMES},run_id="2"}}', lambda n: 1 if n >= RUNS else None
    # Three more runs were over before anybody saw them.
    yield f"spark_query_num_restarts{{{NAMES}}}", lambda n: min(4, max(0, n - FAILS))
    # 228 in time, 12 late
    yield f"spark_query_checkpoint_sla_met_total{{{NAMES}}}", lambda n: min(228, max(0, n // 4))
    yield f"spark_query_checkpoint_sla_missed_total{{{NAMES}}}", lambda n: min(12, max(0, n // 40))
    labels = f'{NAMES},job_kind="query",error="OUT_OF_MEMORY",failure_type="SYSTEM"'
    yield f"spark_failures_total{{{labels}}}", lambda n: 3 if n >= FAILS else None
    yield from batch_series()


SERVED = 10  # samples for which the last values of a driver are served
BATCH_RUNS = {
    "nightly": [(100, 200, "FINISHED"), (500, 620, "FAILED")],
    "reports": [(300, 460, "FINISHED")],
    "lab": [(700, 800, "CANCELED")],  # a notebook
    "shop": [(-BEFORE, SAMPLES + 1, "RUNNING")],  # it has a query
}


def batch_series() -> Iterator[tuple[str, Callable[[int], float | None]]]:
    """Yield the series of applications, each with its runs: begin, end and how it ended."""
    for app, runs in BATCH_RUNS.items():
        labels = f'app_name="{app}"'

        def at(n: int, runs: list[tuple[int, int, str]] = runs) -> tuple[str, int] | None:
            """Return the status, and for how many samples it has run."""
            for begin, end, how in runs:
                if begin <= n < end + SERVED:
                    return ("RUNNING", n - begin) if n < end else (how, end - begin)
            return None

        for number, (begin, end, _) in enumerate(runs):
            yield (
                f'spark_application_info{{{labels},app_id="{app}-{number}"}}',
                lambda n, begin=begin, end=end: 1 if begin <= n < end + SERVED else None,
            )
        for status in ("RUNNING", "FINISHED", "FAILED", "CANCELED"):
            yield (
                f'spark_application_status{{{labels},status="{status}"}}',
                lambda n, at=at, status=status: (found := at(n)) and float(found[0] == status),
            )
        yield (
            f"spark_application_uptime_seconds{{{labels}}}",
            lambda n, at=at: (found := at(n)) and found[1] * STEP_S * (found[0] == "RUNNING"),
        )
        yield (
            f"spark_application_interactive{{{labels}}}",
            lambda n, at=at, app=app: at(n) and float(app == "lab"),
        )
        yield from costs(app, at)
    yield (
        'spark_issues_total{app_name="reports",issue="regression"}',
        lambda n: float(n >= 459) if 300 <= n < 470 else None,
    )


def costs(
    app: str, at: Callable[[int], tuple[str, int] | None]
) -> Iterator[tuple[str, Callable[[int], float | None]]]:
    """Yield what an application's issues and executors count, to two within each run, and its heap."""
    rises_at = 460 if app == "shop" else 10  # samples of its run: for shop, just before a run of reports ends

    def count(n: int) -> float | None:
        return (found := at(n)) and 2.0 * (found[1] >= rises_at)

    if app != "reports":  # whose one regression is a figure of its own
        yield f'spark_issues_total{{app_name="{app}",issue="regression"}}', count
    yield f'spark_issues_total{{app_name="{app}",issue="skew"}}', count
    yield f'spark_application_lost_time_seconds_total{{app_name="{app}",issue="skew"}}', count
    yield f'spark_application_executors_removed_total{{app_name="{app}",reason="killed"}}', count
    for heap in ("used_max", "used_median", "used_peak", "limit"):
        name = f'spark_application_executor_heap_{heap}_bytes{{app_name="{app}"}}'
        yield name, lambda n: 1.0 if at(n) else None


@pytest.fixture(scope="module")
def seeded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[PrometheusServer, int]]:
    """A Prometheus with these series, and what its rules make of them; and when they end."""
    need("promtool", "prometheus")
    folder = tmp_path_factory.mktemp("seeded")
    end_s = int(time.time()) // 3600 * 3600 - 24 * 3600
    backfill(folder, {name: list(samples(value_at, end_s)) for name, value_at in series()})
    server = PrometheusServer(folder, free_port())
    for _ in range(2):  # what is recorded from recorded series comes with the second turn
        server.start()
        recorded = dict(evaluated(server, end_s))
        server.stop()
        backfill(folder, recorded)
    server.start()
    yield server, end_s
    server.stop()


def samples(value_at: Callable[[int], float | None], end_s: int) -> Iterator[tuple[int, float]]:
    for number in range(-BEFORE, SAMPLES + 1):
        value = value_at(number)
        if value is not None:
            yield end_s - (SAMPLES - number) * STEP_S, value


def evaluated(server: PrometheusServer, end_s: int) -> Iterator[tuple[str, list[tuple[int, float]]]]:
    """Yield what the recording rules give, as Prometheus evaluates them: at a moment of the interval of their own.

    (``promtool tsdb create-blocks-from rules`` leaves out a sample at the border of each block.)
    """
    groups = yaml.safe_load((RULES / "recording.yml").read_text())["groups"]
    times = {"start": end_s - (SAMPLES + BEFORE) * STEP_S + MOMENT_S, "end": end_s, "step": STEP_S}
    for rule in [rule for group in groups for rule in group["rules"]]:
        parameters = urllib.parse.urlencode({"query": rule["expr"], **times})
        answer = json.loads(http_get(f"{server.url}/api/v1/query_range?{parameters}"))
        for row in answer["data"]["result"]:
            labels = {key: value for key, value in row["metric"].items() if key != "__name__"}
            name = ",".join(f'{key}="{value}"' for key, value in labels.items())
            values = [(int(at), float(value)) for at, value in row["values"] if value != "NaN"]
            yield f"{rule['record']}{{{name}}}", values


def backfill(folder: Path, found: Mapping[str, list[tuple[int, float]]]) -> None:
    """Put series into a Prometheus' data, by way of OpenMetrics."""
    by_metric: dict[str, list[str]] = {}
    for name, values in found.items():
        by_metric.setdefault(name.split("{")[0], []).extend(f"{name} {value} {at}" for at, value in values)
    with (folder / "series.om").open("w") as file:
        for metric, lines in by_metric.items():
            kind = "counter" if metric.endswith("_total") else "gauge"
            file.write(f"# TYPE {metric.removesuffix('_total')} {kind}\n" + "\n".join(lines) + "\n")
        file.write("# EOF\n")
    promtool("tsdb", "create-blocks-from", "openmetrics", str(folder / "series.om"), str(folder / "data"))


def promtool(*arguments: str) -> None:
    done = subprocess.run(["promtool", *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("board", "title", "expected"),
    [
        ("uptime.json", "Uptime", 93.75),
        ("uptime.json", "Downtime", 900),
        ("uptime.json", "Restarts", 4),
        ("uptime.json", "Failures by class", 3),
        ("checkpoint-sla.json", "Met deadline", 95),
        ("checkpoint-sla.json", "Missed deadlines", 12),
        ("checkpoint-sla.json", "Budget left", -400),
        ("fleet.json", "Queries running", 1),
        ("fleet.json", "Queries down", 0),
        ("fleet.json", "Failures", 3),
        ("batch.json", "Running", 0),
        ("batch.json", "Failed", 1),
        ("batch.json", "Missing runs", 1),
        ("batch.json", "Slower than usual", 1 + 3 * 2),
        ("batch.json", "Executors lost", 8),
    ],
)
def test_exact(seeded: tuple[PrometheusServer, int], board: str, title: str, expected: float) -> None:
    """The figure is the one that the series make."""
    server, end_s = seeded
    (panel,) = [panel for panel in panels() if (panel.board, panel.title) == (board, title)]
    (target,) = panel.targets
    (value,) = server.query(expanded(target["expr"], HOURS * 3600), end_s).values()
    assert value == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(("every", "missing"), [("30m", 2), ("3h", 1), ("4h", 0)])
def test_missing_runs(seeded: tuple[PrometheusServer, int], every: str, missing: int) -> None:
    """What has not finished for so long counts, a notebook and an application with a query do not."""
    server, end_s = seeded
    (panel,) = [panel for panel in panels() if (panel.board, panel.title) == ("batch.json", "Missing runs")]
    asked = expanded(panel.targets[0]["expr"], 3600, {"every": every})
    assert list(server.query(asked, end_s).values()) == [missing]


def test_last_runs(seeded: tuple[PrometheusServer, int]) -> None:
    """Each batch application has a row, with what its last run was."""
    server, end_s = seeded
    (panel,) = [panel for panel in panels() if (panel.board, panel.title) == ("batch.json", "Last runs")]
    status, took, finished, *_ = (
        server.query(expanded(target["expr"], HOURS * 3600), end_s) for target in panel.targets
    )
    assert set(status) == {
        (("app_name", "lab"), ("status", "CANCELED")),
        (("app_name", "nightly"), ("status", "FAILED")),
        (("app_name", "reports"), ("status", "FINISHED")),
    }
    assert {dict(labels)["app_name"]: value / STEP_S for labels, value in took.items()} == {
        "lab": 99,
        "nightly": 119,
        "reports": 159,
    }
    # A series without a mark of its end counts for five minutes more, and so does what is recorded of it.
    since = {dict(labels)["app_name"]: value for labels, value in finished.items()}
    assert since.keys() == {"nightly", "reports"}
    for app, ended in (("nightly", 200 + SERVED), ("reports", 460 + SERVED)):
        assert 0 <= (SAMPLES - ended) * STEP_S - since[app] <= 2 * 5 * 60


OF_BATCH = [pytest.param(panel, id=panel.title) for panel in panels() if panel.board == "batch.json"]


@pytest.mark.parametrize("panel", OF_BATCH)
def test_no_streaming_query_on_the_batch_dashboard(
    seeded: tuple[PrometheusServer, int], panel: Panel
) -> None:
    """No figure of an application with a query is in any of its panels, and figures of others are."""
    server, end_s = seeded
    at = end_s - (SAMPLES - 465) * STEP_S  # just after the end of a run of reports
    found = {
        app: [
            {labels: value for labels, value in answer.items() if value or labels}
            for answer in (
                server.query(expanded(target["expr"], 7_200, {"app_name": app}), at)
                for target in panel.targets
            )
        ]
        for app in ("shop", "nightly|reports|lab")
    }
    assert not any(found["shop"]), panel.title
    if panel.title not in ("Running", "Failed", "Missing runs"):  # of which there are none just then
        assert any(found["nightly|reports|lab"]), panel.title


@pytest.mark.parametrize(("sample", "status"), [(FAILS - 1, 3), (FAILS, 4), (RUNS - 1, 4), (RUNS, 3)])
def test_exact_status(seeded: tuple[PrometheusServer, int], sample: int, status: int) -> None:
    """The timeline turns just when the status did."""
    server, end_s = seeded
    (panel,) = [panel for panel in panels() if (panel.board, panel.title) == ("uptime.json", "Status")]
    # What is recorded follows within a step.
    at = end_s - (SAMPLES - sample - 1) * STEP_S - 0.001
    assert list(server.query(expanded(panel.targets[0]["expr"]), at).values()) == [status]


@pytest.mark.parametrize("name", boards())
def test_starts_and_failures_are_marked_once(seeded: tuple[PrometheusServer, int], name: str) -> None:
    """Each at the first of the moments for which Grafana asks that comes after it."""
    server, end_s = seeded
    begin_s = end_s - SAMPLES * STEP_S
    found = {
        (mark["name"], *(labels.get(label, "") for label in wanted_labels(mark["titleFormat"])), *at)
        for mark in boards()[name]["annotations"]["list"]
        for labels, at in moments(server, expanded(mark["expr"]), begin_s, end_s, mark["step"])
    }

    def minute(sample: int) -> int:
        return begin_s + -(-sample * STEP_S // 60) * 60

    applications = {
        ("Starts of applications", app, minute(begin))
        for app, runs in BATCH_RUNS.items()
        for begin, _, _ in runs
        if begin > 0
    }
    assert found == applications | {
        ("Starts of queries", "shop", "orders", minute(RUNS)),
        ("Failures", "shop", "orders", "OUT_OF_MEMORY", minute(FAILS)),
    }


@pytest.mark.parametrize("interval_s", [15, 60])
def test_each_failure_is_marked_however_rarely_it_is_scraped(tmp_path: Path, interval_s: int) -> None:
    """The first, the second, and that of a driver which begins to count anew."""
    need("promtool", "prometheus")
    (expr,) = {
        mark["expr"]
        for board in boards().values()
        for mark in board["annotations"]["list"]
        if mark["name"] == "Failures"
    }
    labels = f'{{{NAMES}, error="OUT_OF_MEMORY"}}'
    minutes = ["_"] * 10 + ["1"] * 5 + ["3"] * 5 + ["1"] * 5
    values = [value for value in minutes for _ in range(60 // interval_s)]
    asked = [
        {
            "expr": expanded(expr, 3600, {"app_name": ".*"}),
            "eval_time": f"{minute}m",
            "exp_samples": [{"labels": labels, "value": 1}] if minute in (10, 15, 20) else [],
        }
        for minute in range(2, 25)
    ]
    series = {"series": f"spark_failures_total{labels}", "values": " ".join(values)}
    test = {"interval": f"{interval_s}s", "input_series": [series], "promql_expr_test": asked}
    (tmp_path / "test.yml").write_text(yaml.safe_dump({"tests": [test]}))
    promtool("test", "rules", str(tmp_path / "test.yml"))


def moments(
    server: PrometheusServer, expr: str, begin_s: int, end_s: int, step: str
) -> Iterator[tuple[dict[str, str], list[int]]]:
    """Yield the labels of each series of a query over a time, and at which moments, in s, it has a value."""
    parameters = urllib.parse.urlencode({"query": expr, "start": begin_s, "end": end_s, "step": step})
    answer = json.loads(http_get(f"{server.url}/api/v1/query_range?{parameters}"))
    for row in answer["data"]["result"]:
        yield row["metric"], [int(at) for at, _ in row["values"]]


@pytest.mark.extended
def test_alerts() -> None:
    """The alerts' own unit tests."""
    need("promtool", "prometheus")
    promtool("check", "rules", *map(str, sorted(RULES.glob("*.yml"))))
    promtool("check", "config", str(RULES.parent / "compose.yml"))
    promtool("test", "rules", *map(str, sorted((RULES.parent / "tests").glob("*_test.yml"))))
