"""Exports manifests, if possible, to a spec of Spark Declarative Pipelines (PySpark 4.1 and newer)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spark_events.api import ConfigError
from spark_events.spark.sql_text import literal, quoted
from spark_events.sql_runner.analysis.analyst import Analyst
from spark_events.sql_runner.analysis.jvm import entry_of
from spark_events.sql_runner.analysis.query_data import (
    OWN_SCHEMA,
    WATERMARK_COLUMN,
    WATERMARK_DELAY,
    streams_of,
    table_name,
)
from spark_events.sql_runner.analysis.query_error import QueryError
from spark_events.sql_runner.manifest.folder import Manifests
from spark_events.sql_runner.manifest.manifest import Manifest
from spark_events.sql_runner.manifest.yaml_text import write_yaml

_IDENTIFIER = r"(?:`(?:``|[^`])*`|\w+)"
_NAME = re.compile(rf"{_IDENTIFIER}(?:\s*\.\s*{_IDENTIFIER})*")
_VIEW = re.compile(r"CREATE\s+(?:OR\s+REPLACE\s+)?TEMP(?:ORARY)?\s+VIEW\s+", re.I)
_HEAD = '''"""What the flows read, as the table definitions have it; written by spark-events sql."""

from pyspark import pipelines as dp
from pyspark.sql import SparkSession

spark = SparkSession.active()
'''
NOT_CARRIED = (
    "__query_id and __query_version (a pipeline has no versions), target-table's LOCATION (the pipeline "
    "makes the table), trigger and sparkProperties (a pipeline runs when told to, with one configuration)"
)
"""The parts of manifests for which a pipeline has no place."""


@dataclass
class PipelineExport:
    """A pipeline that was written.

    Attributes:
        left_out: by name, why manifests cannot be exported.
    """

    files: list[Path] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)


def export_pipeline(analyst: Analyst, manifests: Manifests, folder: Path, storage: str) -> PipelineExport:
    """Write a pipeline into a folder: its spec, a file of sources, and an SQL file for each manifest.

    Args:
        analyst: has the table definitions.
        manifests: of the queries.
        folder: where it is written; files with the same names are replaced.
        storage: where the pipeline keeps its checkpoints, as an absolute URL.

    Raises:
        ConfigError: the folder cannot be written, or a table definition cannot be run.
    """
    export = PipelineExport()
    for name, analysis in analyst.analyze_all(manifests.by_name.values()).items():
        reason = str(analysis) if isinstance(analysis, QueryError) else _unfit(manifests.by_name[name])
        if reason:
            export.left_out[name] = reason
    sessions = {
        name: analyst.session(manifest)
        for name, manifest in manifests.by_name.items()
        if name not in export.left_out
    }
    sources, flows = _flows(sessions, manifests.by_name, export.left_out)
    if flows:
        texts = _texts(folder.resolve().name, storage, analyst.statements, sources, flows)
        export.files.extend(_write(folder, texts))
    return export


def _flows(
    sessions: Mapping[str, Any], manifests: Mapping[str, Manifest], left_out: dict[str, str]
) -> tuple[_Sources, dict[str, str]]:
    """Return the flows of manifests and the views they read; add to ``left_out`` what cannot be a flow."""
    names = set(sessions)
    while True:
        sources = _Sources({_table(sessions[name], manifests[name].target_table) for name in names})
        flows = {}
        for name in sorted(names):
            try:
                flows[name] = _flow(sessions[name], manifests[name], sources)
            except QueryError as error:
                left_out[name] = str(error)
        if flows.keys() == names:
            return sources, flows
        names = set(flows)  # the target of a query that is left out is outside the pipeline for its readers


def _unfit(manifest: Manifest) -> str:
    """Return why a manifest that can be analyzed cannot be exported; empty if it can."""
    if manifest.sql is None:
        return "is code, and a flow of a pipeline is SQL or a function"
    if manifest.output_mode != "append":
        return f"output-mode {manifest.output_mode}: a flow of a pipeline appends"
    return ""


def _table(session: Any, name: str) -> tuple[str, ...] | None:
    return table_name(session, list(entry_of(session).nameParts(name)))


def _texts(
    name: str, storage: str, statements: Iterable[str], sources: _Sources, flows: Mapping[str, str]
) -> dict[str, str]:
    """Return the text of each file of a pipeline, by its path in the folder."""
    spec = {"name": name, "storage": storage, "libraries": [{"glob": {"include": "transformations/**"}}]}
    texts = {
        "spark-pipeline.yml": write_yaml(spec),
        "transformations/sources.py": _HEAD + "".join(sources.texts.values()),
    }
    views = [text for text in statements if _VIEW.match(text)]
    if views:
        view_texts = (_VIEW.sub("CREATE TEMPORARY VIEW ", view, count=1) for view in views)
        texts["transformations/views.sql"] = "".join(f"{text};\n" for text in view_texts)
    return texts | {f"transformations/{flow}.sql": text for flow, text in flows.items()}


def _write(folder: Path, texts: Mapping[str, str]) -> Iterator[Path]:
    """Write files into a folder, and return their paths."""
    try:
        for name, text in texts.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            yield path
    except OSError as error:
        raise ConfigError(f"--output {folder}: cannot be written: {error}") from error


def _flow(session: Any, manifest: Manifest, sources: _Sources) -> str:
    entry = entry_of(session)
    target = quoted(list(entry.nameParts(manifest.target_table))[-1:])
    provider = entry.table(manifest.target_table)["provider"]
    using = f" USING {provider}" if provider else ""
    query = _with_streams(session, manifest, sources)
    return (
        f"-- {' '.join((manifest.description or manifest.name).split())}\n"
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


def _with_streams(session: Any, manifest: Manifest, sources: _Sources) -> str:
    """Return SQL that marks each streaming table with STREAM, using the pipeline's names for tables."""
    entry, sql = entry_of(session), manifest.sql or ""
    relations = entry.relations(entry.parse(sql))
    if list(relations.declared()):
        return sql
    streams = {tuple(name) for name in streams_of(session, entry, manifest, relations)}
    changes = []
    for name, start in ((tuple(place[0]), place[1]) for place in relations.places()):
        match = _NAME.match(sql, start)
        view = sources.name_of(session, name, name in streams)
        if match and view:
            changes.append((match.span(), ("STREAM " if name in streams else "") + view))
    for (start, end), text in sorted(changes, reverse=True):
        sql = sql[:start] + text + sql[end:]
    return sql


class _Sources:
    """The views through which flows read what the pipeline does not make itself.

    Args:
        targets: the tables that it makes, by their whole names.

    Attributes:
        texts: the Python of each view, by its name.
    """

    def __init__(self, targets: set[tuple[str, ...] | None]) -> None:
        self._targets = targets
        self.texts: dict[str, str] = {}

    def name_of(self, session: Any, name: tuple[str, ...], streaming: bool) -> str:
        """Return the name by which a flow reads a table; empty if the pipeline finds it by itself."""
        whole_name = table_name(session, name)
        if whole_name is None:
            return ""
        entry = entry_of(session)
        table = entry.source(quoted(name)) if streaming else entry.table(quoted(name))
        watermark = _watermark(table) if streaming else ""
        if whole_name in self._targets and watermark:
            raise QueryError(
                f"reads {quoted(name)}, which another manifest writes, with a watermark; a "
                "pipeline cannot declare one for its own tables"
            )
        view = quoted(name[-1:])
        if whole_name in self._targets:
            return view
        if not table["provider"]:
            return quoted(name) if streaming else ""
        function = re.sub(r"\W", "_", name[-1])
        call = _reader(session, table, name, streaming) + watermark
        text = f"\n\n@dp.temporary_view(name={name[-1]!r})\ndef {function}():\n    return {call}\n"
        self.texts.setdefault(view, text)
        return view


def _reader(session: Any, table: Any, name: tuple[str, ...], streaming: bool) -> str:
    """Return the call that reads a table's source."""
    options = {key: value for key, value in dict(table["options"]).items() if key.lower() != "path"}
    call = f"spark.{'readStream' if streaming else 'read'}.format({table['provider']!r})"
    if options:
        call += f".options(**{options!r})"
    if table["provider"].lower() in OWN_SCHEMA:
        return call + ".load()"
    columns = session.table(quoted(name)).schema.fields
    schema = ", ".join(f"{quoted([column.name])} {column.dataType.simpleString()}" for column in columns)
    return f"{call}.schema({schema!r}).load({table['location']!r})"


def _watermark(table: Any) -> str:
    properties = dict(table["properties"])
    if WATERMARK_COLUMN not in properties:
        return ""
    return f".withWatermark({properties[WATERMARK_COLUMN]!r}, {properties[WATERMARK_DELAY]!r})"
