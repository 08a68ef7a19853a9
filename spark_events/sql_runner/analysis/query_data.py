"""The data of a query: SQL or code as a streaming DataFrame."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from spark_events.api import SparkEventsError
from spark_events.spark.sql_errors import error_summary, query_line
from spark_events.spark.sql_text import quoted
from spark_events.sql_runner.analysis.jvm import entry_of
from spark_events.sql_runner.manifest.folder import Manifests
from spark_events.sql_runner.manifest.manifest import Manifest

WATERMARK_COLUMN, WATERMARK_DELAY = "watermark.column", "watermark.delay"
"""The properties of a table whose rows have a time: which column it is, and how late rows may come."""
OWN_SCHEMA = ("kafka", "rate", "rate-micro-batch", "socket")
"""Sources that know their columns; Spark does not read tables of them as streams by their names."""
_RESULT = "execution_output"

_runs_code: ContextVar[bool] = ContextVar("_runs_code", default=False)
"""Whether this thread runs the code of a manifest."""


class QueryError(SparkEventsError):
    """A query that cannot be analyzed or started as it is.

    Args:
        message: what is wrong, and what to do.
        line: the line of the SQL or the code that is at fault, from 1; None if unknown.
        of_target: whether it is about the target-table.
    """

    def __init__(self, message: str, line: int | None = None, *, of_target: bool = False) -> None:
        super().__init__(message)
        self.line = line
        self.of_target = of_target


def place_of_error(manifests: Manifests, name: str, error: QueryError) -> str:
    """Return ``file:line`` of a query's error, with the line of the query that is at fault, if known."""
    place = manifests.places[name]
    if error.of_target:
        return manifests.targets.get(name, place)
    file, _, line = place.rpartition(":")
    return f"{file}:{int(line) + error.line - 1}" if error.line else place


def query_data(session: Any, manifest: Manifest) -> Any:
    """Return the streaming DataFrame of a manifest's query.

    Raises:
        QueryError: its SQL does not parse or analyze, its code fails, or it reads no stream.
    """
    data = _of_sql(session, manifest) if manifest.sql is not None else _of_code(session, manifest)
    if not data.isStreaming:
        raise QueryError(
            "reads no stream, so it has nothing to wait for: views and the tables under "
            "static-tables are read whole; name a table that Spark can read as a stream"
        )
    return data


def _of_sql(session: Any, manifest: Manifest) -> Any:
    from pyspark.sql import DataFrame

    entry = entry_of(session)
    try:
        parsed = entry.parse(manifest.sql)
        if entry.isCommand(parsed):
            raise QueryError(
                "is not a query, and is not run; expected a SELECT, whose rows go to target-table"
            )
        streams = session.sparkContext._gateway.jvm.java.util.HashMap()
        for name in streams_of(session, entry, manifest, entry.relations(parsed)):
            streams.put(name, _stream(session, entry, list(name)))
        return DataFrame(entry.read(parsed, streams), session)
    except QueryError:
        raise
    except Exception as error:  # including those of catalogs and connectors
        raise analysis_error(error) from error


def analysis_error(error: Exception) -> QueryError:
    """Return Spark's error as an error of the query, with the line that it is about."""
    text = error_summary(error)
    if "streamed reading" in text:
        text += (
            "; tables of such sources can be read whole at each micro-batch: name them under static-tables"
        )
    return QueryError(text, query_line(error))


def streams_of(session: Any, entry: Any, manifest: Manifest, relations: Any) -> list[Any]:
    """Return the names, as lists of parts, of the relations that a query reads as streams.

    These are its tables except ``static-tables``; none if the query itself contains STREAM.
    """
    if list(relations.declared()):
        return []
    static = {table_name(session, list(entry.nameParts(name))) for name in manifest.static_tables}
    tables = ((name, table_name(session, list(name))) for name in relations.batches())
    return [name for name, table in tables if table is not None and table not in static]


def _stream(session: Any, entry: Any, parts: list[str]) -> Any:
    """Return the plan that reads a table as a stream; None where its name alone is enough for Spark."""
    name = quoted(parts)
    table = entry.table(name)
    properties = dict(table["properties"])
    column, delay = (properties.get(key) for key in (WATERMARK_COLUMN, WATERMARK_DELAY))
    if (column is None) != (delay is None):
        raise QueryError(
            f"table {name}: expected both TBLPROPERTIES, {WATERMARK_COLUMN} and {WATERMARK_DELAY}"
        )
    reader = session.readStream
    if str(table["provider"]).lower() in OWN_SCHEMA:
        data = reader.format(table["provider"]).options(**dict(table["options"])).load()
    elif column is None:
        return None
    else:
        data = reader.table(name)
    if column is not None:
        data = data.withWatermark(column, delay)
    return data.alias(parts[-1])._jdf.queryExecution().logical()


def table_name(session: Any, parts: Sequence[str]) -> tuple[str, ...] | None:
    """Return the full name of a table; None for a view, a name from WITH, or one that does not exist."""
    from pyspark.errors import PySparkException

    try:
        table = session.catalog.getTable(quoted(parts))
    except PySparkException:  # analyzing the query gives a better message
        return None
    if table.tableType in ("TEMPORARY", "VIEW"):
        return None
    return tuple(part.lower() for part in (table.catalog or "", *(table.namespace or ()), table.name))


def _of_code(session: Any, manifest: Manifest) -> Any:
    from pyspark.sql import DataFrame

    scope: dict[str, Any] = {"spark": session, "__name__": f"manifest {manifest.name}"}
    try:
        # Else it would inherit the __future__ statements of this module.
        code = compile(manifest.code or "", f"<code of {manifest.name}>", "exec", dont_inherit=True)
        with _without_stop(session.sparkContext):
            exec(code, scope)
    except QueryError as error:
        raise QueryError(str(error), _line_of(error, manifest)) from error
    except SystemExit as error:
        raise QueryError(f"code: calls sys.exit({error.code!r}); it may only set {_RESULT}") from error
    except SyntaxError as error:
        raise QueryError(f"code: {error.msg}", error.lineno) from error
    except Exception as error:
        raise QueryError(f"code: {error_summary(error)}", _line_of(error, manifest)) from error
    data = scope.get(_RESULT)
    # Spark 3.5 and 4 have different DataFrame classes, all derived from this one.
    if not isinstance(data, DataFrame):
        problem = "is not set" if data is None else f"is a {type(data).__name__}"
        raise QueryError(f"code: {_RESULT} {problem}; expected a streaming DataFrame of spark")
    return data


@contextmanager
def _without_stop(context: Any) -> Iterator[None]:
    """Refuse to stop Spark: the other queries run in the same application.

    Several manifests are analyzed at once in it, each in a thread of its own, and whoever runs them stops it.
    """

    def stop() -> None:
        if _runs_code.get():
            raise QueryError(f"code: calls spark.stop(); it may only set {_RESULT}")
        type(context).stop(context)

    context.stop = stop  # for good: another thread may need it when this one is done
    token = _runs_code.set(True)
    try:
        yield
    finally:
        _runs_code.reset(token)


def _line_of(error: BaseException, manifest: Manifest) -> int | None:
    trace, line = error.__traceback__, None
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == f"<code of {manifest.name}>":
            line = trace.tb_lineno
        trace = trace.tb_next
    return line
