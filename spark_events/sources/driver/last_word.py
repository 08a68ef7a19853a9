"""Tells the end of an application whose own Python no longer can; run by the JVM, or its parent."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import Any

import orjson

from spark_events.api import ConfigError
from spark_events.api.event import now_ms
from spark_events.listeners.application import application_of
from spark_events.listeners.configuration import read_configuration
from spark_events.listeners.spark_records import APPLICATION_END, APPLICATION_START, END_CAUSE
from spark_events.runtime.log_once import logger
from spark_events.sources.assembly import StartUp, assemble, for_event_logs
from spark_events.sources.ending import Ending, by_exit_code, by_signal
from spark_events.sources.record_json import load

Record = dict[str, Any]
_OPEN_WAIT_MS = 10_000


def main() -> None:
    """Read from stdin what the driver's JVM knows, and tell the end.

    The first line is the testament, the second what Python left as its last word, the third has counters,
    and the others are records that Python did not fetch any more, each after its time.
    """
    lines = sys.stdin.buffer.read().split(b"\n")
    testament, words = lines[0], lines[1].decode(errors="replace")
    records = [load(line.partition(b" ")[2].decode()) for line in lines[3:] if line]
    ends = [record for record in records if record.get("Event") == APPLICATION_END]
    cause = ends[-1].get(END_CAUSE) or {} if ends else {}
    time_ms = int(ends[-1]["Timestamp"]) if ends else now_ms()
    others = [record for record in records if record.get("Event") != APPLICATION_END]
    tell(orjson.loads(testament), others, ending_of(words, cause), time_ms)


def ending_of(words: str, cause: Mapping[str, Any]) -> Ending:
    """Return how an application ended whose Python is gone.

    Args:
        words: what Python left: ``exit`` and a code, a stack where a signal found it, or nothing.
        cause: why the JVM ended, by itself.
    """
    if words.startswith("exit "):
        return by_exit_code(int(words.removeprefix("exit ").strip("\0 ")))
    if words:
        return by_signal("SIGTERM")
    if cause.get("by") == "signal":
        return by_signal(str(cause["signal"]))
    return Ending(
        exception="the driver's Python ended without a word: it was killed (SIGKILL), or crashed",
        assumed=True,
    )


def tell(testament: Mapping[str, Any], records: Iterable[Record], ending: Ending, time_ms: int) -> None:
    """Report an end to the reporters of events and spans that an application has configured.

    Args:
        testament: what the application's own process left.
        records: those that it did not handle any more.
        ending: how it ended.
        time_ms: when, in ms since the epoch.
    """
    known: list[Record] = testament["records"]
    starts = [record for record in known if record.get("Event") == APPLICATION_START]
    if not starts:
        return
    conf, application = testament["conf"], application_of(starts[0])
    configuration = for_event_logs(read_configuration(conf, application))
    if not configuration.setups:
        return
    try:
        assembly = assemble(conf, application, configuration, StartUp(open_within_ms=_OPEN_WAIT_MS))
    except ConfigError as error:
        logger.error("the end of the application cannot be told: %s", error)
        return
    registry, listeners = assembly.registry, assembly.listeners
    registry.muted = True  # the application has told all of this itself
    for record in known:
        listeners.on_record(record)
    registry.muted = False
    for record in records:
        listeners.on_record(record)
    listeners.on_record(ending.record(time_ms))
    listeners.close()
    registry.close(int(testament["close_timeout_ms"]))


if __name__ == "__main__":
    main()
