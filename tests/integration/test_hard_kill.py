"""A driver and its JVM that are killed together: nothing is left that could tell it, and nobody says that it runs."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families as parse

from tests.support.applications import App, cli, reported
from tests.support.file_log import events_and_spans, file_events, statuses
from tests.support.paths import APPS
from tests.support.prometheus import PrometheusServer, Pushgateway
from tests.support.waiting import free_port, http_get, wait_until

pytestmark = [pytest.mark.spark, pytest.mark.prometheus]
HEARTBEAT_S = 2
UP = "app_query:spark_query_up:max"
Rows = dict[tuple[str, str | None], dict[str, Any]]


class Driver:
    """An application with a query, whose metrics are scraped and pushed, and whose events are kept.

    Args:
        folder: for its files; a driver with the same folder goes on with the query.
        pushgateway: where it pushes to.
    """

    def __init__(self, folder: Path, pushgateway: Pushgateway) -> None:
        self.events, self.port = folder / "events", free_port()
        self._folder, self._pushgateway = folder, pushgateway

    @property
    def url(self) -> str:
        """Where it is scraped."""
        return f"http://127.0.0.1:{self.port}"

    def started(self) -> App:
        """Start it, and wait until its query is RUNNING, also by what was pushed."""
        push, scraped = "spark.metrics.reporter.push.", "spark.metrics.reporter.scraped."
        conf = {
            **events_and_spans(self.events),
            f"{push}factory.class": "prometheus_pushgateway",
            f"{push}hostUrl": self._pushgateway.url,
            f"{push}interval": "200ms",
            f"{scraped}factory.class": "prometheus",
            f"{scraped}port": str(self.port),
            "spark.events.heartbeat.interval": f"{HEARTBEAT_S}s",
        }
        app = App([sys.executable, str(APPS / "endless.py"), str(self._folder / "query")], conf, self._folder)
        app.wait_for(lambda: is_running(self._pushgateway.metrics()), "its query runs")
        return app


def is_running(page: str) -> bool:
    """Return whether a page says that the query is RUNNING."""
    return any(
        sample.labels["status"] == "RUNNING" and sample.value
        for family in parse(page)
        for sample in family.samples
        if sample.name == "spark_query_status"
    )


def status(where: str | Path) -> tuple[int, Rows]:
    """Return what ``spark-events status`` says: its exit code, and the rows by application and query."""
    command = cli("status", str(where), "--json")
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    rows = json.loads(done.stdout) if done.stdout else []
    return done.returncode, {(row["app_name"], row["query_name"]): row for row in rows}


def is_up(where: str | Path) -> bool:
    """Return whether the query and its application are RUNNING by ``status``; a late heartbeat may hide it."""
    code, rows = status(where)
    return code == 0 and {row["status"] for row in rows.values()} == {"RUNNING"}


def is_lost(where: str | Path) -> bool:
    """Return whether the query and its application are LOST, since they were last heard of, by ``status``."""
    code, rows = status(where)
    return {row["status"] for row in rows.values()} == {"LOST"} and all(
        (code, row["state"] in ("down", "failed"), row["since_ms"]) == (1, True, row["last_heard_ms"])
        for row in rows.values()
    )


@pytest.mark.extended
def test_it_is_lost_until_the_next_one(
    java: str, tmp_path: Path, pushgateway: Pushgateway, prometheus: Callable[[int], PrometheusServer]
) -> None:
    driver = Driver(tmp_path, pushgateway)
    app = driver.started()
    server = prometheus(driver.port)
    wait_until(lambda: server.value(UP) == 1, "Prometheus has seen it RUNNING")
    for where in (pushgateway.url, driver.events):
        wait_until(lambda where=where: is_up(where), f"it is up by {where}")
    app.kill()

    # What is left of it: the page that was pushed last, and a log whose last word is that it lives.
    assert http_get(driver.url) == ""
    assert is_running(pushgateway.metrics())
    assert statuses(file_events(driver.events), "application") == ["CREATED", "RUNNING"]
    wait_until(lambda: server.value(UP) == 0, "Prometheus says that it is down")
    wait_until(lambda: is_lost(pushgateway.url), "it is LOST by the page that was pushed last")
    wait_until(lambda: is_lost(driver.events), "it is LOST by its events")

    app = driver.started()
    wait_until(lambda: server.value(UP) == 1, "Prometheus has seen it RUNNING again")
    for where in (pushgateway.url, driver.events):
        wait_until(lambda where=where: is_up(where), f"it is up again by {where}")
    app.kill()
    report = reported(driver.events, tmp_path / "report.json")
    for of in report["uptime"]:
        assert (of["failures"], of["outages"], of["restarts"]) == (1, 1, 1), of
        assert of["down_ms"] >= 10 * HEARTBEAT_S * 1_000
    assert {row["error"] for row in report["failures"]} == {"LOST"}
