"""The page of metrics by name has each metric that a stored event log gives, as the code declares it.

What only a live driver has, ``tests/integration/test_live.py`` holds against the page.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import ClassVar

from spark_events_prometheus.reporter import SeriesReporter

from docs.metrics_table import Row, rows_of, rows_of_page, together
from spark_events.api import Metric, MetricGroup, MetricReporter, MetricReporterFactory, ReporterConfig
from tests.support.event_log_reading import report_whole
from tests.support.paths import REPO
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


_ABBREVIATED = re.compile(
    r"spark_(?:job|stage|query_rocksdb)_|spark_(?:application|query)_[a-z]+_(?:state|time_(?:total_)?seconds)$"
    r"|spark_application_executor_\w+_used_|spark_executor_status_jvm_garbage_collector_"
    r"|spark_(?:application|query)_all_sub_tasks_"
)
"""Families of which docs/metrics.md names the first few, and says what the others are called."""


def test_each_metric_is_explained() -> None:
    """The list has a line of what each is; the page says when to look at it."""
    page = (REPO / "docs" / "metrics.md").read_text()
    without = [name for name in rows_of_page() if name not in page and not _ABBREVIATED.match(name)]

    assert without == [], "explain each in docs/metrics.md"


def test_a_label_stays_on_the_page() -> None:
    """What one application lacks, another may have: jobs outside queries have no ``query_name``."""
    listed = {"a": Row("a", "gauge", "job_id, query_name", "Old words."), "b": Row("b", "gauge", "", "B.")}

    assert together(listed, {"a": Row("a", "gauge", "host, job_id", "New words.")}) == {
        "a": Row("a", "gauge", "host, job_id, query_name", "New words."),
        "b": Row("b", "gauge", "", "B."),
    }
