"""The history of stored events: the tables, and what a report draws."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from heapq import merge
from itertools import groupby

from spark_events.api.errors import NothingToReadError
from spark_events.api.toolkit.formatting import moment, path_without_secrets
from spark_events.history.figures.application import Application, Period
from spark_events.history.figures.checkpoints import day_sums, worst_checkpoints
from spark_events.history.figures.day_sums import SUMS, DaySums
from spark_events.history.options import Sla
from spark_events.history.reading.database import Database
from spark_events.history.reading.facts import CHECKPOINT, LOSS, Fact, Reading
from spark_events.history.reading.plausible import DAY_MS, PossibleTimes
from spark_events.history.selection import Selection
from spark_events.history.table import Row, rows_of_query
from spark_events.history.tables.all_tables import Tables, tables_of

MOST_DAYS = 800
"""How many days at most the tables by day have."""


class History:
    """The history that some facts describe.

    Args:
        database: that has the relations.
        facts: a relation of ``facts.COLUMNS``, each once; it need not have single checkpoints.
        sums: of the checkpoints of each day; see ``checkpoints.day_sums``.
        checkpoints: a relation of ``facts.COLUMNS`` that has the single checkpoints.
        sla: that the sums were made with.
        period: that it covers.
        selection: of the events, that the relations are already restricted to but for its query.
    """

    def __init__(
        self,
        database: Database,
        facts: str,
        sums: str,
        checkpoints: str,
        sla: Sla,
        period: Period,
        selection: Selection,
    ) -> None:
        self.database = database
        self.facts, self._sums, self._checkpoints = facts, sums, checkpoints
        self.sla = sla
        self.period = period
        self._selection = selection

    @property
    def until_now(self) -> bool:
        """Whether the period ends now, and not with the last event, or when somebody says."""
        return self._selection.until_now

    def tables(self) -> Tables:
        """Compute the tables and return them.

        Raises:
            NothingToReadError: there is no query of the name that is asked for.
        """
        tables = tables_of(self._applications(), self.sla, self.period)
        if not self._selection.query:
            return tables
        self._selection.demand_query([*tables.uptime, *tables.checkpoint_sla])
        return Tables(rows_of_query(tables, self._selection.query))

    def losses(self) -> dict[str, int]:
        """Return how many records reporters dropped, by the cause: the history may lack as many."""
        lost = (
            f"SELECT coalesce(labels, ''), CAST(sum(dropped) AS BIGINT) FROM {self.facts} "
            f"WHERE fact = '{LOSS}' AND time_ms >= {self.period.since_ms} GROUP BY coalesce(labels, '')"
        )
        return {cause: records for cause, records in self.database.rows(lost) if records}

    def worst_checkpoints(self, queries: Sequence[tuple[str, str]], parts: int) -> list[Row]:
        """Return the worst checkpoint in each part of the time; see ``checkpoints.worst_checkpoints``.

        Args:
            queries: their application's name and their own.
            parts: how many there are.
        """
        if not queries:
            return []
        since_ms, until_ms, _ = self.period
        bin_ms = max(1, -(-(until_ms - since_ms) // parts))
        names = ("app_name", "query_name", "time_ms", "duration_ms", "gap_ms")
        sql = worst_checkpoints(self._checkpoints, queries, since_ms, bin_ms)
        return [dict(zip(names, row, strict=True)) for row in self.database.rows(sql)]

    def _applications(self) -> Iterator[Application]:
        """Yield what is known of each application, in the order of their names."""
        facts = self.database.rows(
            f"SELECT {', '.join(Fact._fields)} FROM {self.facts} WHERE fact <> '{CHECKPOINT}' "
            "ORDER BY app_name"
        )
        sums = self.database.rows(f"SELECT {', '.join(SUMS)}, counted FROM ({self._sums}) ORDER BY app_name")
        both: tuple[Iterator[Fact | DaySums], ...] = (map(Fact._make, facts), (DaySums(*row) for row in sums))
        for name, of_application in groupby(merge(*both, key=_app_name), key=_app_name):
            known = list(of_application)
            of_facts = [fact for fact in known if isinstance(fact, Fact)]
            of_days = [days for days in known if isinstance(days, DaySums)]
            # A database gives them in any order; what is made of them shall be the same each time.
            yield Application(
                name,
                sorted(of_facts, key=lambda fact: (fact.time_ms, fact.event_id)),
                sorted(of_days, key=lambda days: (days.day, days.query_name, days.app_id)),
            )


def _app_name(known: Fact | DaySums) -> str:
    return known.app_name


def read_history(
    database: Database,
    paths: Sequence[str],
    sla: Sla | None = None,
    selection: Selection | None = None,
    times: PossibleTimes | None = None,
) -> tuple[History, Reading]:
    """Read stored events and return their history.

    Args:
        database: that reads them: ``DuckDb()``, or ``Spark(session)``.
        paths: files, folders and globs.
        sla: the longest time between two checkpoints; what each application had set by default.
        selection: which part of them it is about; all by default.
        times: the possible times; from 2009 to a day from now by default.

    Returns:
        The history, and how reading went.

    Raises:
        ConfigError: there is nothing at a path, or no event in it.
    """
    selection = selection or Selection()
    times = replace(times or PossibleTimes(), until_ms=selection.until_ms)
    facts, reading = database.read_facts(paths, times)
    return history_of(database, facts, reading, paths, sla or Sla(), selection), reading


def history_of(
    database: Database, facts: str, reading: Reading, paths: Sequence[str], sla: Sla, selection: Selection
) -> History:
    """Return the history of facts that the database has read already; see ``read_history``.

    Raises:
        NothingToReadError: there is no fact, or none of that part; it names what was skipped.
    """
    try:
        period = period_of(database, [facts], selection, paths)
    except NothingToReadError as error:
        if not reading.skipped:
            raise
        raise NothingToReadError(f"{error}; {'; '.join(reading.skipped)}") from None
    facts = selection.of(facts)
    return History(database, facts, day_sums(facts, sla, period.since_ms), facts, sla, period, selection)


def period_of(
    database: Database, relations: Sequence[str], selection: Selection, paths: Sequence[str]
) -> Period:
    """Return the period that a part of some facts covers.

    Args:
        database: that has the relations.
        relations: have the first and the last fact.
        selection: of the facts.
        paths: where the facts come from, for the error.

    Raises:
        NothingToReadError: there is no fact, or none of that part.
    """
    times = " UNION ALL ".join(
        f"SELECT time_ms FROM {selection.of(relation)} AS part" for relation in relations
    )
    ((first_ms, last_ms),) = database.rows(f"SELECT min(time_ms), max(time_ms) FROM ({times}) AS facts")
    shown = ", ".join(map(path_without_secrets, paths))
    if last_ms is None:
        selection.demand(database, relations)
        before = f" before {moment(selection.until_ms)} UTC" if selection.until_ms is not None else ""
        raise NothingToReadError(f"{shown}: there is no event that could be used{before}")
    until_ms = (
        max(last_ms, time.time_ns() // 1_000_000) if selection.until_now else selection.until_ms or last_ms
    )
    since_ms = first_ms if selection.span_ms is None else until_ms - selection.span_ms
    if selection.since_ms is not None:
        since_ms = selection.since_ms
    if since_ms > until_ms:
        raise NothingToReadError(f"{shown}: there is no event after {moment(since_ms)} UTC")
    return Period(since_ms, until_ms, max(since_ms, (until_ms // DAY_MS + 1 - MOST_DAYS) * DAY_MS))
