"""The life of job status listeners: how they are named, made, told, and closed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from spark_events.api import (
    DataRead,
    ExecutionMode,
    JobCreatedEvent,
    JobExecutionStatusEvent,
    JobLineageEvent,
    JobListenerContext,
    JobProgressEvent,
    JobStatus,
    JobStatusChangedEvent,
    JobStatusChangedListener,
    JobStatusChangedListenerFactory,
    Reporter,
    ReporterConfig,
    job_event_json,
)
from spark_events.jobs.plan_records import QUERY_LINEAGE, STATEMENT_CREATED
from spark_events.runtime.setup import read_all_setups
from tests.support.forked_commands import run_forked
from tests.support.job_listeners import Collecting, OlderForm
from tests.support.paths import REPO
from tests.support.spark_records import progress
from tests.support.told_jobs import COLLECTING, PREFIX, Told, lineage_record, query_started, statement


def test_what_a_listener_is_told() -> None:
    told = Told(s=COLLECTING)
    statement(told, 7, sql="INSERT INTO …")
    told.close()
    (listener,) = Collecting.instances
    application, _, created, running, finished = listener.events
    assert (application.job_kind, application.job_id) == ("application", "app-1")
    assert isinstance(created, JobCreatedEvent)
    assert (created.job_id, created.job_name, created.job_kind) == ("app-1/7", "insert.data.out", "statement")
    assert (created.execution_mode, created.statement, created.is_sql) == (
        ExecutionMode.BATCH,
        "INSERT INTO …",
        True,
    )
    assert created.spark_version == "4.3.0"
    assert created.variables["app_name"] == "shop"
    assert isinstance(running, JobExecutionStatusEvent)
    assert (running.old_status, running.new_status) == (JobStatus.CREATED, JobStatus.RUNNING)
    assert isinstance(finished, JobExecutionStatusEvent)
    assert (finished.old_status, finished.new_status) == (JobStatus.RUNNING, JobStatus.FINISHED)


def test_slow_work_is_done_before_the_listener_is_closed_and_none_is_taken_after() -> None:
    told = Told(s=COLLECTING)
    for number in range(3):
        statement(told, number)
    told.close()
    (listener,) = Collecting.instances
    assert len(listener.events) == len(listener.done) == 11
    assert listener.calls == ["close after 11"]
    with pytest.raises(RuntimeError, match="shut down"):
        listener.context.io_executor.submit(print)


def test_a_listener_gets_each_call_of_its_life() -> None:
    """Whatever a reporter has; ``rest`` gives back the files of one that shares its threads."""
    calls: list[str] = []

    class Life(JobStatusChangedListener):
        def on_event(self, event: JobStatusChangedEvent) -> None:
            calls.append("on_event")

    life = [name for name, of in vars(Reporter).items() if callable(of) and not name.startswith("_")]
    for name in life:
        setattr(Life, name, lambda self, name=name: calls.append(name))

    class Factory(JobStatusChangedListenerFactory):
        def create_listener(self, context: JobListenerContext) -> JobStatusChangedListener:
            return Life()

    listener = Factory().create(ReporterConfig())
    for name in life:
        getattr(listener, name)()
    assert calls == life == ["open", "flush", "rest", "close"]


def test_several_listeners_each_with_its_options_and_one_that_raises(
    caplog: pytest.LogCaptureFixture,
) -> None:
    told = Told(
        s="one,two,tests.support.job_listeners:RaisingFactory",
        __one__factory__class=COLLECTING,
        __one__label="first",
        __two__factory__class=COLLECTING,
        __three__factory__class=COLLECTING,
    )
    for number in range(3):
        statement(told, number)
    told.close()
    assert sorted(listener.label for listener in Collecting.instances) == ["first", "none"]
    assert {len(listener.events) for listener in Collecting.instances} == {11}
    complaints = [record for record in caplog.records if "I will not listen" in record.getMessage()]
    assert len(complaints) == 1


@pytest.mark.parametrize("factory", ["CoroutineFactory", "OlderCoroutineFactory"])
def test_one_whose_method_runs_nothing(factory: str, caplog: pytest.LogCaptureFixture) -> None:
    told = Told(s=f"tests.support.job_listeners:{factory}")
    statement(told, 1)
    told.close()
    assert "raised in on_event: TypeError: it returned a coroutine, which nobody runs" in caplog.text


def test_the_older_form() -> None:
    told = Told(s="tests.support.job_listeners:OlderFactory")
    statement(told, 1)
    statement(told, 2, {"text": "java.lang.IllegalStateException: no"})
    statement(told, 3, {"text": "x", "errorClass": "SPARK_JOB_CANCELLED"})
    told.close()
    assert OlderForm.told == [
        ("created", "shop", 0, 0),
        ("created", "insert.data.out", 1, 1),
        ("finished", "insert.data.out"),
        ("created", "insert.data.out", 1, 1),
        ("failed", "insert.data.out", "no"),
        ("created", "insert.data.out", 1, 1),
        ("canceled", "insert.data.out"),
    ]


def test_secrets_are_in_no_event() -> None:
    told = Told("hunter22", s=COLLECTING)
    failure = {"text": "java.lang.X: password hunter22 is wrong\n\tat a.b(c)"}
    statement(told, 1, failure, sql="SELECT 'hunter22'")
    told.close()
    assert "hunter22" not in repr(Collecting.instances[0].events)


@pytest.mark.parametrize("first", ["query", "lineage"])
def test_a_query_is_told_with_its_lineage_whichever_comes_first(first: str) -> None:
    told = Told(s=COLLECTING)
    if first == "query":
        query_started(told, "r1")
    told.record(QUERY_LINEAGE, runId="r1", lineage=lineage_record())
    if first == "lineage":
        query_started(told, "r1")
    told.close()
    of_query = [event for event in Collecting.instances[0].events if event.job_kind == "query"]
    (created,) = of_query
    assert isinstance(created, JobCreatedEvent)
    assert (created.job_id, created.job_name) == ("r1", "orders")
    assert len(created.lineage.relations) == 1


def test_all_that_comes_before_a_query_is_told_with_it() -> None:
    told = Told(s=COLLECTING)
    for sink in ("/data/one", "/data/two"):
        told.record(QUERY_LINEAGE, runId="r1", lineage=lineage_record(sink))
    query_started(told, "r1")
    told.close()
    (created,) = [event for event in Collecting.instances[0].events if event.job_kind == "query"]
    assert isinstance(created, JobCreatedEvent)
    assert [d.name for v in created.lineage.sinks for d in v.datasets] == ["/data/one", "/data/two"]


def test_a_query_whose_plan_never_comes_is_told_without() -> None:
    told = Told(s=COLLECTING)
    query_started(told, "r1")
    told.tick(60_000)
    told.close()
    (created,) = [event for event in Collecting.instances[0].events if event.job_kind == "query"]
    assert isinstance(created, JobCreatedEvent)
    assert "not read in time" in created.lineage.incomplete


def test_what_a_batch_writes_comes_later() -> None:
    told = Told(s=COLLECTING)
    query_started(told, "r1")
    told.record(QUERY_LINEAGE, runId="r1", lineage={**lineage_record(), "sinks": []})
    told.record(QUERY_LINEAGE, runId="r1", lineage=lineage_record("/data/one"))
    told.record(QUERY_LINEAGE, runId="r1", lineage=lineage_record("/data/one"))
    told.record(QUERY_LINEAGE, runId="r1", lineage=lineage_record("/data/two"))
    told.close()
    later = [event for event in Collecting.instances[0].events if isinstance(event, JobLineageEvent)]
    assert [[d.name for v in event.lineage.sinks for d in v.datasets] for event in later] == [
        ["/data/one"],
        ["/data/one", "/data/two"],
    ]


def progress_of(told: Told, after_s: int, rows: int, offset: Any, written: int = -1) -> None:
    """A micro-batch so long after the query's start, which is the first record after the application's."""
    record = progress(0, after_s, run="r1")
    record["progress"]["sources"] = [{"numInputRows": rows, "endOffset": offset}]
    record["progress"]["sink"] = {"numOutputRows": written}
    told.record(record.pop("Event"), **record, Timestamp=(3 + after_s) * 1_000)


def test_how_far_a_query_has_come_is_told_once_an_interval() -> None:
    told = Told(s=COLLECTING)
    query_started(told, "r1")
    told.record(QUERY_LINEAGE, runId="r1", lineage=lineage_record())
    for after_s in (10, 30, 59, 61, 90, 121):
        progress_of(told, after_s, rows=after_s, offset={"logOffset": after_s}, written=1)
    told.close()
    events = [event for event in Collecting.instances[0].events if isinstance(event, JobProgressEvent)]
    assert [(event.batch, event.read, event.written) for event in events] == [
        (61, (DataRead("file", "/data/in", '{"logOffset":61}', 160),), {"rows": 4}),
        (121, (DataRead("file", "/data/in", '{"logOffset":121}', 211),), {"rows": 2}),
    ]
    assert job_event_json(events[0])["read"] == [
        {"namespace": "file", "name": "/data/in", "version": '{"logOffset":61}', "rows": 160}
    ]


@pytest.mark.parametrize(("written", "told_as"), [(0, {"rows": 0}), (-1, {})], ids=["none", "not counted"])
def test_a_query_that_wrote_no_row(written: int, told_as: dict[str, int]) -> None:
    """A filter that lets nothing through has written none; a sink that does not count says -1."""
    told = Told(s=COLLECTING)
    query_started(told, "r1")
    told.record(QUERY_LINEAGE, runId="r1", lineage=lineage_record())
    progress_of(told, 70, rows=3, offset=None, written=written)
    told.close()
    (event,) = [event for event in Collecting.instances[0].events if isinstance(event, JobProgressEvent)]
    assert event.written == told_as


def test_each_topic_has_its_offsets() -> None:
    told = Told(s=COLLECTING)
    query_started(told, "r1")
    options = {"kafka.bootstrap.servers": "here:9092", "subscribe": "a,b"}
    source = {"identity": {"format": "kafka", "options": options}, "streaming": True}
    told.record(QUERY_LINEAGE, runId="r1", lineage={**lineage_record(), "sources": [source]})
    progress_of(told, 70, rows=3, offset={"a": {"0": 1}, "b": {"0": 2}})
    told.close()
    (event,) = [event for event in Collecting.instances[0].events if isinstance(event, JobProgressEvent)]
    assert [(data.name, data.version, data.rows) for data in event.read] == [
        ("a", '{"0":1}', None),
        ("b", '{"0":2}', None),
    ]
    assert event.written == {}


def test_the_application_takes_its_statements_along() -> None:
    told = Told(s=COLLECTING)
    told.record(STATEMENT_CREATED, executionId=1, lineage=lineage_record())
    told.record("SparkListenerApplicationEnd")
    told.close()
    assert [
        (event.job_kind, event.new_status)
        for event in Collecting.instances[0].events
        if isinstance(event, JobExecutionStatusEvent)
    ][-2:] == [("statement", JobStatus.CANCELED), ("application", JobStatus.FINISHED)]


def test_flinks_own_key_names_them_too() -> None:
    setups, errors = read_all_setups({"spark.execution.job-status-changed-listeners": COLLECTING})
    assert not errors
    assert [setup.kind.title for setup in setups] == ["job status listener"]


@pytest.mark.parametrize(
    ("conf", "said"),
    [
        (
            {"s": "nobody"},
            "nobody.factory.class: unknown job status listener 'nobody'; installed: file_log, openlineage",
        ),
        ({"s": "tests.lineage.nowhere:X"}, "cannot be imported"),
        (
            {"s": "tests.support.job_listeners:Collecting"},
            "is not a subclass of spark_events.api.job_listener",
        ),
        ({".one.label": "x"}, ".one.factory.class: missing"),
        ({".one.factory.class": COLLECTING, ".one.lable": "x"}, "did you mean 'label'?"),
        ({".one.factory.class": COLLECTING, ".one.filter.includes": "*"}, "unknown option"),
        ({"s": "file_log"}, "listener.file_log.path: missing"),
        ({".ol.factory.class": "openlineage", ".ol.transport.type": "http"}, ".ol.transport.url: missing"),
        (
            {".ol.factory.class": "openlineage", ".ol.transport.url": "http://x"},
            ".ol.transport.type: missing",
        ),
        ({".ol.factory.class": "openlineage", ".ol.transport.type": "pigeon"}, "pigeon"),
        ({".ol.factory.class": "openlineage", ".ol.parent": "no"}, "<namespace>/<job name>/<run id>"),
        ({"er.x": "1"}, "spark.job-status-changed.listenerer.x: unknown key"),
    ],
)
def test_bad_configuration_is_said_before_a_job_is_submitted(conf: dict[str, str], said: str) -> None:
    options = [part for key, value in conf.items() for part in ("--conf", f"{PREFIX}{key}={value}")]
    run = run_forked("check", *options, cwd=REPO)
    assert run.returncode == 3
    assert said in " ".join((run.stdout + run.stderr).split())


def test_the_listener_of_the_documentation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    blocks = (REPO / "docs" / "lineage.md").read_text().split("```python\n")[1:]
    (code,) = [block.split("```")[0] for block in blocks if "class Announcer" in block]
    (tmp_path / "announcer_of_the_docs.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    told = Told(s="announcer_of_the_docs:AnnouncerFactory")
    statement(told, 1)
    told.close()
    assert "insert.data.out" in capsys.readouterr().out
