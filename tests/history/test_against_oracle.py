"""Random small histories: in one pass and day by day, the tables are those of a plain reckoning."""

from __future__ import annotations

import os
import random
import uuid
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from spark_events.history.history import read_history
from spark_events.history.options import Sla
from spark_events.history.reading.on_duckdb import DuckDb
from spark_events.history.reading.plausible import day_number
from spark_events.history.selection import Selection
from spark_events.history.store.store import HistoryStore
from spark_events.history.tables.all_tables import COLUMNS, Tables
from tests.support.history_oracle import Oracle, time, whose
from tests.support.history_story import DAY, T0, Story, write

STEP = 3_600_000
SLA = 4 * STEP
STATUSES = ("CREATED", "RUNNING", "RESTARTING", "FAILED", "CANCELED", "FINISHED")


def random_story(number: int, rng: random.Random) -> Story:
    """A few days of drivers, runs and checkpoints, sensible and not."""
    story = Story(f"app-{number}", "driver-0")
    hours = sorted(rng.choices(range(72), k=rng.randint(2, 25)))
    beats = random_beats(rng)
    streams = rng.random() < 0.8
    for hour in hours:
        ms = hour * STEP
        what = rng.random()
        if beats and rng.random() < 0.6:
            story.heartbeats(ms, ms, beats * STEP)
        if not streams:
            in_batch(story, ms, what)
            beats = random_beats(rng) if what < 0.3 else beats
            continue
        if what < 0.15:
            story.driver(f"driver-{hour}")
            story.application(ms, "CREATED", "RUNNING")
            beats = random_beats(rng)
        elif what < 0.3:
            story.run(f"{story.app_id}-{hour}", rng.choice(("id", "id", "another")))
            story.query(ms, rng.choice(("CREATED", "RESTARTING")))
        elif what < 0.6:
            story.query(ms, rng.choice(STATUSES), owedMs=rng.choice((None, None, 3 * STEP, 5 * STEP)))
        elif what < 0.85:
            took = rng.choice((1, 2, 3, 5, 6)) * STEP
            story.checkpoint(ms, took, rng.choice((None, took, 2 * took)))
        elif what < 0.9:
            story.application(ms, rng.choice(("FAILED", "FINISHED")))
        elif what < 0.95:
            story.failure(ms, rng.choice(("BOOM", "DISK")))
            if rng.random() < 0.5:
                story.job_failure(ms - 1, "BOOM", query_name="orders")
        else:
            story.job(ms)
    return story


def random_beats(rng: random.Random) -> int:
    """How often a driver says that it lives, in steps; 0 for never."""
    return rng.choice((0, 0, 1, 2))


def in_batch(story: Story, ms: int, what: float) -> None:
    """What happens in a batch application; some of its runs have the same id, and another attempt."""
    if what < 0.3:
        story.attempt(None)
        story.driver(f"driver-{ms}").application(ms, "CREATED", "RUNNING")
    elif what < 0.4:
        story.attempt(str(ms)).application(ms, "CREATED", "RUNNING")
    elif what < 0.8 and not has_ended(story):
        status = "FINISHED" if what < 0.6 else "FAILED" if what < 0.7 else "CANCELED"
        story.application(ms, status)
    else:
        story.job(ms)


def has_ended(story: Story) -> bool:
    last = [
        event["attributes"]["newJobStatus"]
        for event in story.events
        if event["attributes"].get("newJobStatus")
    ]
    return bool(last) and last[-1] in ("FINISHED", "FAILED", "CANCELED")


def of_uptime(tables: Tables) -> dict[Any, dict[str, int | None]]:
    return {
        (row["kind"], row["app_name"], row["query_name"]): {
            "up": row["up_ms"],
            "down": row["down_ms"],
            "unknown": row["unknown_ms"],
            "starting": row["starting_ms"],
            "stopped": row["stopped_ms"],
            "outages": row["outages"],
            "longest": row["longest_outage_ms"],
            "failures": row["failures"],
        }
        for row in tables.uptime
    }


def of_checkpoints(tables: Tables) -> dict[Any, dict[str, int]]:
    return {
        (row["app_name"], row["query_name"]): {
            "completed": row["completed"],
            "late_by_duration": row["late_by_duration"],
            "late_by_gap": row["late_by_gap"],
            "late": row["completed"] - row["met"],
            "overdue": int(row["overdue"]),
            "stopped_late": row["stopped_late"],
        }
        for row in tables.checkpoint_sla
    }


def assert_tables(tables: Tables, oracle: Oracle) -> None:
    steps = {
        (row["kind"], row["app_name"], row["query_name"], now): (row["status"], row["state"])
        for row in tables.status_intervals
        for now in range(row["start_ms"], row["end_ms"] + (row["end_ms"] == oracle.until_ms), STEP)
    }
    assert steps == {
        (*job, now): (status, state) for job, line in oracle.states().items() for now, status, state in line
    }
    expected = oracle.uptime()
    repaired = {job: sums.pop("repaired") for job, sums in expected.items()}
    assert of_uptime(tables) == expected
    restarts = {(r["kind"], r["app_name"], r["query_name"]): r["restarts"] for r in tables.uptime}
    told = Counter(
        ("query", e["attributes"]["app_name"], e["attributes"]["query_name"])
        for e in oracle.events
        if e["attributes"].get("newJobStatus") == "RESTARTING" and e["attributes"]["job_kind"] == "query"
    )
    assert restarts == {job: told[job] if job[0] == "query" else repaired[job] for job in restarts}
    assert of_checkpoints(tables) == oracle.checkpoints()
    failures = Counter(
        (e["attributes"]["app_name"], e["attributes"]["errorClass"], time(e) // DAY)
        for e in oracle.events
        if e["eventName"] == "JobFailureEvent" and not is_told_again(e, oracle)
    )
    rows = [row for row in tables.failures if row["error"] != "LOST"]
    listed: Counter[Any] = Counter()
    for row in rows:
        listed[row["app_name"], row["error"], row["first_ms"] // DAY] += row["count"]
    assert listed == failures
    assert {
        (row["app_name"], row["query_name"], row["first_ms"] // DAY): row["count"]
        for row in tables.failures
        if row["error"] == "LOST"
    } == oracle.lost()
    batches = oracle.batches()
    names = list(next(iter(batches.values())))
    assert {row["app_name"]: {name: row[name] for name in names} for row in tables.runs} == batches


def is_told_again(event: dict[str, Any], oracle: Oracle) -> bool:
    """Whether it is of a job, and the query's own, of the same error and driver, comes a ms later."""
    return event["attributes"]["job_kind"] == "job" and any(
        other["eventName"] == "JobFailureEvent"
        and other["attributes"]["job_kind"] == "query"
        and whose(other) == whose(event)
        and other["attributes"]["errorClass"] == event["attributes"]["errorClass"]
        and time(other) == time(event) + 1
        for other in oracle.events
    )


def assert_days_add_up(tables: Tables) -> None:
    """The days of each job are its whole, cut."""
    for whole, days in (
        (tables.uptime, tables.uptime_per_day),
        (tables.checkpoint_sla, tables.checkpoint_sla_per_day),
    ):
        names = [
            n
            for n in ("up_ms", "down_ms", "unknown_ms", "failures", "outages", "restarts", "completed")
            if n in days[0]
        ]
        names += [n for n in ("met", "late_by_gap", "stopped_late") if n in days[0]]
        key = [n for n in ("kind", "app_name", "query_name") if n in days[0]]
        sums: dict[Any, Counter[str]] = {}
        for row in days:
            sums.setdefault(tuple(row[n] for n in key), Counter()).update({n: row[n] or 0 for n in names})
        expected = {tuple(row[n] for n in key): Counter({n: row[n] or 0 for n in names}) for row in whole}
        assert sums == expected


def rows_of(tables: Tables) -> dict[str, list[str]]:
    return {name: sorted(str(sorted(row.items())) for row in rows) for name, rows in tables.items()}


def is_kept(event: dict[str, Any]) -> bool:
    if event["eventName"] == "JobFailureEvent":
        return True
    return event["attributes"]["job_kind"] != "job" and event["eventName"] != "HeartbeatEvent"


@settings(
    max_examples=int(os.environ.get("SPARK_EVENTS_HISTORIES", "1")),  # of sixty histories each
    deadline=None,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=list(HealthCheck),
)
@given(seed=st.integers(0, 2**32))
def test_random_histories(duckdb: DuckDb, tmp_path: Path, seed: int) -> None:
    """Sixty histories at a time, read at once, and in parts, late and repeated."""
    rng = random.Random(seed)
    folder = tmp_path / uuid.uuid4().hex
    stories = [random_story(number, rng) for number in range(60)]
    events = [event for story in stories for event in story.events]
    oracle = Oracle(events, SLA, STEP)
    shuffled = [*events, *rng.sample(events, len(events) // 5)]
    rng.shuffle(shuffled)
    parts: list[Story] = [Story() for _ in range(3)]
    for event in shuffled:
        # Mostly a day's events each, but some come with another day's.
        day = (time(event) // DAY) % 3 if rng.random() < 0.9 else rng.randrange(3)
        parts[day].events.append(event)
    for number, part in enumerate(parts):
        write(folder / f"part-{number}", part)

    history, reading = read_history(duckdb, [str(folder)], Sla(SLA))
    whole = history.tables()
    # Events of Spark jobs, but for failures, and heartbeats are not kept one by one.
    kept = [event["eventId"] for event in shuffled if is_kept(event)]
    assert (reading.facts, reading.duplicates) == (len(kept), len(kept) - len(set(kept)))
    assert_tables(whole, oracle)
    assert_days_add_up(whole)
    # The same if it is the events that say which SLA they had.
    told = Story()
    told.events = [{**each, "attributes": {**each["attributes"], "slaMs": SLA}} for each in shuffled]
    assert rows_of(read_history(duckdb, [str(write(folder / "told", told))])[0].tables()) == rows_of(whole)

    store = HistoryStore(duckdb, str(folder / "store"))
    for number in rng.sample(range(3), 3):
        if parts[number].events:
            store.add([str(folder / f"part-{number}")], Sla(SLA))
    kept_days = HistoryStore(duckdb, str(folder / "store"))
    assert rows_of(kept_days.history(Sla(SLA)).tables()) == rows_of(whole)

    # Dropped days leave what is needed of them: all is as in a history that begins with the days that stay.
    for days in range(len(kept_days.days) - 1, 0, -1):
        dropped = kept_days.retain(days * DAY)
        span_ms = history.period.until_ms - day_number(kept_days.days[0]) * DAY
        later = read_history(duckdb, [f"{folder}/part-*"], Sla(SLA), Selection(span_ms=span_ms))[0].tables()
        tables = kept_days.history(Sla(SLA)).tables()
        for row in (*tables.uptime, *later.uptime):
            # Of a job that failed twice before, and was down all the time, the second failure is known.
            row["status_since_ms"] = max(row["status_since_ms"] or 0, day_number(kept_days.days[0]) * DAY)
        for row in (*tables.runs, *later.runs):
            row["usual_ms"] = None  # it is of the runs before, too
        of_store, expected = rows_of(tables), rows_of(later)
        for name in dropped and set(expected) - {"slower_runs"}:
            assert of_store[name] == expected[name], name


@pytest.mark.parametrize("seed", range(3))
def test_up_to_a_time(duckdb: DuckDb, tmp_path: Path, seed: int) -> None:
    """Later events are as if they had not happened, heartbeats among them."""
    rng = random.Random(seed)
    stories = [random_story(number, rng) for number in range(30)]
    until_ms = T0 + rng.randrange(20, 60) * STEP
    whole = read_history(
        duckdb, [str(write(tmp_path / "whole", *stories))], Sla(SLA), Selection(until_ms=until_ms)
    )
    for story in stories:
        story.events = [event for event in story.events if time(event) <= until_ms]
    cut = read_history(duckdb, [str(write(tmp_path / "cut", *stories))], Sla(SLA))
    end = Selection(until_ms=until_ms)
    cut_at_end = read_history(duckdb, [str(tmp_path / "cut")], Sla(SLA), end)
    assert rows_of(whole[0].tables()) == rows_of(cut_at_end[0].tables())
    assert cut[1].records == whole[1].records


@pytest.mark.spark
@pytest.mark.extended
def test_spark_and_duckdb_make_the_same_tables(duckdb: DuckDb, spark: Any, tmp_path: Path) -> None:
    """At once, and by a store to which both add."""
    from pyarrow import parquet

    from spark_events.history.reading.on_spark import Spark

    rng = random.Random(7)
    stories = [random_story(number, rng) for number in range(60)]
    folders = [str(write(tmp_path / f"part-{n}", *stories[20 * n : 20 * n + 20])) for n in range(3)]
    on_spark = Spark(spark)
    of_duckdb, of_spark = (
        rows_of(read_history(database, folders, Sla(SLA))[0].tables()) for database in (duckdb, on_spark)
    )
    assert of_spark == of_duckdb

    rows = read_history(duckdb, folders, Sla(SLA))[0].tables().checkpoint_sla_per_day
    for database, name in ((duckdb, "duckdb"), (on_spark, "spark")):
        database.rows_to_parquet(rows, COLUMNS["checkpoint_sla_per_day"], str(tmp_path / name))
    written = [parquet.read_table(tmp_path / name) for name in ("duckdb", "spark")]
    assert written[0].schema.equals(written[1].schema)
    assert written[0].to_pylist() == written[1].to_pylist()

    for folder, database in zip(folders, (on_spark, duckdb, on_spark), strict=True):
        HistoryStore(database, str(tmp_path / "store")).add([folder], Sla(SLA))
    for database in (duckdb, on_spark):
        assert (
            rows_of(HistoryStore(database, str(tmp_path / "store")).history(Sla(SLA)).tables()) == of_duckdb
        )
    on_spark.close()
