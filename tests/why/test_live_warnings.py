"""Warnings that are told while an application runs, in what is told of it after its end."""

from __future__ import annotations

import re
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from spark_events.why.explanation import Explanation
from spark_events.why.reading.read_logs import explain_logs
from tests.support.slow_log import slow_log

_NIGHT_MS = 86_400_000
_TIME = re.compile(rb"\b\d{13}\b")


def night(folder: Path, number: int, log: bytes) -> Explanation:
    """Return the explanation of a run, which is compared with those of the nights before it."""
    path = folder / f"app-{number}"
    later = _TIME.sub(lambda time: str(int(time[0]) + number * _NIGHT_MS).encode(), log)
    path.write_bytes(later.replace(b'-0001"', b'-%04d"' % (number + 1)))
    (explanation,), notes = explain_logs(
        [str(path)], {"spark.events.issue.regression.dir": str(folder / "runs")}
    )
    assert notes == []
    return explanation


class AtOnce:
    """Reads earlier runs on the caller's thread, so that they are known when time passes."""

    def __init__(self, most: int, name: str) -> None:
        pass

    def submit(self, call: Callable[[], Any]) -> Future[Any]:
        done: Future[Any] = Future()
        done.set_result(call())
        return done

    def shutdown(self, wait: bool) -> None:
        pass


def test_a_run_that_has_ended_is_not_said_to_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the log is read, time passes as it did: there was a warning."""
    monkeypatch.setattr("spark_events.listeners.issues.regressions.DaemonExecutor", AtOnce)
    for number in range(5):
        night(tmp_path, number, slow_log((10, 10, 10, 10)))
    explained = night(tmp_path, 5, slow_log((400, 10, 10, 10)))

    assert explained.ended
    assert {issue.about.split(" ")[0] for issue in explained.issues if issue.kind == "regression"} == {"SQL"}
    assert not [issue for issue in explained.issues if issue.evidence.get("live")]
