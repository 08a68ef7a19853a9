"""Analyzes manifests in the command's own Spark, to find out what is wrong and what has changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from spark_events.spark.session import QUIET, start_session
from spark_events.spark.sql_errors import error_summary, report_query_errors_alone
from spark_events.spark.temporary_folders import temporary_folder
from spark_events.sql_runner.analysis.code_text import syntax_without_blanks
from spark_events.sql_runner.analysis.definitions import TableDefinitions
from spark_events.sql_runner.analysis.fingerprint import fingerprint as plan_fingerprint
from spark_events.sql_runner.analysis.prepared import open_session, prepare
from spark_events.sql_runner.analysis.query_error import QueryError
from spark_events.sql_runner.analysis.target import TargetTable, folder_identity, make_folder
from spark_events.sql_runner.analysis.written import last_written
from spark_events.sql_runner.manifest.manifest import Manifest
from spark_events.sql_runner.store.deployed import DeployedQuery

_SPARK = {**QUIET, "spark.log.level": "OFF", "spark.master": "local[1]", "spark.eventLog.enabled": "false"}
# Settings for the application that will run the queries; here, they would report on this one.
_NOT_HERE = ("spark.submit.deployMode", "spark.extraListeners", "spark.plugins")
_WAREHOUSE = "spark.sql.warehouse.dir"


@dataclass(frozen=True, slots=True)
class Analysis:
    """A manifest as Spark understands it.

    Attributes:
        without_effect: the properties that cannot be set on a running session.
        sink_folder: the folder into which Spark's file sink would write; empty if it is not used.
        target: the table; None if unknown.
        sink: that folder in the form in which it is compared with those of other queries.
    """

    fingerprint: str
    without_effect: tuple[str, ...]
    sink_folder: str
    target: TargetTable | None = None
    sink: str = ""


class Analyst:
    """Analyzes manifests; only the table definitions are run, and only folders of targets are made.

    Each method raises ``ConfigError`` if one of the table definitions cannot be run.
    """

    def __init__(self, spark: Any, statements: Sequence[str]) -> None:
        self._spark = spark
        self.statements = tuple(statements)
        self._definitions = TableDefinitions()
        self.spark_version = str(spark.version)

    @classmethod
    @contextmanager
    def start(cls, conf: Mapping[str, str], statements: Sequence[str]) -> Iterator[Analyst]:
        """Yield an analyst with a local Spark, whose in-memory tables disappear with it.

        Args:
            conf: Spark's configuration, for the catalogs and the connectors that the queries need.
            statements: the table definitions.

        Raises:
            ConfigError: Spark cannot be started.
        """
        report_query_errors_alone()
        given = {key: value for key, value in conf.items() if key not in _NOT_HERE}
        with temporary_folder("sql") as warehouse:
            spark = start_session("sql", {_WAREHOUSE: warehouse.as_uri(), **given, **_SPARK})
            try:
                yield cls(spark, statements)
            finally:
                spark.stop()

    def analyze(self, manifest: Manifest) -> Analysis:
        """Analyze a manifest.

        Raises:
            QueryError: its query or its target cannot be used.
        """
        session, without_effect = self._open(manifest)
        prepared = prepare(session, manifest, None)
        folder = prepared.target.location if prepared.target.has_file_sink else ""
        sink = folder_identity(folder, session.conf.get(_WAREHOUSE)) if folder else ""
        return Analysis(prepared.fingerprint, without_effect, folder, prepared.target, sink)

    def analyze_all(self, manifests: Iterable[Manifest]) -> dict[str, Analysis | QueryError]:
        """Analyze manifests, some of which may read what others will write.

        For Spark, a table of files does not exist before its folder does. If all queries are new, the one
        that makes the folder has not run yet, so a target's folder is made here if another query needs it.
        """
        results: dict[str, Analysis | QueryError] = {}
        waiting = list(manifests)
        while waiting:
            results.update((manifest.name, self._try_analyze(manifest)) for manifest in waiting)
            folders = {result.sink_folder for result in results.values() if isinstance(result, Analysis)}
            made = [self._make_missed(folder, results) for folder in folders - {""}]
            failed = [manifest for manifest in waiting if isinstance(results[manifest.name], QueryError)]
            waiting = failed if any(made) else []
        return results

    def _make_missed(self, folder: str, results: dict[str, Analysis | QueryError]) -> bool:
        """Make the folder of a target if a query needs it; if that fails, the query's error says why."""
        missed = {
            name: error
            for name, error in results.items()
            if isinstance(error, QueryError) and folder in str(error)
        }
        try:
            return bool(missed) and make_folder(self._spark, folder)
        except Exception as failure:  # a file system's own
            for name, error in missed.items():
                results[name] = QueryError(
                    f"{error}; it cannot be created: {error_summary(failure)}", error.line
                )
            return False

    def _try_analyze(self, manifest: Manifest) -> Analysis | QueryError:
        try:
            return self.analyze(manifest)
        except QueryError as error:
            return error

    def last_written(self, target: TargetTable, query_id: str) -> int | None:
        """Return the last micro-batch that a target's own log has: see ``written.last_written``."""
        return last_written(self._spark, target, query_id)

    def session(self, manifest: Manifest) -> Any:
        """Return a session in which the tables of a query are known."""
        return self._open(manifest)[0]

    def is_same_query(self, deployed: DeployedQuery, manifest: Manifest, fingerprint: str) -> bool:
        """Return whether a deployed query computes the same as a manifest with this fingerprint.

        Fingerprints of different Spark versions cannot be compared: the deployed query is then analyzed anew.
        """
        before, is_comparable = deployed.manifest, deployed.meta.spark_version == self.spark_version
        if is_comparable and deployed.meta.plan == fingerprint:
            return True
        same_text = (before.sql, before.code, before.query) == (manifest.sql, manifest.code, manifest.query)
        blanks_alone = not same_text and _differ_in_blanks(before, manifest)
        if same_text or (is_comparable and not blanks_alone):
            return not is_comparable
        try:
            older = self.analyze(before).fingerprint
            if is_comparable and older != deployed.meta.plan:
                return False  # the tables have changed, too
            return older == fingerprint or (blanks_alone and self._plan(before) == self._plan(manifest))
        except QueryError:
            return False

    def _plan(self, manifest: Manifest) -> str:
        """Return the fingerprint of the plan that a manifest's code makes."""
        session, _ = self._open(manifest)
        return plan_fingerprint(session, manifest, prepare(session, manifest, None).data, with_code=False)

    def _open(self, manifest: Manifest) -> tuple[Any, tuple[str, ...]]:
        return open_session(self._spark, manifest, self._definitions, self.statements)


def _differ_in_blanks(before: Manifest, after: Manifest) -> bool:
    """Return whether two texts of code differ in the white space of their SQL alone."""
    if before.code is None or after.code is None or before.query != after.query:
        return False
    return syntax_without_blanks(before.code) == syntax_without_blanks(after.code)
