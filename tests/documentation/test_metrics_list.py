"""The page of metrics by name has each metric that a stored event log gives, as the code declares it.

What only a live driver has, ``tests/integration/test_live.py`` holds against the page.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from spark_events_prometheus.reporter import SeriesReporter

from docs.metrics_table import Row, rows_of, rows_of_page, together
from spark_events.api import Metric, MetricGroup, MetricReporter, MetricReporterFactory, ReporterConfig
from tests.support.event_log_reading import report_whole
from tests.support.stored_logs import recorded_logs

_WAIT_MS = 60_000


class _Every(SeriesReporter):
    """Keeps the series that are gone, too."""

    last: ClassVar[_Every]

    def notify_of_removed_metric(self, metric: Metric, name: str, group: MetricGroup) -> None:
        """It stays."""


class EveryFactory(MetricReporterFactory):
    """Makes it."""

    def create(self, config: ReporterConfig) -> MetricReporter:
        _Every.last = _Every()
        return _Every.last


_CONF = {
    "spark.metrics.reporter.every.factory.class": f"{__name__}:EveryFactory",
    "spark.metrics.job.min-duration": "0",
    "spark.metrics.job.status.enable": "STATE,CURRENT_TIME,TOTAL_TIME",
    "spark.events.checkpoint.sla": "1s",
}


def test_each_metric_of_a_log_is_on_the_page(tmp_path: Path) -> None:
    """With its type, its labels and its meaning."""
    listed = rows_of_page()
    for name, log in recorded_logs(tmp_path).items():
        report_whole(log, _CONF, _WAIT_MS)
        file = tmp_path / f"{name}.txt"
        file.write_bytes(_Every.last.render())
        served = rows_of(file.read_text())
        differs = [row for row in served.values() if together(listed, {row.name: row}) != listed]

        assert len(served) > 70
        assert differs == [], f"python -m docs.metrics_table {file}"


def test_a_label_stays_on_the_page() -> None:
    """What one application lacks, another may have: jobs outside queries have no ``query_name``."""
    listed = {"a": Row("a", "gauge", "job_id, query_name", "Old words."), "b": Row("b", "gauge", "", "B.")}

    assert together(listed, {"a": Row("a", "gauge", "host, job_id", "New words.")}) == {
        "a": Row("a", "gauge", "host, job_id, query_name", "New words."),
        "b": Row("b", "gauge", "", "B."),
    }
