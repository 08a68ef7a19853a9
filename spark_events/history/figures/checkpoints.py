"""The checkpoints of a query, in time or late according to the SLA.

A checkpoint is late by its duration if its micro-batch took longer than the SLA. It is late by its gap if it
was owed for longer than the SLA: since the last one, even while the query was down, but not while it was idle
or stopped on purpose (the clock of ``spark_events.listeners.queries.watches``). If it was owed for longer
when its query was stopped, it is late, too, although it never came. An event says how long it was owed within
its own application (``owedMs``); across applications, ``owed`` computes it: since the last checkpoint before
if the query went down at work, since it went down if it was idle then. If it was idle after its restart,
there was nothing to commit, and what the event says counts alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from spark_events.history.figures.day_sums import DaySums
from spark_events.history.figures.job_runs import RunOfJob
from spark_events.history.figures.owed import overdue_ms, owed_since
from spark_events.history.figures.timeline import STOPS, Interval
from spark_events.history.options import UNSET_SLA_MS, Sla
from spark_events.history.reading.dialect import sql_text
from spark_events.history.reading.facts import CHECKPOINT, STATUS, Fact, day_of
from spark_events.history.reading.plausible import DAY_MS

_MOST_OWED_MS = 10**11


def day_sums(facts: str, sla: Sla, since_ms: int = 0) -> str:
    """Return the SQL that adds up the checkpoints of each day, as far as that day's facts allow.

    Args:
        facts: a relation of ``facts.COLUMNS``, each once; whole days.
        sla: the limit.
        since_ms: in ms since the epoch; a day that begins before it is added up in two parts.

    Returns:
        A query for the columns of ``DaySums``.
    """
    # By time; of two in the same ms, the one that was owed for less.
    order = f"(time_ms - day * {DAY_MS}) * {_MOST_OWED_MS} + least(owed_ms, {_MOST_OWED_MS - 1})"
    first = f"CASE WHEN done THEN {order} END"
    return f"""
        SELECT day, app_name, query_name, app_id, attempt,
            count(CASE WHEN done THEN 1 END) AS completed,
            count(CASE WHEN NOT done THEN 1 END) AS failed,
            count(CASE WHEN done AND duration_ms > sla_ms THEN 1 END) AS late_by_duration,
            count(CASE WHEN done AND owed_ms > sla_ms THEN 1 END) AS late_by_gap,
            count(CASE WHEN done AND (duration_ms > sla_ms OR owed_ms > sla_ms) THEN 1 END) AS late,
            max(CASE WHEN done THEN duration_ms END) AS worst_duration_ms,
            max(CASE WHEN done THEN owed_ms END) AS worst_gap_ms,
            CAST(sum(CASE WHEN done THEN duration_ms END) AS BIGINT) AS duration_sum_ms,
            min(CASE WHEN done THEN time_ms END) AS first_ms,
            min_by(owed_ms, {first}) AS first_owed_ms,
            min_by(duration_ms, {first}) AS first_duration_ms,
            max(CASE WHEN done THEN time_ms END) AS last_ms,
            max(time_ms) AS heard_ms,
            max(sla_ms) AS sla_ms,
            counted
        FROM (SELECT {day_of("time_ms")} AS day, app_name, query_name, coalesce(app_id, '') AS app_id,
                coalesce(attempt, '') AS attempt, time_ms >= {since_ms} AS counted, time_ms, duration_ms,
                status = 'COMPLETED' AS done,
                -- If an event does not say how long a checkpoint was owed, take its duration.
                coalesce(owed_ms, duration_ms) AS owed_ms, {_sla_sql(sla)} AS sla_ms
            FROM {facts} WHERE fact = '{CHECKPOINT}') AS checkpoints
        GROUP BY day, app_name, query_name, app_id, attempt, counted"""


def worst_checkpoints(facts: str, queries: Sequence[tuple[str, str]], since_ms: int, bin_ms: int) -> str:
    """Return the SQL of the worst checkpoint in each part of the time.

    Args:
        facts: a relation of ``facts.COLUMNS``, each once.
        queries: their application's name and their own.
        since_ms: the beginning, in ms since the epoch.
        bin_ms: the length of a part.

    Returns:
        A query for ``app_name``, ``query_name``, ``time_ms``, ``duration_ms``: of the one that took longest;
        ``gap_ms``: the longest time that one was owed.
    """
    names = ", ".join(f"({sql_text(app)}, {sql_text(query)})" for app, query in queries)
    return f"""
        SELECT app_name, query_name, max_by(time_ms, duration_ms) AS time_ms,
            max(duration_ms) AS duration_ms, max(owed_ms) AS gap_ms
        FROM {facts} JOIN (VALUES {names}) AS drawn (drawn_app, drawn_query)
            ON app_name = drawn_app AND query_name = drawn_query
        WHERE fact = '{CHECKPOINT}' AND status = 'COMPLETED' AND time_ms >= {since_ms}
        GROUP BY app_name, query_name, floor((time_ms - {since_ms}) / {bin_ms})"""


def newest_sla_ms(days: Iterable[DaySums], facts: Iterable[Fact], given_ms: int | None) -> int:
    """Return the limit of a query, in ms: the one given, else that of its newest application.

    Args:
        days: of the query.
        facts: of the query, among them those of overdue checkpoints.
        given_ms: by whoever reads; None if it is for the applications to say.
    """
    if given_ms is not None:
        return given_ms
    said = [(sums.heard_ms, sums.sla_ms) for sums in days if sums.sla_ms is not None]
    said += [(fact.time_ms, fact.sla_ms) for fact in facts if fact.sla_ms is not None]
    return max(said)[1] if said else UNSET_SLA_MS


def sums_of_query(
    days: Iterable[DaySums],
    facts: Iterable[Fact],
    intervals: Sequence[Interval],
    runs: Sequence[RunOfJob],
    sla_ms: int,
    until_ms: int,
) -> list[DaySums]:
    """Return the sums of a query that count, with the gaps between its applications.

    Args:
        days: of the query, of all days.
        facts: of the query; those of checkpoints are not needed.
        intervals: as of ``timeline.status_intervals``.
        runs: of the query.
        sla_ms: the limit at the end, and of sums that do not say theirs.
        until_ms: the end of the known period, in ms since the epoch.

    Returns:
        The sums of each day and application; where a checkpoint is overdue at the end, one more that
        stands for it, of the last day.
    """
    days = sorted(days, key=lambda sums: (sums.first_ms is None, sums.first_ms, sums.day))
    owed_since_ms = owed_since(days, intervals, runs)
    days = [sums if sums.sla_ms is not None else sums._replace(sla_ms=sla_ms) for sums in days]
    counted = [_with_gap(sums, owed_since_ms.get(index)) for index, sums in enumerate(days)]
    counted = [sums for sums in counted if sums.counted]
    last_ms = max((sums.last_ms for sums in days if sums.last_ms is not None), default=None)
    gap_ms = overdue_ms(facts, intervals, last_ms, until_ms)
    if gap_ms is not None and gap_ms > sla_ms:
        counted.append(_one_late(until_ms, sla_ms, gap_ms)._replace(overdue=True))
    return counted


def stopped_late(facts: Iterable[Fact], given_ms: int | None, since_ms: int) -> list[DaySums]:
    """Return sums that stand for the checkpoints that were late when their query was stopped, and never came.

    Args:
        facts: of the query.
        given_ms: the limit, in ms, that whoever reads has given; None if it is for the applications to say.
        since_ms: the beginning of the period that counts, in ms since the epoch.
    """
    stops = (fact for fact in facts if fact.fact == STATUS and fact.status in STOPS)
    late = []
    for stop in stops:
        sla_ms = (stop.sla_ms or UNSET_SLA_MS) if given_ms is None else given_ms
        if stop.time_ms >= since_ms and stop.owed_ms is not None and stop.owed_ms > sla_ms:
            late.append(_one_late(stop.time_ms, sla_ms, stop.owed_ms)._replace(stopped_late=1))
    return late


def _one_late(time_ms: int, sla_ms: int, gap_ms: int) -> DaySums:
    """Return the sums that stand for one checkpoint that has not come, and is owed for so long at a time."""
    sums = DaySums(time_ms // DAY_MS, "", "", "", heard_ms=time_ms, sla_ms=sla_ms)
    return sums._replace(late_by_gap=1, worst_gap_ms=gap_ms)


def _with_gap(sums: DaySums, owed_since_ms: int | None) -> DaySums:
    """Count how long an application's first checkpoint was owed, if the previous one failed or died."""
    if owed_since_ms is None or sums.first_ms is None:
        return sums
    assert sums.first_owed_ms is not None
    assert sums.first_duration_ms is not None
    assert sums.sla_ms is not None
    gap_ms = sums.first_ms - owed_since_ms
    newly_late = gap_ms > sums.sla_ms >= sums.first_owed_ms
    return sums._replace(
        late_by_gap=sums.late_by_gap + newly_late,
        late=sums.late + (newly_late and sums.first_duration_ms <= sums.sla_ms),
        worst_gap_ms=largest((sums.worst_gap_ms, gap_ms)),
    )


def largest(numbers: Iterable[int | None]) -> int | None:
    """Return the largest number that is known; None if there is none."""
    return max((number for number in numbers if number is not None), default=None)


def _sla_sql(sla: Sla) -> str:
    """Return the SQL of the SLA of the query that ``query_name`` names, in ms."""
    cases = "".join(
        f" WHEN query_name = {sql_text(name)} THEN {sla_ms}" for name, sla_ms in sla.by_query.items()
    )
    others = f"coalesce(sla_ms, {UNSET_SLA_MS})" if sla.default_ms is None else str(sla.default_ms)
    return f"CASE{cases} ELSE {others} END" if cases else others
