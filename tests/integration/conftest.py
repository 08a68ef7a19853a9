"""One real application that the tests of this folder look at from all sides."""

from __future__ import annotations

import json

import pytest

from tests.support.applications import App, cli
from tests.support.file_log import events_and_spans, file_events
from tests.support.live_application import ADDED, Live
from tests.support.paths import APPS
from tests.support.waiting import free_port, http_get

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


@pytest.fixture(scope="session")
def live(java: str, tmp_path_factory: pytest.TempPathFactory) -> Live:
    """The application, submitted by ``spark-events run`` without a change of code."""
    folder = tmp_path_factory.mktemp("live")
    port = free_port()
    conf = {
        **events_and_spans((folder / "events").as_uri()),
        "spark.events.reporter.file.scope.variables.additional": ADDED,
        "spark.metrics.reporter.prom.factory.class": "prometheus",
        "spark.metrics.reporter.prom.port": str(port),
        "spark.app.name": "from-defaults",
        "spark.traces.checkpoint.span-detail-level": "CHILDREN_SPANS_PER_SUBTASK",
        "spark.metrics.job.status.enable": "STATE,CURRENT_TIME,TOTAL_TIME",
        "spark.metrics.job.min-duration": "0",
        "spark.events.checkpoint.sla": "1h",
        "spark.executor.heartbeatInterval": "1s",  # executors measure themselves that often
        "spark.executor.processTreeMetrics.enabled": "true",
        "spark.metrics.executors.sink.port": str(free_port()),
        "spark.metrics.conf.driver.sink.sparkEvents.period": "1",
        "spark.sql.streaming.stateStore.providerClass": ROCKSDB,
        "spark.sql.codegen.wholeStage": "true",  # as by default
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": (folder / "logs").as_uri(),
    }
    (folder / "logs").mkdir()
    command = cli("run", "--master", "local[2]", str(APPS / "lifecycle.py"), str(folder), "--hold")
    app = App(command, conf, folder)
    url = f"http://127.0.0.1:{port}/metrics"
    ended = 'query_name="bounded",status="FINISHED"'
    of_stateful_query = "spark_query_state_rows{"  # the bounded one, which follows, has no state
    while_running = ""

    def scraped() -> str:
        """Return the page, and keep it while the query with state runs, whose figures go when it is stopped."""
        nonlocal while_running
        page = http_get(url)
        while_running = page if of_stateful_query in page else while_running
        return page

    app.wait_for(lambda: ended in scraped(), "the bounded query has ended")
    for name in (
        "spark_executor_status_jvm_memory_heap_used",
        "spark_executor_status_jvm_cpu_time",
        "spark_executor_status_process_memory_jvm_used_bytes",
    ):
        app.wait_for(lambda name=name: name in http_get(url), "the executor has measured itself")  # type: ignore[misc]
    metrics = openmetrics = ""

    def no_series_came_between() -> bool:
        """Return whether both pages are of the same series; the executor sends more of them each second."""
        nonlocal metrics, openmetrics
        metrics = http_get(url)
        openmetrics = http_get(url, {"Accept": "application/openmetrics-text; version=1.0.0"})
        return metrics.count("\n") == http_get(url).count("\n")

    app.wait_for(no_series_came_between, "the executor sends no new series")
    (folder / "go").touch()
    run = app.end()
    spans = [json.loads(x) for f in (folder / "events").glob("*.spans.*") for x in f.read_text().splitlines()]
    return Live(run, file_events(folder / "events"), metrics, folder, spans, openmetrics, while_running)
