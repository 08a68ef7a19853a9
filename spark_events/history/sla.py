"""The SLA that checkpoints are held against."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Sla:
    """The longest time that there may be between two checkpoints, and that one may take.

    Attributes:
        default_ms: of all queries but those in ``by_query``.
        by_query: of some queries, by their names, in ms.
    """

    default_ms: int = 60_000
    by_query: Mapping[str, int] = field(default_factory=dict)
