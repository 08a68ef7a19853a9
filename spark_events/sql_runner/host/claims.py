"""Which query was the last to write into a folder of files, as the store has it.

A query claims the folder before its first micro-batch, and may write none: it fails, and the one before it
comes back. So a claim names that one, too, as long as the folder's log has not grown.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson

from spark_events.sql_runner.store import layout
from spark_events.sql_runner.store.store import Store


@dataclass(frozen=True, slots=True)
class SinkClaim:
    """The claim of a query on a folder.

    Attributes:
        folder: the folder.
        checkpoint: the query's.
        batches_before: what is added to the numbers of its micro-batches in the folder's log.
    """

    folder: str
    checkpoint: str
    batches_before: int

    def values(self) -> dict[str, Any]:
        """Return it as the store has it."""
        return {
            "folder": self.folder,
            "checkpoint": self.checkpoint,
            "batchesBefore": self.batches_before,
        }


class SinkClaims:
    """The claims on one folder; everything raises ``StoreError``.

    Args:
        store: has them.
        folder: the folder.
        last: the last micro-batch in the folder's log.
    """

    def __init__(self, store: Store, folder: str, last: int) -> None:
        self._store = store
        self._path = layout.target(folder)
        self._last = last
        data = store.read(self._path)
        try:
            self._kept: dict[str, Any] | None = dict(orjson.loads(data)) if data is not None else None
        except (ValueError, TypeError):  # damaged: nobody knows who wrote last
            self._kept = {}

    def wrote_last(self, claim: SinkClaim) -> bool:
        """Return whether nobody has written since a query had this claim."""
        if self._kept is None or self._now == claim.values():
            return True
        before = self._before
        return before is not None and before["claim"] == claim.values()

    def take(self, claim: SinkClaim) -> None:
        """Record a claim."""
        if self._now == claim.values():
            return
        before = self._before
        if before is None and self._now:
            before = {"claim": self._now, "last": self._last}
        over = {"over": before} if before else {}
        self._store.write(self._path, orjson.dumps({**claim.values(), **over}))

    @property
    def _now(self) -> dict[str, Any]:
        return {key: value for key, value in (self._kept or {}).items() if key != "over"}

    @property
    def _before(self) -> dict[str, Any] | None:
        """The claim before, if who has the folder now has not written."""
        over = (self._kept or {}).get("over")
        return over if isinstance(over, dict) and over.get("last") == self._last and "claim" in over else None
