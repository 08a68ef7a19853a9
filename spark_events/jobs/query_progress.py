"""How far a streaming query has come, at most once an interval: a catalog sees how fresh its data is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from spark_events.api import DataRead, LineageVertex


class QueryProgress:
    """The micro-batches of a run since the last report.

    Args:
        start_ms: when the run started, in ms since the epoch.
    """

    def __init__(self, start_ms: int) -> None:
        self.batch = -1
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
        self.batch = int(progress["batchId"])
        written = (progress.get("sink") or {}).get("numOutputRows")
        if written is not None and int(written) >= 0:  # -1 of sinks that do not count
            self._written = (self._written or 0) + int(written)

    def is_due(self, now_ms: int, interval_ms: int) -> bool:
        """Return whether an interval has passed since the last report, or since the start."""
        return interval_ms > 0 and now_ms - self._reported_ms >= interval_ms

    def take(
        self, vertices: Sequence[LineageVertex], now_ms: int
    ) -> tuple[tuple[DataRead, ...], dict[str, int]]:
        """Return what was read of each source and how many rows were written since the last call.

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
        self._rows, self._written, self._reported_ms = [0] * len(self._rows), None, now_ms
        return reads, written


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
