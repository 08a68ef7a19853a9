"""``foreachBatch`` functions of several queries, which run in threads of one driver with the same metrics."""

from __future__ import annotations

import io
import logging
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from spark_events import task
from spark_events.sources.driver.tasks.foreach_batches import ForeachBatches
from spark_events.task.driver_link import DriverLink
from spark_events.task.instruments import MOST_VALUES
from spark_events.task.report import MOST_BYTES

utils = pytest.importorskip("pyspark.sql.utils")
LINK = DriverLink(5, ("app-1", ""), "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331", sampled=True)


@pytest.fixture
def reports(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[dict[str, Any]]]:
    """PySpark's calls without PySpark's session."""

    def call(function: Any, frame: Any, batch: int) -> None:
        function.func(frame, batch)

    monkeypatch.setattr(utils.ForeachBatchFunction, "call", call)
    monkeypatch.setattr("spark_events.task.instruments._made", {})
    reports: list[dict[str, Any]] = []
    batches = ForeachBatches(LINK, reports.append)
    batches.begin()
    yield reports
    batches.end()
    batches.end()
    assert utils.ForeachBatchFunction.call is call


def function_of(run: str, function: Any) -> Any:
    """Return what PySpark makes of a query's function."""
    context = SimpleNamespace(getLocalProperty=lambda key: run if key == "spark.jobGroup.id" else None)
    return utils.ForeachBatchFunction(SimpleNamespace(sparkContext=context), function)


def test_each_thread_has_its_own_values(reports: list[dict[str, Any]]) -> None:
    together = threading.Barrier(2)
    rows = task.metrics.counter("rows")

    def write(size: int, batch: int) -> None:
        for _ in range(size):
            together.wait()
            rows.inc()
            task.metrics.gauge("size").set(size)
            task.metrics.histogram("sizes").update(size)
            together.wait()

    functions = [function_of(f"run-{number}", lambda _, batch: write(3, batch)) for number in range(2)]
    threads = [threading.Thread(target=f.call, args=(None, n + 7)) for n, f in enumerate(functions)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {(report["properties"]["spark.jobGroup.id"], report["batch"]) for report in reports} == {
        ("run-0", 7),
        ("run-1", 8),
    }
    for report in reports:
        assert report["metrics"] == [
            ("counter", "rows", (), 3),
            ("gauge", "size", (), (3, 3, 3)),
            ("histogram", "sizes", (), [3.0, 3.0, 3.0]),
        ]


def test_outside_a_batch_nothing_is_kept(reports: list[dict[str, Any]]) -> None:
    """Neither before one nor between two."""
    rows = task.metrics.counter("rows")
    write = function_of("run-1", lambda _, batch: rows.inc(batch))
    for batch in (1, 2):
        rows.inc(100)
        write.call(None, batch)
    assert [report["metrics"][0][-1] for report in reports] == [1, 2]
    assert task.traceparent() is None


def test_one_that_reports_nothing(reports: list[dict[str, Any]]) -> None:
    function_of("run-1", lambda _, batch: None).call(None, 1)
    assert reports == []


def test_one_that_raises(reports: list[dict[str, Any]]) -> None:
    """Spark sees the same exception; the span that was open ends with it."""

    opened = task.span("write")

    def write(_: Any, batch: int) -> None:
        opened.__enter__()
        raise KeyError("closed")

    with pytest.raises(KeyError, match="closed"):
        function_of("run-1", write).call(None, 1)
    (report,) = reports
    assert report["raised"]
    assert report["spans"][0]["error"] == ("KeyError", "'closed'")


def test_how_large_a_report_is(reports: list[dict[str, Any]]) -> None:
    """The driver bounds what waits by that, whoever has sent it; a single report is as small as a task's."""

    def write(_: Any, batch: int) -> None:
        for number in range(100):
            for value in range(MOST_VALUES):
                task.metrics.histogram(f"sizes_{number}").update(value)

    function_of("run-1", write).call(None, 1)
    (report,) = reports
    assert 0 < report["bytes"] <= MOST_BYTES
    assert report["dropped"]["values"] > 0


def test_attachments_that_overlap(reports: list[dict[str, Any]]) -> None:
    """As when an application is attached to again before the one before it has closed."""
    later: list[dict[str, Any]] = []
    first, second = ForeachBatches(LINK, later.append), ForeachBatches(LINK, later.append)
    function = function_of("run-1", lambda _, batch: task.metrics.counter("rows").inc())
    first.begin()
    second.begin()
    first.end()
    function.call(None, 1)
    second.end()
    function.call(None, 2)
    assert ([report["batch"] for report in later], [report["batch"] for report in reports]) == ([1], [2])


def test_logs_of_py4j_with_a_filter(reports: list[dict[str, Any]]) -> None:
    """The filter asks for the report, which asks py4j for the query, which logs."""
    log = logging.Logger("py4j")
    handler = logging.StreamHandler(io.StringIO())
    handler.addFilter(task.TraceContextFilter())
    log.addHandler(handler)

    def write(_: Any, batch: int) -> None:
        log.debug("the function runs")

    function = function_of("run-1", write)
    asked = function.session.sparkContext.getLocalProperty
    function.session.sparkContext.getLocalProperty = lambda key: log.debug("py4j is asked") or asked(key)
    function.call(None, 1)


def test_a_gateway_that_is_gone(reports: list[dict[str, Any]]) -> None:
    """The function goes on without a report."""

    def gone(key: str) -> None:
        raise ConnectionError("the JVM is gone")

    done: list[int] = []

    def write(_: Any, batch: int) -> None:
        task.metrics.counter("rows").inc()
        done.append(batch)

    function = function_of("run-1", write)
    function.session.sparkContext.getLocalProperty = gone
    function.call(None, 1)
    assert (done, reports) == ([1], [])


def test_too_many_values(reports: list[dict[str, Any]]) -> None:
    def write(_: Any, batch: int) -> None:
        for value in range(MOST_VALUES + 3):
            task.metrics.histogram("sizes").update(value)

    function_of("run-1", write).call(None, 1)
    assert len(reports[0]["metrics"][0][-1]) == MOST_VALUES
    assert reports[0]["dropped"] == {"values": 3}
