"""The dashboards as they are checked in, panel by panel, and their queries as Grafana would send them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from tests.support.paths import REPO

FOLDER = REPO / "grafana" / "dashboards" / "spark-events"
RULES = REPO / "conf" / "prometheus" / "rules"


class Panel(NamedTuple):
    """A panel, and whose it is."""

    board: str
    spec: dict[str, Any]

    @property
    def title(self) -> str:
        return str(self.spec["title"])

    @property
    def targets(self) -> list[dict[str, Any]]:
        return list(self.spec.get("targets", ()))


def boards() -> dict[str, dict[str, Any]]:
    """Return the dashboards by their files' names."""
    return {path.name: json.loads(path.read_text()) for path in sorted(FOLDER.glob("*.json"))}


def panels() -> Iterator[Panel]:
    """Yield all panels, also those in rows."""
    for name, board in boards().items():
        for panel in board["panels"]:
            for one in (panel, *panel.get("panels", ())):
                if one["type"] != "row":
                    yield Panel(name, one)


def expanded(expr: str, range_s: int = 3600, variables: Mapping[str, str] | None = None) -> str:
    """Return an expression with Grafana's variables filled in."""
    values = {
        "__range": f"{range_s}s",
        "__range_s": str(range_s),
        "__rate_interval": "1m",
        "__interval": "15s",
        "__interval_ms": "15000",
        "app_name": ".*",
        "query_name": ".*",
        "target": "99",
        "every": "3h",
        **(variables or {}),
    }
    filled = re.sub(r"\$(\w+)|\$\{(\w+)\}", lambda found: values[found.group(1) or found.group(2)], expr)
    assert "$" not in filled
    return filled
