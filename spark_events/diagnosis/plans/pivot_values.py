"""The rule about queries that ``pivot()`` runs to find out which values a column has."""

from __future__ import annotations

from hashlib import sha256

from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.plans.execution import EndedExecution, fills_cache
from spark_events.diagnosis.plans.node import IN_MEMORY, columns
from spark_events.diagnosis.thresholds import RECOMPUTATION

_PIVOT, _AT = "pivot", " at "
_MOST_PLACES = 1_000


class PivotValues:
    """Adds up what these queries cost, for each place in the code: whoever names the values has none.

    Source: Spark's ``RelationalGroupedDataset.pivot``.
    """

    def __init__(self) -> None:
        self._of_places: dict[str, Issue] = {}

    def take(self, execution: EndedExecution, place: str) -> Issue | None:
        """Called with each SQL execution that has ended; returns what those of its place cost so far.

        Args:
            execution: it.
            place: in the user's code that it is for, or by the tables that it reads; empty if unknown.

        Returns:
            None if it is no such query, or fills a cache, which what comes after it may need.
        """
        if place.partition(" ")[0] != _PIVOT or not execution.plans:
            return None
        if any(node.name == IN_MEMORY and fills_cache(node) for node in execution.nodes()):
            return None
        before = self._of_places.get(place)
        if before is None and len(self._of_places) >= _MOST_PLACES:
            return None
        self._of_places[place] = issue = _issue(execution, place, before)
        return issue


def _issue(execution: EndedExecution, place: str, before: Issue | None) -> Issue:
    """Return the issue of a place with the cost of one more query."""
    sorts = next((node for node in execution.nodes() if node.name == "Sort"), None)
    column = ", ".join(columns(sorts.text)[:1]) if sorts is not None else ""
    of = column or "its column"
    times = 1 + int(str(before.evidence["recomputation.times"])) if before is not None else 1
    queries = "a query" if times == 1 else f"{times:,} queries"
    tables = ", ".join(execution.tables()[:3])
    where = place if _AT in place else f"pivot() of {tables}" if tables else "pivot()"
    quoted = f'"{column}"' if column else "…"
    return Issue(
        RECOMPUTATION,
        f"{RECOMPUTATION} {_PIVOT} {sha256(place.encode(errors='replace')).hexdigest()[:16]}",
        execution.lasted_ms + ((before.lost_ms or 0) if before is not None else 0),
        None,
        f"{where} runs {queries} only to find out which values {of} has, and computes for that what "
        f"it aggregates afterwards",
        f'Name the values: pivot({quoted}, ["a", "b", …]) runs no such query. If they are not known before, '
        "cache() what is pivoted.",
        evidence={
            "recomputation.times": times,
            "recomputation.cached": False,
            "recomputation.what": f"the values of {of}",
            "pivot.column": column,
        },
    )
