"""The number of restarts of each streaming query, across drivers, too."""

from __future__ import annotations

import os
import re
from pathlib import Path

import orjson

from spark_events.runtime.log_once import logger

_MOST = 10_000


class RestartCounts:
    """Counts by query id, kept in a small JSON file per application if a folder is given.

    Args:
        state_dir: a local folder; None keeps the counts in memory alone.
        app_name: names the file.
    """

    def __init__(self, state_dir: str | None, app_name: str) -> None:
        self._path = (
            Path(state_dir) / f"{re.sub(r'[^A-Za-z0-9._-]', '_', app_name)}.json" if state_dir else None
        )
        self._counts: dict[str, int] = self._load()

    def known(self, query_id: str) -> bool:
        """Return whether the query has run before."""
        return query_id in self._counts

    def count(self, query_id: str) -> int:
        """Return how often the query was restarted."""
        return self._counts.get(query_id, 0)

    def started(self, query_id: str) -> None:
        """Remember a query that starts for the first time."""
        if query_id not in self._counts:
            self._counts[query_id] = 0
            if len(self._counts) > _MOST:  # queries without a checkpoint have a new id each time
                del self._counts[next(iter(self._counts))]
            self._save()

    def restarted(self, query_id: str) -> None:
        """Count one restart."""
        self._counts[query_id] = self.count(query_id) + 1
        self._save()

    def _load(self) -> dict[str, int]:
        if self._path is None or not self._path.exists():
            return {}
        try:
            counts = orjson.loads(self._path.read_bytes())
            return {str(key): int(value) for key, value in counts.items()}
        except (OSError, ValueError, AttributeError) as error:
            logger.error("cannot read %s, so restarts are counted from 0: %s", self._path, error)
            return {}

    def _save(self) -> None:
        if self._path is None:
            return
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            written = self._path.with_suffix(f".{os.getpid()}.tmp")
            written.write_bytes(orjson.dumps(self._counts))
            written.replace(self._path)
        except OSError as error:
            logger.error("spark.events.state.dir: cannot write %s: %s", self._path, error)
            self._path = None
