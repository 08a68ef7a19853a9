"""Calls with a limit to the time that they may take."""

from __future__ import annotations

import threading

import pytest

from spark_events.api.toolkit.daemon_executor import DaemonExecutor, call_within


@pytest.mark.parametrize("executor", [None, DaemonExecutor(1, "test")])
def test_a_call_returns_raises_or_is_late(executor: DaemonExecutor | None) -> None:
    """Whatever it raises comes to the caller; a call that blocks is left behind."""

    def fail() -> None:
        raise SystemExit(3)

    assert call_within(5, lambda: 7, executor) == 7
    with pytest.raises(SystemExit, match="3"):
        call_within(5, fail, executor)
    release = threading.Event()
    with pytest.raises(TimeoutError, match=r"^no answer within 0\.05 s$"):
        call_within(0.05, release.wait, executor)
    release.set()
