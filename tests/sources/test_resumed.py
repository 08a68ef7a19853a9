"""Whether a query that has just started continues from a checkpoint, asked while it goes on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from spark_events.sources.driver import state
from spark_events.sources.driver.state import resumed_after

START_MS = 1_700_000_000_000


class Some:
    """Scala's option."""

    def __init__(self, value: int | None) -> None:
        self.get = lambda: value
        self.isEmpty = lambda: value is None


class Query:
    """What is asked of Spark's StreamExecution, at one look after the other.

    Args:
        committed: the last batch that is in the checkpoint, None for none.
        looks: the current batch, "init" before it is known, and whether there has been progress.
    """

    def __init__(self, committed: int | None, looks: Sequence[tuple[int | str, bool]]) -> None:
        self.looks = list(looks)
        self.commitLog = lambda: self
        self.getLatestBatchId = lambda: Some(committed)

    def getBatchDescriptionString(self) -> str:  # noqa: N802 - Spark's names
        return f"orders\nid = 1\nrunId = 2\nbatch = {self.looks[0][0]}"

    def lastProgress(self) -> Any:  # noqa: N802
        look = self.looks[0]
        if len(self.looks) > 1:
            del self.looks[0]
        return object() if look[1] else None


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "_TRY_AGAIN_S", 0)


@pytest.mark.parametrize(
    ("committed", "looks", "expected"),
    [
        (None, [("init", False)], None),
        (None, [(0, False)], None),
        (4, [("init", False)], 4),
        (4, [(5, False)], 4),
        (0, [(1, False)], 0),
        # A new query that has just committed its first batch, however long its progress takes.
        (0, [(0, False), (0, False), (0, True)], None),
        (0, [(0, False)], None),
        (0, [(0, True)], None),
        (0, [(1, True)], None),
        # One that reads what was committed: at first, it takes the last batch for its own.
        (0, [(0, False), (1, False)], 0),
        (4, [(4, False), (5, False)], 4),
        # One that continues, and has just committed its own first batch.
        (5, [(5, False)], 4),
    ],
)
def test_committed_before(
    committed: int | None, looks: list[tuple[int | str, bool]], expected: int | None
) -> None:
    """Only what the run cannot have committed itself counts."""
    assert resumed_after(None, Query(committed, looks), START_MS) == expected


class Hadoop:
    """Hadoop's classes, for one file and its age."""

    def __init__(self, age_ms: int) -> None:
        self.org = self.apache = self.hadoop = self.fs = self
        self.getFileSystem = self.getFileStatus = lambda _: self
        self.getModificationTime = lambda: START_MS - age_ms

    def Path(self, folder: str, name: str) -> Hadoop:  # noqa: N802
        assert (folder, name) == ("/checkpoints", "metadata")
        return self


@pytest.mark.parametrize(("age_ms", "expected"), [(10_000, -1), (9_999, None), (-5, None)])
def test_older_than_the_run(age_ms: int, expected: int | None) -> None:
    """A checkpoint that was made long before the run is of an earlier one, though nothing is committed."""
    query = Query(None, [(0, False)])
    query.resolvedCheckpointRoot = lambda: "/checkpoints"  # type: ignore[attr-defined]
    query.sparkSession = query.sparkContext = query.hadoopConfiguration = lambda: query  # type: ignore[attr-defined]
    assert resumed_after(Hadoop(age_ms), query, START_MS) == expected
