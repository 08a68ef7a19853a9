"""Know what your PySpark jobs and streaming queries are doing, without opening the Spark UI."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from spark_events.process.exits import replace_exit

if TYPE_CHECKING:
    from spark_events import api, ctas, lineage, task
    from spark_events.history.from_python import report
    from spark_events.lineage import add_lineage_edges
    from spark_events.sources.attaching.attach import attach
    from spark_events.sources.attaching.attachment import Attachment

    __version__: str

__all__ = ["Attachment", "add_lineage_edges", "api", "attach", "ctas", "lineage", "report", "task"]
# Imported when they are used: most commands need none of them.
_MODULES = {
    "Attachment": "spark_events.sources.attaching.attachment",
    "add_lineage_edges": "spark_events.lineage",
    "attach": "spark_events.sources.attaching.attach",
    "report": "spark_events.history.from_python",
}
_SUBMODULES = ("api", "ctas", "lineage", "task")

replace_exit()


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(_MODULES[name]), name)
    if name in _SUBMODULES:
        return import_module(f"spark_events.{name}")
    if name == "__version__":
        from importlib_metadata import PackageNotFoundError, version

        try:
            return version("spark-events")
        except PackageNotFoundError:  # as of files that were copied, or shipped with --py-files
            return "unknown"
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
