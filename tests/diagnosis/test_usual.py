"""What is usual, and from where on something is not: for regressions, a report's runs, and two runs compared."""

from __future__ import annotations

import pytest

from spark_events.diagnosis.earlier_runs.usual import (
    Usual,
    differs_in_each_run,
    has_grown,
    settings_that_differ,
    usual,
)
from spark_events.why.comparison import ComparedRow


def test_usual() -> None:
    assert usual([3, 1, 2]) == Usual(3, 2, 3)
    assert usual(range(1, 101)) == Usual(100, 50, 95)


@pytest.mark.parametrize(
    ("before", "duration_ms", "exceeds"),
    [
        (Usual(5, 100, 120), 181, True),
        (Usual(5, 100, 120), 180, False),  # 1.5 times the 95th percentile
        (Usual(4, 100, 120), 900, False),  # too few to compare with
        (Usual(5, 152, 120), 181, False),  # 29 ms more than the median
    ],
)
def test_much_longer_than_usual(before: Usual, duration_ms: int, exceeds: bool) -> None:
    assert before.is_exceeded_by(duration_ms, 1.5, 30) == exceeds


@pytest.mark.parametrize(
    ("now", "before", "grown"), [(15, 10, True), (14, 10, False), (1, 0, True), (0, 0, False), (9, 10, False)]
)
def test_a_figure_that_has_grown(now: int, before: int, grown: bool) -> None:
    """By half or more; two runs that are compared mark the same."""
    assert has_grown(now, before) == grown
    assert ComparedRow("tasks", before, now, "", "").much == grown


def test_settings_that_differ() -> None:
    """Or are in one run alone; some differ in each run, whatever it was started with."""
    assert settings_that_differ({"a": 1, "b": 2}, {"b": 3, "c": 4, "a": 1}) == ["b", "c"]
    keys = ("spark.app.id", "spark.yarn.app.id", "spark.driver.host", "spark.driver.memory", "spark.apple")
    assert [differs_in_each_run(key) for key in keys] == [True, True, True, False, False]
