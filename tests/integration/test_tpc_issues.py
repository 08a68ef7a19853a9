"""The queries of TPC-H and TPC-DS, which have no defect: what is told of them is true of the benchmark."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support.applications import App, cli
from tests.support.file_log import file_events, of_name
from tests.support.paths import APPS
from tests.support.tpc import load

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1_800)]
MIB, DAY_MS = 1 << 20, 86_400_000
TRUE: dict[str, Callable[[Mapping[str, Any]], bool]] = {
    # By its statistics, Spark takes a million rows, or nearly, for small enough to be sent to all.
    "large-broadcast": lambda told: told["broadcast.rows"] > 500_000 and told["broadcast.bytes"] > 64 * MIB,
    "missing-broadcast": lambda told: 1_000 * told["join.smallBytes"] < told["join.largeBytes"],
    # ROLLUP, CUBE, and distinct counts of several columns.
    "no-duplicates": lambda told: told["duplicates.rows"] > 0,
    "expanded-rows": lambda told: told["expand.rows"] >= 3 * told["expand.ofRows"],
    # Whatever is joined last is computed for a sample as well, where all rows are sorted. Queries 4, 11 and
    # 74 join the sales of a year with customers; query 9 reads the sales once for each range of quantities.
    "recomputation": lambda told: (
        told["recomputation.what"].startswith("what is sorted by")
        or (told["recomputation.times"] > 1 and "customer" in told["recomputation.what"])
        or (told["recomputation.times"] == 5 and told["recomputation.what"].endswith("/store_sales.parquet"))
    ),
    # Of Parquet files that have one row group, or a few.
    "skew": lambda told: told["task.readRows"] > 2 * told["median.readRows"],
    # Adaptive execution puts partitions together by their size, whatever is computed of them.
    "task-count": lambda told: told["fewTasks"] and told["numTasks"] == 1,
    # Planning 99 queries over 24 tables, of which each is read for its schema, takes a part of the time.
    "idle-cores": lambda told: told["driverAloneMs"] < 0.5 * told["durationMs"],
    "loop-of-small-jobs": lambda told: told["loop.jobs"] in (7, 8, 23, 24),
}
"""What may be told, and what has to be true then."""


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("tpch", marks=pytest.mark.thorough),
        pytest.param("tpcds", marks=pytest.mark.soak),
    ],
)
def test_what_is_told(name: str, java: str, tmp_path: Path) -> None:
    """A query takes a few seconds here, so an issue counts from one second on, not from 30."""
    pytest.importorskip("duckdb")
    data, logs = tmp_path / name, tmp_path / "logs"
    for folder in (data, logs):
        folder.mkdir()
    suite = load(name, 1, data)
    (data / "queries.json").write_text(json.dumps(suite.queries))
    conf = {
        "spark.events.reporter.file.factory.class": "file_log",
        "spark.events.reporter.file.path": str(tmp_path / "live"),
        "spark.events.issue.min-duration": "1s",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": logs.as_uri(),
        "spark.driver.memory": "4g",
        # A heap that begins small collects garbage three times as often, which is not a fault of a query.
        "spark.driver.extraJavaOptions": "-Xms4g -XX:+AlwaysPreTouch",
    }
    run = App(cli("run", "--master", "local[2]", str(APPS / "tpc.py"), str(data)), conf, tmp_path).end(1_200)
    assert run.code == 0, run.err[-3000:]
    done = [line for line in run.out.splitlines() if line.isdigit()]  # the JVM may warn there, too
    assert done == [str(number) for number in suite.queries]
    events = file_events(tmp_path / "live")
    assert len(of_name(events, "JobStatusChangeEvent", newJobStatus="FINISHED")) > len(suite.queries)
    judge(event["attributes"] for event in of_name(events, "PerformanceIssueEvent"))
    why = App(cli("why", str(logs), "--json", str(tmp_path / "why.json")), {}, tmp_path).end(120)
    assert why.code == 0, why.err
    (application,) = json.loads((tmp_path / "why.json").read_text())["applications"]
    judge(
        {"issue": each["issue"], "durationMs": DAY_MS, **each["evidence"]} for each in application["issues"]
    )


def judge(issues: Iterable[Mapping[str, Any]]) -> None:
    assert [issue for issue in issues if not TRUE.get(issue["issue"], lambda _: False)(issue)] == []
