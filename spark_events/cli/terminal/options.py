"""Options that several commands have."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import typer

from spark_events.api import ConfigError
from spark_events.api.errors import UsageError
from spark_events.api.option_types import DURATION, SECRET, Secret
from spark_events.history.options import Sla

PropertiesFile = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="A spark-defaults.conf; by default the one that spark-submit reads."),
]
Conf = Annotated[
    list[str] | None, typer.Option(metavar="KEY=VALUE", help="A setting, as for spark-submit; repeatable.")
]
SlaOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="[QUERY=]DURATION",
        help="How long a query may go without committing: 60s, or orders=5min for one query. By default, as "
        "long as its application had set by spark.events.checkpoint.sla, or 60s. Repeatable.",
    ),
]


App = Annotated[
    str | None,
    typer.Option(metavar="APP", help="Only the applications of this name, or the one of this id."),
]
Query = Annotated[str | None, typer.Option(metavar="QUERY", help="Only the streaming query of this name.")]
From = Annotated[
    str | None,
    typer.Option(
        "--from",
        metavar="TIME",
        help="Only what happened from this time on: 2026-11-25, 2026-11-25T14:30 (UTC), or 2h (ago).",
    ),
]
Until = Annotated[
    str | None,
    typer.Option("--until", metavar="TIME", help="Only what happened until this time, given as for --from."),
]
Html = Annotated[Path | None, typer.Option(metavar="FILE", help="Write an HTML page; - is standard output.")]
Json = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Write all figures as JSON; - is standard output.")
]


def duration_of(option: str, text: str) -> int:
    """Return the milliseconds of a duration that an option gives.

    Raises:
        UsageError: it is not a duration.
    """
    try:
        return DURATION.read(option, text)
    except ConfigError as error:
        raise UsageError(str(error)) from None


def whole_number(least: int, unit: str = "") -> Callable[[str], int]:
    """Return the parser of an option that is a whole number, from ``least`` on."""

    def parse(text: str) -> int:
        if not re.fullmatch(r"-?\d{1,18}", str(text), re.ASCII) or int(text) < least:
            raise typer.BadParameter(
                f"{text!r} is not valid; expected a whole number{unit and f' of {unit}'}, {least} or more"
            )
        return int(text)

    return parse


def secret_of(option: str, text: str) -> Secret:
    """Return the secret that an option gives, or says where it is.

    Raises:
        UsageError: it is not there.
    """
    try:
        return SECRET.parse(text)
    except ValueError as error:
        raise UsageError(f"{option}: {str(error) or f'is empty; expected {SECRET.allowed}'}") from None


def parse_sla(texts: Sequence[str]) -> Sla:
    """Return the SLAs that options give: ``60s``, or ``query=60s``.

    Raises:
        UsageError: one is not a duration, or 0, or has a sign for equality without a query.
    """
    sla_ms: dict[str, int] = {}
    for text in texts:
        query, equals, duration = text.rpartition("=")
        if equals and not query:
            raise UsageError(f"--sla {text}: names no query; expected a duration, or QUERY=DURATION")
        sla_ms[query] = duration_of("--sla", duration)
        if not sla_ms[query]:
            raise UsageError(f"--sla {text}: an SLA has to be longer than 0 ms")
    return Sla(sla_ms.pop("", None), sla_ms)
