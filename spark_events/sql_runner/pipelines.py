"""Exports manifests to a spec of Spark Declarative Pipelines, where they can be (PySpark 4.1 and newer)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spark_events.api import ConfigError
from spark_events.sql_runner.analyst import Analyst
from spark_events.sql_runner.folder import Manifests
from spark_events.sql_runner.jvm import entry_of
from spark_events.sql_runner.manifest import Manifest
from spark_events.sql_runner.query_data import (
    OWN_SCHEMA,
    WATERMARK_COLUMN,
    WATERMARK_DELAY,
    QueryError,
    streams_of,
    table_name,
)
from spark_events.sql_runner.yaml_text import write_yaml
from spark_events.sql_text import literal, quoted

_IDENTIFIER = r"(?:`(?:``|[^`])*`|\w+)"
_NAME = re.compile(rf"{_IDENTIFIER}(?:\s*\.\s*{_IDENTIFIER})*")
_VIEW = re.compile(r"CREATE\s+(?:OR\s+REPLACE\s+)?TEMP(?:ORARY)?\s+VIEW\s+", re.I)
_HEAD = '''"""What the flows read, as the table definitions have it; written by spark-events sql."""

from pyspark import pipelines as dp
from pyspark.sql import SparkSession

spark = SparkSession.active()
'''
_NOT_CARRIED = (
    "__query_id and __query_version (a pipeline has no versions), target-table's LOCATION (the pipeline "
    "makes the table), trigger and sparkProperties (a pipeline runs when told to, with one configuration)"
)


@dataclass
class Export:
    """What was written.

    Attributes:
        files: the files.
        left_out: why manifests cannot be exported, by their names.
        not_carried: what of the others a pipeline has no place for.
    """

    files: list[Path] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    not_carried: str = _NOT_CARRIED


def export_pipeline(analyst: Analyst, manifests: Manifests, folder: Path, storage: str) -> Export:
    """Write a pipeline into a folder: its spec, a file of sources, and an SQL file for each manifest.

    Args:
        analyst: has the table definitions.
        manifests: the manifests.
        folder: where it is written; what is there under the same names is replaced.
        storage: where the pipeline keeps its checkpoints, as an absolute URL.

    Raises:
        ConfigError: the folder cannot be written, or a table definition cannot be run.
    """
    done = Export()
    sources: dict[str, str] = {}
    flows: dict[str, str] = {}
    for name, manifest in manifests.by_name.items():
        try:
            analyst.analyse(manifest)
            flows[name] = _flow(analyst, manifest, sources)
        except QueryError as error:
            done.left_out[name] = str(error)
    if flows:
        _write(done, folder, storage, analyst, sources, flows)
    return done


def _write(
    done: Export, folder: Path, storage: str, analyst: Analyst, sources: dict[str, str], flows: dict[str, str]
) -> None:
    spec = {
        "name": folder.resolve().name,
        "storage": storage,
        "libraries": [{"glob": {"include": "transformations/**"}}],
    }
    texts = {
        "spark-pipeline.yml": write_yaml(spec),
        "transformations/sources.py": _HEAD + "".join(sources.values()),
    }
    views = list(_views(analyst.statements))
    if views:
        texts["transformations/views.sql"] = "".join(f"{view};\n" for view in views)
    texts |= {f"transformations/{name}.sql": text for name, text in flows.items()}
    try:
        for name, text in texts.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            done.files.append(path)
    except OSError as error:
        raise ConfigError(f"--output {folder}: cannot be written: {error}") from error


def _flow(analyst: Analyst, manifest: Manifest, sources: dict[str, str]) -> str:
    if manifest.sql is None:
        raise QueryError("is code, and a flow of a pipeline is SQL or a function of its own")
    if manifest.output_mode != "append":
        raise QueryError(f"output-mode {manifest.output_mode}: a flow of a pipeline appends")
    session = analyst.session(manifest)
    entry = entry_of(session)
    target = quoted(list(entry.nameParts(manifest.target_table))[-1:])
    provider = entry.table(manifest.target_table)["provider"]
    using = f" USING {provider}" if provider else ""
    query = _with_streams(session, entry, manifest, manifest.sql, sources)
    return (
        f"-- {manifest.description or manifest.name}\n"
        f"CREATE STREAMING TABLE {target}{using};\n\n"
        f"CREATE FLOW {quoted([manifest.name])} AS INSERT INTO {target} BY NAME\n"
        f"SELECT *{_metadata(manifest)}\nFROM (\n{query.strip()}\n);\n"
    )


def _metadata(manifest: Manifest) -> str:
    if not manifest.include_query_metadata:
        return ""
    name, description = (literal(text) for text in (manifest.name, manifest.description))
    return (
        ",\n  current_timestamp() AS __create_timestamp"
        f",\n  {name} AS __query_name,\n  {description} AS __query_description"
    )


def _with_streams(session: Any, entry: Any, manifest: Manifest, sql: str, sources: dict[str, str]) -> str:
    """Return SQL that says STREAM of each table that is one, by the names of the pipeline's views."""
    relations = entry.relations(entry.parse(sql))
    if list(relations.declared()):
        return sql
    streams = {tuple(name) for name in streams_of(session, entry, manifest, relations)}
    changes = []
    for name, start in ((tuple(place[0]), place[1]) for place in relations.places()):
        found = _NAME.match(sql, start)
        view = _source(session, entry, name, name in streams, sources)
        if found and view:
            changes.append((found.span(), ("STREAM " if name in streams else "") + view))
    for (start, end), text in sorted(changes, reverse=True):
        sql = sql[:start] + text + sql[end:]
    return sql


def _source(session: Any, entry: Any, name: tuple[str, ...], streaming: bool, sources: dict[str, str]) -> str:
    """Add the view that reads a table, and return its name; empty for what a pipeline finds by itself."""
    if table_name(session, name) is None:
        return ""
    table = entry.table(quoted(name))
    if not table["provider"]:
        return "" if not streaming else quoted(name)
    view = quoted(name[-1:])
    sources.setdefault(view, _reader(session, table, name, streaming))
    return view


def _reader(session: Any, table: Any, name: tuple[str, ...], streaming: bool) -> str:
    properties = dict(table["properties"])
    options = {key: value for key, value in dict(table["options"]).items() if key.lower() != "path"}
    call = f"spark.{'readStream' if streaming else 'read'}.format({table['provider']!r})"
    if options:
        call += f".options(**{options!r})"
    if table["provider"].lower() in OWN_SCHEMA:
        call += ".load()"
    else:
        columns = session.table(quoted(name)).schema.fields
        schema = ", ".join(f"{quoted([each.name])} {each.dataType.simpleString()}" for each in columns)
        call += f".schema({schema!r}).load({table['location']!r})"
    if streaming and WATERMARK_COLUMN in properties:
        call += f".withWatermark({properties[WATERMARK_COLUMN]!r}, {properties[WATERMARK_DELAY]!r})"
    function = re.sub(r"\W", "_", name[-1])
    return f"\n\n@dp.temporary_view(name={name[-1]!r})\ndef {function}():\n    return {call}\n"


def _views(statements: Iterable[str]) -> Iterator[str]:
    for statement in statements:
        if _VIEW.match(statement):
            yield _VIEW.sub("CREATE TEMPORARY VIEW ", statement, count=1)
