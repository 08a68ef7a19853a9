"""The sequences of test_truth.py with a simulated Spark: hundreds of them, killed between any two steps."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.sql_simulated import SimulatedWorld, simulate
from tests.support.sql_truth import Sequence

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
    wrong = [
        text for seed in seeds for text in Sequence(SimulatedWorld(tmp_path / f"{seed}", seed), 14).run()
    ]
    assert not wrong, "\n".join(wrong)
