"""A driver that lives long: tens of thousands of jobs, and as much memory at the end as early on."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.applications import App, cli
from tests.support.file_log import events_and_spans
from tests.support.paths import APPS
from tests.support.waiting import free_port, http_get

pytestmark = [pytest.mark.spark, pytest.mark.soak, pytest.mark.timeout(1_800)]
JOBS = int(os.environ.get("SPARK_EVENTS_SOAK_JOBS", "50000"))


def test_many_jobs_end_with_flat_memory(java: str, tmp_path: Path) -> None:
    """Each job and stage has events, spans, and for a moment metrics of its own; all of it is forgotten."""
    port = free_port()
    conf = {
        **events_and_spans(tmp_path / "events"),
        "spark.metrics.reporter.prom.factory.class": "prometheus",
        "spark.metrics.reporter.prom.port": str(port),
        "spark.metrics.job.min-duration": "0",
        "spark.metrics.ended.retention": "1s",
        "spark.log.level": "ERROR",
    }
    app = App(cli("run", "--master", "local[2]", str(APPS / "many_jobs.py"), str(JOBS)), conf, tmp_path)
    app.wait_for(
        lambda: "spark_job_num_tasks{" in http_get(f"http://127.0.0.1:{port}/metrics"), "jobs are seen"
    )
    run = app.end(timeout_s=1_700)
    assert run.code == 0, run.err[-3000:]
    sizes = [int(line.split()[1]) for line in run.out.splitlines()]

    print(f"MiB of the Python process after each tenth of {JOBS} jobs: {sizes}")  # noqa: T201 - pytest -s shows it
    assert len(sizes) == 10
    assert sizes[-1] <= sizes[1] * 1.05 + 2, f"memory grew with the jobs: {sizes} MiB"
