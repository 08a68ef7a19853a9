"""The factories of the file log."""

from __future__ import annotations

from spark_events.api import (
    EventReporterFactory,
    JobListenerContext,
    JobStatusChangedListenerFactory,
    Option,
    ReporterConfig,
    ReporterFactory,
    SpanReporterFactory,
    probe_folder,
)
from spark_events.api import option_types as types
from spark_events_file_log.files import RotatedFile, Rotation
from spark_events_file_log.reporter import FileLogEventReporter, FileLogJobListener, FileLogSpanReporter

PATH = Option.must("path", types.LOCAL_PATH, "folder of the files, such as file:///folder or /folder")
SIZE = Option("rotate.max-bytes", types.at_least(1024, types.SIZE), 64 << 20, "size at which a file is full")
AGE = Option.optional(
    "rotate.interval",
    types.at_least(1000, types.DURATION),
    "how long to write to one file; no limit by default",
)
KEEP = Option(
    "retention.max-files",
    types.at_least(1, types.INT),
    20,
    "how many files to keep for each application name",
)
FSYNC = Option(
    "fsync",
    types.FSYNC,
    "interval",
    "when to sync to disk, in case the machine crashes: never, interval (every second) or always",
)


class _FileLogFactory(ReporterFactory):
    """Reads the options that all file logs have."""

    shares_threads = True
    options = (PATH, SIZE, AGE, KEEP, FSYNC)

    def probe(self, config: ReporterConfig) -> str:
        """Return whether the folder can be written."""
        return probe_folder(config.get(PATH))

    def _arguments(self, config: ReporterConfig, kind: str) -> tuple[RotatedFile, str, str]:
        rotation = Rotation(config.get(SIZE), config.get(AGE), config.get(KEEP))
        file = RotatedFile(config.get(PATH), config.application, kind, rotation)
        return file, config.key(PATH.name), config.get(FSYNC)


class FileLogEventReporterFactory(_FileLogFactory, EventReporterFactory):
    """Creates the file log of events."""

    keeps_history = True

    def create(self, config: ReporterConfig) -> FileLogEventReporter:
        """Create the reporter; the folder is made by ``open``."""
        return FileLogEventReporter(*self._arguments(config, "events"))


class FileLogSpanReporterFactory(_FileLogFactory, SpanReporterFactory):
    """Creates the file log of spans."""

    def create(self, config: ReporterConfig) -> FileLogSpanReporter:
        """Create the reporter; the folder is made by ``open``."""
        return FileLogSpanReporter(*self._arguments(config, "spans"))


class FileLogJobListenerFactory(_FileLogFactory, JobStatusChangedListenerFactory):
    """Creates the file log of jobs and their lineage."""

    def create_listener(self, context: JobListenerContext) -> FileLogJobListener:
        """Create the listener; the folder is made by ``open``."""
        return FileLogJobListener(*self._arguments(context.config, "lineage"))
