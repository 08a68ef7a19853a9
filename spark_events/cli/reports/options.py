"""The options that ``report`` and ``serve`` share, and what they mean together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import typer

from spark_events.api.errors import UsageError
from spark_events.cli.terminal.options import duration_of, parse_sla
from spark_events.history.asked_time import time_of
from spark_events.history.options import ReportOptions
from spark_events.history.reading.plausible import EARLIEST_MS, PossibleTimes
from spark_events.history.selection import Selection

EventPaths = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="PATH",
        help="Events stored by a file log, by replay --on-spark or by a collector's file exporter: files, "
        "folders or globs, on any file system of fsspec or Hadoop.",
    ),
]
Since = Annotated[
    str | None,
    typer.Option(metavar="DURATION", help="Report only this much time before the end: 7d, 12h."),
]
Store = Annotated[
    str | None,
    typer.Option(metavar="DIR", help="Add the events to this folder, and report on everything in it."),
]
Retain = Annotated[
    str | None,
    typer.Option(
        metavar="DURATION",
        help="With --store: drop days older than this, counted back from the last event, such as 400d.",
    ),
]
Now = Annotated[
    bool, typer.Option("--now", help="Extend the last known state to the present; the same as --until now.")
]
Earliest = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="Ignore events dated before this time (UTC): a wrong clock made them; by default 2009, before "
        "the first Spark.",
    ),
]
Latest = Annotated[
    str | None,
    typer.Option(
        metavar="TIME", help="Ignore events dated after this time (UTC); by default a day from now."
    ),
]


@dataclass(frozen=True, slots=True)
class SelectionAsked:
    """Which part of the events a report is about, as the options of these names say it."""

    app: str | None = None
    query: str | None = None
    since: str | None = None
    begin: str | None = None
    until: str | None = None
    now: bool = False

    def selection(self) -> Selection:
        """Return the part.

        Raises:
            UsageError: an option cannot be used, or two contradict each other.
        """
        if self.since is not None and self.begin is not None:
            raise UsageError("--since and --from both say where the report begins: give one of them")
        if self.now and self.until is not None:
            raise UsageError("--now and --until both say where the report ends: give one of them")
        since_ms = None if self.begin is None else time_of("--from", self.begin)
        ends_now = self.now or self.until == "now"
        until_ms = None if self.until is None or ends_now else time_of("--until", self.until)
        if since_ms is not None and until_ms is not None and since_ms >= until_ms:
            raise UsageError(f"--until {self.until}: must be after --from {self.begin}")
        span_ms = None if self.since is None else duration_of("--since", self.since)
        if span_ms == 0:
            raise UsageError(f"--since {self.since}: must be longer than 0, such as 12h or 7d")
        return Selection(
            self.app or "",
            self.query or "",
            span_ms,
            since_ms,
            until_ms,
            ends_now,
        )


def report_options(
    paths: Sequence[str] | None,
    sla: Sequence[str] | None,
    asked: SelectionAsked,
    store: str | None,
    retain: str | None,
    earliest: str | None,
    latest: str | None,
) -> ReportOptions:
    """Return the options of a report that is neither written nor computed on Spark.

    Raises:
        UsageError: one cannot be used, or there is neither a path nor a store.
    """
    if not paths and store is None:
        raise UsageError(
            "nothing to read: give the PATHs of stored events, or --store with the folder of a store"
        )
    if retain is not None and store is None:
        raise UsageError("--retain drops days of a store: give its folder with --store")
    options = ReportOptions(tuple(paths or ()), parse_sla(sla or ()), asked.selection(), store=store)
    return replace(
        options,
        retain_ms=None if retain is None else duration_of("--retain", retain),
        times=_times(earliest, latest),
    )


def _times(earliest: str | None, latest: str | None) -> PossibleTimes:
    times = PossibleTimes(
        EARLIEST_MS if earliest is None else time_of("--earliest", earliest),
        None if latest is None else time_of("--latest", latest),
    )
    if times.latest_ms <= times.earliest_ms:
        if latest is None:
            raise UsageError(f"--earliest {earliest}: must be before --latest, which is tomorrow by default")
        raise UsageError(f"--latest {latest}: must be after --earliest {earliest or '2009-01-01'}")
    return times
