"""Which micro-batch an SQL execution is."""

from __future__ import annotations

import pytest

from spark_events.listeners.queries.micro_batch import MicroBatch, parse_micro_batch


@pytest.mark.parametrize(
    ("description", "batch"),
    [
        ("orders\nid = q\nrunId = r-1\nbatch = 7", MicroBatch("r-1", 7)),
        ("\nid = q\nrunId = r-1\nbatch = init", MicroBatch("r-1", None)),
        ("a\nrunId = no\nid = q\nrunId = r-1\nbatch = 0", MicroBatch("r-1", 0)),
        ("save at jobs.py:3", None),
        ("runId = r-1\nbatch = 7", None),
        ("", None),
        (None, None),
    ],
)
def test_descriptions(description: object, batch: MicroBatch | None) -> None:
    """The lines that Spark writes below the query's name, whatever that is."""
    assert parse_micro_batch(description) == batch
