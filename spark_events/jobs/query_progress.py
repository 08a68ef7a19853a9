"""How far a streaming query has come, at most once an interval: a catalog sees how fresh its data is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from spark_events.api import DataRead, DataWritten, LineageVertex

_NO_BATCH = -1


class QueryProgress:
    """The micro-batches of a run since the last report.

    Args:
        start_ms: when the run started, in ms since the epoch.
        versioned: whether the versions that it writes are told, so that a report waits for one.

    Attributes:
        batch: the number of the last micro-batch.
    """

    def __init__(self, start_ms: int, versioned: bool = False) -> None:
        self.batch = _NO_BATCH
        self._versioned = versioned
        self._version_batch = _NO_BATCH
        self._made: tuple[DataWritten, ...] = ()
        self._waits_since: tuple[int, int] | None = None
        self._has_news = False
        self._reported_ms = start_ms
        self._rows: list[int] = []
        self._offsets: list[Any] = []
        self._written: int | None = None

    def add(self, progress: Mapping[str, Any]) -> None:
        """Add a micro-batch, by Spark's progress."""
        sources = progress.get("sources") or []
        rows = [int(source.get("numInputRows") or 0) for source in sources]
        same = len(rows) == len(self._rows)
        self._rows = [sum(pair) for pair in zip(self._rows, rows, strict=True)] if same else rows
        self._offsets = [source.get("endOffset") for source in sources]
        self.batch, self._has_news = int(progress["batchId"]), True
        written = (progress.get("sink") or {}).get("numOutputRows")
        if written is not None and int(written) >= 0:  # -1 of sinks that do not count
            self._written = (self._written or 0) + int(written)

    def add_version(self, batch: int, made: tuple[DataWritten, ...]) -> None:
        """Add the version that a micro-batch has written; its progress may still be to come."""
        self._version_batch, self._made = batch, made

    def is_due(self, now_ms: int, interval_ms: int, patience_ms: int) -> bool:
        """Return whether an interval has passed since the last report, or since the start.

        A report waits for the version of its last micro-batch, which is looked up in the meantime.
        """
        if not self._has_news or interval_ms <= 0 or now_ms - self._reported_ms < interval_ms:
            return False
        if not self._versioned:
            return True
        batch, since_ms = self._waits_since = self._waits_since or (self.batch, now_ms)
        return batch <= self._version_batch <= self.batch or now_ms - since_ms >= patience_ms

    def take(
        self, vertices: Sequence[LineageVertex], now_ms: int
    ) -> tuple[tuple[DataRead, ...], dict[str, int], tuple[DataWritten, ...]]:
        """Return, since the last call, what was read of each source, the rows written, and the version.

        Args:
            vertices: the sources, in the order of the plan, as Spark's progress has them.
            now_ms: the time of the report.
        """
        reads: tuple[DataRead, ...] = ()
        if len(vertices) == len(self._rows):
            reads = tuple(
                read
                for vertex, rows, offset in zip(vertices, self._rows, self._offsets, strict=True)
                for read in _reads(vertex, rows, offset)
            )
        written = {} if self._written is None else {"rows": self._written}
        made = self._made if self._version_batch <= self.batch else ()
        if made:
            self._made = ()
        self._rows, self._written, self._reported_ms = [0] * len(self._rows), None, now_ms
        self._waits_since, self._has_news = None, False
        return reads, written, made


def _reads(vertex: LineageVertex, rows: int, offset: Any) -> list[DataRead]:
    """Return a read for each dataset; of several, as of topics, the rows of each are not known."""
    if len(vertex.datasets) == 1:
        (dataset,) = vertex.datasets
        of_topic = offset.get(dataset.name) if isinstance(offset, dict) else None
        shown = offset if of_topic is None else of_topic
        return [DataRead(dataset.namespace, dataset.name, _text(shown), rows)]
    offsets = offset if isinstance(offset, dict) else {}
    return [
        DataRead(dataset.namespace, dataset.name, _text(offsets.get(dataset.name)))
        for dataset in vertex.datasets
    ]


def _text(offset: Any) -> str:
    if offset is None or isinstance(offset, str):
        return offset or ""
    return orjson.dumps(offset).decode()
