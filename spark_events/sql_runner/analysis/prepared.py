"""A query that is ready to start: analyzed in its own session, with rows that fit its target."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from spark_events.sql_runner.analysis.definitions import TableDefinitions
from spark_events.sql_runner.analysis.fingerprint import fingerprint
from spark_events.sql_runner.analysis.jvm import entry_of
from spark_events.sql_runner.analysis.query_data import query_data
from spark_events.sql_runner.analysis.query_error import analysis_error
from spark_events.sql_runner.analysis.target import TargetTable, fitted, with_metadata
from spark_events.sql_runner.manifest import properties as props
from spark_events.sql_runner.manifest.manifest import Manifest
from spark_events.sql_runner.store.deployed import Meta


@dataclass(frozen=True)
class PreparedQuery:
    """A query that can be started.

    Attributes:
        rows: in the form that its target takes.
        target: the table.
        fingerprint: of the plan of the manifest's query.
        data: the rows as the query gives them.
    """

    session: Any
    rows: Any
    target: TargetTable
    fingerprint: str
    data: Any


def prepare(session: Any, manifest: Manifest, meta: Meta | None) -> PreparedQuery:
    """Analyze a query.

    Args:
        session: from ``open_session``; the same one each time the query is started.
        manifest: the query's.
        meta: None if it is only analyzed, not started.

    Raises:
        QueryError: the query, or its target, cannot be used; the message says why.
    """
    # Catalogs such as Delta's use the session of the current thread.
    jvm = session.sparkContext._gateway.jvm
    jvm.org.apache.spark.sql.SparkSession.setActiveSession(session._jsparkSession)
    # The session has cached which files a table has.
    session._jsparkSession.sessionState().catalog().invalidateAllCachedTables()
    data = query_data(session, manifest)
    target = TargetTable.find(session, manifest.target_table)
    rows = fitted(with_metadata(data, manifest, meta), target)
    try:
        entry_of(session).checkStreaming(rows._jdf.queryExecution().analyzed(), manifest.output_mode)
    except Exception as error:
        raise analysis_error(error) from error
    return PreparedQuery(session, rows, target, fingerprint(session, manifest, data), data)


def open_session(
    spark: Any, manifest: Manifest, definitions: TableDefinitions, statements: Sequence[str]
) -> tuple[Any, tuple[str, ...]]:
    """Open a session for a query, in which its tables are known.

    A restarted query keeps its session, because Spark never forgets a session's listeners.

    Args:
        spark: any session of the application.
        manifest: the query's.
        definitions: those that the application has run.
        statements: those that the query needs.

    Returns:
        The session, and the properties that it cannot take, because the application already runs.

    Raises:
        ConfigError: a table definition cannot be run.
    """
    from pyspark.errors import PySparkException

    session = spark.newSession()
    application = session.sparkContext.getConf()
    without_effect = []
    for key, value in props.of_session(manifest.spark_properties).items():
        try:
            session.conf.set(key, value)
        except PySparkException:
            if application.get(key) != value:
                without_effect.append(key)
    definitions.run(session, statements)
    return session, tuple(without_effect)
