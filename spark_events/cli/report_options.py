"""The options that ``report`` and ``serve`` share, and what they mean together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timezone
from typing import Annotated

import typer

from spark_events.api.errors import UsageError
from spark_events.cli.options import duration_of, parse_sla
from spark_events.history.options import ReportOptions
from spark_events.history.reading.plausible import PossibleTimes

EventPaths = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="PATH",
        help="Stored events: files, folders or globs, on any file system of fsspec or Hadoop, of a "
        "file log, replay --on-spark or a collector's file exporter.",
    ),
]
Since = Annotated[
    str | None,
    typer.Option(metavar="DURATION", help="Report only this much time before the last event: 7d, 12h."),
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
Now = Annotated[bool, typer.Option("--now", help="Extend the last known state to the present.")]
Earliest = Annotated[
    datetime, typer.Option(help="Ignore events dated before this day (UTC), which a wrong clock made.")
]
Latest = Annotated[
    datetime | None,
    typer.Option(help="Ignore events dated after this time (UTC); by default a day from now."),
]
BEGINNING = datetime(2009, 1, 1)
"""Before the first Spark."""


def report_options(
    paths: Sequence[str] | None,
    sla: Sequence[str] | None,
    since: str | None,
    store: str | None,
    retain: str | None,
    now: bool,
    earliest: datetime,
    latest: datetime | None,
) -> ReportOptions:
    """Return the options of a report that is neither written nor computed on Spark.

    Raises:
        UsageError: one cannot be used, or there is neither a path nor a store.
    """
    if not paths and store is None:
        raise UsageError("nothing to read: give the PATHs of stored events, or --store with a folder of some")
    if retain is not None and store is None:
        raise UsageError("--retain drops days of a store: give its folder with --store")
    options = ReportOptions(tuple(paths or ()), parse_sla(sla or ()), store=store, until_now=now)
    return replace(
        options,
        span_ms=None if since is None else duration_of("--since", since),
        retain_ms=None if retain is None else duration_of("--retain", retain),
        times=_times(earliest, latest),
    )


def _times(earliest: datetime, latest: datetime | None) -> PossibleTimes:
    limits = [limit.replace(tzinfo=timezone.utc) for limit in (earliest, latest) if limit]
    times = PossibleTimes(*(int(limit.timestamp() * 1_000) for limit in limits))
    if times.latest_ms <= times.earliest_ms:
        raise UsageError(f"--latest {latest}: must be after --earliest {earliest}")
    return times
