"""What ``spark-events ctas`` prints."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from spark_events.cli.ctas import _cells
from tests.support.ctas_journals import transaction


def test_times_are_utc_wherever_the_machine_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        cells = _cells(replace(transaction(), at_ms=1_795_790_085_592), "")
    finally:
        monkeypatch.undo()
        time.tzset()

    assert cells[3] == "2026-11-27 14:34:45"
