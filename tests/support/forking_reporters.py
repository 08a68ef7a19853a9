"""Reporters whose calls fork, and whose children come back from them, loaded as ``module:Class``."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import ClassVar

from spark_events.api import (
    Event,
    EventReporter,
    EventReporterFactory,
    Option,
    ReporterConfig,
    RetryLater,
    SendingReporter,
    option_types,
)


def _later() -> None:
    raise RetryLater("the child is busy")


ENDS: dict[str, tuple[Callable[[], object], int]] = {
    "returns": (lambda: None, 0),
    "exits": (lambda: sys.exit(7), 7),
    "exits-with-a-word": (lambda: sys.exit("no"), 1),
    "raises": (lambda: [][0], 1),
    "is-busy": (_later, 1),
}
"""How a child comes back, and the status that its process has to end with."""
_OPTIONS = [
    Option.must(name, option_types.STRING, "when it forks, and how its child comes back")
    for name in ("call", "end")
]


class Forking(EventReporter):
    """Forks in one of its calls, once."""

    children: ClassVar[list[int]] = []

    def __init__(self, call: str, end: str) -> None:
        self._call, self._end = call, end
        self._called("init")

    def open(self) -> None:
        self._called("open")

    def notify_of_added_event(self, event: Event) -> None:
        self._called("add")

    def flush(self) -> None:
        self._called("flush")

    def close(self) -> None:
        self._called("close")

    def _called(self, call: str) -> None:
        if call != self._call or self.children:
            return
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of Python 3.12: there are other threads
            pid = os.fork()
        if pid:
            self.children.append(pid)
        else:
            ENDS[self._end][0]()


class ForkingSender(SendingReporter, Forking):
    """Does so when it sends."""

    def notify_of_added_event(self, event: Event) -> None:
        self.outbox.put(b"event")

    def send(self, records: Sequence[bytes], context: bytes) -> None:
        self._called("send")


class Factory(EventReporterFactory):
    """Makes them."""

    options = _OPTIONS

    def create(self, config: ReporterConfig) -> EventReporter:
        call, end = (config.get(option) for option in _OPTIONS)
        return (ForkingSender if call == "send" else Forking)(call, end)
