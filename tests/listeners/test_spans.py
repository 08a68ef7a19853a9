"""Spans: the tree from the application to its stages, checkpoints, initializations, sampling, outer traces."""

from __future__ import annotations

import hashlib
from collections import Counter
from typing import Any

import pytest
from opentelemetry.sdk.trace.sampling import TraceIdRatioBased

from spark_events.api import ApplicationInfo, Span
from spark_events.listeners.emitter import Emitter, RecentTimes, Traces
from spark_events.listeners.settings import DETAIL_LEVELS, read_settings
from spark_events.runtime.registry import Registry
from tests.support import spark_records as r
from tests.support.spark_records import T0, Feed

LEVEL = "spark.traces.checkpoint.span-detail-level"
PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def one(spans: list[Span], name: str) -> Span:
    (found,) = [span for span in spans if span.name == name]
    return found


def batch_application() -> tuple[dict[str, Any], ...]:
    """An SQL execution with a job of two stages, the second of which fails for good."""
    return (
        r.application_start(0),
        r.execution("Start", 10, description="save at jobs.py:3"),
        r.job_start(20, 0, (0, 1), spark__sql__execution__id="0"),
        r.stage("Submitted", 30, 0),
        r.stage_tasks(40, None, 0, Finished=4, Executor_Run_Time=70),
        r.stage("Completed", 50, 0),
        r.stage("Submitted", 60, 1),
        r.stage("Completed", 70, 1, reason="java.lang.IllegalStateException: boom\n\tat x"),
        r.job_end(
            80,
            0,
            message="Job aborted due to stage failure: Lost task 0.0 in stage 1.0 (TID 4): "
            "java.lang.IllegalStateException: boom",
        ),
        r.execution("End", 90, errorMessage="java.lang.IllegalStateException: boom\n\tat x"),
        r.application_end(100, ExitCode=1),
    )


def test_the_tree_of_a_batch_application() -> None:
    """Application, SQL execution, Job, Stage: each below the one before, with Spark's own times."""
    spans = Feed()(*batch_application()).spans()
    application, execution, job = (one(spans, name) for name in ("Application", "SQL execution", "Job"))
    first, second = [span for span in spans if span.name == "Stage"]

    assert application.parent_span_id is None
    assert execution.parent_span_id == application.span_id
    assert job.parent_span_id == execution.span_id
    assert {first.parent_span_id, second.parent_span_id} == {job.span_id}
    assert {span.trace_id for span in spans} == {application.trace_id}
    times = [(s.start_ms - T0, s.end_ms - T0) for s in (application, execution, job, first, second)]
    assert times == [(0, 100), (10, 90), (20, 80), (30, 50), (60, 70)]
    assert first.attributes.items() >= {"numTasks": 4, "finishedTasks": 4, "executorRunTime": 70}.items()
    assert execution.attributes["description"] == "save at jobs.py:3"


def test_a_barrier_stage_ends_once() -> None:
    """Spark ends it a second time if its job fails, without anything of its tasks."""
    application = batch_application()
    again = r.stage("Completed", 75, 1, reason="Job aborted due to stage failure: Could not recover")
    before, end = application[:8], application[8:]
    stages = [span for span in Feed()(*before, again, *end).spans() if span.name == "Stage"]
    assert [span.end_ms - T0 for span in stages] == [50, 70]


@pytest.mark.parametrize(
    "said", ["[SPARK_JOB_CANCELLED] Job 0 cancelled as part of all jobs", "Job 0 cancelled"]
)
def test_what_was_canceled_is_no_error(said: str) -> None:
    """Neither the job, nor what it works for, nor its stages."""
    spans = Feed()(
        r.application_start(0),
        r.execution("Start", 10, description="save at jobs.py:3"),
        r.job_start(20, 0, (0,), spark__sql__execution__id="0"),
        r.stage("Submitted", 30, 0),
        r.stage("Completed", 50, 0, reason=said),
        r.job_end(80, 0, message=said),
        r.execution("End", 90, errorMessage=f"org.apache.spark.SparkException: {said}"),
        r.application_end(100),
    ).spans()
    assert [span.name for span in spans if span.error is not None] == []
    assert {span.name for span in spans} == {"Application", "SQL execution", "Job", "Stage"}


def test_what_failed_has_an_error_and_an_exception() -> None:
    """Status ERROR, and OpenTelemetry's event ``exception`` with type, message and stack trace."""
    spans = Feed()(*batch_application()).spans()
    failed = [span for span in spans if span.error is not None]

    assert sorted(span.name for span in failed) == ["Application", "Job", "SQL execution", "Stage"]
    for name in ("Job", "SQL execution"):
        (event,) = one(spans, name).events
        assert event.name == "exception"
        assert event.time_ms == one(spans, name).end_ms
        assert event.attributes["exception.type"] == "java.lang.IllegalStateException"
        assert event.attributes["exception.message"] == "boom"
        assert "exception.stacktrace" in event.attributes


def test_ids_are_the_same_in_every_replay() -> None:
    """A replay repeats them, and what it sends again is not a second span."""
    first, again = ([(s.trace_id, s.span_id) for s in Feed()(*batch_application()).spans()] for _ in range(2))

    assert first == again
    assert len(set(first)) == len(first)


def checkpoints(level: str | None) -> list[Span]:
    state = [
        {"operatorName": "dedupe", "commitTimeMs": 5, "numRowsTotal": 2},
        {"operatorName": "join", "commitTimeMs": 7, "numRowsTotal": 3},
    ]
    feed = Feed(extra={LEVEL: level} if level else {})
    batch = {"streaming__sql__batchId": "0"}
    feed(
        r.application_start(),
        r.query_started(0),
        r.batch_begins(10, 0),
        r.job_start(20, 0, (0,), group="run-1", **batch),
        r.stage("Submitted", 30),
        r.stage("Completed", 40),
        r.job_end(50),
        r.progress(5, 0, took=100, stateOperators=state),
    )
    return feed.spans()


@pytest.mark.parametrize(
    ("level", "names"),
    [
        (None, {"Checkpoint"}),
        (DETAIL_LEVELS[0], {"Checkpoint"}),
        (DETAIL_LEVELS[1], {"Checkpoint"}),
        (DETAIL_LEVELS[2], {"Checkpoint", "walCommit", "addBatch", "commitOffsets", "Job"}),
        (DETAIL_LEVELS[3], {"Checkpoint", "walCommit", "addBatch", "commitOffsets", "Job", "Stage"}),
    ],
)
def test_detail_levels(level: str | None, names: set[str]) -> None:
    """Flink's levels: one span, figures by operator, phases and jobs, stages."""
    spans = [span for span in checkpoints(level) if span.name not in ("JobInitialization", "Query")]
    checkpoint = one(spans, "Checkpoint")

    assert Counter(span.name for span in spans) == Counter(names)
    assert {span.trace_id for span in spans} == {checkpoint.trace_id}
    for span in spans:
        assert checkpoint.start_ms <= span.start_ms <= span.end_ms <= checkpoint.end_ms
    parents = {span.name: span.parent_span_id for span in spans}
    assert all(parents[name] == checkpoint.span_id for name in names - {"Checkpoint", "Stage"})
    assert checkpoint.attributes.items() >= {"walCommitMs": 7, "addBatchMs": 90, "commitOffsetsMs": 3}.items()
    assert ("operatorCommitMs" in checkpoint.attributes) == (level in DETAIL_LEVELS[1:])
    if level in DETAIL_LEVELS[1:]:
        assert checkpoint.attributes["operators"] == ("dedupe", "join")
        assert checkpoint.attributes["operatorCommitMs"] == (5, 7)


def test_phases_that_are_longer_than_their_checkpoint_are_kept_within_it() -> None:
    """Spark rounds each to ms: their sum may be more than the whole."""
    durations = {"triggerExecution": 10, "latestOffset": 6, "addBatch": 6}
    feed = Feed(extra={LEVEL: DETAIL_LEVELS[2]})(r.application_start(), r.query_started(0))
    spans = feed(r.progress(0, 0, durationMs=durations)).spans()

    times = {span.name: (span.start_ms - T0, span.end_ms - T0) for span in spans}
    assert times["latestOffset"] == (0, 6)
    assert times["addBatch"] == (6, 10)


def test_the_beginning_of_a_run() -> None:
    """From the start to the first progress; checkpoints are linked to it, the run is around it."""
    feed = Feed()(r.application_start(), r.query_started(0), r.batch_begins(10, 0), r.progress(5, 0))
    spans = feed(r.terminated(), r.application_end(900)).spans()
    application, query = one(spans, "Application"), one(spans, "Query")
    initialization, checkpoint = one(spans, "JobInitialization"), one(spans, "Checkpoint")

    assert (initialization.start_ms, initialization.end_ms) == (T0, T0 + 105)
    assert initialization.attributes["initializationStatus"] == "COMPLETED"
    assert "checkpointId" not in initialization.attributes
    assert initialization.parent_span_id == query.span_id
    assert query.parent_span_id == application.span_id
    assert query.attributes["jobStatus"] == "CANCELED"
    assert checkpoint.parent_span_id is None
    assert checkpoint.trace_id != application.trace_id
    (link,) = checkpoint.links
    assert (link.trace_id, link.span_id) == (initialization.trace_id, initialization.span_id)


def test_a_run_that_comes_to_nothing() -> None:
    """Its beginning is FAILED, with the exception; one that goes on says from which checkpoint."""
    feed = Feed()(r.application_start(), r.query_started(0), r.batch_begins(10, 7))
    spans = feed(
        r.terminated(exception="java.lang.RuntimeException: no table"), r.application_end(50)
    ).spans()
    initialization, checkpoint, query = (
        one(spans, name) for name in ("JobInitialization", "Checkpoint", "Query")
    )

    assert initialization.attributes["initializationStatus"] == "FAILED"
    assert initialization.attributes["checkpointId"] == 6
    assert {initialization.error, checkpoint.error, query.error} == {"no table"}
    assert checkpoint.attributes["checkpointStatus"] == "FAILED"


def test_a_query_that_is_stopped_within_a_batch() -> None:
    """Its jobs have a span above them, which is not a failure."""
    feed = Feed(extra={LEVEL: DETAIL_LEVELS[2]})(
        r.application_start(), r.query_started(0), r.batch_begins(10, 0)
    )
    feed(r.job_start(20, 0, group="run-1", streaming__sql__batchId="0"), r.job_end(30))
    spans = feed({**r.terminated(), "Timestamp": T0 + 50}).spans()
    checkpoint = one(spans, "Checkpoint")

    assert (checkpoint.attributes["checkpointStatus"], checkpoint.error) == ("IN_PROGRESS", None)
    assert one(spans, "Job").parent_span_id == checkpoint.span_id


def test_a_nested_execution_is_part_of_the_one_around_it() -> None:
    """A job of a subquery is below the outer execution, which alone is a span."""
    spans = Feed()(
        r.application_start(),
        r.execution("Start", 1, 0),
        r.execution("Start", 2, 1, rootExecutionId=0),
        r.job_start(3, 0, spark__sql__execution__id="1", spark__sql__execution__root__id="0"),
        r.job_end(4),
        r.execution("End", 5, 1),
        r.application_end(9),
    ).spans()

    assert one(spans, "Job").parent_span_id == one(spans, "SQL execution").span_id
    assert one(spans, "SQL execution").end_ms == T0 + 9  # which the end of the application cut off


def test_an_outer_trace_is_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the configuration, or else by the environment; the application is below that span."""
    monkeypatch.setenv("TRACEPARENT", PARENT.replace("0af7", "1af7"))
    for conf, first in (({"spark.traces.parent": PARENT}, "0af7"), ({}, "1af7")):
        spans = Feed(extra=conf)(
            r.application_start(), r.job_start(1), r.job_end(2), r.application_end(3)
        ).spans()
        assert {span.trace_id for span in spans} == {f"{first}651916cd43dd8448eb211c80319c"}
        assert one(spans, "Application").parent_span_id == "b7ad6b7169203331"


def test_an_outer_trace_that_is_not_recorded() -> None:
    """Whoever began the trace has decided; checkpoints have traces of their own."""
    feed = Feed(extra={"spark.traces.parent": PARENT[:-2] + "00"})
    spans = feed(r.application_start(), r.query_started(0), r.progress(1, 0), r.application_end(300)).spans()

    assert [span.name for span in spans] == ["Checkpoint"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "00-abc",
        PARENT + "-more",
        PARENT.replace("00-", "ff-", 1),
        f"00-{'0' * 32}-b7ad6b7169203331-01",
        f"00-0af7651916cd43dd8448eb211c80319c-{'0' * 16}-01",
        PARENT.upper(),
    ],
)
def test_a_wrong_traceparent(
    text: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """In the configuration it is an error; in the environment it is as none, and a warning."""
    settings, errors = read_settings({"spark.traces.parent": text})
    assert settings.trace_parent is None
    assert str(errors[0]).startswith(f"spark.traces.parent: {text!r} is not valid; expected a W3C")
    monkeypatch.setenv("TRACEPARENT", text)
    settings, errors = read_settings({})
    assert (settings.trace_parent, errors) == (None, [])
    assert ("environment variable TRACEPARENT" in caplog.text) == bool(text)


def test_a_later_version_of_the_header_may_have_more() -> None:
    """As Trace Context has it."""
    settings, errors = read_settings({"spark.traces.parent": PARENT.replace("00-", "01-", 1) + "-more"})

    assert not errors
    assert settings.trace_parent is not None


@pytest.mark.parametrize(("ratio", "least", "most"), [("0", 0, 0), ("0.3", 60, 130), ("1", 300, 300)])
def test_sampling(ratio: str, least: int, most: int) -> None:
    """A share of all traces; a trace is reported whole or not at all, and the same ones in every replay."""
    names = []
    for _ in range(2):
        feed = Feed(extra={"spark.traces.sampling.ratio": ratio, LEVEL: DETAIL_LEVELS[2]})
        feed(r.application_start(), r.query_started(0))
        for batch in range(300):
            feed(r.progress(batch * 200, batch))
        spans = [span for span in feed.spans() if span.name != "JobInitialization"]
        names.append([span.span_id for span in spans])
        per_trace = Counter(span.trace_id for span in spans)
        assert set(per_trace.values()) <= {4}
        assert least <= len(per_trace) <= most

    assert names[0] == names[1]


def test_the_sampler_is_opentelemetrys() -> None:
    """The same traces are chosen as by its TraceIdRatioBased, so that a service behind us agrees."""
    settings, _ = read_settings({"spark.traces.sampling.ratio": "0.3"})
    traces, sampler = Traces(Emitter(Registry(()).root, ApplicationInfo()), settings), TraceIdRatioBased(0.3)
    ids = [hashlib.blake2b(str(n).encode(), digest_size=16).hexdigest() for n in range(500)]

    def theirs(trace_id: str) -> bool:
        return sampler.should_sample(None, int(trace_id, 16), "span").decision.is_sampled()

    assert [traces.is_sampled(trace_id) for trace_id in ids] == [theirs(trace_id) for trace_id in ids]


def test_the_application_ends_with_the_last_of_its_parts() -> None:
    """The end of a query has the time of its receipt, which may be after the application's end."""
    feed = Feed()(r.application_start(), r.query_started(0), {**r.terminated(), "Timestamp": T0 + 105})
    spans = feed(r.application_end(100)).spans()

    assert one(spans, "Application").end_ms == one(spans, "Query").end_ms == T0 + 105


@pytest.mark.parametrize("job_first", [True, False])
def test_a_part_does_not_end_after_the_whole(job_first: bool) -> None:
    """A job that seems to end some ms after its SQL execution, whichever Spark tells of first."""
    ends = (r.job_end(53, 0), r.execution("End", 50))
    feed = Feed()(
        r.application_start(), r.execution("Start", 1), r.job_start(2, 0, spark__sql__execution__id="0")
    )
    spans = feed(*(ends if job_first else reversed(ends)), r.application_end(51)).spans()
    job, execution, application = (one(spans, name) for name in ("Job", "SQL execution", "Application"))

    assert job.end_ms - T0 == execution.end_ms - T0 == (53 if job_first else 50)
    assert application.end_ms >= execution.end_ms


def test_a_stage_does_not_end_after_the_whole_of_its_job() -> None:
    """Also where the checkpoint around both was told of first."""
    feed = Feed(extra={LEVEL: DETAIL_LEVELS[3]})(r.application_start(), r.query_started(0))
    feed(r.job_start(20, 0, group="run-1", streaming__sql__batchId="0"), r.stage("Submitted", 30))
    spans = feed(r.progress(5, 0, took=100), r.stage("Completed", 120), r.job_end(125)).spans()

    assert [one(spans, name).end_ms - T0 for name in ("Checkpoint", "Job", "Stage")] == [105] * 3


def test_a_job_that_goes_on_after_its_checkpoint_keeps_its_times() -> None:
    """One that a thread of foreachBatch left running is a part that outlives the whole."""
    feed = Feed(extra={LEVEL: DETAIL_LEVELS[2]})(r.application_start(), r.query_started(0))
    feed(r.job_start(20, 0, group="run-1", streaming__sql__batchId="0"), r.progress(5, 0), r.job_end(9_000))

    assert one(feed.spans(), "Job").end_ms == T0 + 9_000


def test_only_the_latest_times_are_kept() -> None:
    """However many spans there are."""
    times = RecentTimes(3)
    for number in range(10):
        times.put(str(number), number)
    times.put("9", 5)

    assert [times.get(str(number)) for number in range(10)] == [0] * 7 + [7, 8, 9]
    assert (times.take("9"), times.take("9")) == (9, 0)
