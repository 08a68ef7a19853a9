"""Where the SQL of DuckDB and of Spark differ, in the statements that both run."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

_ESCAPED = "'\\\0$"
_AT_ESCAPED = re.compile(r"(['\\\0$])")
_HALF_A_PAIR = re.compile("[\ud800-\udfff]")


def sql_text(text: str) -> str:
    """Return a text as both have it: Spark takes a backslash as the begin of an escape, DuckDB does not.

    Spark replaces ``${…}`` in a statement, and one of DuckDB's ends at a NUL. Half a surrogate pair, which an
    argument that is not UTF-8 becomes, is in no stored text.
    """
    text = _HALF_A_PAIR.sub("\ufffd", text)
    parts = (
        f"chr({ord(part)})" if part in _ESCAPED else f"'{part}'" for part in _AT_ESCAPED.split(text) if part
    )
    return f"concat({', '.join(parts)})" if text else "''"


def no_rows(columns: Mapping[str, str]) -> str:
    """Return what to select from for no row at all of some columns, given with their types."""
    nothing = ", ".join(f"CAST(NULL AS {of_type}) AS {name}" for name, of_type in columns.items())
    return f"(SELECT {nothing} WHERE false)"


class Dialect(NamedTuple):
    """Templates of the expressions that a database writes in its own way.

    Attributes:
        integer: of a text column, the number in it; null where it has none.
        labels: the labels among ``attributes`` as one text in order, ``team=payments, type=USER``.
    """

    integer: str
    labels: str


LABEL = "failureLabel."
_NAME = f"substring(pair.key, {len(LABEL) + 1}, 1000)"

DUCKDB = Dialect(
    # DuckDB would round 12.5, and take 1e3.
    integer="CASE WHEN regexp_full_match({text}, ' *[-+]?[0-9]+ *') THEN try_cast({text} AS BIGINT) END",
    labels=(
        "array_to_string(list_sort(list_transform(list_filter(map_entries(attributes), "
        f"lambda pair: starts_with(pair.key, '{LABEL}') AND pair.value IS NOT NULL), "
        f"lambda pair: {_NAME} || '=' || pair.value)), ', ')"
    ),
)
SPARK = Dialect(
    integer="try_cast({text} AS BIGINT)",
    labels=(
        f"array_join(array_sort(transform(map_entries(map_filter(attributes, (key, value) -> "
        f"startswith(key, '{LABEL}') AND value IS NOT NULL)), "
        f"pair -> concat({_NAME}, '=', pair.value))), ', ')"
    ),
)
