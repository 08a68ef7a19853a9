"""The reports of failed tasks: what is sent, what the driver takes, and what both do if the other is not there."""

from __future__ import annotations

import argparse
import json
import socket
import sys
import threading
import traceback
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from spark_events import task
from spark_events.api import CodePlace
from spark_events.listeners.failures.failures import parse_failure
from spark_events.listeners.spark_records import TASK_REPORT
from spark_events.listeners.tasks.failed_tasks import FailedTasks
from spark_events.sources.driver.tasks import task_reports
from spark_events.sources.driver.tasks.failed_tasks import FailedTaskReceiver
from spark_events.sources.driver.tasks.task_reports import TaskReports, _Dropped
from spark_events.task import failed_tasks, values
from spark_events.task.driver_link import VARIABLE, DriverLink
from spark_events.task.report import MOST_BYTES, TaskReport
from spark_events.task.values import text_of
from tests.support.task_context import TaskContextOfOneTask
from tests.support.waiting import free_port, wait_until


@pytest.fixture
def received() -> list[dict[str, Any]]:
    return []


@pytest.fixture
def receiver(received: list[dict[str, Any]]) -> Iterator[FailedTaskReceiver]:
    receiver = FailedTaskReceiver("127.0.0.1", 0, "right", received.append)
    yield receiver
    receiver.close()


def send(receiver: FailedTaskReceiver, sent: bytes) -> None:
    # It may have read enough, and closed.
    with socket.create_connection(("127.0.0.1", receiver.port)) as connection, suppress(OSError):
        connection.sendall(sent)


@pytest.mark.parametrize(
    ("sent", "cause"),
    [
        (b'wrong\n{"failed": {}}', "other_sender"),
        (b"", "other_sender"),
        (b"right\nnot json", "malformed"),
        (b'right\n["failed"]', "malformed"),
        (b"right\n{}", "malformed"),
        (b"right\n" + b"[" * 100_000, "malformed"),
        (b"right\n" + b"x" * (failed_tasks.MOST_BYTES + 1_000_000), "too_long"),
    ],
)
def test_what_is_no_report_is_counted(
    receiver: FailedTaskReceiver, received: list[dict[str, Any]], sent: bytes, cause: str
) -> None:
    """And the next one arrives."""
    send(receiver, sent)
    send(receiver, b'right\n{"failed": {"n": 1}}')
    wait_until(lambda: received, "the report has arrived")
    assert received == [{"failed": {"n": 1}}]
    assert receiver.dropped == {cause: 1}


@pytest.mark.parametrize("silent", [1, 10, 300])
def test_connections_that_say_nothing(
    receiver: FailedTaskReceiver, received: list[dict[str, Any]], silent: int
) -> None:
    """However many there are, a report arrives before they are ended; of many, most are closed soon."""
    place = "127.0.0.1", receiver.port
    with ExitStack() as opened:
        for _ in range(silent):
            opened.enter_context(socket.create_connection(place))
        send(receiver, b'right\n{"failed": {"n": 1}}')
        wait_until(lambda: received, "the report has arrived")
        assert receiver.dropped["too_long"] == 0
        if silent > 256:
            assert receiver.dropped["silent"] >= silent - 256
        wait_until(lambda: receiver.dropped.total() == silent, "all are closed")


def test_one_that_says_its_token_late_and_slowly(
    receiver: FailedTaskReceiver, received: list[dict[str, Any]]
) -> None:
    """As a worker that has little of a processor: it is waited for, also where others say nothing."""
    place = "127.0.0.1", receiver.port
    with ExitStack() as opened:
        known = opened.enter_context(socket.create_connection(place))
        known.sendall(b'right\n{"fail')
        for _ in range(100):
            opened.enter_context(socket.create_connection(place))
        wait_until(lambda: receiver.dropped["silent"] > 50, "the crowd is closed")
        known.sendall(b'ed": {"n": 1}}')
        known.shutdown(socket.SHUT_WR)
        wait_until(lambda: received, "the report has arrived")
    assert received == [{"failed": {"n": 1}}]


def test_when_it_is_closed_everything_is(receiver: FailedTaskReceiver) -> None:
    """Also in the middle of a report: an application that has ended has left no thread and no socket."""
    port = receiver.port
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(b'right\n{"fai')
        receiver.close()
        assert "spark-events-failed-tasks" not in [thread.name for thread in threading.enumerate()]
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))


def a_report(monkeypatch: pytest.MonkeyPatch, link: DriverLink) -> TaskReport:
    """Return a report that stands in PySpark's registry, as in a worker whose task runs."""
    report = TaskReport(link, TaskContextOfOneTask())
    registry: dict[int, Any] = {link.accumulator: report}
    monkeypatch.setenv(VARIABLE, link.text())
    monkeypatch.setattr("spark_events.task.current.accumulators", lambda: registry)
    monkeypatch.setattr(failed_tasks, "accumulators", lambda: registry)
    monkeypatch.setattr(failed_tasks, "_watching", False)
    monkeypatch.setattr(sys, "exit", sys.exit)
    failed_tasks.report_failures()
    return report


PYSPARK = Path(pytest.importorskip("pyspark").__file__).parent
EXIT: dict[str, Any] = {"sys": sys}
exec(compile("def leave(): sys.exit(-1)", str(PYSPARK / "worker.py"), "exec"), EXIT)


def fail_like_pyspark(error: BaseException) -> None:
    try:
        raise error
    except BaseException:
        with pytest.raises(SystemExit):
            EXIT["leave"]()


def test_all_of_it_arrives(
    receiver: FailedTaskReceiver, received: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    a_report(monkeypatch, DriverLink(5, host="127.0.0.1", port=receiver.port, token="right"))
    monkeypatch.setattr("spark_events.task.instruments._made", {})
    task.metrics.counter("rows", shop="a").inc(3)
    opened = task.span("open")
    opened.__enter__()
    task.event("E")
    fail_like_pyspark(KeyError("k"))
    wait_until(lambda: received, "the report has arrived")
    (report,) = received
    assert report["metrics"] == [["counter", "rows", [["shop", "a"]], 3]]
    assert [event["name"] for event in report["events"]] == ["E"]
    assert report["spans"][0]["error"] == ["KeyError", "'k'"]
    assert (report["failed"]["type"], report["failed"]["message"]) == ("KeyError", "'k'")
    assert report["failed"]["function"] == "fail_like_pyspark"
    assert "locals" not in report["failed"]


def test_it_is_sent_once(
    receiver: FailedTaskReceiver, received: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not again if the worker ends later, and not if it ends without a failure."""
    a_report(monkeypatch, DriverLink(5, host="127.0.0.1", port=receiver.port, token="right"))
    with pytest.raises(SystemExit):
        sys.exit(0)
    fail_like_pyspark(ValueError("first"))
    fail_like_pyspark(ValueError("second"))
    send(receiver, b'right\n{"failed": {"last": true}}')
    wait_until(lambda: len(received) > 1, "both have arrived")
    assert [report["failed"].get("message") for report in received] == ["first", None]


def test_a_task_that_has_succeeded_sends_nothing(
    receiver: FailedTaskReceiver, received: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that waits for another task ends as if one had failed, when its executor does."""
    report = a_report(monkeypatch, DriverLink(5, host="127.0.0.1", port=receiver.port, token="right"))
    assert report._value is None  # nothing was reported
    fail_like_pyspark(EOFError())
    send(receiver, b'right\n{"failed": {"last": true}}')
    wait_until(lambda: received, "the last has arrived")
    assert received == [{"failed": {"last": True}}]


def test_one_that_is_too_long_arrives_with_fewer_values(
    receiver: FailedTaskReceiver, received: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    a_report(monkeypatch, DriverLink(5, host="127.0.0.1", port=receiver.port, token="right"))
    monkeypatch.setattr("spark_events.task.instruments._made", {})
    for number in range(20):
        histogram = task.metrics.histogram(f"h{number}")
        for value in range(5_000):
            histogram.update(value + 0.123456)
    fail_like_pyspark(ValueError("no"))
    wait_until(lambda: received, "the report has arrived")
    counts = [len(value) for _, _, _, value in received[0]["metrics"]]
    assert len(counts) == 20
    assert received[0]["dropped"] == {"values": 100_000 - sum(counts)}
    assert received[0]["failed"]["message"] == "no"


def test_one_with_too_long_events_arrives_with_fewer(
    receiver: FailedTaskReceiver, received: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was dropped before stays counted."""
    report = a_report(monkeypatch, DriverLink(5, host="127.0.0.1", port=receiver.port, token="right"))
    report.drop("values")
    for _ in range(100):
        task.event("E", "x" * 4_000, a="x" * 4_000, b="x" * 4_000)
    fail_like_pyspark(ValueError("no"))
    wait_until(lambda: received, "the report has arrived")
    events = received[0]["events"]
    assert events
    assert received[0]["dropped"] == {"values": 1, "events": 100 - len(events)}
    assert received[0]["bytes"] <= MOST_BYTES


def test_one_whose_texts_get_longer_as_json_arrives_without_events(
    receiver: FailedTaskReceiver, received: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    report = a_report(monkeypatch, DriverLink(5, host="127.0.0.1", port=receiver.port, token="right"))
    report.drop("values")
    for _ in range(100):
        task.event("E", "\x01" * 4_000, a="\x01" * 4_000)
    fail_like_pyspark(ValueError("no"))
    wait_until(lambda: received, "the report has arrived")
    assert received[0]["events"] == []
    assert received[0]["dropped"] == {"values": 1, "events": 100, "spans": 0, "series": 0}
    assert received[0]["failed"]["message"] == "no"


def test_users_code_that_exits_and_stays(
    receiver: FailedTaskReceiver, received: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its task has not failed: argparse ends so, for one."""
    report = a_report(monkeypatch, DriverLink(5, host="127.0.0.1", port=receiver.port, token="right"))
    parser = argparse.ArgumentParser()
    parser.add_argument("--shop", required=True)
    with pytest.raises(SystemExit):
        parser.parse_args(["--what"])
    try:
        raise KeyError("of the user")
    except KeyError:
        with pytest.raises(SystemExit):
            sys.exit(3)
    send(receiver, b'right\n{"failed": {"last": true}}')
    wait_until(lambda: received, "the last has arrived")
    assert received == [{"failed": {"last": True}}]
    assert not report.delivered


@pytest.mark.parametrize(
    ("file", "cut_short"),
    [
        (str(PYSPARK / "serializers.py"), True),
        ("pyarrow/error.pxi", True),
        (socket.__file__, True),
        ("/app/shop.py", False),
        ("/opt/conda/envs/pyspark/lib/python3.11/site-packages/shop/prices.py", False),
        ("/lib/python3.11/site-packages/requests/api.py", False),
    ],
)
def test_a_task_that_spark_cuts_short(
    receiver: FailedTaskReceiver,
    received: list[dict[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
    file: str,
    cut_short: bool,
) -> None:
    """After a LIMIT, PySpark cannot write on. A connection of the user's that breaks is a failure."""
    a_report(monkeypatch, DriverLink(5, host="127.0.0.1", port=receiver.port, token="right"))
    code = compile("def write(): raise BrokenPipeError(32, 'Broken pipe')", file, "exec")
    written: dict[str, Any] = {}
    exec(code, written)
    worker = compile(
        "try:\n    write()\nexcept BaseException:\n    sys.exit(-1)", str(PYSPARK / "worker.py"), "exec"
    )
    with pytest.raises(SystemExit):
        exec(worker, {"sys": sys, "write": written["write"]})
    send(receiver, b'right\n{"failed": {"last": true}}')
    wait_until(lambda: {"failed": {"last": True}} in received, "the last has arrived")
    expected = [] if cut_short else ["BrokenPipeError"]
    assert [report["failed"].get("type") for report in received[:-1]] == expected


class SlowError(Exception):
    """Has a text that never comes."""

    def __str__(self) -> str:
        threading.Event().wait()
        return "never"


def test_spans_do_not_wait_for_the_text_of_an_exception(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that it leaves, and those that are open when the task fails."""
    monkeypatch.setattr(values, "ERROR_TEXT_S", 0.05)
    late = ("SlowError", "<its str took more than 0.05 s>")
    assert values.error_of(SlowError()) == late


@pytest.mark.parametrize("shown", [False, True], ids=["an exception", "and variables"])
def test_where_no_thread_can_start(monkeypatch: pytest.MonkeyPatch, shown: bool) -> None:
    """What the user's methods say is told all the same."""

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    number = 5
    monkeypatch.setattr(threading.Thread, "start", refuse)
    try:
        raise ValueError(f"no {number}")
    except ValueError as error:
        failure = failed_tasks._failure(
            error, DriverLink(5, ("app-1", ""), local_variables=shown, masked="secret")
        )
    assert failure["message"] == "no 5"
    assert failure.get("locals", {}).get("number") == ("5" if shown else None)


def test_an_exception_whose_text_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """The task does not wait for it longer than for its variables."""

    monkeypatch.setattr(failed_tasks, "_REPR_S", 0.05)
    failure = failed_tasks._failure(SlowError(), DriverLink(5, ("app-1", "")))
    assert failure["message"] == "<its str took more than 0.05 s>"


def test_over_ipv6(received: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    if not socket.has_ipv6:
        pytest.skip("no IPv6 here")
    try:
        receiver = FailedTaskReceiver("::1", 0, "right", received.append)
    except OSError as error:
        pytest.skip(f"no IPv6 here: {error}")
    a_report(monkeypatch, DriverLink(5, host="::1", port=receiver.port, token="right"))
    fail_like_pyspark(ValueError("no"))
    wait_until(lambda: received, "the report has arrived")
    receiver.close()
    assert received[0]["failed"]["message"] == "no"


def test_a_driver_that_is_gone(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The task ends as it would have, and the executor's log says what is missing."""
    a_report(monkeypatch, DriverLink(5, host="127.0.0.1", port=free_port(), token="right"))
    fail_like_pyspark(ValueError("no"))
    assert "spark-events: WARNING: the report of a failed task did not reach the driver: Connection" in (
        capsys.readouterr().err
    )


class Odd:
    def __repr__(self) -> str:
        raise RuntimeError("no repr")


def test_local_variables(
    receiver: FailedTaskReceiver, received: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    link = DriverLink(
        5, host="127.0.0.1", port=receiver.port, token="right", local_variables=True, masked="(?i)password"
    )
    a_report(monkeypatch, link)
    monkeypatch.setattr(failed_tasks, "_REPR_S", 60)  # a busy machine takes half a second for them

    def users_code() -> None:
        row, odd, my_password, long = 7, Odd(), "hush", "x" * 1_000  # noqa: F841 - their values are sent
        counts = Counter(range(1_000))  # noqa: F841
        rows = [(number, {"deep": [[[[number]]]]}) for number in range(1_000)]  # noqa: F841
        raise ValueError("no")

    try:
        users_code()
    except ValueError:
        with pytest.raises(SystemExit):
            EXIT["leave"]()
    wait_until(lambda: received, "the report has arrived")
    shown = received[0]["failed"]["locals"]
    assert (shown["row"], shown["my_password"]) == ("7", "******")
    assert shown["odd"] == "<Odd: its repr raised RuntimeError>"
    assert len(shown["long"]) == 200
    assert shown["rows"].startswith("[(0, {'deep': [[[[0]]]]}), (1, ")
    assert len(shown["rows"]) == 200
    assert shown["counts"] == "<Counter of 1000>"
    assert "hush" not in json.dumps(received)


def test_all_causes_are_in_one_counter() -> None:
    """What the receiver has refused counts as well as what nobody fetched in time."""
    reports = SimpleNamespace()
    reports._dropped_by_cause = lambda: {"queue_full": dropped.of_queue, "malformed": 3}
    dropped = _Dropped(reports, "{report}", "")  # type: ignore[arg-type]
    dropped.inc(2)
    assert dropped.count == 5


def test_what_waits_is_bounded_in_bytes_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_reports, "_MOST_WAITING_BYTES", 1_000)
    reports = TaskReports.__new__(TaskReports)
    reports._waiting, reports._waiting_bytes, reports._closed = deque(), 0, False
    reports._lock, reports._receiver = threading.Lock(), None
    reports._dropped = _Dropped(reports, "{report}", "")
    for _ in range(2):
        for number in range(5):
            reports._take({"n": number, "bytes": 400})
        assert [record["n"] for record in reports.records()] == [0, 1]
    assert reports._dropped.of_queue == 6


@pytest.mark.parametrize("said", ["x", None, -(10**12), 1e400, [], {}, True])
def test_a_report_that_lies_about_its_size(said: Any) -> None:
    """The receiver goes on, and what waits stays bounded."""
    reports = TaskReports.__new__(TaskReports)
    reports._waiting, reports._waiting_bytes, reports._closed = deque(), 0, False
    reports._lock, reports._receiver = threading.Lock(), None
    reports._dropped = _Dropped(reports, "{report}", "")
    receiver = FailedTaskReceiver("127.0.0.1", 0, "right", reports._take)
    try:
        for _ in range(2):
            send(receiver, b'right\n{"failed": {}, "bytes": ' + json.dumps(said).encode() + b"}")
        wait_until(lambda: len(reports._waiting) == 2, "both have arrived")
    finally:
        receiver.close()
    assert reports._waiting_bytes > 0


def leave() -> None:
    """End a task as a function of the user's may."""
    sys.exit(3)


def test_a_task_that_calls_sys_exit(monkeypatch: pytest.MonkeyPatch) -> None:
    """The place is where the user's code calls it, not where ours, wherever it is installed, replaces it."""
    monkeypatch.setattr(sys, "exit", sys.exit)
    monkeypatch.setattr(failed_tasks, "_watching", False)
    failed_tasks.report_failures()
    with pytest.raises(SystemExit) as exited:
        leave()

    sent = failed_tasks._failure(exited.value, DriverLink(1))
    told = parse_failure("".join(traceback.format_exception(exited.value)))

    assert (sent["file"], sent["function"]) == (__file__, "leave")
    assert told.code == CodePlace(__file__, sent["line"], "leave")


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.10 has no groups")
@pytest.mark.parametrize("raised", [True, False], ids=["raised", "made"])
def test_a_group_of_exceptions(raised: bool) -> None:
    """Its details, such as local variables, are those of the failure that Spark tells of."""
    first: BaseException = ValueError("no rows")
    if raised:
        with pytest.raises(SystemExit) as exited:
            sys.exit(3)
        first = exited.value
    with pytest.raises(BaseExceptionGroup) as group:  # type: ignore[name-defined]  # noqa: F821
        raise BaseExceptionGroup("two failed", [first, KeyError("x")])  # type: ignore[name-defined]  # noqa: F821

    sent = failed_tasks._failure(group.value, DriverLink(1, local_variables=True, masked="-"))
    told = parse_failure("".join(traceback.format_exception(group.value)))
    tasks = FailedTasks()
    tasks.put(sent)

    assert told.code == CodePlace(__file__, sent["line"], sent["function"])
    assert tasks.details(told)["local.raised"] == str(raised)


class LenientError(ValueError):
    """Has whatever is asked for, as some clients' errors have."""

    def __getattr__(self, name: str) -> str:
        return ""


class StrictError(ValueError):
    """Looks up what is asked for in an answer that does not have it."""

    def __getattr__(self, name: str) -> str:
        return {}[name]  # type: ignore[no-any-return]


class HiddenError(ValueError):
    """Does not let anybody see its traceback."""

    @property
    def __traceback__(self) -> Any:  # type: ignore[override]
        raise RuntimeError("no")


def nested(levels: int) -> BaseException:
    error: BaseException = ValueError("x")
    for _ in range(levels):
        error = BaseExceptionGroup("group", [error])  # type: ignore[name-defined]  # noqa: F821
    return error


@pytest.mark.parametrize(
    "make",
    [
        LenientError,
        StrictError,
        HiddenError,
        pytest.param(
            lambda: nested(3_000), marks=pytest.mark.skipif(sys.version_info < (3, 11), reason="no groups")
        ),
    ],
)
def test_exceptions_of_odd_classes(
    receiver: FailedTaskReceiver,
    received: list[dict[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
    make: Callable[[], BaseException],
) -> None:
    """Whatever they do when they are looked at, the task's report arrives."""
    a_report(monkeypatch, DriverLink(5, host="127.0.0.1", port=receiver.port, token="right"))
    task.event("BadRow", "of an order")
    fail_like_pyspark(error := make())
    wait_until(lambda: received, "the report has arrived")
    assert received[0]["failed"]["type"].endswith(type(error).__name__)
    assert received[0]["failed"]["message"] == (
        "<looking at it raised RuntimeError>" if make is HiddenError else text_of(error)
    )
    assert len(received[0]["events"]) == 1


def test_a_report_is_no_other_record() -> None:
    """Whoever has the token may send what is named as Spark's end of an application."""
    reports = object.__new__(TaskReports)
    reports._lock, reports._waiting = threading.Lock(), deque([{"Event": "SparkListenerApplicationEnd"}])
    assert [record["Event"] for record in reports.records()] == [TASK_REPORT]
