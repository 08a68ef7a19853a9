"""The cases themselves: each says what it injects, and the same for the same seed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.slow.case import makespan_ms
from tests.support.slow.cases import CASES
from tests.support.slow.expected import KINDS


@pytest.mark.parametrize(
    ("tasks_ms", "cores", "longest_ms"),
    [([5, 5, 5, 5], 4, 5), ([5] * 5, 4, 10), ([1, 1, 9], 2, 10), ([9, 1, 1], 2, 9), ([7], 4, 7)],
)
def test_how_long_tasks_take(tasks_ms: list[float], cores: int, longest_ms: float) -> None:
    assert makespan_ms(tasks_ms, cores) == longest_ms


@pytest.mark.parametrize("name", CASES)
def test_a_place_can_be_named(name: str) -> None:
    """Each marked line is one of the case, and a case without a defect has none."""
    case = CASES[name]
    code = Path(case.run.__code__.co_filename).read_text().splitlines()
    lines = case.lines()

    assert bool(lines) != case.healthy
    assert all(code[int(line.rpartition(":")[2]) - 1].strip() for line in lines)


def test_each_cause_is_injected_by_a_case() -> None:
    files = {Path(case.run.__code__.co_filename) for case in CASES.values()}
    code = "\n".join(file.read_text() for file in sorted(files))

    injected = set(re.findall(r'work\.defect\(\s*"([\w-]+)"', code))
    assert set(KINDS) == injected
