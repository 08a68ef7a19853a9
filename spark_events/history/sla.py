"""The SLA that checkpoints are measured against."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Sla:
    """The longest time allowed between two checkpoints, and for a single one.

    Attributes:
        default_ms: for all queries except those in ``by_query``, in ms.
        by_query: for some queries, by name, in ms.
    """

    default_ms: int = 60_000
    by_query: Mapping[str, int] = field(default_factory=dict)
