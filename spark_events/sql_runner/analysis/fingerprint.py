"""A fingerprint that shows whether a query has changed, from its plan rather than its text."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any

import orjson

from spark_events.sql_runner.analysis.code_text import syntax
from spark_events.sql_runner.analysis.jvm import entry_of
from spark_events.sql_runner.manifest.manifest import Manifest

_FORMAT = 1
# What Spark numbers throughout the life of a driver: columns, whose numbers follow their names, queries in
# WITH, and expressions that are used twice.
_NUMBER = re.compile(
    r"[^\s()\[\],'\"=<>+*/-]*#(?P<column>\d+)L?|\bCTERelation(?:Def|Ref) (?P<cte>\d+)"
    r"|\bCommonExpressionId\((?P<common>\d+)"
)
# Spark 4 gives each watermark a UUID.
_WATERMARK = re.compile(r"(?<=EventTimeWatermark )[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}, ")
# The options of a source that determine which data is read; all others determine how.
_DATA_OPTIONS = (
    "path",
    "subscribe",
    "subscribepattern",
    "assign",
    "topic",
    "url",
    "dbtable",
    "query",
    "table",
)


def fingerprint(session: Any, manifest: Manifest, data: Any, *, with_code: bool = True) -> str:
    """Return a hash that is equal for two queries that compute the same in the same way.

    Comments, white space, upper and lower case, the names of intermediate results and the reading speed of
    a source do not affect it. The sources and their columns, each step, the resulting columns, the target,
    the output mode and, for ``code``, the syntax tree do, which ``with_code`` can leave out.
    """
    plan = data._jdf.queryExecution().analyzed()
    form = orjson.loads(entry_of(session).normalForm(plan))
    warehouse = session.conf.get("spark.sql.warehouse.dir")
    parts = {
        "format": _FORMAT,
        "plan": _renumbered([*(source["output"] for source in form["sources"]), *form["plan"]]),
        "texts": form["texts"],
        "sources": [_source(source, warehouse) for source in form["sources"]],
        "columns": _columns(form["columns"]),
        "query": manifest.query,
        "code": syntax(manifest.code) if manifest.code is not None and with_code else None,
    }
    return hashlib.sha256(orjson.dumps(parts, option=orjson.OPT_SORT_KEYS)).hexdigest()


def _renumbered(lines: list[str]) -> list[str]:
    """Return the lines with everything renumbered in the order of occurrence."""
    numbers: dict[tuple[str, str], int] = {}

    def renumber(match: re.Match[str]) -> str:
        kind = str(match.lastgroup)
        return f"{kind} {numbers.setdefault((kind, match[kind]), len(numbers))}"

    return [_NUMBER.sub(renumber, _WATERMARK.sub("", line)) for line in lines]


def _source(source: Mapping[str, Any], warehouse: str) -> dict[str, Any]:
    """Return the identity of a source, which includes neither the reading speed nor the brokers."""
    named = source.get("table")
    return {
        "columns": _columns(source["columns"]),
        "streaming": source["streaming"],
        "table": named,
        "format": None if named else source.get("format"),
        "paths": [_without(path, warehouse) for path in source.get("paths") or ()],
        "options": {
            key.lower(): _without(value, warehouse)
            for key, value in (source.get("options") or {}).items()
            if key.lower() in _DATA_OPTIONS
        },
    }


def _without(path: str, warehouse: str) -> str:
    """Return a path without the warehouse, which is a different one when a query is only analyzed."""
    return re.sub("^" + re.escape(_plain(warehouse)), "warehouse:", _plain(path))


def _plain(path: str) -> str:
    return re.sub("^file:/+", "/", path).rstrip("/")


def _columns(schema: str) -> Any:
    """Return names and types, without nullability, which differs from one Spark to the next."""
    return _type(orjson.loads(schema))["fields"]


def _type(data_type: Any) -> Any:
    if not isinstance(data_type, dict):
        return data_type
    return {
        key: [[field["name"], _type(field["type"])] for field in value] if key == "fields" else _type(value)
        for key, value in data_type.items()
        if key not in ("containsNull", "valueContainsNull", "nullable", "metadata")
    }
