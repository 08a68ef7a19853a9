"""Named points of a commit, at which a test can break it."""

from __future__ import annotations

from collections.abc import Callable

POINTS = (
    "after_begin",
    "before_write",
    "after_write",
    "after_prepared",
    "before_catalog",
    "after_catalog",
    "before_partitions",
    "before_committed",
    "after_committed",
    "before_collect",
)
observers: list[Callable[[str], None]] = []
"""Called with the name of each point that is reached; what one raises happens there."""


def reached(point: str) -> None:
    """Announce that a point is reached."""
    for observer in observers:
        observer(point)
