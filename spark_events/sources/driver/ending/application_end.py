"""The end of a live application as a state machine, and the conclusion of how it ended; both are pure.

Neither waits, looks at a clock or asks anybody: ``DriverSource`` and ``EndInquiry`` do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

from spark_events.sources.ending import Ending, by_signal, by_spark_itself, of_lost_jvm

_OUT_OF_MEMORY = "java.lang.OutOfMemoryError"

Record = dict[str, Any]


class EndState(Enum):
    """How far the end of an application has come.

    ::

        RUNS ── Spark's ApplicationEnd ──► HELD ── plans read, late, JVM gone ──► TOLD
          └──── JVM gone, process ends, or nothing waits for plans ────────────────┘
    """

    RUNS = "runs"
    HELD = "held"
    """Spark's ApplicationEnd has come, and waits for the plans of the last statements."""
    TOLD = "told"


class ApplicationEnd:
    """Decides when the listeners hear of the end, and of which.

    Each method returns the ApplicationEnd that they hear now; None if they hear none.

    Args:
        plans_wait_s: how long Spark's ApplicationEnd may wait for plans, in s; None if nobody reads any.

    Attributes:
        state: how far it has come.
    """

    def __init__(self, plans_wait_s: float | None) -> None:
        self._plans_wait_s = plans_wait_s
        self._held: Record = {}
        self._held_until_s = 0.0
        self.state = EndState.RUNS

    def by_spark(self, end: Record, by_signal: bool, now_s: float) -> Record | None:
        """Called with Spark's ApplicationEnd: it waits for plans, unless a signal leaves no time for that."""
        if self._plans_wait_s is None or by_signal:
            return self._tell(end)
        self.state, self._held, self._held_until_s = EndState.HELD, end, now_s + self._plans_wait_s
        return None

    def is_late(self, now_s: float) -> bool:
        """Return whether the plans have not come in time."""
        return self.state is EndState.HELD and now_s > self._held_until_s

    def release(self) -> Record | None:
        """Called when nothing is left to wait for, even before Spark's own end has come."""
        self._plans_wait_s = None
        return self._tell(self._held) if self.state is EndState.HELD else None

    def by_process(self, end: Callable[[], Record]) -> Record | None:
        """Called when the process ends and all is read: this end replaces one that is held."""
        return None if self.state is EndState.TOLD else self._tell(end())

    def by_lost_jvm(self, end: Callable[[], Record]) -> Record | None:
        """Called when the JVM is gone: what Spark said before that is the better word."""
        return self.release() or self.by_process(end)

    def _tell(self, end: Record) -> Record:
        self.state, self._held = EndState.TOLD, {}
        return end


@dataclass(frozen=True, slots=True)
class JvmCause:
    """Who ended the application, as the JVM sees it; see ``EndCause.java``.

    Attributes:
        by: ``signal``, ``exit`` for the JVM's own, ``spark``, or anything else for the program.
        signal: the signal's name.
        frames: of the thread in the JVM that ended it.
        said: what Spark has logged of the cluster just before it stopped, or ended the JVM, by itself.
    """

    by: str = ""
    signal: str = ""
    frames: str = ""
    said: str = ""


class Question(Enum):
    """What may become known soon, and says how the application ended."""

    NOTHING = "nothing"
    INTERRUPT = "interrupt"
    """Whether the signal has reached Python as well."""
    OUT_OF_MEMORY = "out of memory"
    """Whether the program raises that, where Spark has stopped itself and does not say why."""
    JVM_STATUS = "jvm status"
    PROGRAM = "program"
    """How the program ends that has stopped Spark: it may raise just then, or return an exit code at once."""


@dataclass(frozen=True, slots=True)
class EndFacts:
    """What is known of an end.

    Attributes:
        is_kernel: whether this process is a kernel of Jupyter that is asked to end.
        of_program: how the program ended, as far as it is known.
        raised: the exception that nobody handled, as Python prints it; None for none.
        jvm_status: of the JVM, as ``subprocess`` has it; None if unknown.
        said: what failed in the JVM last.
    """

    is_kernel: bool = False
    of_program: Ending = field(default_factory=Ending)
    raised: str | None = None
    jvm_status: int | None = None
    said: str = ""


def question(cause: JvmCause, facts: EndFacts) -> Question:
    """Return what to wait for, for a limited time, before there is a conclusion."""
    if cause.by == "signal":  # Python may be about to say so
        return Question.INTERRUPT if cause.signal == "SIGINT" and not facts.is_kernel else Question.NOTHING
    if cause.by == "exit":
        return Question.JVM_STATUS
    if cause.by == "spark":
        return Question.NOTHING if cause.said or facts.said else Question.OUT_OF_MEMORY
    return Question.PROGRAM


def conclude(cause: JvmCause, facts: EndFacts) -> Ending:
    """Return how the application ended."""
    if cause.by == "signal":
        return Ending() if facts.is_kernel else by_signal(cause.signal, facts.raised)
    if cause.by == "exit":
        ending = of_lost_jvm(facts.jvm_status, cause.frames, facts.said)
        why = f"the driver's JVM is gone: {cause.said}{cause.frames}"
        return replace(ending, exception=why) if cause.said else ending
    if cause.by == "spark":
        if not (cause.said or facts.said) and _OUT_OF_MEMORY in (facts.of_program.exception or ""):
            return facts.of_program
        ending = by_spark_itself(cause.said or facts.said)
        return replace(ending, exception=f"{ending.exception}{cause.frames}")
    return facts.of_program
