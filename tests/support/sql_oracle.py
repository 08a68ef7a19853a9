"""An oracle of streaming queries that knows which rows their source has, and looks for each in the targets."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from tests.support.waiting import wait_until

SAID_TWICE = ("come twice", "comes twice", "is written again")
Version = tuple[str, int]
"""The name of a query and its version: what a row says of itself."""


@dataclass
class Query:
    """A query as its manifest wants it.

    Attributes:
        kind: what it does with the rows.
        text: changes with each change of the query.
        at_once: how many files it reads in a micro-batch; its configuration.
        twice: by version, how often more than once a row may be there.
        told: what the plans of its deployments, and their results, said.
    """

    name: str
    kind: str
    text: int = 1
    at_once: int = 1
    twice: dict[Version, Counter[int]] = field(default_factory=dict)
    told: list[str] = field(default_factory=list)

    @property
    def table(self) -> str:
        """Its target."""
        return f"out_{self.kind}"


class Oracle:
    """Looks for rows.

    Args:
        target: the tables.
        seed: of the sequence, for what is found.
    """

    def __init__(self, target: Any, seed: int) -> None:
        self._target = target
        self._seed = seed
        self.found: list[str] = []
        self.at = "start"

    def fault(self, text: str) -> None:
        """Remember a fault, with the step at which it was seen."""
        self.found.append(f"seed {self._seed}, {self.at}: {text}")

    def may_come_twice(self, query: Query, number: int) -> None:
        """Take note that what a version has written by now may come once more."""
        version = (query.name, number)
        query.twice.setdefault(version, Counter()).update(self._of(query, version).keys())

    def check(self, query: Query, number: int, rows: int) -> None:
        """Check that the newest version has all rows, and each older one those up to where it was replaced."""
        version, everything = (query.name, number), set(range(rows))
        self._await(query, version, everything)
        self._lost(version, everything - self._of(query, version).keys())
        for each in sorted({of for _, of in self._target.rows(query.table)}):
            found = self._of(query, each)
            self._lost(each, set(range(max(found) + 1)) - found.keys())
            if not self._target.at_least_once:
                self._check_twice(query, each, found)

    def _await(self, query: Query, version: Version, everything: set[int]) -> None:
        """Wait for all rows, as long as there come more."""

        def there() -> int:
            return len(self._of(query, version).keys() & everything)

        before = -1
        while before < (now := there()) < len(everything):
            before = now
            with suppress(AssertionError):
                wait_until(lambda: there() > before, "more rows")  # noqa: B023

    def _check_twice(self, query: Query, version: Version, found: Counter[int]) -> None:
        allowed = query.twice.get(version, Counter())
        often = sorted(number for number in found if found[number] > 1 + allowed[number])
        if often:
            self.fault(f"{version}: too often {_ranges(often)}")
        said = any(word in text for text in query.told for word in SAID_TWICE)
        # A deployer without Spark reads no log but that of a folder.
        if max(found.values()) > 1 and self._target.tables and not said:
            self.fault(f"{version}: neither a plan nor a result said that rows come twice")

    def _of(self, query: Query, version: Version) -> Counter[int]:
        return Counter(number for number, of in self._target.rows(query.table) if of == version)

    def _lost(self, version: Version, numbers: set[int]) -> None:
        if numbers:
            self.fault(f"{version}: lost {_ranges(sorted(numbers))}")


def _ranges(numbers: list[int]) -> str:
    """Return numbers in short: their count, the first and the last."""
    return f"{len(numbers)} rows, {numbers[0]} to {numbers[-1]}"
