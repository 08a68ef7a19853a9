"""What has to be kept of days that a store drops: how each job was before those that stay."""

from __future__ import annotations

from spark_events.history.figures.job_runs import CHRONOLOGY, ENDS
from spark_events.history.figures.timeline import STOPS, UP_IN
from spark_events.history.reading.facts import CHECKPOINT, COLUMNS, HEARTBEAT, OVERDUE, SEEN, STATUS

_RUN = "coalesce(CASE WHEN kind = 'query' THEN run_id END, concat_ws('/', app_id, attempt))"
_OF_JOB = "PARTITION BY kind, app_name, job_query"
_OF_RUN = f"{_OF_JOB}, run"
_LATEST = "time_ms DESC, owed_ms DESC, event_id DESC"


def kept_of_dropped(facts: str) -> str:
    """Return the SQL of the facts that stay.

    Of each application and query, those are the statuses of some runs: of that which began last, of those
    with the last end, the last stop on purpose, the last success, when it was last up, and the failure that
    began the outage after that; of those whose end nobody reported, and of those that began next after
    these, which count as lost since then. Then the last checkpoint, the last warning that one was overdue,
    and when those runs were last heard of, with a heartbeat of each.

    Args:
        facts: the relation of all facts of the days to drop, and of what was kept before.
    """
    columns = ", ".join(COLUMNS)
    order = " ".join(f"WHEN '{status}' THEN {place}" for place, status in enumerate(CHRONOLOGY))
    ends, stops, well = (", ".join(f"'{status}'" for status in of) for of in (ENDS, STOPS, (*UP_IN, *STOPS)))
    in_run = f"{_OF_RUN} ORDER BY time_ms {{0}}, place {{0}}, event_id {{0}}"
    before = f"{_OF_JOB} ORDER BY begun_ms RANGE BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING"
    return f"""
        WITH statuses AS (
            SELECT {columns}, {_RUN} AS run, CASE status {order} END AS place,
                coalesce(CASE WHEN kind = 'query' THEN query_name END, '') AS job_query
            FROM {facts} WHERE fact = '{STATUS}'),
        placed AS (
            SELECT *, row_number() OVER ({in_run.format("DESC")}) AS from_last,
                coalesce(max(CASE WHEN status IN ({well}) THEN time_ms END) OVER ({_OF_JOB}), 0) AS well_ms
            FROM statuses),
        runs AS (
            SELECT *, min(time_ms) OVER ({_OF_RUN}) AS begun_ms,
                max(CASE WHEN from_last = 1 AND status NOT IN ({ends}) THEN 1 ELSE 0 END) OVER ({_OF_RUN})
                AS is_open,
                CASE WHEN status IN ({ends}) AND time_ms = max(CASE WHEN status IN ({ends}) THEN time_ms END)
                    OVER ({_OF_JOB}) OR status IN ({stops}) AND time_ms = max(CASE WHEN status IN ({stops})
                    THEN time_ms END) OVER ({_OF_JOB})
                    OR from_last = 1 AND status = 'FINISHED' AND time_ms =
                    max(CASE WHEN from_last = 1 AND status = 'FINISHED' THEN time_ms END) OVER ({_OF_JOB})
                    OR status IN ({well}) AND time_ms = well_ms
                    OR status = 'FAILED' AND time_ms >= well_ms AND time_ms =
                    min(CASE WHEN status = 'FAILED' AND time_ms >= well_ms THEN time_ms END) OVER ({_OF_JOB})
                    THEN 1 ELSE 0 END AS is_last_end
            FROM placed),
        jobs AS (
            SELECT *, max(is_last_end) OVER ({_OF_RUN}) AS ended_last,
                max(begun_ms) OVER ({_OF_JOB}) AS last_begun_ms,
                max(begun_ms) OVER ({before}) AS begun_before_ms,
                max(CASE WHEN is_open = 1 THEN begun_ms END) OVER ({before}) AS open_before_ms
            FROM runs),
        kept AS (
            SELECT * FROM jobs WHERE begun_ms = last_begun_ms OR ended_last = 1 OR is_open = 1
                OR begun_before_ms = open_before_ms),
        recent AS (
            SELECT {columns},
                row_number() OVER (PARTITION BY fact, app_name, query_name ORDER BY {_LATEST}) AS of_query,
                row_number() OVER (PARTITION BY fact, app_name, query_name, app_id, attempt
                    ORDER BY {_LATEST}) AS of_application
            FROM {facts} WHERE fact IN ('{OVERDUE}', '{HEARTBEAT}')
                OR fact = '{CHECKPOINT}' AND status = 'COMPLETED'),
        heard AS (
            SELECT app_name, app_id, attempt, query_name, max(time_ms) AS time_ms FROM {facts}
            WHERE app_id IN (SELECT app_id FROM kept) GROUP BY app_name, app_id, attempt, query_name
            UNION ALL
            -- That it had queries, whatever became of them.
            SELECT app_name, NULL, NULL, query_name, max(time_ms) FROM {facts}
            WHERE query_name IS NOT NULL GROUP BY app_name, query_name)
        SELECT {columns} FROM kept
        UNION ALL
        SELECT {columns} FROM recent WHERE fact <> '{HEARTBEAT}' AND of_query = 1
            OR of_application = 1 AND app_id IN (SELECT app_id FROM kept)
        UNION ALL
        SELECT {", ".join(_of_heard(name) for name in COLUMNS)} FROM heard"""


def _of_heard(name: str) -> str:
    if name == "fact":
        return f"'{SEEN}' AS fact"
    if name == "event_id":
        whose = "app_name, coalesce(app_id, 'all'), attempt, query_name"
        return f"concat_ws(' ', '{SEEN} before', {whose}) AS event_id"
    if name in ("time_ms", "app_name", "app_id", "attempt", "query_name"):
        return name
    return f"CAST(NULL AS {COLUMNS[name]}) AS {name}"
