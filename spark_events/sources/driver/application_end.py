"""Concludes how a live application ended, from what its program, its JVM and their parent say."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from typing import Any

from spark_events.listeners.spark_records import END_CAUSE, JOB_END
from spark_events.runtime.log_once import logger
from spark_events.sources.driver.bridge import DriverBridge
from spark_events.sources.driver.process_exit import PROCESS_EXIT
from spark_events.sources.driver.state import DriverState
from spark_events.sources.driver.witness import Witness
from spark_events.sources.ending import Ending, by_signal, of_lost_jvm
from spark_events.sources.interactive import kernel_is_shutting_down

Record = dict[str, Any]
_STOP_WAIT_S = 30.0
_EXIT_WAIT_S = 2.0
_LATE_EXIT_WAIT_S = 0.2
_EXIT_LOOK_EVERY_S = 0.02
_JVM_WAIT_S = 10.0
_LOST_JVM_WAIT_S = 5.0
_INTERRUPT_WAIT_S = 0.5
_BY_ITSELF = "Spark stopped its SparkContext by itself"


class ApplicationEnd:
    """Waits, for limited times, for what is not known yet when Spark's ApplicationEnd comes.

    Args:
        driver: whose application it is.
        bridge: in its JVM.
        witness: knows how the JVM ended; None where nothing does.
        stopping: set when this process ends.
    """

    def __init__(
        self, driver: DriverState, bridge: DriverBridge, witness: Witness | None, stopping: threading.Event
    ) -> None:
        self._driver = driver
        self._bridge = bridge
        self._witness = witness
        self._stopping = stopping
        self._said = ""

    def take(self, record: Record) -> None:
        """Called with each record: what failed last may say why Spark gives up."""
        if record.get("Event") == JOB_END:
            exception = (record.get("Job Result") or {}).get("Exception") or {}
            self._said = str(exception.get("Message") or "")

    def complete(self, record: Record) -> Record:
        """Return Spark's ApplicationEnd with how it came to that."""
        cause = record.get(END_CAUSE) or {}
        ending = self._by(str(cause.get("by") or ""), cause)
        return {**record, **ending.fields, "ExitCode": ending.exit_code or record.get("ExitCode")}

    def of_process(self, time_ms: int) -> Record:
        """Return the end of an application whose process ends without ``spark.stop()``, at a time in ms."""
        return PROCESS_EXIT.ending.record(time_ms)

    def of_lost_jvm(self, time_ms: int) -> Record:
        """Return the end of an application whose JVM is gone, at a time in ms since the epoch."""
        status = self._witness.status_of_jvm(_LOST_JVM_WAIT_S) if self._witness is not None else None
        return of_lost_jvm(status, said=self._said).record(time_ms)

    def _by(self, by: str, cause: Record) -> Ending:
        if by == "signal" and kernel_is_shutting_down():
            return Ending()
        if by == "signal":
            name = str(cause["signal"])
            if name == "SIGINT":  # it may have reached Python as well, which is about to say so
                PROCESS_EXIT.known.wait(_INTERRUPT_WAIT_S)
            return by_signal(name, PROCESS_EXIT.raised)
        if by == "exit":
            self._release_jvm()
            status = self._witness.status_of_jvm(_JVM_WAIT_S) if self._witness is not None else None
            return of_lost_jvm(status, str(cause.get("frames") or ""), self._said)
        if by == "spark":
            why = f"{_BY_ITSELF}: {self._said}" if self._said else _BY_ITSELF
            return Ending(exception=f"{why}{cause.get('frames') or ''}")
        return self._by_program()

    def _release_jvm(self) -> None:
        """Tell the JVM that its shutdown need not wait for us, who wait for it."""
        try:
            self._bridge.finish()
        except Exception as error:  # py4j's: it may be gone already, or have no memory left
            logger.debug("could not tell the bridge not to wait: %r", error)

    def _by_program(self) -> Ending:
        """Return how the program ended that stopped Spark; a ``finally`` may hide an exception."""
        is_raising = PROCESS_EXIT.main_thread_is_raising()
        if PROCESS_EXIT.raising_at_stop is False:
            return Ending()
        if is_raising or self._driver.stopped:
            self._await_exit(_EXIT_WAIT_S if is_raising else _LATE_EXIT_WAIT_S)
        ending = PROCESS_EXIT.ending
        return ending if is_raising or ending.exception else replace(ending, exit_code=None, exit_signal=None)

    def _await_exit(self, wait_s: float) -> None:
        """Wait until it is known how the process ends, or it goes on after Spark has stopped.

        Args:
            wait_s: how long to wait once Spark has stopped, in seconds: a program that caught the exception
                may go on for days; and if this thread was late, there may have been no exception.
        """
        until = time.monotonic() + _STOP_WAIT_S
        while not PROCESS_EXIT.known.wait(_EXIT_LOOK_EVERY_S) and not self._stopping.is_set():
            now = time.monotonic()
            if self._driver.stopped:
                until = min(until, now + wait_s)
            if now > until:
                return
