"""Options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

PropertiesFile = Annotated[
    Path | None, typer.Option(help="A spark-defaults.conf; by default the one that spark-submit reads.")
]
Conf = Annotated[list[str] | None, typer.Option(help="key=value, as for spark-submit; repeatable.")]
SlaOption = Annotated[
    list[str] | None,
    typer.Option(help="Longest time between two checkpoints: 60s, or query=60s for one query. Repeatable."),
]
