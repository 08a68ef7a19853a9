"""A micro-batch, by what Spark says of it."""

from __future__ import annotations

import re
from typing import NamedTuple

# A name, and "id = …", "runId = …", "batch = …".
_DESCRIPTION = re.compile(r"\nrunId = (?P<run>\S+)\nbatch = (?P<batch>\S+)")


class MicroBatch(NamedTuple):
    """A micro-batch of a streaming query.

    Attributes:
        run_id: the id of the query's run.
        number: the batch's id; None if the run has not begun its first batch.
    """

    run_id: str
    number: int | None


def parse_micro_batch(description: object) -> MicroBatch | None:
    """Return the micro-batch that an SQL execution's description names; None if it is not a micro-batch."""
    match = _DESCRIPTION.search(str(description or ""))
    if match is None:
        return None
    return MicroBatch(match["run"], int(match["batch"]) if match["batch"].isdecimal() else None)
