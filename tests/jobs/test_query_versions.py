"""The versions that streaming queries write: with which event each is told, and what waits for it."""

from __future__ import annotations

from collections import defaultdict
from types import SimpleNamespace
from typing import Any

import pytest

from spark_events.api import DataWritten, JobExecutionStatusEvent, JobProgressEvent, JobStatus, job_event_json
from spark_events.jobs.logged_plans import LoggedPlans
from spark_events.jobs.plan_records import QUERY_ENDED, QUERY_LINEAGE, QUERY_VERSION
from spark_events.jobs.versioned_queries import VersionedQueries
from spark_events.listeners.listener import early
from tests.support.job_listeners import Collecting
from tests.support.spark_records import progress, terminated
from tests.support.told_jobs import COLLECTING, Told, lineage_record, query_started

_INTERVAL_MS = 65_000
"""More than the one between two reports."""


def queried() -> Told:
    told = Told(s=COLLECTING)
    query_started(told, "r1")
    told.record(QUERY_LINEAGE, runId="r1", lineage=lineage_record(), versioned=True)
    return told


def progressed(told: Told, batch: int, after_ms: int) -> None:
    record = progress(0, batch, run="r1")
    told.record(record.pop("Event"), **record, Timestamp=3_000 + after_ms)


def versioned(told: Told, batch: int, after_ms: int, version: int | None = None) -> None:
    made = [] if version is None else [version_record(version)]
    told.record(QUERY_VERSION, runId="r1", batchId=batch, versions=made, Timestamp=3_000 + after_ms)


def version_record(version: int) -> dict[str, Any]:
    return {"identity": {"paths": ["/data/out"], "format": "delta"}, "version": version}


def made(version: str) -> tuple[DataWritten, ...]:
    return (DataWritten("file", "/data/out", version),)


def reports() -> list[tuple[int, tuple[DataWritten, ...]]]:
    events = Collecting.instances[0].events
    return [(event.batch, event.made) for event in events if isinstance(event, JobProgressEvent)]


def ends() -> list[tuple[JobStatus, tuple[DataWritten, ...]]]:
    events = Collecting.instances[0].events
    return [
        (event.new_status, event.made)
        for event in events
        if isinstance(event, JobExecutionStatusEvent)
        and event.job_kind == "query"
        and event.new_status.terminal
    ]


@pytest.mark.parametrize("first", ["version", "progress"])
def test_a_report_has_the_version_of_its_batch_whichever_comes_first(first: str) -> None:
    told = queried()
    progressed(told, 1, 1_000)
    versioned(told, 1, 1_000, 10)
    if first == "progress":
        progressed(told, 2, _INTERVAL_MS)
    versioned(told, 2, _INTERVAL_MS, 11)
    if first == "version":
        progressed(told, 2, _INTERVAL_MS)
    progressed(told, 3, _INTERVAL_MS + 1_000)
    told.close()
    assert reports() == [(2, made("11"))]
    (event,) = [event for event in Collecting.instances[0].events if isinstance(event, JobProgressEvent)]
    assert job_event_json(event)["made"] == [{"namespace": "file", "name": "/data/out", "version": "11"}]


def test_a_report_waits_for_the_version_of_a_batch_that_ended_since_it_was_due() -> None:
    told = queried()
    versioned(told, 1, 1_000, 10)
    progressed(told, 2, _INTERVAL_MS)
    progressed(told, 3, _INTERVAL_MS + 1_000)
    versioned(told, 3, _INTERVAL_MS + 1_000, 12)
    told.close()
    assert reports() == [(3, made("12"))]


def test_a_version_that_is_not_known_is_not_told_and_none_is_told_twice() -> None:
    told = queried()
    for batch, version in ((1, 10), (2, None)):
        progressed(told, batch, batch * _INTERVAL_MS)
        versioned(told, batch, batch * _INTERVAL_MS, version)
    progressed(told, 3, 3 * _INTERVAL_MS)
    told.tick(4 * _INTERVAL_MS)
    told.close()
    assert reports() == [(1, made("10")), (2, ()), (3, ())]


def test_a_report_does_not_wait_for_long() -> None:
    told = queried()
    progressed(told, 1, _INTERVAL_MS)
    told.tick(_INTERVAL_MS + 30_000)
    told.tick(2 * _INTERVAL_MS + 60_000)  # nothing new
    told.close()
    assert reports() == [(1, ())]


@pytest.mark.parametrize("first", ["version", "end"])
def test_a_query_ends_with_its_last_version_whichever_comes_first(first: str) -> None:
    told = queried()
    versioned(told, 1, 1_000, 10)
    end = terminated("r1")
    if first == "end":
        told.record(end.pop("Event"), **end)
    told.record(QUERY_ENDED, runId="r1", batchId=2, versions=[version_record(11)])
    if first == "version":
        told.record(end.pop("Event"), **end)
    told.close()
    assert ends() == [(JobStatus.CANCELED, made("11"))]


def test_a_query_whose_last_version_has_been_told_ends_with_it() -> None:
    told = queried()
    versioned(told, 1, 1_000, 10)
    end = terminated("r1")
    told.record(end.pop("Event"), **end)
    told.record(QUERY_ENDED, runId="r1")
    told.close()
    assert ends() == [(JobStatus.CANCELED, made("10"))]


def test_an_end_does_not_wait_for_long() -> None:
    told = queried()
    end = terminated("r1")
    told.record(end.pop("Event"), **end)
    told.tick(30_000)
    told.close()
    assert ends() == [(JobStatus.CANCELED, ())]


@pytest.mark.parametrize("ended", [True, False])
def test_the_end_of_the_application_waits_for_no_version(ended: bool) -> None:
    """Of a query that has ended, and of one that the application takes along."""
    told = queried()
    end = terminated("r1")
    if ended:
        told.record(end.pop("Event"), **end)
    told.record("SparkListenerApplicationEnd")
    told.close()
    assert len(ends()) == 1
    last = Collecting.instances[0].events[-1]
    assert (last.job_kind, last.job_name) == ("application", "shop")


def test_versions_that_are_known_too_late_leave_nothing() -> None:
    """The end was told without them: of thousands of restarts, nothing is kept."""
    queries = VersionedQueries(patience_ms=10)
    told: list[tuple[DataWritten, ...]] = []
    for number in range(5_000):
        run_id = f"r{number}"
        queries.add(run_id)
        queries.end(run_id, 0, told.append)
        queries.tick(20)
        queries.add(run_id)
        queries.set_version(run_id, made("7"))
        queries.release(run_id)
        queries.end(f"never-{number}", 0, told.append)
    assert told == [()] * 10_000
    assert (queries._made, queries._known, queries._ends) == ({}, set(), {})


def test_runs_that_have_ended_are_forgotten_in_a_log() -> None:
    """As ``follow`` reads it for weeks."""

    job_events: Any = SimpleNamespace(handlers=defaultdict(lambda: early(lambda record, time_ms: None)))
    plans = LoggedPlans(job_events)
    for number in range(100):
        run = f"r{number}"
        for record in (progress(0, 0, run=run), terminated(run=run)):
            plans.handlers[record["Event"]].handle(record, number)
    assert plans._query_runs == {}


def test_lineage_that_comes_after_the_end_is_kept_for_few() -> None:
    told = Told(s=COLLECTING)
    for number in range(1_200):
        told.record(QUERY_LINEAGE, runId=f"r{number}", lineage=lineage_record())
    assert len(told.job_events._graphs_before_start) == 1_000
    told.close()
