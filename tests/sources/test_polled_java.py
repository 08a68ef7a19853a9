"""What is polled of Spark's JVM, on one that is not built as those that are known."""

from __future__ import annotations

from typing import Any

import pytest

from spark_events.runtime.log_once import OnceLog
from spark_events.sources.driver.polled_java import PolledJava


class OtherJvm:
    """A JVM without Janino, say: whatever is asked of it raises."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def __getattr__(self, name: str) -> Any:
        raise self._error


class Context:
    def __init__(self, error: Exception) -> None:
        self._gateway = None
        self._jsc: object = self
        self._jvm = OtherJvm(error)


@pytest.mark.parametrize(
    "error", [TypeError("'JavaPackage' object is not callable"), FileNotFoundError("ListenerQueues.java")]
)
def test_what_cannot_be_read_there_ends_nothing_else(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    """The application is followed all the same; it is said once, and never tried again."""
    polled = PolledJava(Context(error), "ListenerQueues", 0.0, "its queues", "no figures", OnceLog())
    assert list(polled.records()) == []
    assert list(polled.records()) == []
    assert [record.getMessage().partition(": ")[0] for record in caplog.records] == ["no figures"]


def test_where_spark_has_stopped_nothing_is_asked(caplog: pytest.LogCaptureFixture) -> None:
    """Its end is waited for, for a moment; nothing is wrong with it."""
    context = Context(TypeError("it has stopped"))
    context._jsc = None
    assert list(PolledJava(context, "ListenerQueues", 0.0, "", "", OnceLog()).records()) == []
    assert not caplog.records


def test_a_jvm_that_is_gone_is_no_such_thing() -> None:
    """Who follows the application has to know."""
    from py4j.protocol import Py4JNetworkError

    polled = PolledJava(Context(Py4JNetworkError("gone")), "ListenerQueues", 0.0, "", "", OnceLog())
    with pytest.raises(Py4JNetworkError):
        polled.records()
