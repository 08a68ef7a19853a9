"""Every Python task is followed, also those whose code knows nothing of spark-events."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.applications import App
from tests.support.file_log import events_and_spans, file_events, of_name
from tests.support.paths import APPS
from tests.support.spark_cluster import running_spark_cluster

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("java"), pytest.mark.extended]
DAEMON = {"spark.python.daemon.module": "spark_events.task.daemon"}


class EveryTask:
    """What is left of the application."""

    def __init__(self, folder: Path, conf: dict[str, str]) -> None:
        conf = {
            **events_and_spans(folder / "live"),
            "spark.traces.tasks.enabled": "true",
            "spark.events.task.failures.include-locals": "true",
            "spark.events.task.measure-udfs": "true",
            **conf,
        }
        run = App([sys.executable, str(APPS / "every_task.py"), str(folder)], conf, folder).end()
        assert run.code == 0, run.err[-3000:]
        self.places: list[list[tuple[int, str, str]]] = json.loads((folder / "places.json").read_text())
        self.events = file_events(folder / "live")
        self.spans: dict[str, dict[str, Any]] = {}
        for path in (folder / "live").glob("*.spans.*.jsonl"):
            self.spans |= {span["spanId"]: span for span in map(json.loads, path.read_text().splitlines())}

    def tasks(self, error: bool = False) -> list[dict[str, Any]]:
        """Return the spans of tasks, of those that failed or of the others."""
        code = "ERROR" if error else "UNSET"
        return [s for s in self.spans.values() if s["name"] == "Task" and s["status"]["code"] == code]


@pytest.fixture(scope="module", params=["local[2]", pytest.param("standalone", marks=pytest.mark.thorough)])
def followed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> EveryTask:
    folder = tmp_path_factory.mktemp("followed")
    if request.param != "standalone":
        return EveryTask(folder, {"spark.master": request.param, **DAEMON})
    with running_spark_cluster(("127.0.0.1",)) as cluster:
        return EveryTask(folder, {"spark.master": cluster.master, **DAEMON})


def test_every_python_task_has_a_span(followed: EveryTask) -> None:
    """Below its stage; what its code's own instrumentation begins is below it, task after task."""
    seen = [span_id for job in followed.places for _, _, span_id in job]
    assert len(set(seen)) == 8
    for partition, trace_id, span_id in (place for job in followed.places for place in job):
        own = followed.spans[span_id]
        assert (own["name"], own["traceId"]) == ("Task", trace_id)
        assert own["attributes"]["partition"] == str(partition)
        stage = followed.spans[own["parentSpanId"]]
        assert stage["name"] == "Stage"
        assert int(stage["startTimeUnixNano"]) <= int(own["endTimeUnixNano"])
    by_stage: dict[str, int] = {}
    for span in followed.tasks():
        by_stage[span["parentSpanId"]] = by_stage.get(span["parentSpanId"], 0) + 1
    # The fourth job has no Python; of the last one, some tasks may have succeeded before it failed.
    assert sorted(by_stage.values())[-3:] == [4, 4, 200]


def test_why_a_task_failed(followed: EveryTask) -> None:
    """Its span, and the failures of its stage and its job, have the call of the UDF, and the variables."""
    failed = followed.tasks(error=True)[-1]  # on a cluster, there are several attempts
    expected = {
        "code.function.name": "inverse",
        "local.number": "997",
        "local.left": "0",
        "udf.name": "inverse",
        "udf.call": 248,  # the partition begins with 750
    }
    assert expected.items() <= failed["attributes"].items()
    failures = of_name(followed.events, "JobFailureEvent", job_kind="job")
    assert len(failures) == 1
    for event in failures:
        assert expected.items() <= event["attributes"].items()


@pytest.mark.thorough
def test_a_daemon_that_is_configured_already(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It runs, too."""
    there = tmp_path / "there"
    monkeypatch.setenv("SPARK_EVENTS_PYTHON_DAEMON", "tests.apps.other_daemon")
    monkeypatch.setenv("OTHER_DAEMON", str(there))
    app = EveryTask(tmp_path, {"spark.master": "local[2]", **DAEMON})
    assert there.exists()
    assert len(app.tasks()) >= 208


def test_without_the_daemon(tmp_path: Path) -> None:
    """Only tasks that have reported something have spans: here those of a measured UDF."""
    app = EveryTask(tmp_path, {"spark.master": "local[2]"})
    assert len(app.tasks(error=True)) == 1
    assert {span["parentSpanId"] for span in app.tasks()} <= {app.tasks(error=True)[0]["parentSpanId"]}
