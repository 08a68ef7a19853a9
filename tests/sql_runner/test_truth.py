"""Random sequences of deployments, kills, roll-backs and faults: what becomes of each row of the source."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.servers import Hdfs
from tests.support.sql_truth import Sequence
from tests.support.sql_world import World

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("java"), pytest.mark.timeout(7_200)]


@pytest.mark.parametrize(
    "seeds",
    [
        pytest.param(range(1), marks=pytest.mark.extended),
        pytest.param(range(1, 4), marks=pytest.mark.thorough),
        pytest.param(range(4, 100), marks=pytest.mark.soak),
    ],
)
def test_every_row_is_accounted_for(tmp_path: Path, seeds: range) -> None:
    """Into folders of files, from a local store."""
    steps = 7 if len(seeds) == 1 else 12
    wrong = [
        text for seed in seeds for text in Sequence(World(tmp_path / f"sequence-{seed}", seed), steps).run()
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.soak
@pytest.mark.parametrize("seeds", [range(10)])
def test_every_row_is_accounted_for_from_hdfs(tmp_path: Path, hdfs: Hdfs, seeds: range) -> None:
    wrong = []
    for seed in seeds:
        store = f"{hdfs.url}/truth-{seed}"
        wrong += Sequence(World(tmp_path / f"sequence-{seed}", seed, store)).run()
    assert not wrong, "\n".join(wrong)
