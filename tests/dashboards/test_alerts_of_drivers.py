"""The shipped alerts, faster, on a real Prometheus that scrapes real drivers."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.applications import App, cli
from tests.support.dashboards import RULES
from tests.support.paths import REPO
from tests.support.prometheus_rules import INTERVAL_S, Watch, scaled, watching
from tests.support.requirements import need
from tests.support.waiting import free_port, wait_until

pytestmark = pytest.mark.prometheus
PROMISED_S = 180 * INTERVAL_S / 15
"""What docs/dashboards.md promises of SparkQueryDown, at this pace."""
UNNOTICED = 15
"""Evaluations: longer than the ``for`` of SparkQueryDown, and what comes before it."""
STATUS = 'spark_query_status{{status="{}"}} == 1'


class Drivers:
    """Drivers of one query, one after the other, on one port that is scraped.

    Args:
        folder: for their files, and those of the query.
        port: where their metrics are.
    """

    def __init__(self, folder: Path, port: int) -> None:
        self._folder, self._port = folder, port
        self.last: App | None = None

    def start(self, name: str) -> App:
        """Start one, whose first batch waits for ``go``."""
        folder = self._folder / name
        folder.mkdir()
        self._go, self._stop = folder / "go", folder / "stop"
        conf = {
            "spark.metrics.reporter.prom.factory.class": "prometheus",
            "spark.metrics.reporter.prom.port": str(self._port),
            "spark.events.checkpoint.sla": "8s",
        }
        script = REPO / "tests" / "apps" / "watched_query.py"
        arguments = map(str, (script, self._folder, self._go, self._stop))
        self.last = App(cli("run", *arguments), conf, folder)
        return self.last

    def go(self) -> None:
        """Let the first batch commit."""
        self._go.touch()

    def stop(self) -> None:
        """Stop the query, Spark and the driver, as a deployment does."""
        assert self.last is not None
        self._stop.touch()
        assert self.last.end().code == 0


@pytest.fixture
def drivers(java: str, tmp_path: Path) -> Iterator[tuple[Drivers, Watch]]:
    need("prometheus", "prometheus")
    port = free_port()
    drivers = Drivers(tmp_path, port)
    with watching(tmp_path / "prometheus", [port]) as watch:
        yield drivers, watch
    if drivers.last is not None and not drivers.last.ended:
        drivers.last.kill()


def test_scaled_rules(tmp_path: Path) -> None:
    """They are rules, and all their times are shorter, those in names and texts excepted."""
    need("promtool", "prometheus")
    for path in RULES.glob("*.yml"):
        (tmp_path / path.name).write_text(scaled(path.read_text(), 15))
    checked = subprocess.run(
        ["promtool", "check", "rules", *tmp_path.iterdir()], capture_output=True, text=True
    )
    assert checked.returncode == 0, checked.stderr
    alerts, recording = ((tmp_path / f"{name}.yml").read_text() for name in ("alerts", "recording"))
    assert "for: 8000ms" in alerts
    assert "vector(3 * 4)" in recording
    assert "14.4 * spark_checkpoint_sla:error_budget:ratio" in alerts
    assert "(spark_query_checkpoint_sla_missed_total[20000ms])" in recording
    for text in (alerts, recording):
        assert not re.search(r"\[\d+[smhd]\]|offset \d+[smhd]\b|for: \d+[smhd]$|\* 60", text, re.MULTILINE)


@pytest.mark.thorough
@pytest.mark.spark
def test_starts_stops_and_a_death(drivers: tuple[Drivers, Watch]) -> None:
    """Nobody is woken by a late first batch and a deployment, and somebody by a death, until the query is back."""
    some, watch = drivers
    ask = watch.server.query

    app = some.start("first")
    app.wait_for(lambda: ask("spark_query_checkpoint_sla_missed_total == 1"), "its first batch is late")
    some.go()
    late = "app_query:spark_query_checkpoint_sla_missed:ratio_rate5m > 0.144"
    app.wait_for(lambda: ask(late) and ask("app_query:spark_query_up:max == 1"), "much of it came too late")
    some.stop()
    wait_until(lambda: watch.evaluations("up == 0") > 2 * UNNOTICED, "it has been gone for a while")
    assert not ask("app_query:spark_query_up:max")

    app = some.start("next")
    starting = STATUS.format("RESTARTING")
    app.wait_for(lambda: watch.evaluations(starting) > UNNOTICED, "it has been starting for a while")
    some.go()
    app.wait_for(lambda: ask("app_query:spark_query_up:max == 1"), "it runs")
    assert watch.firings(pages=True) == []

    app.kill()
    killed_s = time.time()
    wait_until(lambda: watch.firings("SparkQueryDown"), "somebody is woken")
    app = some.start("last")
    some.go()
    app.wait_for(lambda: watch.firings()[-1].to_s is not None, "that is over")
    some.stop()

    (page,) = watch.firings(pages=True)
    assert (page.alert, page.labels["query_name"]) == ("SparkQueryDown", "ticks")
    assert page.from_s - killed_s < PROMISED_S
