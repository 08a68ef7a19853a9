"""All cases, by name."""

from __future__ import annotations

from bench.slow import (
    clusters,
    files,
    healthy,
    joins,
    memory,
    python_code,
    skews,
    streams,
    tables,
    tasks,
    waiting,
)
from bench.slow.case import CASES

__all__ = [
    "CASES",
    "clusters",
    "files",
    "healthy",
    "joins",
    "memory",
    "python_code",
    "skews",
    "streams",
    "tables",
    "tasks",
    "waiting",
]
