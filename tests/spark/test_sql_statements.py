"""SQL files are split at semicolons, but not at those in quotes or comments."""

from __future__ import annotations

import pytest

from spark_events.spark.sql_statements import split_statements


@pytest.mark.parametrize(
    ("text", "statements"),
    [
        ("SELECT 1; SELECT 2", [("SELECT 1", 1), ("SELECT 2", 1)]),
        ("\n\n  SELECT 1\n;\n;\n", [("SELECT 1", 3)]),
        ("SELECT ';', \";\", `;` FROM t; SELECT 2", [("SELECT ';', \";\", `;` FROM t", 1), ("SELECT 2", 1)]),
        (r"SELECT 'it\'s;'; SELECT 2", [(r"SELECT 'it\'s;'", 1), ("SELECT 2", 1)]),
        ("-- one; two\nSELECT 1 -- three;\n, 2;", [("SELECT 1 -- three;\n, 2", 2)]),
        ("/* a; /* b; */ c; */ SELECT 1; /* open ;", [("SELECT 1", 1), ("/* open ;", 1)]),
        ("SELECT 1;\n/* open\nSELECT 2;", [("SELECT 1", 1), ("/* open\nSELECT 2;", 2)]),
        ("SELECT 1 /* open ; SELECT 2", [("SELECT 1 /* open ; SELECT 2", 1)]),
        ("SELECT 3 - 2, 4 / 2;", [("SELECT 3 - 2, 4 / 2", 1)]),
        ("SELECT 'open ; SELECT 2", [("SELECT 'open", 1), ("SELECT 2", 1)]),
        ("", []),
        (" ; -- nothing", []),
    ],
)
def test_statements(text: str, statements: list[tuple[str, int]]) -> None:
    assert [tuple(statement) for statement in split_statements(text)] == statements
