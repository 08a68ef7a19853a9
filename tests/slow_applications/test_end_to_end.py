"""Applications with a defect and their twins, run and asked about."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.slow.cases import CASES
from tests.support.slow.command import main

CHEAP = "driver-alone"
pytestmark = pytest.mark.spark


def nobody(lines: Sequence[str]) -> None:
    """Writes nothing."""


@pytest.mark.extended
def test_one_case(tmp_path: Path, java: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Its truth is what took longer than the twin; the table has it, and asking again says the same."""
    arguments = ["--kinds", CHEAP, "--keep", str(tmp_path)]
    assert main(arguments, nobody) == 0

    printed = capsys.readouterr().out
    bad, twin = (
        json.loads((tmp_path / f"{CHEAP}-1" / run / "outcome.json").read_text()) for run in ("bad", "twin")
    )
    (truth,) = bad["truths"]
    assert twin["truths"] == []
    assert bad["took_ms"] >= truth["cost_ms"]
    assert f"| {CHEAP}, 1 | {truth['cause']} |" in printed
    assert main([*arguments, "--again"], nobody) == 0
    assert capsys.readouterr().out == printed


@pytest.mark.thorough
@pytest.mark.parametrize("name", [name for name in CASES if name != CHEAP])
def test_a_case_runs(name: str, tmp_path: Path, java: str) -> None:
    assert main(["--kinds", name, "--keep", str(tmp_path)], nobody) == 0
