"""The clauses that ``create_table_as`` writes."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from spark_events.ctas.errors import CtasError
from spark_events.ctas.statement import buckets_clause, columns


@pytest.mark.parametrize(
    ("bucket_by", "sort_by", "clause"),
    [
        (None, (), ""),
        ((4, ["a", "b"]), (), "CLUSTERED BY (`a`, `b`) INTO 4 BUCKETS"),
        ((2, "day"), "hour", "CLUSTERED BY (`day`) SORTED BY (`hour`) INTO 2 BUCKETS"),
        ((2, ["a"]), ["b"], "CLUSTERED BY (`a`) SORTED BY (`b`) INTO 2 BUCKETS"),
    ],
)
def test_buckets(bucket_by: tuple[int, Sequence[str]] | None, sort_by: Sequence[str], clause: str) -> None:
    assert buckets_clause(bucket_by, sort_by) == clause


def test_there_are_no_sorted_rows_without_buckets() -> None:
    with pytest.raises(CtasError, match=r"sort_by=\['a'\] sorts the rows of buckets, so it needs bucket_by"):
        buckets_clause(None, ["a"])


def test_a_text_is_one_column() -> None:
    """Not one for each of its letters."""
    assert columns("day") == "`day`"
    assert columns(("day", "hour")) == "`day`, `hour`"
