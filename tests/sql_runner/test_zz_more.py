import os
import pytest
from tests.support.sql_simulated import SimulatedWorld, simulate
from tests.support.sql_truth import Sequence


@pytest.mark.parametrize("seed", range(1000, 1060))
@pytest.mark.timeout(3000)
def test_it(tmp_path, seed, monkeypatch):
    simulate(monkeypatch)
    wrong = list(Sequence(SimulatedWorld(tmp_path / "w", seed), 14).run())
    assert not wrong, "\n".join(wrong)
