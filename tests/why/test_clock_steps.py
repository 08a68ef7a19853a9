"""Logs of drivers whose clock was set back: `why` says that their times are wrong."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from spark_events.why.reading.read_logs import explain_logs
from tests.support.event_log_sample import SampleLog, line
from tests.support.slow_log import loop_log, slow_log

_TIMES = ("Timestamp", "time", "Submission Time", "Completion Time", "Launch Time", "Finish Time")


def set_back(log: bytes, first: int, by_ms: int) -> bytes:
    """Return a log whose clock is set back before one of its records; what began before it is as it was."""
    lines = log.splitlines(keepends=True)
    record = json.loads(lines[first])
    ended = record.get("Task Info", {}).get("Finish Time") or record.get("Stage Info", {}).get(
        "Completion Time"
    )
    at_ms = int(ended or record.get("Submission Time") or record["Stage Info"]["Submission Time"])
    later = [line(_earlier(json.loads(text), at_ms, by_ms)) for text in lines[first:]]
    return b"".join([*lines[:first], *later])


def _earlier(record: dict[str, Any], at_ms: int, by_ms: int) -> dict[str, Any]:
    for name, value in record.items():
        if isinstance(value, dict):
            record[name] = _earlier(value, at_ms, by_ms)
        elif name in _TIMES and value >= at_ms:
            record[name] = value - by_ms
    return record


def notes_of(path: Path, log: bytes) -> list[str]:
    path.write_bytes(log)
    explanations, notes = explain_logs([str(path)], {})
    assert explanations
    return [note.partition(": ")[2] for note in notes]


def first_of(log: bytes, event: str) -> int:
    return next(number for number, text in enumerate(log.splitlines()) if event.encode() in text)


@pytest.mark.parametrize(
    ("event", "by_ms"),
    [
        ("JobStart", 20_000),
        ("JobStart", 600_000),
        ("StageSubmitted", 600_000),  # by less, it is one record alone that comes early
        ("TaskEnd", 20_000),
        ("TaskEnd", 600_000),
        ("StageCompleted", 20_000),
        ("StageCompleted", 600_000),
    ],
)
def test_it_is_said(tmp_path: Path, event: str, by_ms: int) -> None:
    log = slow_log((20, 20, 20, 22))
    (note,) = notes_of(tmp_path / "log", set_back(log, first_of(log, event), by_ms))
    assert note.startswith("the driver's clock was set back by about ")
    assert "times across that are wrong" in note


@pytest.mark.parametrize("turn", [3, 20, 37])
def test_it_is_said_by_how_much(tmp_path: Path, turn: int) -> None:
    log = loop_log(40, 800)
    begins = [number for number, text in enumerate(log.splitlines()) if b"JobStart" in text]
    (note,) = notes_of(tmp_path / "log", set_back(log, begins[turn], 15_000))
    assert "set back by about 15.0 s" in note


@pytest.mark.parametrize("run_s", [(2, 2, 2, 22), (600, 600), (20, 20, 20, 20, 20)])
def test_nothing_is_said_of_others(tmp_path: Path, run_s: Sequence[int]) -> None:
    assert notes_of(tmp_path / "log", slow_log(run_s)) == []


@pytest.mark.parametrize(("attempt", "notes"), [(0, 1), (1, 0)])
def test_nothing_is_said_of_a_second_attempt(tmp_path: Path, attempt: int, notes: int) -> None:
    """Spark adds what a late task of the first one has done."""
    lines = []
    for text in slow_log((2, 2, 2, 22)).splitlines():
        record = json.loads(text)
        if record["Event"].endswith("StageCompleted"):
            record["Stage Info"]["Stage Attempt ID"] = attempt
            record["Stage Info"]["Accumulables"][0]["Value"] = 4 * 60_000
        lines.append(line(record))
    assert len(notes_of(tmp_path / "log", b"".join(lines))) == notes


def test_nothing_is_said_of_jobs_side_by_side(tmp_path: Path) -> None:
    """A record that its thread posts late is one alone."""
    sample = SampleLog(cores=4)
    lines = [*sample.begin(), *(text for _ in range(5) for text in sample.job(8)), *sample.end()]
    late = first_of(b"".join(lines), "StageSubmitted")
    lines = [*lines[:late], *lines[late + 1 : late + 30], lines[late], *lines[late + 30 :]]
    assert notes_of(tmp_path / "log", b"".join(lines)) == []
