"""The lineage of SQL files that are not run: statements are analyzed, over tables without rows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spark_events.api import (
    ApplicationInfo,
    ConfigError,
    JobCreatedEvent,
    LineageGraph,
    ModifyType,
    SchemaFacet,
    TableLineageDataset,
    TableSinkLineageVertex,
    job_event_json,
)
from spark_events.api.job_listener import STATEMENT
from spark_events.jobs.job_names import name_of_statement
from spark_events.lineage import lineage_of
from spark_events.lineage.data_flow import DataFlow
from spark_events.lineage.job_logs import flow_of_events
from spark_events.spark.sql_statements import SqlStatement, split_statements
from spark_events.spark.sql_text import quoted

_OF_CATALOG = re.compile(r"(?:CREATE|DECLARE|ALTER|COMMENT|DROP|USE|SET)\b", re.IGNORECASE)
"""Statements that change the catalog alone, which is of the analysis and ends with it."""
_LOCATION = re.compile(r"\bLOCATION\s+(?:'[^']*'|\"[^\"]*\")", re.IGNORECASE)

_LIKE = re.compile(r"\bLIKE\b", re.IGNORECASE)
_NO_COLUMNS = "CREATE TABLE without columns, which Spark would read from the table's data: write them down"


@dataclass(frozen=True, slots=True)
class PlannedStatement:
    """A statement of a file.

    Attributes:
        file: its file.
        line: where it begins there.
        graph: what it would read and write; None if it cannot be analyzed.
        problem: why it cannot be; empty if it can.
    """

    file: Path
    line: int
    graph: LineageGraph | None
    problem: str = ""


def plan_files(spark: Any, files: Iterable[Path]) -> list[PlannedStatement]:
    """Analyze the statements of files, in order; none that writes rows is run.

    Args:
        spark: a session whose catalog is used for nothing else.
        files: of SQL; those that are created by an earlier statement are known to the later ones.

    Raises:
        ConfigError: a file cannot be read.
    """
    return [_plan(spark, file, statement) for file in files for statement in _statements(file)]


def _statements(file: Path) -> Iterator[SqlStatement]:
    try:
        return split_statements(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file}: cannot be read: {error}") from None


def _plan(spark: Any, file: Path, statement: SqlStatement) -> PlannedStatement:
    from pyspark.errors import PySparkException

    try:
        # A table's rows, and so their place, are of no interest; an analysis would look for them there.
        of_catalog = _OF_CATALOG.match(statement.text)
        text = _LOCATION.sub("", statement.text) if of_catalog else statement.text
        graph = lineage_of(spark, text)
        if _lacks_columns(text, graph):
            return PlannedStatement(file, statement.line, None, _NO_COLUMNS)
        _apply_to_catalog(spark, text, graph)
    except PySparkException as error:
        return PlannedStatement(file, statement.line, None, str(error).strip().splitlines()[0])
    return PlannedStatement(file, statement.line, graph)


def _apply_to_catalog(spark: Any, text: str, graph: LineageGraph) -> None:
    """Let later statements find what this one makes: a table without rows, a view, a database."""
    created = [vertex for vertex in graph.sinks if _is_ctas(vertex)]
    for vertex in created:
        for dataset in vertex.datasets:
            if isinstance(dataset, TableLineageDataset):
                spark.sql(_create_table(dataset))
    if not created and _OF_CATALOG.match(text):
        spark.sql(text)


def _lacks_columns(text: str, graph: LineageGraph) -> bool:
    """Return whether Spark would look into a table's data for its columns, to create it."""
    creates = any(
        isinstance(vertex, TableSinkLineageVertex) and vertex.modify_type is ModifyType.CREATE
        for vertex in graph.sinks
    )
    facets = [dataset.facets for vertex in graph.sinks for dataset in vertex.datasets]
    return creates and not any("schema" in known for known in facets) and not _LIKE.search(text)


def _is_ctas(vertex: Any) -> bool:
    return isinstance(vertex, TableSinkLineageVertex) and vertex.modify_type is ModifyType.CTAS


def _create_table(dataset: TableLineageDataset) -> str:
    schema = dataset.facets["schema"]
    fields = schema.fields if isinstance(schema, SchemaFacet) else ()
    columns = ", ".join(f"{quoted([field.name])} {field.type}" for field in fields)
    return f"CREATE TABLE {quoted([dataset.database, dataset.table])} ({columns}) USING parquet"


def flow_of_plans(statements: Iterable[PlannedStatement]) -> DataFlow:
    """Return what the statements would read and write as one graph; a job is named after its file."""
    events = []
    for number, statement in enumerate(statements):
        if statement.graph is not None and (statement.graph.sources or statement.graph.sinks):
            application = ApplicationInfo(statement.file.stem, "plan")
            name = name_of_statement(statement.graph)
            created = JobCreatedEvent(
                f"plan/{number}", name, STATEMENT, 0, application, {}, lineage=statement.graph
            )
            events.append(job_event_json(created))
    return flow_of_events(events)
