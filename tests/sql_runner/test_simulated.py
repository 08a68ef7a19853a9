"""The sequences of test_truth.py with a simulated Spark: hundreds of them, killed between any two steps."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from tests.support.sql_simulated import SimulatedWorld, simulate
from tests.support.sql_truth import Sequence
from tests.support.waiting import wait_until

pytestmark = pytest.mark.timeout(7_200)


@pytest.mark.parametrize(
    "seeds",
    [
        range(2),
        pytest.param(range(2, 12), marks=pytest.mark.thorough),
        pytest.param(range(12, 500), marks=pytest.mark.soak),
    ],
)
def test_every_row_is_accounted_for(tmp_path: Path, seeds: range, monkeypatch: pytest.MonkeyPatch) -> None:
    simulate(monkeypatch)
    before = set(threading.enumerate())
    wrong = [
        text for seed in seeds for text in Sequence(SimulatedWorld(tmp_path / f"{seed}", seed), 14).run()
    ]
    assert not wrong, "\n".join(wrong)
    wait_until(lambda: set(threading.enumerate()) <= before, "all threads of processes that were killed end")
