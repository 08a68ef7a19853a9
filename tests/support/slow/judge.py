"""Holds what was said of a run against what was injected; needs no Spark."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.support.slow.expected import BESIDE, KINDS

TOLERANCE = 0.2
"""How far a cost may be from the true one, as a share of that."""
_LEAST_MS = 1_000
"""What a stopwatch cannot tell from chance."""


@dataclass(frozen=True)
class Verdict:
    """How well one defect was told.

    Attributes:
        cause: that was injected.
        true_ms: what it cost; None if that is not a time, or too little for the stopwatch.
        measured: whether the cost is by the stopwatch.
        costed: whether a cost is to be said, and not only how much time goes there.
        rank: of the issue that says it, from 1; None if none does.
        first: the issue that was said to be the costliest; empty if none was.
        said_ms: what it was said to cost.
        named: the place that the issue names; empty if none.
    """

    cause: str
    true_ms: int | None
    measured: bool
    costed: bool
    rank: int | None
    first: str
    said_ms: int | None
    named: str

    @property
    def cost_is_right(self) -> bool | None:
        """Whether the cost is within the tolerance; None where there is none to compare."""
        if self.true_ms is None or self.rank is None:
            return None
        return self.said_ms is not None and abs(self.said_ms - self.true_ms) <= TOLERANCE * self.true_ms


def verdicts(
    outcome: Mapping[str, Any], issues: Sequence[Mapping[str, Any]], twin_took_ms: int | None
) -> list[Verdict]:
    """Return one verdict for each defect, the costliest first.

    Args:
        outcome: of the run with the defects.
        issues: what was said of it, in that order.
        twin_took_ms: how long the twin took, for costs that only the stopwatch knows.
    """
    told = []
    for truth in outcome["truths"]:
        by_stopwatch = truth["cost_ms"] is None
        true_ms = truth["cost_ms"]
        if not truth["costed"]:
            true_ms = None
        elif by_stopwatch and twin_took_ms is not None:
            took = outcome["took_ms"] - twin_took_ms
            true_ms = took if took >= _LEAST_MS else None
        told.append(_verdict(truth, true_ms, by_stopwatch, issues))
    return sorted(told, key=lambda verdict: -(verdict.true_ms or 0))


def false_issues(causes: Sequence[str], issues: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the kinds of those issues that none of these causes explains."""
    true_kinds = {kind for cause in causes for kind in KINDS[cause] | BESIDE.get(cause, frozenset())}
    # What has no cost says where time goes, and accuses nothing.
    return [issue["issue"] for issue in issues if issue["issue"] not in true_kinds and _costs(issue)]


def _costs(issue: Mapping[str, Any]) -> bool:
    return issue["lost_ms"] is not None or issue["lost_bytes"] is not None


def named_place(places: Sequence[str], issue: Mapping[str, Any]) -> str:
    """Return the first of these places that an issue names as a word of its own; empty if none."""
    text = " ".join((issue["about"], issue["sentence"], issue["advice"], json.dumps(issue["evidence"])))
    return next((place for place in places if re.search(rf"(?<!\w){re.escape(place)}(?!\w)", text)), "")


def _verdict(
    truth: Mapping[str, Any], true_ms: int | None, by_stopwatch: bool, issues: Sequence[Mapping[str, Any]]
) -> Verdict:
    saying = [index for index, issue in enumerate(issues) if issue["issue"] in KINDS[truth["cause"]]]
    right = issues[saying[0]] if saying else None
    # A defect in several stages may be told once for each: together they are its cost.
    costs = [issues[index]["lost_ms"] for index in saying if issues[index]["lost_ms"] is not None]
    return Verdict(
        truth["cause"],
        true_ms,
        by_stopwatch,
        truth["costed"],
        saying[0] + 1 if saying else None,
        issues[0]["issue"] if issues else "",
        sum(costs) if costs else None,
        next((place for index in saying if (place := named_place(truth["places"], issues[index]))), "")
        if right
        else "",
    )
