"""Reports what happens to Spark applications and streaming queries, as events, metrics and traces."""

from __future__ import annotations

from typing import Any

from spark_events.lineage import add_lineage_edges
from spark_events.sources.attach import Attachment, attach

__all__ = ["Attachment", "add_lineage_edges", "attach"]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib_metadata import version

        return version("spark-events")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
