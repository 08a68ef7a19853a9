"""What a destination or a plugin can make of the driver's log: a few lines, whatever it says."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from spark_events.runtime import log_once
from spark_events.runtime.log_once import OnceLog, TroubleLog


def test_errors_that_differ_each_time_are_a_few_lines(caplog: pytest.LogCaptureFixture) -> None:
    log = OnceLog()
    for number in range(1_000):
        log.error(("reporter", "refused", f"reason {number}"), f"refused: reason {number}")
        log.error(("reporter", "refused", "reason 0"), "refused: reason 0")
    log.error(("reporter", "send", "OSError"), "another kind of error")

    assert len(caplog.messages) == 11
    assert "not logged any more, whatever they say" in caplog.messages[9]
    assert caplog.messages[10].startswith("another kind of error")


def test_trouble_that_comes_and_goes_is_two_lines(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A minute later it may be said again; whoever is told of the end was told of the beginning."""
    now = 5.0
    monkeypatch.setattr(log_once, "time", SimpleNamespace(monotonic=lambda: now))
    trouble = TroubleLog()
    for number in range(100):
        trouble.goes_on(f"reason {number}", "away: %d", number)
        trouble.over("back: %d", number)
    assert caplog.messages == ["away: 0", "back: 0"]
    now += 61
    trouble.goes_on("reason", "away again")
    trouble.goes_on("another", "within a minute")
    now += 61
    trouble.goes_on("another", "still away: %s", "another")
    trouble.goes_on("another", "as said")
    trouble.over("back again")
    trouble.over("nothing was wrong")

    assert caplog.messages[2:] == ["away again", "still away: another", "back again"]
