"""How the page of ``why`` writes shares and evidence."""

from __future__ import annotations

from typing import Any

import pytest

from spark_events.diagnosis.times.ledger import ACCOUNTS
from spark_events.why.shown import COLORS, shown_evidence, whole_percent


@pytest.mark.parametrize(
    ("share", "said"),
    [
        (0, "< 1 %"),
        (0.99, "< 1 %"),
        (1, "1 %"),
        (32.27, "32 %"),
        (99.7, "99 %"),
        (100, "100 %"),
        (179.2, "179 %"),
    ],
)
def test_whole_percent(share: float, said: str) -> None:
    assert whole_percent(share) == said


def test_each_account_has_a_color() -> None:
    assert COLORS.keys() == set(ACCOUNTS)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("median.durationMs", 22_000, ("median duration", "22.0 s")),
        ("shareMs", 1_500, ("share", "1.5 s")),
        ("usual.inputBytes", 2 * 1024**3, ("usual input", "2 GiB")),
        ("stageId", 1_234, ("stage id", "1,234")),
        ("stage_id", "7", ("stage id", "7")),
        ("changed", ["its plan is new"], ("changed", "['its plan is new']")),
        ("live", True, ("live", "True")),
        ("durationMs", "unknown", ("duration ms", "unknown")),
        ("Ms", 5, ("ms", "5 ms")),
    ],
)
def test_shown_evidence(name: str, value: Any, said: tuple[str, str]) -> None:
    assert shown_evidence(name, value) == said
