"""Runs of an application compared with its earlier ones, and micro-batches with those before them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from spark_events.api import Event
from spark_events.diagnosis.earlier_runs.run_folder import RunFolder
from tests.support import spark_records as r
from tests.support.spark_records import T0, Feed, seen
from tests.support.waiting import wait_until

S = 1_000
NIGHT = 86_400 * S
MIB = 1 << 20


def run(
    night: int, took_ms: int = 100 * S, plan: str = "p1", input_bytes: int = MIB, **end: Any
) -> Iterator[dict[str, Any]]:
    """Yield the records of an application with one SQL execution, which has one job, of one stage."""
    begun = night * NIGHT
    yield r.application_start(begun, **{"App ID": f"app-{night}"})
    yield {
        "Event": "SparkListenerEnvironmentUpdate",
        "Spark Properties": {"spark.sql.shuffle.partitions": "200", "spark.app.id": f"app-{night}"},
    }
    description = f"totals of night {night}"
    yield r.execution("Start", begun + S, description=description, **{"Plan Shape": plan})
    yield r.job_start(begun + S, spark__sql__execution__id="0")
    yield r.stage("Submitted", begun + S)
    yield {**r.stage_tasks(begun + S, None, 1, Finished=4), "Input Bytes": input_bytes}
    yield r.stage("Completed", begun + took_ms)
    yield r.job_end(begun + S + took_ms)
    yield r.execution("End", begun + S + took_ms)
    yield r.application_end(begun + 2 * S + took_ms, **end)


def issues(records: Iterator[dict[str, Any]], folder: Path | None) -> list[Event]:
    conf = {} if folder is None else {"spark.events.issue.regression.dir": str(folder)}
    return seen(Feed(extra=conf)(*records).end(), "PerformanceIssueEvent")


@pytest.fixture
def past(tmp_path: Path) -> Path:
    """A folder with six nights of 100 s."""
    for night in range(6):
        assert issues(run(night), tmp_path) == []
    return tmp_path


def test_a_folder_whose_errors_are_of_any_class(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As those of S3 without credentials: the comparison is left out, and nothing else."""

    class NoCredentialsError(Exception):
        pass

    def refuse(self: RunFolder, *_: Any) -> None:
        raise NoCredentialsError("unable to locate credentials")

    monkeypatch.setattr(RunFolder, "read", refuse)
    monkeypatch.setattr(RunFolder, "write", refuse)
    assert issues(run(0), tmp_path) == []
    why = "NoCredentialsError: unable to locate credentials"
    assert f"spark.events.issue.regression.dir: this run is compared with none: {why}" in caplog.text
    assert f"so later runs are not compared with it: {why}" in caplog.text
    assert "skipped" not in caplog.text


def test_a_slow_execution(past: Path) -> None:
    """It is told when it ends, though its description and its application's id are others each night."""
    (event,) = issues(run(6, 400 * S, input_bytes=10 * MIB), past)
    assert event.time_ms == T0 + 6 * NIGHT + 401 * S
    assert event.attributes["issue"] == "regression"
    assert event.attributes["job_kind"] == "sql_execution"
    assert (event.attributes["lostMs"], event.attributes["durationMs"]) == (300 * S, 400 * S)
    assert event.attributes["changed"] == ("read from sources: 10 MiB, usually 1 MiB, 10.0 times",)
    assert event.attributes["usual.inputBytes"] == MIB
    assert event.body.startswith(
        "SQL execution 0 (totals of night #): takes 6 min 40 s; in its last 6 runs, "
    )


def test_the_same_in_a_replay(past: Path) -> None:
    """It is compared with the runs before it, though it and later ones are there by now."""
    first = issues(run(6, 400 * S), past)
    issues(run(7, 500 * S), past)
    assert issues(run(6, 400 * S), past) == first


def test_a_usual_run_is_silent(past: Path) -> None:
    assert issues(run(6, 110 * S), past) == []
    assert issues(run(7, 140 * S), past) == []


def test_without_a_folder_nothing_is_compared(past: Path) -> None:
    assert issues(run(6, 400 * S), None) == []


def test_a_new_plan(past: Path) -> None:
    (event,) = issues(run(6, 400 * S, plan="p2"), past)
    assert event.attributes["changed"] == ("its plan is new",)


def test_a_driver_that_works_alone(past: Path) -> None:
    """The run takes longer, and no execution of it does: it is told of the application."""
    records = [*run(6)]
    records[-1] = r.application_end(6 * NIGHT + 900 * S)
    (event,) = issues(iter(records), past)
    assert event.attributes["job_kind"] == "application"
    assert event.attributes["lostMs"] == 798 * S


@pytest.mark.parametrize("slow", [False, True])
def test_a_run_that_failed_is_not_kept(tmp_path: Path, slow: bool) -> None:
    for night in range(6):
        issues(run(night, **{} if slow else {"ExitCode": 1}), tmp_path)
    assert len(issues(run(6, 400 * S), tmp_path)) == slow


def test_a_late_run_is_told_while_it_runs(past: Path) -> None:
    """Once, and not counted: its end says what really was the matter."""
    feed = Feed(extra={"spark.events.issue.regression.dir": str(past)})
    begun = feed(*[*run(6)][:3]).reported()
    wait_until(
        lambda: feed.tick(6 * NIGHT + 200 * S).reported() > begun, "earlier runs are read, and it is told"
    )
    feed.tick(6 * NIGHT + 300 * S)
    (event,) = seen(feed.end(), "PerformanceIssueEvent")
    assert event.attributes["live"] is True
    assert event.time_ms == T0 + 6 * NIGHT + 200 * S
    assert "has been running for 3 min 20 s; its last 6 runs took 1 min 42 s at the median" in event.body


def test_an_application_with_queries_has_no_duration(past: Path) -> None:
    records = [*run(6, 400 * S)]
    records[2:2] = [r.query_started(6 * NIGHT)]
    of_execution = issues(iter(records), past)
    assert [event.attributes["job_kind"] for event in of_execution] == ["sql_execution"]
    assert not [path for path in past.rglob("*.json") if "app-6" in path.name]


def test_how_long_an_application_with_queries_runs_says_nothing(past: Path) -> None:
    records = [*run(6)]
    records[2:2] = [r.query_started(6 * NIGHT)]
    records[-1] = r.application_end(6 * NIGHT + 900 * S)
    assert issues(iter(records), past) == []


def test_what_failed_is_not_compared(past: Path) -> None:
    """It took as long as it took to fail."""
    records = [*run(6, 400 * S)]
    records[-2]["errorMessage"] = "boom"
    told = issues(iter(records), past)
    assert [event.attributes["job_kind"] for event in told] == ["application"]


def test_a_folder_that_cannot_be_used(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """It is said, with its key; all other events come."""
    (tmp_path / "file").write_text("")
    conf = {"spark.events.issue.regression.dir": str(tmp_path / "file")}
    events = Feed(extra=conf)(*run(0)).end()
    assert "spark.events.issue.regression.dir: this run is not kept" in caplog.text
    assert len(seen(events, "JobStatusChangeEvent", "application")) == 3


# -- micro-batches ------------------------------------------------------------------------------------------


def batches(*took_ms: int, every_ms: int = 100 * S, **last: Any) -> Iterator[dict[str, Any]]:
    """Yield a query's micro-batches, one each 100 s; ``last`` is in the progress of the last."""
    yield r.application_start()
    yield r.query_started(0)
    for number, ms in enumerate(took_ms):
        yield r.batch_begins(number * every_ms, number)
        more = last if number == len(took_ms) - 1 else {}
        yield r.progress(number * every_ms, number, took=ms, **more)


def test_a_slow_batch() -> None:
    """With what it had more of, and the phase that took the time."""
    feed = Feed()(*batches(*[10 * S] * 8, 95 * S, sources=[{"numInputRows": 70_000}]))
    (event,) = seen(feed.end(), "PerformanceIssueEvent")
    assert event.attributes["issue"] == "regression"
    assert event.attributes["checkpointId"] == 8
    assert (event.attributes["lostMs"], event.attributes["durationMs"]) == (85 * S, 95 * S)
    assert event.attributes["changed"] == (
        "rows from sources: 70,000, usually 7, 10000.0 times",
        "addBatch: 1 min 35 s, usually 10.0 s",
    )
    assert event.variables["query_name"] == "orders"
    assert "query 'orders': batch 8 takes 1 min 35 s; the last 8 batches, 10.0 s at the median" in event.body


@pytest.mark.parametrize("took", [[10 * S] * 4 + [95 * S], [10 * S] * 8 + [39 * S], [90 * S] * 8 + [95 * S]])
def test_usual_batches_are_silent(took: list[int]) -> None:
    """The first ones, one that costs less than half a minute, and one that is as slow as all."""
    assert seen(Feed()(*batches(*took)).end(), "PerformanceIssueEvent") == []


BIMODAL = [*[10 * S] * 5, 70 * S, *[10 * S] * 3, 70 * S, *[10 * S] * 2]
"""Two of twelve batches take 70 s. The next has to be over 130 s after the last: when it has run for 40 s."""


def will_miss(feed: Feed) -> list[Event]:
    return seen(feed.end(), "BatchWillMissSlaEvent")


def test_a_batch_that_will_miss_its_sla() -> None:
    """One that has run for longer than the ten fast ones is like the two slow ones: it is said at once."""
    feed = Feed(checkpoint__sla="130s")(*batches(*BIMODAL), r.batch_begins(1_200 * S, 12))
    feed.tick(1_210 * S)
    begun = feed.reported()
    feed.tick(1_212 * S).tick(1_220 * S)
    assert feed.reported() == begun + 1
    (event,) = will_miss(feed)
    assert event.time_ms == T0 + 1_210 * S
    assert event.severity.name == "WARN"
    assert (event.attributes["checkpointId"], event.attributes["slaMs"]) == (12, 130 * S)
    assert (event.attributes["runningMs"], event.attributes["expectedMs"]) == (10 * S, 70 * S)
    assert event.attributes["compared"] == 2
    assert "batch 12 will probably complete" in event.body


def test_a_batch_that_commits_right_then_is_silent() -> None:
    """It is like the fast ones after all."""
    quick = [*BIMODAL, 10 * S + 500]
    assert will_miss(Feed(checkpoint__sla="130s")(*batches(*quick))) == []


def test_a_replay_says_it_at_the_same_time() -> None:
    """There is no clock in a replay: the end of the batch shows that it was still running."""
    took = [*BIMODAL, 75 * S]
    (replayed,) = will_miss(Feed(checkpoint__sla="130s")(*batches(*took)))
    live = Feed(checkpoint__sla="130s")(*batches(*took[:-1]), r.batch_begins(1_200 * S, 12)).tick(1_215 * S)
    assert will_miss(live) == [replayed]


@pytest.mark.parametrize(
    ("took", "sla"),
    [
        ([10 * S] * 12, "130s"),
        ([*BIMODAL, 5 * S], "130s"),
        ([*[10 * S] * 5, 70 * S, *[10 * S] * 6], "130s"),
        ([70 * S] * 4, "130s"),
        ([*BIMODAL, 75 * S], "200s"),
    ],
    ids=["in time", "it was over before", "only one like it", "too few", "a long SLA"],
)
def test_what_nobody_can_know(took: list[int], sla: str) -> None:
    assert will_miss(Feed(checkpoint__sla=sla)(*batches(*took))) == []


def test_no_sla_no_warning() -> None:
    assert will_miss(Feed()(*batches(*[70 * S] * 12))) == []
