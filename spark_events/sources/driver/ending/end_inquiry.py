"""Finds out how a live application ended: asks its program, its JVM and their parent, for limited times."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from typing import Any

from spark_events.listeners.record_fields import EXIT_CODE
from spark_events.listeners.spark_records import END_CAUSE, JOB_END, SPARK_RUNS_ON
from spark_events.runtime.log_once import logger
from spark_events.sources.driver.bridge import DriverBridge
from spark_events.sources.driver.ending.application_end import (
    EndFacts,
    JvmCause,
    Question,
    conclude,
    question,
)
from spark_events.sources.driver.ending.process_exit import PROCESS_EXIT, ending_by
from spark_events.sources.driver.ending.witness import Witness
from spark_events.sources.driver.state import DriverState
from spark_events.sources.ending import Ending, by_signal, of_lost_jvm
from spark_events.sources.interactive import kernel_is_shutting_down

Record = dict[str, Any]
_STOP_WAIT_S = 30.0
_RAISING_WAIT_S = 2.0
"""How long a program that raised when it stopped Spark has until its process ends of that."""
_EXIT_WAIT_S = 1.0
"""How long any other has: ``sys.exit(main())``, where ``main`` stops Spark and returns an exit code."""
_EXIT_LOOK_EVERY_S = 0.02
_JVM_WAIT_S = 5.0
"""How long at least a JVM that ends itself has, from whose status the exit code comes."""
_JVM_LONGER_WAIT_S = 5.0
"""How long it has beyond that while Python runs on: a process that ends does not wait so long for us."""
_LOST_JVM_WAIT_S = 5.0
_INTERRUPT_WAIT_S = 0.5


class EndInquiry:
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
        given = record.get(END_CAUSE) or {}
        cause = JvmCause(*(str(given.get(name) or "") for name in ("by", "signal", "frames", "said")))
        ending = conclude(cause, self._answered(cause))
        return {**record, **ending.fields, EXIT_CODE: ending.exit_code or record.get(EXIT_CODE)}

    def of_process(self, time_ms: int, raised: BaseException | None = None) -> Record:
        """Return the end of an application that is left, or whose process ends without ``spark.stop()``.

        Args:
            time_ms: when, in ms since the epoch.
            raised: what the program raised when it closed the attachment; None for nothing.
        """
        ending = PROCESS_EXIT.ending if raised is None else ending_by(raised)
        if isinstance(raised, KeyboardInterrupt):
            ending = by_signal("SIGINT")
        return {**ending.record(time_ms), SPARK_RUNS_ON: True}

    def of_lost_jvm(self, time_ms: int) -> Record:
        """Return the end of an application whose JVM is gone, at a time in ms since the epoch."""
        by_master = self._witness.end_by_master(_LOST_JVM_WAIT_S) if self._witness is not None else None
        if by_master is not None:
            return by_master.record(time_ms)
        return of_lost_jvm(self._status_of_jvm(_LOST_JVM_WAIT_S), said=self._said).record(time_ms)

    def _answered(self, cause: JvmCause) -> EndFacts:
        """Return what is known once what may become known has been waited for."""
        at_first = EndFacts(is_kernel=kernel_is_shutting_down(), said=self._said)
        jvm_status = None
        open_question = question(cause, at_first)
        if open_question is Question.INTERRUPT:
            PROCESS_EXIT.known.wait(_INTERRUPT_WAIT_S)
        elif open_question is Question.OUT_OF_MEMORY:
            PROCESS_EXIT.known.wait(_EXIT_WAIT_S)
        elif open_question is Question.JVM_STATUS:
            self._release_jvm()
            jvm_status = self._status_of_jvm(_JVM_WAIT_S)
            if jvm_status is None and not self._stopping.is_set():
                jvm_status = self._status_of_jvm(_JVM_LONGER_WAIT_S)
        elif open_question is Question.PROGRAM:
            self._await_program()
        # What comes after the start of another SparkContext is the end of that one.
        of_program = Ending() if self._driver.has_successor else PROCESS_EXIT.ending
        return replace(at_first, of_program=of_program, raised=PROCESS_EXIT.raised, jvm_status=jvm_status)

    def _status_of_jvm(self, wait_s: float) -> int | None:
        return self._witness.status_of_jvm(wait_s) if self._witness is not None else None

    def _release_jvm(self) -> None:
        """Tell the JVM that its shutdown need not wait for us, who wait for it."""
        try:
            self._bridge.finish()
        except Exception as error:  # py4j's: it may be gone already, or have no memory left
            logger.debug("could not tell the bridge not to wait: %r", error)

    def _await_program(self) -> None:
        """Wait until it is known how the process ends, or it goes on after Spark has stopped.

        A program that caught its exception may go on for days, and so may one that has merely stopped Spark.
        """
        is_raising = PROCESS_EXIT.main_thread_is_raising()
        if not is_raising and PROCESS_EXIT.raising_at_stop is None and not self._driver.stopped:
            return  # it is not Python that stops Spark
        wait_s = _RAISING_WAIT_S if is_raising else _EXIT_WAIT_S
        until = time.monotonic() + _STOP_WAIT_S
        while not PROCESS_EXIT.known.wait(_EXIT_LOOK_EVERY_S) and not self._stopping.is_set():
            now = time.monotonic()
            if self._driver.stopped:
                until = min(until, now + wait_s)
            if now > until or self._driver.has_successor:
                return
