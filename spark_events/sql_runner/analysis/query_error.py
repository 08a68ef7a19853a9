"""What is wrong with a query: the error, and its place in the manifest."""

from __future__ import annotations

from spark_events.api import SparkEventsError
from spark_events.spark.sql_errors import error_summary, query_line
from spark_events.sql_runner.manifest.folder import Manifests


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


def analysis_error(error: Exception) -> QueryError:
    """Return Spark's error as an error of the query, with the line that it is about."""
    text = error_summary(error)
    if "streamed reading" in text:
        text += (
            "; tables of such sources can be read whole at each micro-batch: name them under static-tables"
        )
    return QueryError(text, query_line(error))
