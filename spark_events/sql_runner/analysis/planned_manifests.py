"""The lineage of manifests whose queries are not started, over the tables that SQL files have created."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from spark_events.api import LineageGraph
from spark_events.jobs.planned import PlannedStatement, reason_of
from spark_events.jobs.planned_catalog import PROVIDER, PlannedCatalog
from spark_events.jobs.planned_others import CATALOG_KEYS
from spark_events.lineage import lineage_of
from spark_events.spark.sql_errors import error_summary
from spark_events.sql_runner.analysis.jvm import entry_of
from spark_events.sql_runner.analysis.query_data import query_data
from spark_events.sql_runner.analysis.query_error import QueryError, analysis_error, place_of_error
from spark_events.sql_runner.analysis.target import TargetTable, fitted, with_metadata
from spark_events.sql_runner.manifest import properties as props
from spark_events.sql_runner.manifest.folder import Manifests
from spark_events.sql_runner.manifest.manifest import Manifest

_KAFKA = "kafka"
_ROWS = "spark_events_planned_rows"
CODE = "its rows are made by Python (code), which is not run"
"""Why the sources of a query are unknown."""


def plan_manifests(catalog: PlannedCatalog, manifests: Manifests) -> Iterator[PlannedStatement]:
    """Yield what the queries of manifests would read and write; none is started, and no code is run.

    Args:
        catalog: has the tables, all of them in Spark's own format.
        manifests: their mistakes are problems, too.
    """
    queries = (
        f"INSERT INTO {each.target_table} {each.sql or 'SELECT 1'}" for each in manifests.by_name.values()
    )
    catalog.expect(queries)
    for problem in manifests.problems:
        place, _, reason = problem.partition(": ")
        yield PlannedStatement(place, Path(place).parent, None, reason)
    for name, manifest in manifests.by_name.items():
        place = manifests.places[name]
        folder = Path(place.rpartition(":")[0]).parent
        origin = folder if folder.name else folder.resolve()
        try:
            yield PlannedStatement(place, origin, _graph(catalog, manifest), name=name)
        except QueryError as error:
            yield PlannedStatement(
                place_of_error(manifests, name, error), origin, None, reason_of(str(error)), name
            )


def _graph(catalog: PlannedCatalog, manifest: Manifest) -> LineageGraph:
    """Return what a manifest's query reads and writes.

    Raises:
        QueryError: it, or its target, cannot be used.
    """
    session = _session(catalog, manifest)
    target = _target(session, manifest)
    try:
        if manifest.sql is None:
            return _sink_alone(session, manifest)
        rows = fitted(with_metadata(query_data(session, manifest), manifest, None), target)
        entry_of(session).checkStreaming(rows._jdf.queryExecution().analyzed(), manifest.output_mode)
        if target.provider == _KAFKA:
            rows = _as_bytes(session, rows, manifest)
        rows.createOrReplaceTempView(_ROWS)
        return lineage_of(session, f"INSERT INTO {manifest.target_table} BY NAME SELECT * FROM {_ROWS}")
    except QueryError:
        raise
    except Exception as error:  # including those of catalogs
        raise analysis_error(error) from error


def _session(catalog: PlannedCatalog, manifest: Manifest) -> Any:
    """Return a session that has the tables and views, and the properties of a query."""
    from pyspark.errors import PySparkException

    session = catalog.new_session()
    for key, value in props.of_session(manifest.spark_properties).items():
        if key.startswith(CATALOG_KEYS):  # those of the analysis are in memory
            continue
        try:
            session.conf.set(key, value)
        except PySparkException:  # one of the application that will run the query
            continue
    # What PySpark makes, such as a column's expression, is of the thread's session.
    jvm = session.sparkContext._gateway.jvm
    jvm.org.apache.spark.sql.SparkSession.setActiveSession(session._jsparkSession)
    return session


def _target(session: Any, manifest: Manifest) -> TargetTable:
    try:
        properties = dict(entry_of(session).table(manifest.target_table)["properties"])
    except Exception as error:
        what = f"target-table {manifest.target_table}: {reason_of(error_summary(error))}"
        raise QueryError(what, of_target=True) from error
    target = TargetTable.find(session, manifest.target_table)
    if properties.get(PROVIDER) == _KAFKA:
        return replace(target, provider=_KAFKA, columns={})
    return target


def _sink_alone(session: Any, manifest: Manifest) -> LineageGraph:
    table = manifest.target_table
    graph = lineage_of(session, f"INSERT INTO {table} SELECT * FROM {table}")
    return LineageGraph((), graph.sinks, (), CODE)


def _as_bytes(session: Any, rows: Any, manifest: Manifest) -> Any:
    """Return messages for Kafka with the types that the columns have when they are read."""
    columns = {field.name: field.dataType for field in session.table(manifest.target_table).schema.fields}
    return rows.select(*(rows[name].cast(of) for name, of in columns.items() if name in rows.columns))
