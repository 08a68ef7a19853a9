"""Options that several commands have."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from spark_events.api import ConfigError
from spark_events.api.option_types import DURATION
from spark_events.history.options import Sla

PropertiesFile = Annotated[
    Path | None, typer.Option(help="A spark-defaults.conf; by default the one that spark-submit reads.")
]
Conf = Annotated[list[str] | None, typer.Option(help="key=value, as for spark-submit; repeatable.")]
SlaOption = Annotated[
    list[str] | None,
    typer.Option(help="Longest time between two checkpoints: 60s, or query=60s for one query. Repeatable."),
]


def parse_sla(texts: Sequence[str]) -> Sla:
    """Return the SLAs that options give: ``60s``, or ``query=60s``.

    Raises:
        ConfigError: one is no duration, or 0.
    """
    sla_ms: dict[str, int] = {}
    for text in texts:
        query, _, duration = text.rpartition("=")
        sla_ms[query] = DURATION.read("--sla", duration)
        if not sla_ms[query]:
            raise ConfigError(f"--sla {text}: an SLA is longer than 0 ms")
    default_ms = sla_ms.pop("", Sla().default_ms)
    return Sla(default_ms, sla_ms)
