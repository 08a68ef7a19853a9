"""By how much SQL metrics have grown with each stage."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Container, Iterator, Mapping
from typing import Any

_MOST_SEEN = 10_000


class GrownMetrics:
    """Remembers the values of some SQL metrics of one application.

    A metric belongs to a node of a plan, and many stages may run a plan: what each tells is the sum so far.

    Args:
        names: of the metrics, as Spark has them.
    """

    def __init__(self, names: Container[str]) -> None:
        self._names = names
        self._seen: OrderedDict[int, int] = OrderedDict()

    def of_stage(self, info: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
        """Yield each metric that has grown with a stage, and by how much.

        Args:
            info: the ``Stage Info`` of its StageCompleted.
        """
        for accumulable in info.get("Accumulables") or ():
            name = str(accumulable.get("Name"))
            if name not in self._names:
                continue
            try:
                number, total = int(accumulable["ID"]), int(accumulable.get("Value") or 0)
            except (KeyError, TypeError, ValueError):
                continue
            before = self._seen.pop(number, 0)
            self._seen[number] = max(before, total)
            if len(self._seen) > _MOST_SEEN:
                self._seen.popitem(last=False)
            if total > before:
                yield name, total - before
