"""Questions about what has been written, where the last run of a job has failed."""

from __future__ import annotations

from spark_events.lineage.data_flow import DataFlow, DataKey, Flow
from spark_events.lineage.questions import orphans, stale

HOUR_MS = 3_600_000


def key(name: str) -> DataKey:
    return DataKey("file", f"/d/{name}")


def run(job: str, application: str, hour: int, failed_at: int = 0) -> Flow:
    """Return a job that wrote its sink at an hour, if it is not 0, and whose last run may have failed later."""
    status, time_ms = ("FAILED", failed_at * HOUR_MS) if failed_at else ("FINISHED", hour * HOUR_MS)
    return Flow(job, status, time_ms, hour * HOUR_MS, modify="INSERT", application=application)


def flow_of(*edges: tuple[str, str, Flow]) -> DataFlow:
    flow = DataFlow()
    for source, sink, job in edges:
        for name in (source, sink):
            flow.titles[key(name)] = name
        flow.flows.setdefault((key(source), key(sink)), {})[job.job] = job
        flow.last_applications[job.job] = job.application
    return flow


def test_what_nobody_reads_is_so_after_a_failure_too() -> None:
    assert [key for key, _ in orphans(flow_of(("a", "b", run("j", "app-1", 1, failed_at=2))))] == [key("b")]
    assert orphans(flow_of(("a", "b", run("j", "app-1", 0, failed_at=2)))) == []


def test_what_a_job_has_not_brought_up_to_date_since_it_failed() -> None:
    """Its last run read something else, which is newer than what the run before it wrote."""
    flow = flow_of(
        ("x", "c", run("extract", "app-9", 50)),
        ("a", "b", run("j", "app-1", 1)),
        ("c", "b", run("j", "app-2", 0, failed_at=51)),
    )
    (found,) = stale(flow, 24 * HOUR_MS)
    assert (found.data, found.source, found.late_ms) == ("b", "c", 49 * HOUR_MS)
