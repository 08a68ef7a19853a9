"""Which part of the stored events a report is about: applications, a query, a period."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spark_events.api.errors import NothingToReadError
from spark_events.api.toolkit.formatting import moment, some_names
from spark_events.history.reading.database import Database
from spark_events.history.reading.dialect import sql_text
from spark_events.history.reading.facts import COLLAPSED, COLUMNS, day_of
from spark_events.history.reading.plausible import DAY_MS

_JOB = "concat_ws('/', app_name, coalesce(app_id, ''), coalesce(attempt, ''), coalesce(query_name, ''))"


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

        Of the facts that are one for each day, those of a job that was known before the end are of then:
        that it also lived later tells that it did at the end.

        Args:
            relation: has ``facts.COLUMNS``, or, with another ``time``, ``app_name`` and ``app_id``.
            time: the column, or expression, of when it was, in ms since the epoch.
        """
        conditions, columns = [], "*"
        if self.app:
            app = sql_text(self.app)
            conditions.append(f"(app_name = {app} OR app_id = {app})")
        if self.until_ms is not None and time != "time_ms":
            conditions.append(f"{time} <= {self.until_ms}")
        elif self.until_ms is not None:
            until_ms = self.until_ms
            known = f"SELECT {_JOB} FROM {relation} WHERE time_ms <= {until_ms}"
            lived = f"{COLLAPSED} AND {day_of('time_ms')} = {until_ms // DAY_MS} AND {_JOB} IN ({known})"
            conditions.append(f"(time_ms <= {until_ms} OR {lived})")
            columns = ", ".join(
                f"least(time_ms, {until_ms}) AS time_ms" if name == "time_ms" else name for name in COLUMNS
            )
        return (
            f"(SELECT {columns} FROM {relation} WHERE {' AND '.join(conditions)})" if conditions else relation
        )

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
            rows = [
                name for (name,) in database.rows(f"SELECT DISTINCT app_name FROM ({everything}) AS facts")
            ]
            if not rows:  # up to the end, there is none
                return
            names = some_names(rows)
            until = "" if self.until_ms is None else f" before {moment(self.until_ms)} UTC"
            raise NothingToReadError(
                f"--app {self.app}: no application has this name or id{until}; there are {names}"
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
