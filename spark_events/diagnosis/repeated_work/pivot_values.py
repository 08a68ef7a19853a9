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
        # How many there were at each place, and how long their stages took, in ms.
        self._of_places: dict[str, tuple[int, int]] = {}

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
        if place not in self._of_places and len(self._of_places) >= _MOST_PLACES:
            return None
        times, took_ms = self._of_places.get(place, (0, 0))
        # What Spark loads and compiles before, the next query would have to wait for.
        self._of_places[place] = times + 1, took_ms + execution.wall_ms(execution.stages)
        return _issue(execution, place, *self._of_places[place])


def _issue(execution: EndedExecution, place: str, times: int, took_ms: int) -> Issue:
    """Return the issue of a place, at which so many queries took so long, with the latest of them."""
    sorts = next((node for node in execution.nodes() if node.name == "Sort"), None)
    column = ", ".join(columns(sorts.text)[:1]) if sorts is not None else ""
    of = column or "its column"
    queries = "a query" if times == 1 else f"{times:,} queries"
    tables = ", ".join(execution.tables()[:3])
    where = place if _AT in place else f"pivot() of {tables}" if tables else "pivot()"
    quoted = f'"{column}"' if column else "…"
    return Issue(
        RECOMPUTATION,
        f"{RECOMPUTATION} {_PIVOT} {sha256(place.encode(errors='replace')).hexdigest()[:16]}",
        took_ms,
        None,
        f"{where} runs {queries} only to find out which values {of} has",
        f'Name the values: pivot({quoted}, ["a", "b", …]) runs no such query. If they are not known before, '
        "cache() what is pivoted.",
        evidence={
            "recomputation.times": times,
            "recomputation.cached": False,
            "recomputation.what": f"the values of {of}",
            "pivot.column": column,
        },
    )
