"""Writes the dashboards: ``python -m grafana.source``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from grafana_foundation_sdk.cog.encoder import JSONEncoder

from grafana.source.batch import batch
from grafana.source.checkpoint_sla import checkpoint_sla
from grafana.source.fleet import fleet
from grafana.source.marks import links, marks
from grafana.source.uptime import uptime

FOLDER = Path(__file__).parents[1] / "dashboards" / "spark-events"


def dashboards() -> Iterator[tuple[Path, str]]:
    """Yield each dashboard's file and its text."""
    for build in (fleet, batch, uptime, checkpoint_sla):
        builder = build()
        marks(builder)
        links(builder)
        board = builder.build()
        for number, panel in enumerate(board.panels or (), start=1):
            panel.id_val = number
        text = json.dumps(board, cls=JSONEncoder, indent=2, sort_keys=True)
        yield FOLDER / f"{build.__name__.replace('_', '-')}.json", text + "\n"


def main() -> None:
    """Write them."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for path, text in dashboards():
        path.write_text(text)


if __name__ == "__main__":
    main()
