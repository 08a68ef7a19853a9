"""Reads event logs in tests, and keeps what comes out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from spark_events.api import ApplicationInfo, Event
from spark_events.listeners.settings import ListenerSettings
from spark_events.listeners.spark_listeners import SparkListeners
from spark_events.runtime.registry import Registry
from spark_events.sources.assembly import Assembly, StartUp, assemble, for_event_logs
from spark_events.sources.configuration import read_configuration
from spark_events.sources.event_log.logged_application import LoggedApplication
from spark_events.sources.event_log.reading.files import EventLog, LogFiles
from spark_events.sources.event_log.replay import LogReplay, Tap
from spark_events.sources.event_log.summary import ReplayedLog


@dataclass
class Read:
    """What came of one log."""

    log: ReplayedLog
    events: list[Event] = field(default_factory=list)

    @property
    def ids(self) -> list[str]:
        return [event.id for event in self.events]


def read(path: Path | str, conf: Mapping[str, str] | None = None) -> Read:
    """Read the one log at a path."""
    files = LogFiles(str(path))
    (log,) = files.find()
    return read_one(files, log, conf)


def read_one(files: LogFiles, log: EventLog, conf: Mapping[str, str] | None = None) -> Read:
    """Read a log that was found."""

    def start(application: ApplicationInfo, tap: Tap, own: Mapping[str, str]) -> SparkListeners:
        if conf is None:
            return SparkListeners(Registry((), tap=tap), ListenerSettings(), [])
        configuration = for_event_logs(read_configuration({**own, **conf}, application))
        return SparkListeners(Registry((), tap=tap), configuration.settings, configuration.enrichers)

    events: list[Event] = []
    reading = LogReplay(files, log, start, events.append)
    for _ in reading.run():
        pass
    return Read(reading.result, events)


def report_whole(log: Path, conf: Mapping[str, str], wait_ms: int) -> None:
    """Give a log to the reporters of a configuration, as a replay does, but for metrics, too.

    Args:
        log: its only application is reported.
        conf: Spark's.
        wait_ms: how long reporters may take to open and to close, in ms.
    """
    assembled: list[Assembly] = []

    def make(application: ApplicationInfo, own: Mapping[str, str]) -> SparkListeners:
        wanted = {**own, **conf}
        configuration = read_configuration(wanted, application)
        assembled.append(assemble(wanted, application, configuration, StartUp(open_within_ms=wait_ms)))
        return assembled[0].listeners

    files = LogFiles(str(log))
    (only,) = files.find()
    logged = LoggedApplication(files, only, make)
    for _ in logged.read(only, final=True):
        pass
    logged.close()
    assembled[0].registry.close(wait_ms)


def read_bytes(data: bytes, folder: Path, name: str = "app-1") -> Read:
    """Read a log of these bytes."""
    (folder / name).write_bytes(data)
    return read(folder / name)
