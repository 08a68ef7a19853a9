"""Times as people ask for them: those that Python or no event can have are the nearest that one can."""

from __future__ import annotations

import pytest

from spark_events.history.asked_time import time_of
from spark_events.history.reading.plausible import iso_date

DAY_MS = 86_400_000


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("9999-12-31T23:59:59-14:00", "9999-12-31"),
        ("9999-12-31", "9999-12-31"),
        ("2026-11-25", "2026-11-25"),
        ("1969-12-31", "1970-01-01"),
        ("0001-01-01T00:00:00+14:00", "1970-01-01"),
        ("30000d", "1970-01-01"),
    ],
)
def test_times_at_the_ends_of_the_calendar(text: str, day: str) -> None:
    assert iso_date(time_of("--until", text) // DAY_MS) == day
