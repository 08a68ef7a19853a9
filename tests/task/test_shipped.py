"""Executors on which spark-events is not installed: ``spark.events.task.ship-module`` sends them what tasks need."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.support.applications import App
from tests.support.file_log import events_and_spans
from tests.support.paths import APPS, REPO

pytestmark = pytest.mark.spark


def bare_python(folder: Path) -> Path:
    """Return a Python that has nothing but what Spark itself brings: no site-packages, and no repository."""
    path = folder / "bare-python"
    path.write_text(
        "#!/bin/sh\n"
        f"PYTHONPATH=$(printf %s \"$PYTHONPATH\" | tr ':' '\\n' | grep -vx '{REPO}' | paste -sd: -)\n"
        f'export PYTHONPATH\nexec {sys.executable} -S "$@"\n'
    )
    path.chmod(0o755)
    return path


@pytest.mark.extended
def test_it_is_sent(java: str, tmp_path: Path) -> None:
    conf = {
        "spark.master": "local-cluster[1,2,1024]",
        "spark.events.task.ship-module": "true",
        **events_and_spans(tmp_path / "live"),
    }
    python, places = bare_python(tmp_path), tmp_path / "places"
    command = [sys.executable, str(APPS / "shipped_tasks.py"), str(places), str(python)]
    run = App(command, conf, tmp_path).end()
    assert run.code == 0, run.err[-3000:]
    for place in places.read_text().splitlines():
        file, _, installed = place.partition(" ")
        assert "spark_events_task.zip/spark_events/task/__init__.py" in file
        assert installed == "[]"
    (file,) = (tmp_path / "live").glob("*.spans.*.jsonl")
    spans = [json.loads(line) for line in file.read_text().splitlines()]
    assert len([span for span in spans if span["name"] == "row"]) == 10
