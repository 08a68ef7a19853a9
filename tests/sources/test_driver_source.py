"""The thread that follows a live driver: what goes wrong for a while ends nothing."""

from __future__ import annotations

import logging
import threading
from typing import Any

import pytest

from spark_events.sources.driver.source import DriverSource


class _Source(DriverSource):
    """Follows nothing, but raises what it is given, one after the other."""

    def __init__(self, *raised: Exception) -> None:
        self._raised = [*raised]
        self._stopping = threading.Event()
        self._was_short = False

    def _follow(self) -> None:
        if self._raised:
            raise self._raised.pop(0)


def java_error() -> Exception:
    """Return what py4j raises for, say, a full heap: a JVM that is gone raises nothing."""
    protocol = pytest.importorskip("py4j.protocol")

    class Raised:
        _target_id = "o1"
        _gateway_client: Any = None

    return protocol.Py4JJavaError("An error occurred while calling o66.drain.\n", Raised())  # type: ignore[no-any-return]


def test_a_jvm_that_raises_is_not_gone(caplog: pytest.LogCaptureFixture) -> None:
    source = _Source(java_error(), java_error())
    with caplog.at_level(logging.WARNING):
        tries = [source._follows_or_is_short() for _ in range(3)]

    assert tries == [False, False, True]
    assert caplog.text.count("try again each second") == 1


def test_at_the_end_there_is_one_more_try() -> None:
    source = _Source(java_error(), java_error())
    source._stopping.set()

    assert source._follows_or_is_short() is False
    with pytest.raises(type(java_error())):
        source._follows_or_is_short()
