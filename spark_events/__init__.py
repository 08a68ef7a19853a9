"""Reports what happens to Spark applications and streaming queries, as events, metrics and traces."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spark_events.lineage import add_lineage_edges
    from spark_events.sources.attach import Attachment, attach

__all__ = ["Attachment", "add_lineage_edges", "attach"]
# Imported when they are used: most commands need neither.
_MODULES = {
    "Attachment": "spark_events.sources.attach",
    "add_lineage_edges": "spark_events.lineage",
    "attach": "spark_events.sources.attach",
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(_MODULES[name]), name)
    if name == "__version__":
        from importlib_metadata import version

        return version("spark-events")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
