"""What ``spark-events ctas`` prints."""

from __future__ import annotations

import time

import pytest

from spark_events.cli.ctas import _cells
from spark_events.ctas.transaction import Level, Purpose, State, TablePath, Transaction
from spark_events.spark.owner import Owner

TXID = "20261127T143445-0a0b0c0d"


def transaction() -> Transaction:
    return Transaction(
        txid=TXID,
        state=State.INTENT,
        number=0,
        at_ms=1_795_790_085_592,
        begun_ms=1_795_790_085_592,
        owner=Owner.this_process("app-1"),
        publisher="files",
        catalog_id="memory",
        level=Level.POINTER,
        purpose=Purpose.CREATE,
        path=TablePath("spark_catalog", "default", "t"),
        table={"provider": "parquet"},
    )


def test_times_are_utc_wherever_the_machine_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        cells = _cells(transaction(), "")
    finally:
        monkeypatch.undo()
        time.tzset()

    assert cells[3] == "2026-11-27 14:34:45"
