"""All cases, by name."""

from __future__ import annotations

from bench.slow import clusters, files, joins, memory, python_code, streams, tasks, waiting
from bench.slow.case import CASES

__all__ = ["CASES", "clusters", "files", "joins", "memory", "python_code", "streams", "tasks", "waiting"]
