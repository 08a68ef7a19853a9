"""Which part of the stored events a report is about: applications, a query, a period."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spark_events.api.errors import NothingToReadError
from spark_events.api.toolkit.formatting import some_names
from spark_events.history.reading.database import Database
from spark_events.history.reading.dialect import sql_text


@dataclass(frozen=True, slots=True)
class Selection:
    """The part of the stored events that a report is about; by default all of them.

    Attributes:
        app: only the applications of this name, or the one of this id.
        query: only the streaming query of this name.
        span_ms: the length of the period up to its end, in ms; None for all before it.
        since_ms: the beginning of the period, in ms since the epoch; None for the first event.
        until_ms: its end; None for the last event. Later events are as if they had not happened.
        until_now: whether the period ends now, and the last known statuses hold until then.
    """

    app: str = ""
    query: str = ""
    span_ms: int | None = None
    since_ms: int | None = None
    until_ms: int | None = None
    until_now: bool = False

    def of(self, relation: str, time: str = "time_ms") -> str:
        """Return the relation of the application's rows up to the end.

        Args:
            relation: has ``app_name`` and ``app_id``.
            time: the column, or expression, of when it was, in ms since the epoch.
        """
        conditions = []
        if self.app:
            app = sql_text(self.app)
            conditions.append(f"(app_name = {app} OR app_id = {app})")
        if self.until_ms is not None:
            conditions.append(f"{time} <= {self.until_ms}")
        return f"(SELECT * FROM {relation} WHERE {' AND '.join(conditions)})" if conditions else relation

    def demand(self, database: Database, relations: Sequence[str]) -> None:
        """Check that some relations, of all facts, have the application.

        Raises:
            NothingToReadError: they do not; it names those that there are.
        """
        if not self.app:
            return
        everything = " UNION ALL ".join(f"SELECT app_name, app_id FROM {relation}" for relation in relations)
        app = sql_text(self.app)
        of_name = f"SELECT 1 FROM ({everything}) AS facts WHERE app_name = {app} OR app_id = {app} LIMIT 1"
        if not list(database.rows(of_name)):
            rows = database.rows(f"SELECT DISTINCT app_name FROM ({everything}) AS facts")
            names = some_names(name for (name,) in rows)
            raise NothingToReadError(
                f"--app {self.app}: no application has this name or id; there are {names}"
            )

    def demand_query(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Check that some rows have the query.

        Raises:
            NothingToReadError: they do not; it names those that there are.
        """
        names = {row["query_name"] for row in rows if row["query_name"]}
        if self.query and self.query not in names:
            raise NothingToReadError(
                f"--query {self.query}: no query has this name; there are {some_names(names)}"
            )
