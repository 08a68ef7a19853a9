"""How an application ended: what is known of its program, of its JVM and of the process that started both."""

from __future__ import annotations

import re
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from spark_events.listeners.record_fields import EXIT_CODE, TIMESTAMP
from spark_events.listeners.spark_records import (
    APPLICATION_END,
    APPLICATION_EXIT,
    EXECUTOR_REMOVED,
    EXIT_SIGNAL,
    OUTCOME_ASSUMED,
    QUERY_TERMINATED,
)

_BY_ITSELF = "Spark stopped its SparkContext by itself"
_SIGNALLED = 128
OUT_OF_MEMORY = 52
"""The exit code of a JVM of Spark's whose memory was full (``SparkExitCode.OOM``)."""
_UNCAUGHT = (50, 51)
_SHELLS_SIGNALS = {
    _SIGNALLED + number: number.name
    for number in (
        signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGILL, signal.SIGABRT, signal.SIGBUS,
        signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM, signal.SIGXCPU,
    )
}  # fmt: skip
_OF_SHUTDOWN = re.compile(
    r"SparkContext (?:was|has been) shut ?down|stopped SparkContext|Shutdown in progress|Filesystem closed"
    r"|Py4J(?:Network)?Exception: Error while (?:sending a command|obtaining a new communication channel)"
)
"""What Spark, Hadoop and, in ``foreachBatch``, Py4J throw at those that still run while the process ends."""
_OUT_OF_MEMORY_SAID = re.compile(r"java\.lang\.OutOfMemoryError: [^\n]{0,200}")


@dataclass(frozen=True, slots=True)
class Ending:
    """How an application ended.

    Attributes:
        exit_code: of its process; None if unknown.
        exit_signal: the signal that ended it, such as ``SIGTERM``; None if none did, or none is known.
        exception: what was thrown, with its stack, or a sentence that says what happened; None if it ended
            well, or a signal or an exit code says all there is to say.
        assumed: whether it may have ended differently.
    """

    exit_code: int | None = None
    exit_signal: str | None = None
    exception: str | None = None
    assumed: bool = False

    @property
    def fields(self) -> dict[str, Any]:
        """What it adds to Spark's ApplicationEnd."""
        return {
            EXIT_CODE: self.exit_code,
            EXIT_SIGNAL: self.exit_signal,
            "Exception": self.exception,
            OUTCOME_ASSUMED: self.assumed,
        }

    def record(self, time_ms: int) -> dict[str, Any]:
        """Return an ApplicationEnd of its own, for an application whose end Spark does not tell.

        Args:
            time_ms: when it ended, in ms since the epoch.
        """
        return {"Event": APPLICATION_END, TIMESTAMP: time_ms, **self.fields}


def by_signal(name: str, exception: str | None = None) -> Ending:
    """Return the ending by a signal, whose exit code is the shell's."""
    return Ending(_SIGNALLED + signal.Signals[name].value, name, exception)


def by_exit_code(code: int, exception: str | None = None) -> Ending:
    """Return the ending with an exit code: above 128, a shell's or a JVM's word for a signal."""
    return Ending(code, _SHELLS_SIGNALS.get(code), exception)


def by_status(status: int, exception: str | None = None) -> Ending:
    """Return the ending with a status of ``subprocess``: an exit code, or a signal's negative number."""
    if status >= 0:
        return by_exit_code(status, exception)
    return Ending(_SIGNALLED - status, _name_of_signal(-status), exception)


def _name_of_signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # one between the two real-time ones that have a name
        return f"SIGRTMIN+{number - signal.SIGRTMIN}"


def by_spark_itself(said: str, exit_code: int | None = None) -> Ending:
    """Return the ending of an application that Spark has stopped.

    Args:
        said: why, as Spark gives the reason, maybe with frames; empty if unknown.
        exit_code: that Spark gives.
    """
    return Ending(exit_code, exception=f"{_BY_ITSELF}: {said}" if said else _BY_ITSELF)


def of_lost_jvm(status: int | None, frames: str = "", said: str = "") -> Ending:
    """Return the ending of an application whose JVM ended while its program still ran.

    Args:
        status: of the JVM, as ``subprocess`` has it; None if unknown.
        frames: of the thread in the JVM that ended it; empty if unknown.
        said: what failed in the JVM last; it may say which memory was full.
    """
    if status is None:
        where = f", ended from within{frames}" if frames else ""
        return Ending(exception=f"the driver's JVM is gone{where}")
    ending = by_status(status)
    if status == OUT_OF_MEMORY:
        of_java = _OUT_OF_MEMORY_SAID.search(said)
        thrown = of_java.group() if of_java else "java.lang.OutOfMemoryError: the JVM's memory was full"
        return Ending(ending.exit_code, exception=f"{thrown}\n\tat the driver's JVM (exit code {status})")
    how = f"exit code {ending.exit_code}"
    if ending.exit_signal:
        how = f"signal {(ending.exit_code or 0) - _SIGNALLED}, {how}"
    elif status in _UNCAUGHT:
        how += ", after an exception that nothing in it caught"
    return Ending(
        # It may have ended with 0, but its program had not.
        ending.exit_code or None,
        ending.exit_signal,
        f"the driver's JVM is gone ({how}){frames}",
    )


class ExitMark:
    """The mark of an application's end among its records, once it is read.

    Attributes:
        record: the last mark, or the one before it if that says more; empty before there is one.
    """

    def __init__(self) -> None:
        self.record: Mapping[str, Any] = {}

    def withholds(self, record: Mapping[str, Any]) -> bool:
        """Take a record, and return whether no listener is to hear it: it is a mark, or a mere result of one.

        A query that fails after a signal fails of Spark's shutdown, with a NullPointerException, say. It
        ends with its application. After other marks its failure may be its own, which came to its end late,
        unless it says that Spark was shut down. An executor that goes while the driver's JVM ends has lived
        until the end of its application.
        """
        name = record.get("Event")
        if name == APPLICATION_EXIT:
            signal = record.get("exitSignal")
            of_same = signal is not None and signal == self.record.get("exitSignal")
            if not of_same or record.get("exception"):  # the JVM says less of a signal than Python
                self.record = record
            return True
        if name == EXECUTOR_REMOVED:
            return bool(self.record)
        thrown = str(record.get("exception") or "") if name == QUERY_TERMINATED and self.record else ""
        return bool(thrown) and (bool(self.record.get("exitSignal")) or bool(_OF_SHUTDOWN.search(thrown)))

    def complete(self, end: Mapping[str, Any]) -> dict[str, Any]:
        """Return an ApplicationEnd with what the last mark adds to it.

        Spark's own exit code is 0 whatever Python did; if it is not 0, Spark knows it better.
        """
        exit_code, signal = self.record.get("exitCode"), self.record.get("exitSignal")
        exception = self.record.get("exception")
        unknown = exit_code is None and not signal and not exception
        assumed = bool(self.record.get("assumed", unknown))
        if code := end.get(EXIT_CODE):
            of_same = not assumed and exit_code in (None, code)
            return {**end, **by_exit_code(code, exception if of_same else None).fields}
        ending = Ending(exit_code, signal or _SHELLS_SIGNALS.get(exit_code or 0), exception, assumed)
        if signal and not exit_code:
            ending = by_signal(signal, exception)
        return {**end, **ending.fields}
