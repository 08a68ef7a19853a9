"""What was said of a run is held against what was injected."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.slow.expected import KINDS
from tests.support.slow.judge import false_issues, named_place, verdicts


def issue(
    kind: str, lost_ms: int | None = 5_000, sentence: str = "is slow", **evidence: Any
) -> dict[str, Any]:
    return {
        "issue": kind,
        "severity": "WARN",
        "about": "stage 3.0",
        "sentence": sentence,
        "advice": "",
        "lost_ms": lost_ms,
        "lost_bytes": None,
        "evidence": evidence,
    }


def outcome(*truths: dict[str, Any], took_ms: int = 20_000) -> dict[str, Any]:
    return {"took_ms": took_ms, "truths": list(truths)}


def truth(cause: str, cost_ms: int | None = 5_000, *places: str, costed: bool = True) -> dict[str, Any]:
    return {"cause": cause, "cost_ms": cost_ms, "costed": costed, "places": list(places)}


def test_the_right_cause_first() -> None:
    (verdict,) = verdicts(outcome(truth("skew")), [issue("skew", 5_900), issue("gc", 900)], None)

    assert (verdict.rank, verdict.first, verdict.said_ms, verdict.cost_is_right) == (1, "skew", 5_900, True)


@pytest.mark.parametrize(("said_ms", "right"), [(4_000, True), (3_900, False), (6_100, False), (None, False)])
def test_a_cost_is_right_within_a_fifth(said_ms: int | None, right: bool) -> None:
    (verdict,) = verdicts(outcome(truth("skew")), [issue("skew", said_ms)], None)

    assert verdict.cost_is_right is right


def test_the_right_cause_behind_another() -> None:
    (verdict,) = verdicts(outcome(truth("skew")), [issue("straggler"), issue("skew", 4_000)], None)

    assert (verdict.rank, verdict.first) == (2, "straggler")


def test_nothing_was_said() -> None:
    (verdict,) = verdicts(outcome(truth("skew")), [], None)

    assert (verdict.rank, verdict.first, verdict.said_ms, verdict.named) == (None, "", None, "")


def test_what_is_said_of_several_stages_is_one_cost() -> None:
    (verdict,) = verdicts(outcome(truth("skew")), [issue("skew", 2_000), issue("skew", 3_100)], None)

    assert (verdict.said_ms, verdict.cost_is_right) == (5_100, True)


def test_the_stopwatch_knows_what_no_construction_does() -> None:
    (verdict,) = verdicts(outcome(truth("spill", None)), [issue("spill", 8_000)], twin_took_ms=12_500)

    assert (verdict.true_ms, verdict.measured, verdict.cost_is_right) == (7_500, True, True)


@pytest.mark.parametrize(
    ("twin_took_ms", "costed"), [(19_500, True), (21_000, True), (10_000, False)], ids=str
)
def test_no_cost_where_there_is_none_to_compare(twin_took_ms: int, costed: bool) -> None:
    """The twin took as long but for chance, or the defect costs no time."""
    told = outcome(truth("spill", None, costed=costed))
    (verdict,) = verdicts(told, [issue("spill", 8_000)], twin_took_ms)

    assert (verdict.rank, verdict.true_ms, verdict.cost_is_right) == (1, None, None)


def test_several_defects_come_by_their_cost() -> None:
    told = outcome(truth("skew", 3_000), truth("retries", 9_000))
    first, second = verdicts(told, [issue("retries", 9_000), issue("skew", 3_000)], None)

    assert (first.cause, first.rank, second.cause, second.rank) == ("retries", 1, "skew", 2)


def test_what_no_defect_explains_is_false() -> None:
    said = [issue("skew"), issue("gc"), issue("straggler"), issue("gc")]

    assert false_issues(["skew", "straggler"], said) == ["gc", "gc"]
    assert false_issues([], said) == ["skew", "gc", "straggler", "gc"]


@pytest.mark.parametrize(
    ("said", "named"),
    [
        (issue("skew", sentence="key customer-6 has 90 %"), "customer-6"),
        (issue("skew", sentence="key customer-66 has 90 %"), ""),
        (issue("skew", stageName="sum at /home/u/tasks.py:42"), "tasks.py:42"),
        (issue("skew", stageName="sum at tasks.py:421"), ""),
        (issue("skew", paths=["file:/data/orders"]), "orders"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_place_is_named_as_a_word_of_its_own(said: dict[str, Any], named: str) -> None:
    assert named_place(["customer-6", "tasks.py:42", "orders"], said) == named


def test_another_issue_that_names_the_place_does_not_count() -> None:
    told = outcome(truth("skew", 5_000, "orders"))
    (verdict,) = verdicts(told, [issue("gc", sentence="of orders"), issue("skew")], None)

    assert verdict.named == ""


def test_each_cause_has_issues_that_say_it() -> None:
    assert all(KINDS.values())
