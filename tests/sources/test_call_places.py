"""Where the driver's Python waits for the JVM, by threads that read as py4j and PySpark do."""

from __future__ import annotations

import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import pytest

import spark_events
from spark_events.listeners.spark_records import PYTHON_CALL
from spark_events.sources.driver import call_places
from spark_events.sources.driver.call_places import waiting_call, with_python_call
from tests.support.waiting import wait_until

_LIBRARIES = "/venv/lib/python3.11/site-packages"
Function = Callable[[Any], Any]


def function(path: str, name: str, body: str = "return call()") -> Function:
    """Return a function that stands in a file, on whose second line it calls what it is given."""
    names: dict[str, Any] = {}
    exec(compile(f"def {name}(call):\n    {body}\n", path, "exec"), names)
    found: Function = names[name]
    return found


sent = function(f"{_LIBRARIES}/py4j/clientserver.py", "send_command", "return call.readline()")
awaits_calls = function(f"{_LIBRARIES}/py4j/clientserver.py", "wait_for_commands", "return call.readline()")
rows = function(f"{_LIBRARIES}/pyspark/serializers.py", "read_int", "return call.readline()")
user = function("/jobs/app.py", "nightly")
other_user = function("/jobs/other.py", "hourly")
save = function(f"{_LIBRARIES}/pyspark/sql/readwriter.py", "save")
delta = function(f"{_LIBRARIES}/delta/tables.py", "write")
of_query = function(f"{_LIBRARIES}/pyspark/sql/streaming/query.py", "awaitTermination")
PLACE = {"file": "/jobs/app.py", "line": 2, "function": "nightly"}


@contextmanager
def waiting(*functions: Function, name: str = "a user's") -> Iterator[None]:
    """Let a thread be in these functions, each called by the one before; the last reads from a socket."""
    mine, its = socket.socketpair()
    with mine, its, its.makefile("rb") as stream:
        call: Any = stream
        for each in reversed(functions):
            call = partial(each, call)  # which has no frame of its own
        thread = threading.Thread(target=call, name=name, daemon=True)
        thread.start()

        def reads() -> bool:
            frame = sys._current_frames().get(thread.ident or 0)
            return frame is not None and frame.f_code.co_filename.endswith("socket.py")

        wait_until(reads, "it reads")
        try:
            yield
        finally:
            mine.sendall(b"\n")
            thread.join()


def test_one_thread() -> None:
    """Its innermost frame that is the user's; what PySpark and other libraries have called is not."""
    with waiting(user, delta, save, sent):
        assert waiting_call() == PLACE
    assert waiting_call() is None


@pytest.mark.parametrize("last", [sent, rows], ids=["an action", "rows of toLocalIterator"])
def test_two_threads(last: Function) -> None:
    """Either may have begun the job: no place rather than a wrong one."""
    with waiting(user, save, sent), waiting(other_user, save, last):
        assert waiting_call() is None
    with waiting(user, rows):
        assert waiting_call() == PLACE


@pytest.mark.parametrize(
    ("functions", "name"),
    [
        ((other_user, of_query, sent), "MainThread"),
        ((awaits_calls,), "py4j"),
        ((function("/venv/lib/python3.11/selectors.py", "select", "return call.readline()"),), "a server"),
        ((function(f"{spark_events.__path__[0]}/jobs/plans.py", "read"), sent), "spark-events-driver"),
    ],
    ids=["waits for a query", "waits for calls", "another server", "our own"],
)
def test_a_thread_beside_it_that_begins_no_job(functions: tuple[Function, ...], name: str) -> None:
    with waiting(*functions, name=name):
        assert waiting_call() is None
        with waiting(user, save, sent):
            assert waiting_call() == PLACE


def test_no_code_of_the_users() -> None:
    with waiting(delta, save, sent):
        assert waiting_call() is None


def test_the_record() -> None:
    """A streaming query's job is begun by no thread of Python's."""
    with waiting(user, save, sent):
        record = with_python_call({"Event": "x", "Properties": {}})
        assert {**PLACE, "atMs": record[PYTHON_CALL]["atMs"]} == record[PYTHON_CALL]
        of_stream = {"Event": "x", "Properties": {"sql.streaming.queryId": "q"}}
        assert with_python_call(of_stream) == of_stream


def test_it_never_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it looks at is Python's and PySpark's own affair."""

    def gone() -> Any:
        raise AttributeError("_current_frames")

    monkeypatch.setattr(call_places.sys, "_current_frames", gone)
    assert with_python_call({"Event": "x"}) == {"Event": "x"}


def test_deep_stacks_and_many_threads() -> None:
    """What it costs does not depend on how deep the user's code is; it gives up after 200 frames of libraries."""
    with ExitStack() as stack:
        for _ in range(5):
            stack.enter_context(waiting(awaits_calls))
        with waiting(*[user] * 150, save, sent):
            assert waiting_call() == PLACE
        with waiting(user, *[save] * 250, sent):
            assert waiting_call() is None
