"""The tables of what was told of several runs."""

from __future__ import annotations

from typing import Any

from tests.support.slow.matrix import Pair, case_lines, matrix_lines
from tests.support.slow.run import Told


def issue(kind: str, lost_ms: int) -> dict[str, Any]:
    named = dict.fromkeys(("about", "sentence", "advice"), "")
    return {"issue": kind, "lost_ms": lost_ms, "evidence": {}, **named}


def pair(case: str, cost_ms: int, bad: list[dict[str, Any]], twin: list[dict[str, Any]]) -> Pair:
    truths = [{"cause": case, "cost_ms": cost_ms, "costed": True, "places": []}]
    outcome = {"took_ms": 10_000 + cost_ms, "truths": truths}
    healthy = {"took_ms": 10_000, "truths": []}
    return Pair(Told(case, 1, True, outcome, bad), Told(case, 1, False, healthy, twin))


PAIRS = [
    pair("skew", 5_000, [issue("skew", 5_100), issue("gc", 1_000)], []),
    pair("skew", 5_000, [issue("gc", 9_000), issue("skew", 1_000)], [issue("skew", 2_000)]),
    pair("retries", 3_000, [], [issue("gc", 1_500)]),
    Pair(None, Told("cold", 1, False, {"took_ms": 900, "truths": []}, [issue("straggler", 1_100)])),
]


def test_each_cause_has_a_row() -> None:
    lines = matrix_lines(PAIRS)

    assert "| skew | 1 of 2 | 2 of 2 | 1 of 2 | 0 of 2 | gc | 1 of 2 |" in lines
    assert "| retries | 0 of 1 | 0 of 1 | 0 of 1 | 0 of 1 | nothing | 0 of 1 |" in lines


def test_precision_counts_twins_and_what_is_beside() -> None:
    lines = matrix_lines(PAIRS)

    assert "| skew | 3 | 2 | 0.67 |" in lines
    assert "| gc | 3 | 0 | 0.00 |" in lines
    assert "| straggler | 1 | 0 | 0.00 |" in lines


def test_the_sums() -> None:
    sums = matrix_lines(PAIRS)[-1]

    assert "Named first: 1 of 3." in sums
    assert "Named at all (recall): 2 of 3." in sums
    assert "Cost within 20 %: 1 of 3." in sums
    assert "Twins without a false issue: 1 of 4." in sums
    assert "(precision): 2 of 7." in sums


def test_each_run_has_a_line() -> None:
    lines = list(case_lines(PAIRS))[2:]

    assert lines[0] == "| skew, 1 | skew | 1 | skew | 5.1 / 5.0 s (+2%) | 15.0 s, 10.0 s | - | gc |  |"
    assert lines[2] == "| retries, 1 | retries | - | nothing | - / 3.0 s | 13.0 s, 10.0 s | - |  | gc |"
    assert lines[3] == "| cold, 1 | none | | | | | | | straggler |"
