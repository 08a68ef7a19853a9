"""The tables of what was told: a line for each defect, and one for each cause with precision and recall."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from tests.support.slow.case import CASES
from tests.support.slow.expected import KINDS
from tests.support.slow.judge import Verdict, false_issues, verdicts
from tests.support.slow.run import Told


@dataclass(frozen=True)
class Pair:
    """A case with its defects and its twin, as they were told.

    Attributes:
        bad: None for a case without a defect.
    """

    bad: Told | None
    twin: Told

    @property
    def verdicts(self) -> list[Verdict]:
        """One for each defect."""
        if self.bad is None:
            return []
        return verdicts(self.bad.outcome, self.bad.issues, self.twin.outcome["took_ms"])

    @property
    def false_beside(self) -> list[str]:
        """What was said of the run with defects and is none of them."""
        if self.bad is None:
            return []
        causes = [truth["cause"] for truth in self.bad.outcome["truths"]]
        return _without_needed(self.bad.case, false_issues(causes, self.bad.issues))

    @property
    def false_of_twin(self) -> list[str]:
        """What was said of the twin."""
        return _without_needed(self.twin.case, false_issues([], self.twin.issues))


def _without_needed(case: str, issues: Iterable[str]) -> list[str]:
    """Return issues without those that say where the time goes of what the case needs."""
    needed = CASES[case].needed if case in CASES else frozenset()
    return [issue for issue in issues if issue not in needed]


@dataclass
class Row:
    """What became of one cause in all runs."""

    verdicts: list[Verdict] = field(default_factory=list)
    said_first: Counter[str] = field(default_factory=Counter)
    twins: int = 0
    accused_twins: int = 0
    """Twins of which the same was said."""


def case_lines(pairs: Iterable[Pair]) -> Iterator[str]:
    """Yield a table with a line for each defect of each run."""
    yield "| case, seed | cause | rank | first | said / true | run, twin | place | false beside it | twin |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    for pair in pairs:
        name = f"{pair.twin.case}, {pair.twin.seed}"
        beside, twin = _list(pair.false_beside), _list(pair.false_of_twin)
        if pair.bad is None:
            yield f"| {name} | none | | | | | | | {twin} |"
        for verdict in pair.verdicts:
            yield (
                f"| {name} | {verdict.cause} | {verdict.rank or '-'} | {verdict.first or 'nothing'} "
                f"| {_cost(verdict)} | {_took(pair.bad)}, {_took(pair.twin)} "
                f"| {verdict.named or '-'} | {beside} | {twin} |"
            )


def matrix_lines(pairs: Sequence[Pair]) -> list[str]:
    """Return the matrix: what was said of each cause, and the precision of each issue."""
    rows = _rows(pairs)
    lines = [
        "| cause | named first | named | cost within 20 % | place named | named first instead | twins accused |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for cause, row in sorted(rows.items()):
        of = row.verdicts
        right_costs = [verdict.cost_is_right for verdict in of if verdict.true_ms is not None]
        instead = _list(row.said_first.elements()) if row.said_first else ""
        lines.append(
            f"| {cause} | {_count(of, lambda verdict: verdict.rank == 1)} "
            f"| {_count(of, lambda verdict: verdict.rank is not None)} "
            f"| {sum(map(bool, right_costs))} of {len(right_costs)} "
            f"| {_count(of, lambda verdict: bool(verdict.named))} | {instead} "
            f"| {row.accused_twins} of {row.twins} |"
        )
    return [*lines, "", *_precision(pairs), "", *_sums(pairs)]


def _rows(pairs: Iterable[Pair]) -> dict[str, Row]:
    rows: dict[str, Row] = {}
    for pair in pairs:
        for place, verdict in enumerate(pair.verdicts):
            row = rows.setdefault(verdict.cause, Row())
            row.verdicts.append(verdict)
            row.twins += 1
            row.accused_twins += bool(KINDS[verdict.cause] & set(pair.false_of_twin))
            # With several defects, the second is not expected to be told first.
            if place == 0 and verdict.rank != 1:
                row.said_first[verdict.first or "nothing"] += 1
    return rows


def _precision(pairs: Iterable[Pair]) -> Iterator[str]:
    """Yield a table of each issue: how often it was said, and how often it was right."""
    said: Counter[str] = Counter()
    false: Counter[str] = Counter()
    for pair in pairs:
        false.update([*pair.false_beside, *pair.false_of_twin])
        for told in (pair.bad, pair.twin):
            said.update(issue["issue"] for issue in (told.issues if told else []))
    yield "| issue | reported | true | precision |"
    yield "| --- | --- | --- | --- |"
    for kind, number in sorted(said.items()):
        yield f"| {kind} | {number} | {number - false[kind]} | {1 - false[kind] / number:.2f} |"


def _sums(pairs: Sequence[Pair]) -> Iterator[str]:
    """Yield the figures of all together."""
    of = [verdict for pair in pairs for verdict in pair.verdicts]
    firsts = [pair.verdicts[0] for pair in pairs if pair.verdicts]
    costs = [verdict.cost_is_right for verdict in of if verdict.true_ms is not None]
    silent = sum(1 for pair in pairs if not pair.false_of_twin)
    said = sum(len(told.issues) for pair in pairs for told in (pair.bad, pair.twin) if told)
    false = sum(len(pair.false_beside) + len(pair.false_of_twin) for pair in pairs)
    yield (
        f"Named first: {_count(firsts, lambda verdict: verdict.rank == 1)}. "
        f"Named at all (recall): {_count(of, lambda verdict: verdict.rank is not None)}. "
        f"Cost within 20 %: {sum(map(bool, costs))} of {len(costs)}. "
        f"Place named: {_count(of, lambda verdict: bool(verdict.named))}. "
        f"Twins without a false issue: {silent} of {len(pairs)}. "
        f"True issues, of all that were reported (precision): {said - false} of {said}."
    )


def _count(verdicts: Sequence[Verdict], holds: Callable[[Verdict], bool]) -> str:
    return f"{sum(1 for verdict in verdicts if holds(verdict))} of {len(verdicts)}"


def _cost(verdict: Verdict) -> str:
    if not verdict.costed:
        return "only its time is to be told"
    if verdict.true_ms is None:
        return "not in time" if not verdict.measured else "too short to measure"
    said = "-" if verdict.said_ms is None else f"{verdict.said_ms / 1_000:.1f}"
    by = " s by the stopwatch" if verdict.measured else " s"
    difference = "" if verdict.said_ms is None else f" ({verdict.said_ms / verdict.true_ms - 1:+.0%})"
    return f"{said} / {verdict.true_ms / 1_000:.1f}{by}{difference}"


def _took(told: Told | None) -> str:
    return f"{told.outcome['took_ms'] / 1_000:.1f} s" if told else ""


def _list(kinds: Iterable[str]) -> str:
    counted = Counter(kinds)
    return ", ".join(f"{kind} ({number})" if number > 1 else kind for kind, number in sorted(counted.items()))
