"""What a report is made of, and where: the choices of whoever asks for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from spark_events.history.reading.plausible import PossibleTimes
from spark_events.history.selection import Selection

UNSET_SLA_MS = 60_000
"""The SLA of a query for which nobody has set any."""


class Engine(str, Enum):
    """Where a report is computed."""

    AUTO = "auto"
    LOCAL = "local"
    SPARK = "spark"


@dataclass(frozen=True)
class Sla:
    """The longest time allowed between two checkpoints, and for a single one, as whoever reads sets it.

    Attributes:
        default_ms: for all queries except those in ``by_query``, in ms. None: what the application of each
            had as its setting, which its events say; ``UNSET_SLA_MS`` where they say none.
        by_query: for some queries, by name, in ms.
    """

    default_ms: int | None = None
    by_query: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ReportOptions:
    """The sources, the limits and the outputs of a report.

    Attributes:
        paths: of stored events.
        sla: of the checkpoints.
        selection: which part of the events it is about.
        html, json: files to write.
        parquet: the folder of the tables.
        store: the folder that keeps the facts.
        retain_ms: how much time before the last event the store keeps, in ms; None for all.
        times: the possible ones; from 2009 to a day from now by default.
        engine: where it is computed.
        conf: Spark's configuration.
    """

    paths: tuple[str, ...]
    sla: Sla = field(default_factory=Sla)
    selection: Selection = field(default_factory=Selection)
    html: Path | None = None
    json: Path | None = None
    parquet: str | None = None
    store: str | None = None
    retain_ms: int | None = None
    times: PossibleTimes | None = None
    engine: Engine = Engine.AUTO
    conf: Mapping[str, str] = field(default_factory=dict)
