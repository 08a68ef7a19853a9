"""The first configuration of a newcomer: where to report to, as lines of a spark-defaults.conf."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from spark_events.api.errors import UsageError
from spark_events.spark.conf import read_properties

FILES, PROMETHEUS, OTLP = "files", "prometheus", "otlp"
DESTINATIONS = (FILES, PROMETHEUS, OTLP)
FILES_PATH = "spark.events.reporter.file.path"
_HEAD = (
    "# spark-events: `spark-events check` finds mistakes in these lines; in the folder that\n"
    "# `spark-events paths conf` prints, spark-defaults.conf has every key."
)


@dataclass(frozen=True, slots=True)
class FirstLines:
    """What is to be configured.

    Attributes:
        destinations: some of ``DESTINATIONS``.
        folder: of the event files.
        sla: how long a query may go without committing; empty for no limit.
        port: of Prometheus' metrics, or a range of them; empty for the reporter's default.
        endpoint: of a collector; empty for the one on this machine.
        path: of the event files, as it is configured already; empty for ``folder``.
    """

    destinations: Sequence[str]
    folder: Path
    sla: str = ""
    port: str = ""
    endpoint: str = ""
    path: str = ""

    def settings(self) -> dict[str, str]:
        """Return the keys and their values."""
        settings = {}
        if FILES in self.destinations:
            settings["spark.events.reporter.file.factory.class"] = "file_log"
            settings[FILES_PATH] = self.path or self.folder.absolute().as_uri()
        if PROMETHEUS in self.destinations:
            settings["spark.metrics.reporter.prom.factory.class"] = "prometheus"
            if self.port:
                settings["spark.metrics.reporter.prom.port"] = self.port
        if OTLP in self.destinations:
            for signal in ("events", "metrics", "traces"):
                reporter = f"spark.{signal}.reporter.otel"
                settings[f"{reporter}.factory.class"] = "otlp"
                if self.endpoint:
                    settings[f"{reporter}.exporter.endpoint"] = self.endpoint
        if self.sla:
            settings["spark.events.checkpoint.sla"] = self.sla
        return settings


def default_file() -> Path:
    """Return the file that spark-submit reads, or ``conf/spark-defaults.conf`` here if it is nowhere."""
    folder = os.environ.get("SPARK_CONF_DIR")
    home = os.environ.get("SPARK_HOME")
    inside = Path(folder) if folder else Path(home) / "conf" if home else Path("conf")
    return inside / "spark-defaults.conf"


def hint_at_unread_file() -> str:
    """Return what to do for Spark to read the file that ``init`` writes here; empty if there is none."""
    here = Path("conf/spark-defaults.conf")
    if not here.is_file():
        return ""
    return f"./{here} exists; to use it: export SPARK_CONF_DIR={here.parent.absolute()}"


def is_found(file: Path) -> bool:
    """Return whether spark-submit reads a file without being told of it."""
    return bool(os.environ.get("SPARK_CONF_DIR") or os.environ.get("SPARK_HOME")) and file == default_file()


def text_of(settings: Mapping[str, str], before: str = "") -> str:
    """Return the text of a file with some settings, after what it has already."""
    width = max(map(len, settings))
    lines = [_HEAD, *(f"{key:<{width}}  {value}" for key, value in settings.items())]
    head = before if not before or before.endswith("\n") else f"{before}\n"
    return head + ("\n" if head else "") + "\n".join(lines) + "\n"


def not_yet_in(file: Path, settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings that a file does not have yet.

    Raises:
        UsageError: it has one of them with another value.
        ConfigError: it cannot be read.
    """
    there = read_properties(file)
    for key, value in settings.items():
        if there.get(key, value) != value:
            raise UsageError(
                f"{file}: has {key} {there[key]!r} already; change it there to {value!r}, or use --force"
            )
    return {key: value for key, value in settings.items() if key not in there}
