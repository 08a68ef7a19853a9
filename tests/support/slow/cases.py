"""All cases, by name."""

from __future__ import annotations

from tests.support.slow import (
    aggregations,
    clusters,
    expressions,
    files,
    healthy,
    joins,
    loops,
    memory,
    micro_batches,
    python_code,
    repeated,
    skews,
    streams,
    tables,
    tasks,
    waiting,
    windows,
)
from tests.support.slow.case import CASES

__all__ = [
    "CASES",
    "aggregations",
    "clusters",
    "expressions",
    "files",
    "healthy",
    "joins",
    "loops",
    "memory",
    "micro_batches",
    "python_code",
    "repeated",
    "skews",
    "streams",
    "tables",
    "tasks",
    "waiting",
    "windows",
]
