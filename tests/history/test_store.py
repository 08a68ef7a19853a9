"""A store: days are added to it, in any order, and what is there already is not read again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spark_events.api import ConfigError
from spark_events.history.on_duckdb import DuckDb
from spark_events.history.sla import Sla
from spark_events.history.store import HistoryStore
from tests.support.history_story import DAY, HOUR, MIN, T0, Story, write


def day(number: int) -> Story:
    """One checkpoint an hour, the first of them slow."""
    story = Story()
    if number == 0:
        story.query(0, "CREATED").query(MIN, "RUNNING")
    for hour in range(3):
        story.checkpoint(number * DAY + hour * HOUR + MIN, 40_000 if hour == 0 else 1_000)
    return story


def files(folder: Path) -> dict[str, int]:
    return {str(path): path.stat().st_mtime_ns for path in folder.rglob("*.parquet")}


def test_only_the_days_that_are_touched_are_written(duckdb: DuckDb, tmp_path: Path) -> None:
    """Also where the raw events of other days are gone."""
    store = tmp_path / "store"
    first = write(tmp_path / "0", day(0))
    HistoryStore(duckdb, str(store)).add([str(first)])
    before = files(store)
    for path in first.iterdir():
        path.unlink()
    HistoryStore(duckdb, str(store)).add([str(write(tmp_path / "1", day(1)))])

    again = HistoryStore(duckdb, str(store))
    assert again.days == ["2026-11-20", "2026-11-21"]
    assert before.items() <= files(store).items()
    per_day = again.history(Sla(30_000)).tables().checkpoint_sla_per_day
    assert [(row["completed"], row["late_by_duration"]) for row in per_day] == [(3, 1), (3, 1)]


def test_added_twice_counts_once(duckdb: DuckDb, tmp_path: Path) -> None:
    """A day that is added again changes nothing, and leaves no file behind."""
    store = HistoryStore(duckdb, str(tmp_path / "store"))
    folder = str(write(tmp_path / "0", day(0)))
    assert store.add([folder]).duplicates == 0
    count = len(files(tmp_path / "store"))
    assert store.add([folder]).duplicates == 5
    assert len(files(tmp_path / "store")) == count
    (row,) = store.history().tables().checkpoint_sla
    assert row["completed"] == 3


def test_another_sla_and_a_window(duckdb: DuckDb, tmp_path: Path) -> None:
    """Sums of another SLA are made anew from the facts; a window may begin within a day."""
    store = HistoryStore(duckdb, str(tmp_path / "store"))
    store.add([str(write(tmp_path / "0", day(0), day(1)))], Sla(60_000))

    def figures(sla: Sla, span_ms: int | None = None) -> tuple[int, int]:
        (row,) = store.history(sla, span_ms).tables().checkpoint_sla
        return row["completed"], row["late_by_duration"]

    assert figures(Sla(60_000)) == (6, 0)
    assert figures(Sla(30_000)) == (6, 2)
    assert figures(Sla(60_000, {"orders": 500})) == (6, 6)
    assert figures(Sla(30_000), span_ms=HOUR) == (2, 0)
    assert figures(Sla(30_000), span_ms=DAY + HOUR) == (5, 1)
    assert store.history(Sla(), span_ms=HOUR).period.since_ms == T0 + DAY + HOUR + MIN


def test_cut_off(duckdb: DuckDb, tmp_path: Path) -> None:
    """What a run left behind that was cut off before the end is not seen, and removed by the next."""
    folder = tmp_path / "store"
    left = write(folder / "part-cut" / "facts", Story()).parent
    store = HistoryStore(duckdb, str(folder))
    with pytest.raises(ConfigError, match="the store is empty; give paths"):
        store.history()
    store.add([str(write(tmp_path / "0", day(0)))])
    assert not left.exists()
    assert json.loads((folder / "store.json").read_text())["version"] == 3


def test_no_store(duckdb: DuckDb, tmp_path: Path) -> None:
    """A folder of other things is not taken for a store, nor is one of another version."""
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(ConfigError, match=r"has no store\.json but notes\.txt: it is no store"):
        HistoryStore(duckdb, str(tmp_path))
    (tmp_path / "store.json").write_text('{"version": 1}')
    with pytest.raises(ConfigError, match="version 1; 3 is known"):
        HistoryStore(duckdb, str(tmp_path))


def test_two_at_once(duckdb: DuckDb, tmp_path: Path) -> None:
    """Who was overtaken says so, and loses nothing of the other's."""
    folder = str(tmp_path / "store")
    one, other = HistoryStore(duckdb, folder), HistoryStore(duckdb, folder)
    one.add([str(write(tmp_path / "0", day(0)))])
    with pytest.raises(ConfigError, match="another process added to the store meanwhile"):
        other.add([str(write(tmp_path / "1", day(1)))])
    assert HistoryStore(duckdb, folder).days == ["2026-11-20"]
