"""Tells the end of an application whose own Python no longer can; run by the JVM, or its parent."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, cast

import orjson

from spark_events.api import ApplicationInfo, ConfigError
from spark_events.api.event import now_ms
from spark_events.listeners.application.application import INTERACTIVE_METRIC, application_of
from spark_events.listeners.application.job_status import STATUS_METRIC
from spark_events.listeners.record_fields import EXIT_CODE, TIMESTAMP
from spark_events.listeners.record_types import ApplicationStartRecord
from spark_events.listeners.spark_records import APPLICATION_END, APPLICATION_START, END_CAUSE
from spark_events.runtime.filters import NamesAlone
from spark_events.runtime.log_once import logger
from spark_events.runtime.plugins import METRICS
from spark_events.sources.assembly import Assembly, StartUp, assemble, for_event_logs
from spark_events.sources.attaching import driver_log
from spark_events.sources.configuration import read_configuration
from spark_events.sources.driver.ending.application_end import EndFacts, JvmCause, conclude
from spark_events.sources.ending import Ending, by_exit_code, by_signal, by_spark_itself, by_status
from spark_events.sources.record_json import load

Record = dict[str, Any]
_OPEN_WAIT_MS = 10_000
_UNHANDLED = 1
"""The exit code of a Python that raises."""
HEAD_CONF, HEAD_TIMEOUT = "conf", "close_timeout_ms"
"""What the head of a testament has."""


def main() -> None:
    """Read from stdin what the driver's JVM knows, and tell the end.

    The first line is what Python left as its last word, the next are of the testament, its head first.
    After an empty line come the records that Python did not handle any more, each after its time.
    """
    driver_log.install()
    words, _, text = sys.stdin.buffer.read().partition(b"\n")
    head, _, known = text.partition(b"\n")
    rest = Rest.read(known)
    ending = ending_of(words.decode(errors="replace"), rest.end)
    tell(orjson.loads(head), rest.known, rest.records, ending, rest.time_ms)


@dataclass(frozen=True)
class Rest:
    """What the driver's JVM left when it ended.

    Attributes:
        known: records that tell what ran, which the application has handled.
        records: those that it did not handle any more, without the end of the application.
        end: Spark's ApplicationEnd; empty if there was none.
    """

    known: list[Record]
    records: list[Record]
    end: Record

    @classmethod
    def read(cls, text: bytes) -> Rest:
        """Read lines of known records, an empty line, and lines of others, each after its time."""
        known, _, others = text.partition(b"\n\n")
        records = _records(line.partition(b" ")[2] for line in others.split(b"\n"))
        ends = [record for record in records if record.get("Event") == APPLICATION_END]
        return cls(
            _records(known.split(b"\n")),
            [record for record in records if record.get("Event") != APPLICATION_END],
            ends[-1] if ends else {},
        )

    @property
    def time_ms(self) -> int:
        """When the application ended, in ms since the epoch."""
        return int(self.end.get(TIMESTAMP) or now_ms())


def _records(lines: Iterable[bytes]) -> list[Record]:
    """Return the records of lines, without those that cannot be read: a killed JVM leaves half a one."""
    records = []
    for line in filter(None, lines):
        with suppress(ValueError):
            records.append(load(line.decode()))
    return records


def ending_of(words: str, end: Mapping[str, Any]) -> Ending:
    """Return how an application ended whose Python is gone.

    Args:
        words: what Python left: ``exit`` and a code, a stack where a signal found it, or nothing.
        end: Spark's ApplicationEnd, with why the JVM ended; empty if there was none.
    """
    cause = end.get(END_CAUSE) or {}
    if exit_code := re.match(r"exit (-?\d+)", words):
        return by_exit_code(int(exit_code.group(1)))
    if words and not words.startswith("exit "):
        return by_signal("SIGTERM")
    if cause.get("by") == "signal":
        return by_signal(str(cause["signal"]))
    if cause.get("by") == "spark":
        return by_spark_itself(str(cause.get("said") or ""), cause.get("exitCode"))
    if code := end.get(EXIT_CODE) or cause.get("exitCode"):  # of Python: Kubernetes' spark-submit, or YARN's
        return by_exit_code(int(code))
    if cause.get("by") == "program":  # Spark was stopped in good order; another program may run by now
        return Ending(assumed=True)
    return Ending(
        exception="the driver's Python ended without a word: by a signal (SIGKILL, say), os._exit, exec or a "
        "crash",
        assumed=True,
    )


def ending_by_status(status: int, end: Mapping[str, Any], raised: str | None = None) -> Ending:
    """Return how an application ended whose process did, and whose Python has not told its end.

    Args:
        status: of the process, as ``subprocess`` has it.
        end: Spark's ApplicationEnd, with why the JVM ended; empty if there was none.
        raised: the exception that nobody handled, as Python prints it; None if there was none.
    """
    cause = end.get(END_CAUSE) or {}
    if cause.get("by") == "exit" and cause.get("said"):  # Spark has ended its JVM, and logged why
        exited = JvmCause(by="exit", frames=str(cause.get("frames") or ""), said=str(cause["said"]))
        return conclude(exited, EndFacts(jvm_status=status))
    # Of a JVM that was killed, Python raises that it is gone.
    return by_status(status, raised if status == _UNHANDLED else None)


def tell(
    head: Mapping[str, Any], known: list[Record], records: Iterable[Record], ending: Ending, time_ms: int
) -> None:
    """Report an end to the reporters that an application has configured.

    To those of metrics, the last statuses alone, and whether it was a notebook, of which alerts ask: all else
    would begin again from 0.

    Args:
        head: of the testament that the application's own process left.
        known: records that tell what runs, which that process has handled.
        records: those that it did not handle any more.
        ending: how it ended.
        time_ms: when, in ms since the epoch.
    """
    records = list(records)
    starts = [record for record in (*known, *records) if record.get("Event") == APPLICATION_START]
    if not starts:
        return
    conf, application = head[HEAD_CONF], application_of(cast(ApplicationStartRecord, starts[0]))
    try:
        assembly = _assembled(conf, application)
    except ConfigError as error:
        logger.error("the end of the application cannot be reported: %s", error)
        return
    if assembly is None:
        return
    registry, listeners = assembly.registry, assembly.listeners
    registry.muted = True  # the application has told all of this itself
    for record in known:
        listeners.on_record(record)
    listeners.tick(time_ms)  # so has it what was overdue, of which more was known to it
    registry.muted = False
    for record in records:
        listeners.on_record(record)
    listeners.on_record(ending.record(time_ms))
    listeners.close()
    registry.close(int(head[HEAD_TIMEOUT]))


def _assembled(conf: Mapping[str, str], application: ApplicationInfo) -> Assembly | None:
    """Return the reporters and listeners of an end; None if there are no reporters.

    Raises:
        ConfigError: one of events or of spans cannot be opened.
    """
    start_up = StartUp(open_within_ms=_OPEN_WAIT_MS)
    whole = read_configuration(conf, application)
    configuration = for_event_logs(whole)
    metrics = [
        replace(
            setup,
            config=replace(setup.config, tells_end=True),
            filter=NamesAlone((STATUS_METRIC, INTERACTIVE_METRIC), setup.filter),
        )
        for setup in whole.setups
        if setup.kind is METRICS
    ]
    if metrics:
        try:
            with_metrics = replace(configuration, setups=[*configuration.setups, *metrics])
            return assemble(conf, application, with_metrics, start_up)
        except ConfigError as error:  # events can be told all the same
            logger.warning("the end of the application is told without metrics: %s", error)
    return assemble(conf, application, configuration, start_up) if configuration.setups else None


if __name__ == "__main__":
    main()
