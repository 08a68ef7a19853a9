"""Applications in Kubernetes' cluster mode whose Python ends without a word: their JVM tells it, and their event log."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.executors import replay
from tests.support.file_log import Event, events_and_spans, file_events, of_name, statuses
from tests.support.kubernetes.cluster import KubernetesCluster
from tests.support.kubernetes.submission import CLUSTER, local, submit
from tests.support.paths import APPS

pytestmark = [pytest.mark.spark, pytest.mark.thorough, pytest.mark.timeout(600)]


@pytest.mark.parametrize(
    ("how", "code", "signal", "says"),
    [
        ("os._exit:3", 3, None, "the application ended with exit code 3"),
        ("kill:15", 143, "SIGTERM", "the driver was ended by SIGTERM (exit code 143)"),
        ("kill:9", 137, "SIGKILL", "the driver was killed by SIGKILL (exit code 137)"),
    ],
)
def test_python_ends_without_a_word(
    kubernetes: KubernetesCluster, tmp_path: Path, how: str, code: int, signal: str | None, says: str
) -> None:
    """The application and its query are FAILED, with the exit code and the signal; nothing of it is a guess."""
    logs = tmp_path / "logs"
    logs.mkdir()
    conf = {
        **events_and_spans(tmp_path / "events"),
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": logs.as_uri(),
        "spark.kubernetes.driverEnv.SPARK_EVENTS_TESTS_MASTER": "the cluster's",
    }
    (tmp_path / "go").touch()
    run = submit(kubernetes, tmp_path, *CLUSTER, local(APPS / "ends.py"), how, str(tmp_path), conf=conf).end()
    assert f"exit code: {code}" in run.err
    for events in (file_events(tmp_path / "events"), replay(logs, tmp_path / "replayed")):
        assert statuses(events, "application") == ["CREATED", "RUNNING", "FAILED"]
        assert statuses(events, "query")[-1] == "FAILED"
        assert_told(events, code, signal, says)


def assert_told(events: list[Event], code: int, signal: str | None, says: str) -> None:
    """Assert that the end of the application is told so, and for sure."""
    last = of_name(events, "JobStatusChangeEvent", job_kind="application")[-1]["attributes"]
    (failure,) = of_name(events, "JobFailureEvent", job_kind="application")
    for attributes in (last, failure["attributes"]):
        assert (attributes["exitCode"], attributes.get("exitSignal")) == (code, signal)
    assert "outcome" not in last
    assert says in failure["attributes"]["exception.message"]
