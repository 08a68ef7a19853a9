"""The module that workers import: what it does in a task, outside one, and where nothing is attached."""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
import os
import pickle
import subprocess
import sys
import threading
import time
from collections.abc import AsyncGenerator, Callable, Generator, Iterator
from contextlib import nullcontext
from typing import Any

import pytest
from pyspark import cloudpickle

from spark_events import task
from spark_events.task import report
from spark_events.task.driver_link import VARIABLE
from spark_events.task.instruments import MOST_VALUES
from tests.support.task_worker import Worker


def test_one_metric_that_is_written_in_two_ways(worker: Worker) -> None:
    """Its labels have other types, or come in another order, or Spark has sent it."""
    for _ in range(2):
        task.metrics.counter("c", code=200, shop="a").inc()
        task.metrics.counter("c", shop="a", code="200").inc(2)
        pickle.loads(pickle.dumps(task.metrics.counter("c", code="200", shop="a"))).inc(3)
        assert worker.end_task()["metrics"] == [("counter", "c", (("code", "200"), ("shop", "a")), 6)]
    task.metrics.counter("d", flag=1).inc()
    task.metrics.counter("d", flag=True).inc(2)
    values = {labels: value for _, _, labels, value in worker.end_task()["metrics"]}
    assert values == {(("flag", "1"),): 1, (("flag", "True"),): 2}


def test_a_thread_that_survives_its_task(worker: Worker) -> None:
    """What it counts after its task is nobody's, and the next task counts as ever."""
    counter = task.metrics.counter("late")
    counter.inc()
    assert worker.deliver()["metrics"] == [("counter", "late", (), 1)]
    counter.inc(100)
    worker.begin_task()
    counter.inc(5)
    assert worker.end_task()["metrics"] == [("counter", "late", (), 5)]


class NumberOfALibrary:
    """As numpy's: it can be added and compared, and has an ``item``."""

    def __init__(self, value: float) -> None:
        self._value = value

    def item(self) -> float:
        return self._value

    def __add__(self, other: float) -> NumberOfALibrary:
        return NumberOfALibrary(self._value + other)

    def __lt__(self, other: float) -> bool:
        return self._value < other


class TornError(Exception):
    """As an array of many values: it has no one number, and no text either."""

    def item(self) -> float:
        raise RuntimeError("more than one value")

    def __str__(self) -> str:
        raise KeyError("no text")


def test_numbers_of_libraries(worker: Worker) -> None:
    """They become Python's; what is not a number is counted as dropped."""
    task.metrics.counter("rows").inc(NumberOfALibrary(3))  # type: ignore[arg-type]
    task.metrics.counter("rows").inc(4)
    task.metrics.gauge("size").set(NumberOfALibrary(2.5))  # type: ignore[arg-type]
    task.metrics.counter("lost").inc(float("nan"))  # type: ignore[arg-type]
    task.metrics.histogram("ms").update(float("nan"))
    task.metrics.histogram("ms").update(7)
    sent = worker.end_task()
    assert {name: value for _, name, _, value in sent["metrics"]} == {
        "rows": 7,
        "size": (2.5, 2.5, 2.5),
        "ms": [7.0],
    }
    assert sent["dropped"] == {"values": 2}


def test_parts_of_one_count(worker: Worker) -> None:
    for _ in range(4):
        task.counter("hours").inc(0.4)
    task.counter("hours").inc()
    ((_, _, _, hours),) = worker.end_task()["metrics"]
    assert hours == pytest.approx(2.6)


def test_a_count_that_no_other_program_can_read(worker: Worker) -> None:
    """Each step may be added; all of them are more than 64 bits have."""
    task.metrics.counter("bytes").inc(2**62)
    task.metrics.counter("bytes").inc(2**62)
    sent = worker.end_task()
    assert sent["metrics"] == [("counter", "bytes", (), 2**63 - 1)]
    assert sent["dropped"] == {"values": 1}


def test_an_event_and_a_span_with_many_attributes(worker: Worker) -> None:
    task.event("Many", **{f"a{number}": number for number in range(80)})
    with task.span("lookup", **{f"a{number}": number for number in range(49)}) as span:
        span.set_attribute("b", 1)
        span.set_attribute("c", 2)
        span.set_attribute("b", 3)
    sent = worker.end_task()
    assert [len(sent[kind][0]["attributes"]) for kind in ("events", "spans")] == [50, 50]
    assert sent["spans"][0]["attributes"]["b"] == 3
    assert sent["dropped"] == {"values": 31}


class Model(dict[str, int]):
    """Attributes as items, a class that is called: it raises another error than AttributeError."""

    __getattr__ = dict.__getitem__

    def __call__(self, row: int) -> int:
        return row + self["a"]


def test_a_function_without_a_name_that_says_so_in_its_own_way(worker: Worker) -> None:
    assert task.measured(Model(a=1))(2) == 3
    assert task.measured(Model(a=1)).__name__ == "Model"


def test_small_numbers_of_libraries(worker: Worker) -> None:
    """They would overflow, or add up as bits do."""
    np = pytest.importorskip("numpy")
    for name, amounts in (
        ("int8", (300, np.int8(1))),
        ("bool", [np.float64(3) > 2] * 5),
        ("uint8", [np.uint8(200)] * 3),
    ):
        for amount in amounts:
            task.metrics.counter(name).inc(amount)
    values = {name: value for _, name, _, value in worker.end_task()["metrics"]}
    assert values == {"int8": 301, "bool": 5, "uint8": 600}


def test_a_driver_that_says_more(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    """A newer one, of a cluster on which an older spark-events is installed."""
    text = json.loads(os.environ[VARIABLE])
    monkeypatch.setenv(VARIABLE, json.dumps({**text, "of_tomorrow": [1]}))
    task.metrics.counter("rows").inc()
    assert worker.end_task()["metrics"] == [("counter", "rows", (), 1)]


def test_the_call_that_raised(worker: Worker) -> None:
    """Of this function alone, although others have its name, and whatever is dropped."""

    def function(fails_at: int) -> Any:
        return task.measured(lambda number: 1 // (fails_at - number))

    first, second = function(-1), function(3)
    for number in range(10):
        first(number)
    for number in range(1, 3):
        second(number)
    with pytest.raises(ZeroDivisionError) as caught:
        second(3)
    assert caught.value.__spark_events_call__ == ("<lambda>", 3)  # type: ignore[attr-defined]


def test_a_context_of_opentelemetry_ends_with_its_task(worker: Worker) -> None:
    trace = pytest.importorskip("opentelemetry.trace")
    before = trace.get_current_span()
    task.metrics.counter("rows").inc()
    assert f"{trace.get_current_span().get_span_context().span_id:016x}" in (task.traceparent() or "")
    worker.end_task()
    assert trace.get_current_span() is before


def test_values_that_have_no_text(worker: Worker) -> None:
    """Nothing of it reaches the user's code but the user's own exceptions."""
    task.event("E", tensor=TornError(), path="\udcff.txt", huge=type("Huge", (int,), {})(10**400))
    task.metrics.counter("c", listed=[1]).inc()
    with pytest.raises(TornError), task.span("s"):
        raise TornError
    sent = worker.end_task()
    assert sent["events"][0]["attributes"]["tensor"] == "<its str raised KeyError>"
    assert sent["events"][0]["attributes"]["path"] == "?.txt"
    assert sent["metrics"] == [("counter", "c", (("listed", "[1]"),), 1)]
    assert sent["spans"][0]["error"] == ("TornError", "<its str raised KeyError>")


def test_what_is_sent(worker: Worker) -> None:
    counter = task.metrics.counter("bad", shop="berlin", country="de")
    counter.inc()
    counter.inc(4)
    for value in (3, 1, 2):
        task.metrics.gauge("queue").set(value)
        task.metrics.histogram("ms").update(value)
    sent = worker.end_task()
    assert sent["metrics"] == [
        ("counter", "bad", (("country", "de"), ("shop", "berlin")), 5),
        ("gauge", "queue", (), (1, 3, 2)),
        ("histogram", "ms", (), [3.0, 1.0, 2.0]),
    ]
    assert (sent["stage"], sent["partition"], sent["task"], sent["attempt"]) == (3, 1, 7, 0)
    assert sent["properties"]["spark.jobGroup.id"] == "run-1"


def test_each_task_begins_anew(worker: Worker) -> None:
    """With a metric that was kept, in a worker that is used again."""
    counter, gauge = task.metrics.counter("rows"), task.metrics.gauge("size")
    for amount in (2, 3):
        counter.inc(amount)
        gauge.set(amount)
        sent = worker.end_task()["metrics"]
        assert sent == [("counter", "rows", (), amount), ("gauge", "size", (), (amount,) * 3)]


def test_a_metric_travels_with_a_function(worker: Worker) -> None:
    """What arrives is the metric of that name, however often it is sent."""
    counter = task.metrics.counter("rows", way="a")
    counter.inc()
    assert pickle.loads(pickle.dumps(counter)) is counter


def test_limits(worker: Worker) -> None:
    """What is too much is counted, and what was there goes on."""
    for number in range(report.MOST_SERIES + 3):
        task.metrics.counter("c", number=number).inc()
    task.metrics.counter("c", number=0).inc()
    histogram = task.metrics.histogram("c")
    histogram.update(1)
    for _ in range(report.MOST_EVENTS + 2):
        task.event("E")
    for _ in range(report.MOST_SPANS + 1):
        with task.span("s"):
            pass
    sent = worker.end_task()
    assert sent["dropped"] == {"series": 4, "events": 2, "spans": 1}
    assert len(sent["metrics"]) == report.MOST_SERIES
    assert sent["metrics"][0] == ("counter", "c", (("number", "0"),), 2)
    assert sent["crowding"] == {"series": "c", "events": "E", "spans": "s"}


@pytest.mark.parametrize("size", [1, 1_000], ids=["in number", "in bytes"])
def test_one_name_does_not_silence_the_others_of_its_task(worker: Worker, size: int) -> None:
    """It may have a label for each row, or an event; and two such names are no worse than one."""
    for number in range(report.MOST_SERIES + 3):
        for name in ("seen", "also_seen"):
            task.counter(name, row=f"{number}" * size).inc()
            task.event(name, "x" * size)
            with task.span(name, of="x" * size):
                pass
    task.counter("rows").inc(7)
    task.gauge("part", which="b").set(2)
    task.event("PartitionDone")
    with task.span("cleanup"):
        pass
    sent = worker.end_task()

    assert ("counter", "rows", (), 7) in sent["metrics"]
    assert ("gauge", "part", (("which", "b"),), (2, 2, 2)) in sent["metrics"]
    assert "PartitionDone" in [event["name"] for event in sent["events"]]
    assert "cleanup" in [span["name"] for span in sent["spans"]]
    assert sent["crowding"] == dict.fromkeys(("series", "events", "spans"), "seen")


def test_names_that_differ_have_a_limit_as_well(worker: Worker) -> None:
    for number in range(3 * report.MOST_SERIES):
        task.counter(f"row_{number}").inc()
    sent = worker.end_task()
    assert (len(sent["metrics"]), sent["dropped"]) == (2 * report.MOST_SERIES, {"series": report.MOST_SERIES})


def test_values_of_a_histogram(worker: Worker) -> None:
    histogram = task.metrics.histogram("ms")
    for _ in range(MOST_VALUES + 7):
        histogram.update(1)
    sent = worker.end_task()
    assert len(sent["metrics"][0][3]) == MOST_VALUES
    assert sent["dropped"] == {"values": 7}


def test_spans(worker: Worker) -> None:
    """One inside another; one that raises has the error; one that is open at the end is left out."""
    with task.span("outer", n=1) as outer:
        outer.set_attribute("rows", 2)
        with pytest.raises(ValueError, match="no"), task.span("inner"):
            raise ValueError("no")
    opened = task.span("open")
    opened.__enter__()
    spans = {span["name"]: span for span in worker.end_task()["spans"]}
    assert set(spans) == {"outer", "inner"}
    assert spans["inner"]["parent"] == spans["outer"]["id"]
    assert spans["inner"]["error"] == ("ValueError", "no")
    assert spans["outer"]["attributes"] == {"n": 1, "rows": 2}
    assert spans["outer"]["start_ns"] <= spans["inner"]["start_ns"] <= spans["inner"]["end_ns"]


def test_what_attributes_become(worker: Worker) -> None:
    """Plain values, for the driver may have no numpy, and no class of the user's."""

    class Number:
        def item(self) -> int:
            return 3

    task.event("E", "b", "WARN", number=Number(), text="x" * 10_000, flag=True, other=[1])
    (event,) = worker.end_task()["events"]
    assert event["attributes"] == {"number": 3, "text": "x" * 4_096, "flag": True, "other": "[1]"}


def test_a_measured_function(worker: Worker) -> None:
    """Each call counts, and every hundredth is timed; in the next task, too."""

    @task.measured
    def price(text: str) -> float:
        return float(text)

    for calls in (1, 250):
        for _ in range(calls):
            assert price("2.5") == 2.5
        sent = {name: (labels, value) for _, name, labels, value in worker.end_task()["metrics"]}
        labels, counted = sent["udf_calls"]
        assert (labels, counted) == ((("udf", "price"),), calls)
    assert 2 <= len(sent["udf_processing_time"][1]) <= 3
    assert price.__name__ == "price"
    with pytest.raises(ValueError, match="could not convert"):
        price("many")
    sent = {name: (labels, value) for _, name, labels, value in worker.end_task()["metrics"]}
    assert sent["udf_exceptions"][1] == sent["udf_calls"][1] == 1


def test_a_measured_generator(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its run counts and not its call: how long its steps took, without what happens between them."""
    clock = iter(range(1, 1_000))
    monkeypatch.setattr(time, "perf_counter", lambda: next(clock))

    @task.measured
    def split(text: str) -> Iterator[str]:
        for word in text.split():
            if word == "bad":
                raise ValueError("no such word")
            yield word

    for _ in range(3):  # of which one is timed
        assert list(split("a b c")) == ["a", "b", "c"]
    with pytest.raises(ValueError, match="no such word") as raised:
        list(split("a bad"))
    assert raised.value.__spark_events_call__ == ("split", 4)  # type: ignore[attr-defined]
    split("never run")
    sent = {name: value for _, name, _, value in worker.end_task()["metrics"]}
    assert (sent["udf_calls"], sent["udf_exceptions"]) == (5, 1)
    assert sent["udf_processing_time"] == [4]


@pytest.mark.parametrize("calls", [1, 2])
def test_a_measured_generator_is_one_all_the_same(worker: Worker, calls: int) -> None:
    """Timed or not, it takes values and exceptions, returns a value, and is closed."""
    seen: list[object] = []

    @task.measured
    def talk() -> Generator[str, str, str]:
        try:
            try:
                seen.append((yield "first"))
            except KeyError as error:
                seen.append(error.args[0])
            seen.append((yield "second"))
            return "all"
        finally:
            seen.append("closed")

    for _ in range(calls - 1):
        talk()
    made = talk()
    assert next(made) == "first"
    assert made.throw(KeyError("thrown")) == "second"
    with pytest.raises(StopIteration, match="all"):
        made.send("sent")
    left = talk()
    next(left)
    left.close()
    assert seen == ["thrown", "sent", "closed", "closed"]


def test_a_span_that_decorates_a_function(worker: Worker) -> None:
    """Spark can send the function; each call has a span, with what it raises."""

    @task.span("double", of="numbers")
    def double(number: int) -> int:
        if number < 0:
            raise ValueError("below 0")
        return 2 * number

    sent = cloudpickle.loads(cloudpickle.dumps(double))
    assert [sent(1), sent(2)] == [2, 4]
    with pytest.raises(ValueError, match="below 0"):
        sent(-1)
    spans = worker.end_task()["spans"]
    assert [(span["name"], span["attributes"], "error" in span) for span in spans] == [
        ("double", {"of": "numbers"}, fails) for fails in (False, False, True)
    ]


def test_spans_of_coroutines(worker: Worker) -> None:
    """Each lasts until its coroutine ends, and none is the parent of one that only runs meanwhile."""

    @task.span
    async def ask(name: str) -> str:
        with task.span(f"parse {name}"):
            await asyncio.sleep(0)
        await asyncio.sleep(0.02)
        task.event("Answered", name)
        return name.upper()

    async def ask_all() -> list[str]:
        with task.span("all"):
            return await asyncio.gather(ask("a"), ask("b"))

    assert asyncio.run(ask_all()) == ["A", "B"]
    sent = worker.end_task()
    spans = {span["name"]: span for span in sent["spans"]}
    asked = [span for span in sent["spans"] if span["name"] == "ask"]
    assert {span["parent"] for span in asked} == {spans["all"]["id"]}
    assert [spans[f"parse {name}"]["parent"] for name in "ab"] == [span["id"] for span in asked]
    assert [event["span"] for event in sent["events"]] == [span["id"] for span in asked]
    assert all(span["end_ns"] - span["start_ns"] > 15_000_000 for span in asked)
    assert spans["all"]["parent"] is None


@pytest.mark.parametrize("has_outer", [True, False])
def test_spans_of_threads(worker: Worker, has_outer: bool) -> None:
    """A thread's span is below the one that its task has open, and below no other thread's."""
    opened = [threading.Event(), threading.Event()]

    def load(number: int) -> None:
        with task.span("load"):
            opened[number].set()
            assert opened[1 - number].wait(10)  # both are open
            with task.span("part"):
                task.event("Loaded", str(number))

    with task.span("all") if has_outer else nullcontext():
        threads = [threading.Thread(target=load, args=(number,)) for number in (0, 1)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    spans = worker.end_task()["spans"]
    of_all = {span["name"]: span["id"] for span in spans}.get("all")
    loads = {span["id"]: span["parent"] for span in spans if span["name"] == "load"}
    assert list(loads.values()) == [of_all, of_all]
    assert sorted(span["parent"] for span in spans if span["name"] == "part") == sorted(loads)


def test_a_span_that_is_left_open_has_no_part_in_the_next_task(worker: Worker) -> None:
    """A worker runs one task after another."""
    task.span("open").__enter__()
    worker.end_task()
    with task.span("next"):
        pass
    (span,) = worker.end_task()["spans"]
    assert span["parent"] is None


def test_spans_of_asynchronous_generators(worker: Worker) -> None:
    """Each lasts until its generator ends, or is closed, and has what that raises; what is sent arrives."""

    @task.span("read")
    async def read(count: int) -> AsyncGenerator[int, int]:
        for number in range(count):
            await asyncio.sleep(0.02)
            assert (yield number) in (None, 7)
        raise ValueError("no more")

    async def run() -> None:
        with pytest.raises(ValueError, match="no more"):
            [each async for each in read(2)]
        steps = read(9)
        assert [await steps.asend(None), await steps.asend(7)] == [0, 1]
        await steps.aclose()

    asyncio.run(run())
    failed, closed = worker.end_task()["spans"]
    assert failed["error"] == ("ValueError", "no more")
    assert "error" not in closed
    assert all(span["end_ns"] - span["start_ns"] > 30_000_000 for span in (failed, closed))


def test_a_span_that_several_use_at_once(worker: Worker) -> None:
    """Each ends its own, however they overlap."""
    shared = task.span("shared")

    async def use(number: int, pause_s: float) -> None:
        with shared as span:
            span.set_attribute("number", number)
            await asyncio.sleep(pause_s)
            if number == 1:
                raise ValueError("only 1")

    async def use_all() -> None:
        await asyncio.gather(use(1, 0.01), use(2, 0.1), return_exceptions=True)

    asyncio.run(use_all())
    first, second = worker.end_task()["spans"]
    assert (first["attributes"], first["error"]) == ({"number": 1}, ("ValueError", "only 1"))
    assert (second["attributes"], "error" in second) == ({"number": 2}, False)
    assert first["end_ns"] < second["end_ns"]


def test_a_span_that_another_thread_ends(worker: Worker) -> None:
    """As of a generator that it closes."""
    span = task.span("read")
    span.__enter__()
    thread = threading.Thread(target=span.__exit__, args=(None, None, None))
    thread.start()
    thread.join()
    assert [span["name"] for span in worker.end_task()["spans"]] == ["read"]


def test_measured_asynchronous_generators(worker: Worker) -> None:
    """As generators are: by the time of all steps, and with what they raise."""

    @task.measured
    async def read(count: int) -> AsyncGenerator[int, None]:
        for number in range(count):
            await asyncio.sleep(0.02)
            yield number
        if count == 3:
            raise ValueError("no more")

    async def run() -> None:
        assert [each async for each in read(2)] == [0, 1]
        with pytest.raises(ValueError, match="no more"):
            [each async for each in read(3)]

    asyncio.run(run())
    metrics = {name: value for _, name, _, value in worker.end_task()["metrics"]}
    assert (metrics["udf_calls"], metrics["udf_exceptions"]) == (2, 1)
    assert metrics["udf_processing_time"][0] > 0.03


def test_measured_coroutines(worker: Worker) -> None:
    """The time is that until its end, and what it raises there is an exception of the function's."""

    @task.measured
    async def ask(name: str) -> int:
        await asyncio.sleep(0.05)
        return int(name)

    assert asyncio.run(ask("1")) == 1
    with pytest.raises(ValueError, match="x"):
        asyncio.run(ask("x"))
    metrics = {name: value for _, name, _, value in worker.end_task()["metrics"]}
    assert (metrics["udf_calls"], metrics["udf_exceptions"]) == (2, 1)
    assert metrics["udf_processing_time"][0] > 0.04


def test_a_span_of_a_generator(worker: Worker) -> None:
    """It lasts as long as the generator runs, and has what that raises."""

    @task.span("split")
    def split(text: str) -> Iterator[str]:
        yield from text.split()
        raise ValueError("no more")

    words = split("a b")
    assert [next(words), next(words)] == ["a", "b"]
    with pytest.raises(ValueError, match="no more"):
        next(words)
    (span,) = worker.end_task()["spans"]
    assert "no more" in str(span["error"])


def test_a_generator_whose_rest_nobody_wants_has_no_error(worker: Worker) -> None:
    """As after LIMIT: it is closed, and so is its span, and one within it."""

    @task.span("split")
    def split(text: str) -> Iterator[str]:
        with task.span("words"):
            yield from text.split()

    words = split("a b")
    next(words)
    words.close()
    spans = worker.end_task()["spans"]
    assert [(span["name"], "error" in span, "end_ns" in span) for span in spans] == [
        ("split", False, True),
        ("words", False, True),
    ]


@pytest.mark.parametrize("decorate", [task.measured, task.span("work")], ids=["measured", "span"])
def test_above_a_static_or_a_class_method(worker: Worker, decorate: Callable[[Any], Any]) -> None:
    class Prices:
        @decorate
        @staticmethod
        def double(price: int) -> int:
            return 2 * price

        @decorate
        @classmethod
        def named(cls, price: int) -> str:
            return f"{cls.__name__} {price}"

    assert (Prices.double(2), Prices().double(2), Prices.named(1)) == (4, 4, "Prices 1")
    sent = worker.end_task()
    calls = [value for _, name, _, value in sent["metrics"] if name == "udf_calls"]
    assert (calls, len(sent["spans"])) in (([2, 1], 0), ([], 3))


def test_what_a_span_of_a_function_has_is_sent_with_it(worker: Worker) -> None:
    """A lock is none that can be; its text is. The function keeps its parameters, which Spark counts."""
    lock = threading.Lock()

    @task.span("work", lock=lock)
    def work(key: int, rows: list[int]) -> int:
        return key + sum(rows)

    sent = cloudpickle.loads(cloudpickle.dumps(work))
    assert sent(1, [2]) == 3
    assert list(inspect.signature(sent).parameters) == ["key", "rows"]
    (span,) = worker.end_task()["spans"]
    assert span["attributes"] == {"lock": str(lock)}


def test_a_span_without_a_name_has_the_function_s(worker: Worker) -> None:
    """As ``@task.measured`` is written; the function runs. What is no function is given back."""

    @task.span
    def save(row: int) -> int:
        return row

    assert save(3) == 3
    assert task.span("s")(3) == 3  # type: ignore[arg-type]
    assert [span["name"] for span in worker.end_task()["spans"]] == ["save"]


def test_a_record_is_told_once(worker: Worker) -> None:
    """Workers are reused, so that each task adds a handler more."""
    log = logging.getLogger("tests.told.once")
    for _ in range(3):
        log.addHandler(task.EventHandler())
    log.warning("a price is missing")
    log.warning("a price is missing")
    assert [event["name"] for event in worker.end_task()["events"]] == ["LogRecord"] * 2
    log.handlers.clear()


def test_a_span_that_is_begun_again_within_itself(worker: Worker) -> None:
    """Both are reported, the inner one below the outer one."""
    span = task.span("step")
    with span, span:
        pass
    outer, inner = worker.end_task()["spans"]
    assert (outer["parent"], inner["parent"]) == (None, outer["id"])
    assert outer["end_ns"] >= inner["end_ns"]


def test_where_all_names_differ_none_is_to_blame(worker: Worker) -> None:
    for number in range(500):
        task.event(f"E{number}")
    assert worker.end_task()["crowding"] == {"events": ""}


def use_everything() -> None:
    task.metrics.counter("c", a="b").inc()
    task.metrics.gauge("g").set(1)
    task.metrics.histogram("h").update(1)
    task.event("E", n=1)
    with task.span("s") as span:
        span.set_attribute("k", 1)


def test_where_nothing_is_attached_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    use_everything()
    use_everything()


def test_outside_a_task_nothing_happens(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    import pyspark

    monkeypatch.setattr(pyspark.TaskContext, "get", lambda: None)
    use_everything()
    assert worker._registry == {}


def test_it_needs_nothing_but_the_standard_library() -> None:
    """A worker imports it for each Python that starts, and may have nothing else."""
    code = (
        "import sys; before = set(sys.modules); from spark_events import task; "
        "new = {name.partition('.')[0] for name in set(sys.modules) - before}; "
        "print(sorted(new - set(sys.stdlib_module_names)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['spark_events']"


def test_labels_as_a_mapping(worker: Worker) -> None:
    """``labels={…}`` is what other libraries have; a text is a label of that name."""
    task.metrics.counter("c", labels={"reason": "old", "code": 4}).inc()
    task.metrics.counter("d", labels={"labels": "x"}, shop="a").inc()
    task.metrics.counter("e", labels="x").inc()

    assert {name: labels for _, name, labels, _ in worker.end_task()["metrics"]} == {
        "c": (("code", "4"), ("reason", "old")),
        "d": (("labels", "x"), ("shop", "a")),
        "e": (("labels", "x"),),
    }


def test_a_report_is_far_smaller_than_what_lets_a_job_fail(worker: Worker) -> None:
    """Spark counts it among the task's results; what is left out is counted, small parts stay whole."""
    for number in range(40):
        histogram = task.metrics.histogram("h", number=number)
        for value in range(MOST_VALUES):
            histogram.update(value + 0.5)
    task.metrics.counter("c").inc(3)
    for _ in range(100):
        task.event("E", "x" * 4_000, **{f"a{at}": "y" * 4_000 for at in range(50)})
    with task.span("small"):
        pass
    sent = worker.end_task()
    assert len(pickle.dumps(sent)) < 600_000
    counts = [len(value) for kind, _, _, value in sent["metrics"] if kind == "histogram"]
    assert len(counts) == 40
    assert min(counts) > 100
    assert sum(counts) + sent["dropped"]["values"] == 40 * MOST_VALUES
    assert ("counter", "c", (), 3) in sent["metrics"]
    assert len(sent["events"]) + sent["dropped"]["events"] == 100
    assert [span["name"] for span in sent["spans"]] == ["small"]


def test_a_report_of_labels_alone_is_cut(worker: Worker) -> None:
    """The number of labels has no limit of its own."""
    for number in range(20):
        task.metrics.counter("c", **{f"label{at}": f"{at}{'z' * 190}" for at in range(300)}, n=number).inc()
    sent = worker.end_task()
    assert len(pickle.dumps(sent)) < 600_000
    assert len(sent["metrics"]) + sent["dropped"]["series"] == 20
