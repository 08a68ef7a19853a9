"""Whatever a task hands to ``spark_events.task``: it goes on, what cannot be reported is counted and said once."""

from __future__ import annotations

import enum
import inspect
import json
import logging
import pickle
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from spark_events import task
from spark_events.task import current, failed_tasks
from spark_events.task.driver_link import VARIABLE, DriverLink
from spark_events.task.values import text_of
from tests.support.applications import App
from tests.support.file_log import events_and_spans, file_events, of_name
from tests.support.hostile_values import ODD, Raising, odd_values
from tests.support.paths import APPS
from tests.support.task_context import TaskContextOfOneTask

TRACE = "0af7651916cd43dd8448eb211c80319c"
Registry = dict[int, Any]


@pytest.fixture(autouse=True)
def nothing_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(current, "_said", set())
    monkeypatch.setattr("spark_events.task.instruments._made", {})


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Registry:
    """PySpark's registry in a worker that runs a task."""
    pyspark = pytest.importorskip("pyspark")
    of_task: Registry = {}
    monkeypatch.setenv(VARIABLE, DriverLink(5, ("app-1", ""), TRACE, "b7ad6b7169203331", True).text())
    monkeypatch.setattr(current, "accumulators", lambda: of_task)
    monkeypatch.setattr(pyspark.TaskContext, "get", lambda: TaskContextOfOneTask())
    return of_task


IN_A_CHILD = """
import multiprocessing, os, sys
sys.path[:0] = {path!r}
import pyspark
from spark_events import task
from spark_events.task import current
from spark_events.task.driver_link import VARIABLE, DriverLink
from tests.support.task_context import TaskContextOfOneTask

os.environ[VARIABLE] = DriverLink(5, ("app-1", "")).text()
registry = {{}}
current.accumulators = lambda: registry
pyspark.TaskContext.get = lambda: TaskContextOfOneTask()
counted = task.metrics.counter("rows")
{before}
child = os.fork()
counted.inc(2)
task.event("Loaded", "", file="a")
if child == 0:
    os._exit(len(registry))
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
values = registry[5]._value
print([values["metrics"][0][-1], len(values["events"])])
"""


@pytest.mark.parametrize(("before", "counts"), [("", 2), ("counted.inc()", 3)], ids=["nothing", "a report"])
def test_a_process_that_a_task_starts(before: str, counts: int) -> None:
    """What it reports nobody takes: it says so, and the task's own report has what is the task's."""
    pytest.importorskip("pyspark")
    program = IN_A_CHILD.format(path=sys.path, before=before)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)

    assert done.stdout == f"[{counts}, 1]\n", done.stderr
    assert done.stderr.count("is lost: return it to the task") == 1


def test_a_process_without_a_task(
    monkeypatch: pytest.MonkeyPatch, registry: Registry, caplog: pytest.LogCaptureFixture
) -> None:
    """One that a task has spawned has the driver's link, and no task."""
    monkeypatch.setattr("pyspark.TaskContext.get", lambda: None)
    task.event("Loaded", "")
    task.event("Loaded", "")

    assert not registry
    assert caplog.text.count("is lost: return it to the task") == 1


def sent(registry: Registry) -> dict[str, Any]:
    """Return what PySpark would send; another task begins."""
    values = registry[5]._value
    registry.clear()
    return pickle.loads(pickle.dumps(values))  # type: ignore[no-any-return]


def as_key(value: Any) -> Any:
    """Return it, if it can be a key."""
    try:
        return {value: value} and value
    except Exception:
        return KeyWithoutText()


class KeyWithoutText:
    """A key of a mapping that has no text."""

    def __str__(self) -> str:
        raise RuntimeError("of the user's own")


def use(value: Any, other: Any) -> None:
    """Hand two values to everything that is public."""
    for metric in (task.metrics.counter, task.metrics.gauge, task.metrics.histogram):
        metric(value, label=other, other=value)
        made = metric("rows", label=other)
        metric("rows", labels=value)
        metric("rows", labels={as_key(other): value})
        pickle.loads(pickle.dumps(made))
    counter, gauge = task.counter("c"), task.gauge("g")
    histogram = task.histogram("h")
    for each in (value, 1, other):
        counter.inc(each)
        gauge.set(each)
        histogram.update(each)
    task.event(value, other, value, attribute=other)
    task.event("E", severity=other)
    name = "f" if type(value) is FunctionType else value  # a function is decorated
    with task.span(name, attribute=other) as span:
        span.set_attribute(other, value)
        task.traceparent()
    record = logging.LogRecord("l", logging.ERROR, "p", 1, "%s", (), None)
    record.args = (value,)  # the class itself asks for its type
    assert task.TraceContextFilter().filter(record)
    handler = task.EventHandler(value)
    handler.setLevel(0)
    task.measured(lambda row: row)(value)
    with pytest.raises(KeyError):  # the user's own is the user's own
        task.measured(lambda row: {}[0])(value)


def test_all_that_is_public_is_tried() -> None:
    source = inspect.getsource(use)
    kinds = ("Metrics", "TaskCounter", "TaskGauge", "TaskHistogram", "TaskMetric", "TaskSpan")
    assert [name for name in task.__all__ if f"task.{name}" not in source and name not in kinds] == []
    methods = {
        name
        for kind in kinds
        for name, method in vars(getattr(task, kind)).items()
        if inspect.isfunction(method) and not name.startswith("_")
    }
    of_runtime = {"begin_or_add", "take"}
    assert [name for name in methods - of_runtime if f".{name}(" not in source and name not in source] == []


def test_attributes_and_labels_have_any_name(registry: Registry) -> None:
    """Also those of the arguments of the call; without a value by position, they are these."""
    task.event("Login", name="alice", self="x")
    task.event("Mail", "it was sent", "WARN", body="Hello", severity="high")
    task.event(name="Named", body="by name", severity="ERROR")
    with task.span("fetch", name="rates"), task.span(name="parse"):
        pass
    task.metrics.counter("logins", name="alice", self="x").inc()
    task.metrics.counter(name="by_name").inc()

    values = sent(registry)
    told = [(each["name"], each["body"], each["severity"], each["attributes"]) for each in values["events"]]
    assert told == [
        ("Login", "", "INFO", {"name": "alice", "self": "x"}),
        ("Mail", "it was sent", "WARN", {"body": "Hello", "severity": "high"}),
        ("Named", "by name", "ERROR", {}),
    ]
    spans = [(each["name"], each["attributes"]) for each in values["spans"]]
    assert spans == [("fetch", {"name": "rates"}), ("parse", {})]
    metrics = [(name, dict(labels)) for _, name, labels, _ in values["metrics"]]
    assert metrics == [("logins", {"name": "alice", "self": "x"}), ("by_name", {})]


def test_calls_with_too_little_or_too_much(registry: Registry, caplog: pytest.LogCaptureFixture) -> None:
    task.event()
    task.event("Much", "b", "INFO", "more", 5)
    with task.span("fetch", "more"):
        task.metrics.counter("rows", "more").inc()

    values = sent(registry)
    assert [each["name"] for each in values["events"]] == ["", "Much"]
    assert [name for _, name, _, _ in values["metrics"]] == ["rows"]
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == 3
    assert all("left out" in sentence for sentence in said)


FUZZED = settings(
    deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150
)


@FUZZED
@given(odd_values(), odd_values())
def test_in_a_task(registry: Registry, value: Any, other: Any) -> None:
    """And what is sent can be pickled, is JSON, and has numbers that are some."""
    use(value, other)
    values = sent(registry)
    json.dumps(values, allow_nan=True).encode()
    for kind, _, _, measured in values["metrics"]:
        numbers = [measured] if kind == "counter" else measured
        assert all(type(number) in (int, float, bool) and abs(float(number)) < 2**1024 for number in numbers)


@FUZZED
@given(odd_values(), odd_values())
def test_where_nothing_is_attached(value: Any, other: Any) -> None:
    use(value, other)


@pytest.mark.parametrize("text", ["", "x", "[]", "{}", '{"application": 1}', '{"application": ["a", "b"]}'])
def test_a_variable_that_somebody_else_has_set(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv(VARIABLE, text)
    use(1, 2)


WRONG: dict[str, Callable[[], None]] = {
    "histogram, None": lambda: task.metrics.histogram("m").update(None),  # type: ignore[arg-type]
    "histogram, text": lambda: task.metrics.histogram("m").update("n/a"),  # type: ignore[arg-type]
    "histogram, too large": lambda: task.metrics.histogram("m").update(10**400),
    "histogram, no number": lambda: task.metrics.histogram("m").update(float("nan")),
    "gauge, None": lambda: task.metrics.gauge("m").set(None),  # type: ignore[arg-type]
    "gauge, text": lambda: task.metrics.gauge("m").set("x"),  # type: ignore[arg-type]
    "gauge, too large": lambda: task.metrics.gauge("m").set(10**400),
    "counter, negative": lambda: task.metrics.counter("m").inc(-1),
    "counter, too large": lambda: task.metrics.counter("m").inc(10**400),
    "counter, object": lambda: task.metrics.counter("m").inc(Raising()),  # type: ignore[arg-type]
    "severity, unknown": lambda: task.event("E", severity="bogus"),
    "severity, None": lambda: task.event("E", severity=None),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("what", WRONG)
def test_each_is_counted_and_said_once(
    registry: Registry, caplog: pytest.LogCaptureFixture, what: str
) -> None:
    """What came before it, and comes after it, is reported."""
    task.metrics.gauge("m").set(1)
    for _ in range(3):
        WRONG[what]()
    task.metrics.gauge("m").set(2)
    values = sent(registry)
    assert values["dropped"] == {"values": 3}
    assert [metric for metric in values["metrics"] if metric[0] == "gauge"] == [("gauge", "m", (), (1, 2, 2))]
    assert {event["severity"] for event in values["events"]} <= {"INFO"}
    assert len(caplog.records) == 1


def test_an_array_is_no_number(registry: Registry) -> None:
    np = pytest.importorskip("numpy")
    gauge = task.metrics.gauge("m")
    for value in (np.array([1, 2]), 1, np.array([3, 4]), np.array([5])):
        gauge.set(value)
    values = sent(registry)
    assert (values["metrics"], values["dropped"]) == ([("gauge", "m", (), (1, 5, 5))], {"values": 2})


def test_a_number_of_an_enumeration_stays_one(registry: Registry) -> None:
    task.event("Paid", level=enum.IntEnum("Level", ["LOW", "HIGH"]).HIGH)
    (sent_event,) = sent(registry)["events"]
    assert [type(value) for value in sent_event["attributes"].values() if value == 2] == [int]


def test_names_that_are_no_texts(registry: Registry) -> None:
    task.metrics.counter(["x"], label={"a": 1}).inc()  # type: ignore[arg-type]
    assert sent(registry)["metrics"] == [("counter", "['x']", (("label", "{'a': 1}"),), 1)]


def test_a_task_that_has_succeeded_does_not_fail_of_its_report(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    task.metrics.counter("c").inc()

    def broken(_: Any) -> None:
        raise RuntimeError("an accident of ours")

    monkeypatch.setattr(task.TaskCounter, "take", broken)
    assert sent(registry) is None


class Lazy:
    """Computes when it is shown."""

    def __repr__(self) -> str:
        time.sleep(30)
        return "computed"


@pytest.mark.parametrize(
    "value", [b"x" * 10**7, [1] * 10**6, (None,) * 10**6], ids=["bytes", "list", "tuple"]
)
def test_texts_of_long_sequences(value: Any) -> None:
    """Their beginnings are made, and no more."""
    assert text_of(value) == str(value[:5_000])[:4_096]


def test_variables_that_compute_when_they_are_shown() -> None:
    """A failing task does not wait for them; those before them are there, and the log says what is not."""
    first, lazy, later, secret = 1, Lazy(), 2, Raising()
    shown = failed_tasks._shown_within(sys._getframe(), "secret", 0.2)
    assert (first, later, bool(lazy), type(secret)) == (1, 2, True, Raising)
    assert shown["first"] == "1"
    assert shown["lazy"].startswith("<not shown")
    assert shown["later"].startswith("<not shown")


@pytest.fixture
def application(java: str, tmp_path: Path) -> list[dict[str, Any]]:
    conf = {
        "spark.master": "local[1]",
        "spark.events.task.failures.include-locals": "true",
        **events_and_spans(tmp_path / "live"),
    }
    run = App([sys.executable, str(APPS / "odd_values.py")], conf, tmp_path).end()
    assert run.code == 0, run.err[-3000:]
    return file_events(tmp_path / "live")


@pytest.mark.extended
@pytest.mark.spark
def test_in_a_real_task(application: list[dict[str, Any]]) -> None:
    """The job ends well, and what is right of it arrives."""
    assert len(of_name(application, "Handed")) == len(ODD)
    assert of_name(application, "JobFailureEvent") == []
