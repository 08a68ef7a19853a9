"""The clauses that ``create_table_as`` writes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from spark_events.ctas.checks import Check, row_count
from spark_events.ctas.errors import CtasError
from spark_events.ctas.statement import _conditions, buckets_clause, columns, create_table_as, sql


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
    with pytest.raises(CtasError, match="sort_by='id' sorts"):
        buckets_clause(None, "id")


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("partition_by", 5),
        ("partition_by", [5]),
        ("sort_by", 5),
        ("bucket_by", 2),
        ("bucket_by", "id"),
        ("bucket_by", (2,)),
        ("bucket_by", ("x", ["id"])),
        ("bucket_by", (2, 5)),
        ("properties", "a=b"),
        ("options", [("a", "b")]),
        ("comment", 5),
        ("location", 5),
        ("format", 5),
        ("checks", "x"),
        ("checks", row_count()),
        ("checks", [5]),
        ("checks", None),
        ("data", "SELECT 1"),
        ("data", None),
        ("table", None),
        ("table", ""),
    ],
)
def test_arguments_of_other_types(argument: str, value: Any) -> None:
    """They are refused before anything is made, with what is allowed."""
    given = {"data": SimpleNamespace(sparkSession=None), "table": "t", argument: value}
    with pytest.raises(CtasError, match=rf"{argument}={re.escape(repr(value))} is not valid; expected "):
        create_table_as(**given)


@pytest.mark.parametrize("value", [None, 5, ["CREATE TABLE t AS SELECT 1"]])
def test_a_statement_that_is_no_text(value: Any) -> None:
    with pytest.raises(CtasError, match=rf"statement={re.escape(repr(value))} is not valid; expected a text"):
        sql(SimpleNamespace(), value)  # type: ignore[arg-type]


@pytest.mark.parametrize("several", [(), [], iter(()), [row_count()], (check for check in (row_count(),))])
def test_checks_in_any_order_of_functions(several: Iterable[Check]) -> None:
    assert len(_conditions(several, None, ()).checks) <= 1


def test_a_text_is_one_column() -> None:
    """Not one for each of its letters."""
    assert columns("day") == "`day`"
    assert columns(("day", "hour")) == "`day`, `hour`"
