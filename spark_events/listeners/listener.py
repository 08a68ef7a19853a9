"""What hears the records of an application: the one interface of all listeners."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Protocol

Record = dict[str, Any]
"""A record as Spark's ``JsonProtocol`` writes it, or one of our own; ``spark_records`` names them."""
Handle = Callable[[Any, int], None]
"""Called with a record and its time, in ms since the epoch."""


class Phase(IntEnum):
    """When a listener hears a record, of all that hear it."""

    FIRST = 0
    """The model of the run learns of a beginning: see ``run``."""
    EARLY = 1
    """Before the others: it tells of parts of what the record is about, or the others ask it."""
    NORMAL = 2
    LATE = 3
    """After the others: it tells of what theirs are parts of, or asks them."""
    LAST = 4
    """The model of the run learns of an end."""


@dataclass(frozen=True, slots=True)
class Handler:
    """How a listener hears records of one name.

    Attributes:
        handle: called with each of them.
        phase: when, of all listeners.
    """

    handle: Handle
    phase: Phase = Phase.NORMAL


Handlers = Mapping[str, "Handle | Handler | tuple[Handler, ...]"]
"""By name of the record; a plain function is one of the phase ``NORMAL``."""


def first(handle: Handle) -> Handler:
    """Return the handler by which the model of the run learns of a beginning."""
    return Handler(handle, Phase.FIRST)


def last(handle: Handle) -> Handler:
    """Return the handler by which the model of the run learns of an end."""
    return Handler(handle, Phase.LAST)


def early(handle: Handle) -> Handler:
    """Return the handler that hears a record before the others."""
    return Handler(handle, Phase.EARLY)


def late(handle: Handle) -> Handler:
    """Return the handler that hears a record after the others."""
    return Handler(handle, Phase.LATE)


class Listener(Protocol):
    """Hears the records of one application, all on one thread.

    Handlers of one record and phase are called in the order of ``assembly``, which fixes the order of their
    events and nothing else: a handler that needs what another has done says so by its phase.
    """

    @property
    def handlers(self) -> Handlers:
        """Return its handlers; asked once, before the first record."""

    def tick(self, now_ms: int) -> None:
        """Called as time passes, once a second or so: some events are due because nothing happened."""


class Timeless:
    """The base of listeners to which it makes no difference that time passes."""

    def tick(self, now_ms: int) -> None:
        """Nothing is due."""
