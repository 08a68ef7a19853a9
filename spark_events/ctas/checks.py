"""Checks of what was written, before it is published: write, audit, publish."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from spark_events.ctas.errors import CheckFailedError, CtasError
from spark_events.ctas.two_phase import TwoPhaseCatalogTable, Written

Check = Callable[[Any, Written], "str | None"]
"""Takes what was written, as a DataFrame, and how much it is; returns what is wrong, or None."""


def row_count(least: int = 1, most: int | None = None) -> Check:
    """Return a check of the number of rows that Spark counted while writing; without a count, they are read.

    Args:
        least: the smallest valid number.
        most: the largest valid number; None for no limit.

    Example::

        sql(spark, "CREATE TABLE daily AS SELECT …", checks=[row_count(least=1_000)])
    """

    def check(data: Any, written: Written) -> str | None:
        rows = data.count() if written.rows is None else written.rows
        if rows < least:
            return f"{rows} rows were written; expected at least {least}"
        if most is not None and rows > most:
            return f"{rows} rows were written; expected at most {most}"
        return None

    return check


def each_row(predicate: str) -> Check:
    """Return a check that a predicate holds for each row; as in a CHECK constraint, NULL is valid.

    Args:
        predicate: in SQL, over the columns of the table, such as ``amount >= 0``.

    Example::

        sql(spark, "CREATE TABLE daily AS SELECT …", checks=[each_row("amount >= 0")])
    """

    def check(data: Any, written: Written) -> str | None:
        broken = data.where(f"NOT ({predicate})").count()
        return f"{broken} rows violate {predicate!r}" if broken else None

    return check


def run_checks(checks: Sequence[Check], table: TwoPhaseCatalogTable, written: Written) -> None:
    """Run all checks, so that one error names all problems.

    Raises:
        CheckFailedError: there is one.
        CtasError: a check returned neither a text nor None.
    """
    if not checks:
        return
    data = table.written()
    problems = []
    for check in checks:
        problem = check(data, written)
        if problem is not None and not isinstance(problem, str):
            raise CtasError(
                f"a check, {check!r}, returned {problem!r}; expected a sentence of what is wrong, or None"
            )
        if problem:
            problems.append(problem)
    if problems:
        raise CheckFailedError("the table was not published: " + "; ".join(problems))
