"""Where reading goes on after a restart."""

from __future__ import annotations

import pytest

from spark_events.sources.event_log.reading.tail import LinePosition


@pytest.mark.parametrize(
    ("position", "end", "expected"),
    [
        (LinePosition(0, 0), LinePosition(0, 4), 4),
        (LinePosition(0, 3), LinePosition(0, 4), 1),
        (LinePosition(0, 4), LinePosition(0, 4), 0),
        (LinePosition(0, 9), LinePosition(0, 4), 0),
        (LinePosition(0, 0), LinePosition(0, 99), 10),
        (LinePosition(1, 7), LinePosition(2, 1), 10),
        (LinePosition(3, 0), LinePosition(2, 5), 0),
    ],
)
def test_lines_until(position: LinePosition, end: LinePosition, expected: int) -> None:
    """Of ten lines: those of an earlier part are all before it, those of a later part are not."""
    assert position.lines_until(end, at_most=10) == expected
