"""What becomes of a journal that somebody removes while it is open, as cleaners of old files do."""

from __future__ import annotations

from collections.abc import Sequence

from spark_events.api.toolkit.formatting import counted
from spark_events.runtime.journal.cursor import JournalCursor
from spark_events.runtime.journal.folder import Lock
from spark_events.runtime.journal.segment import JournalSegment
from spark_events.runtime.log_once import logger


def make_again(lock: Lock | None, cursor: JournalCursor, segments: Sequence[JournalSegment]) -> bool:
    """Make again what was removed: the folder with its lock, the cursor, segments; no record is lost by that.

    Returns:
        Whether segments were removed, so that they are to be synced, and the cursor is to be moved.

    Raises:
        OSError: it cannot be made.
    """
    if lock is not None:
        lock.take_again()
    cursor.make_again()
    removed = [segment for segment in segments if segment.removed]
    for segment in removed:
        segment.write_again()
    if removed:
        logger.warning("the journal in %s was removed; it is written again", removed[0].path.parent)
    return bool(removed)


def lost_by(error: OSError, segments: Sequence[JournalSegment], head: int) -> int:
    """Return how many records from ``head`` on are lost because what was removed cannot be made again."""
    removed = [segment for segment in segments if segment.removed]
    lost = sum(max(0, each.first + each.count - max(head, each.first)) for each in removed)
    if lost:
        logger.error(
            "the journal in %s was removed, and cannot be written again (%s), which loses %s",
            removed[0].path.parent,
            error,
            counted(lost, "item"),
        )
    return lost
