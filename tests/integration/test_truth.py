"""What the report says of random sequences of real drivers, against an oracle that only knows what was done."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.truth import Sequence, await_lost, expected, report

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("java"), pytest.mark.timeout(7_200)]
SLACK_S = 1.0
"""How late the stopwatch sees a commit, and how long a process takes to do what it is told, at each end."""


@pytest.mark.parametrize(
    "seeds",
    [
        range(2),
        pytest.param(range(2, 8), marks=pytest.mark.thorough),
        pytest.param(range(8, 100), marks=pytest.mark.soak),
    ],
)
def test_the_report_is_true(tmp_path: Path, seeds: range) -> None:
    """Up, down, failures and restarts of each sequence are within a heartbeat of the truth."""
    with ThreadPoolExecutor(3) as pool:
        wrong = [text for text in pool.map(lambda seed: check(tmp_path, seed), seeds) if text]
    assert wrong == []


def check(folder: Path, seed: int) -> str:
    """Run a sequence; return what the report says wrongly of it."""
    sequence = Sequence(folder / f"sequence-{seed}", seed)
    sequence.run()
    await_lost(sequence)
    before_s = time.time()
    told = report(sequence)["query"]
    truth = expected(sequence, before_s)
    tolerance_s = sum(life.tolerance_s + SLACK_S for life in sequence.lived)
    said = {
        "up": told["up_ms"] / 1000,
        "down": told["down_ms"] / 1000,
        "failures": told["failures"],
        "restarts": told["restarts"],
    }
    close = all(abs(said[name] - truth[name]) <= tolerance_s for name in ("up", "down"))
    if close and all(said[name] == truth[name] for name in ("failures", "restarts")):
        return ""
    ends = [life.end for life in sequence.lived]
    return f"seed {seed}: {ends}: said {said}, but it was {truth}, within {tolerance_s:.1f} s"
