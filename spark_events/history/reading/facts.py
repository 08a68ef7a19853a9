"""The facts of a history: the SQL that makes them from stored events, and why an event is none."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from spark_events.api import JobStatus
from spark_events.history.reading.dialect import Dialect
from spark_events.history.reading.plausible import DAY_MS, PossibleTimes
from spark_events.listeners.executors.executor_ends import EXPECTED

STATUS, CHECKPOINT, FAILURE = "status", "checkpoint", "failure"
EXECUTOR, OVERDUE, LOSS, ISSUE, COUNTER, SEEN = "executor", "overdue", "loss", "issue", "counter", "seen"
HEARTBEAT = "heartbeat"
"""The kinds of facts.

``failure`` includes executors that were lost, ``executor`` is one that somebody wanted gone, ``seen`` says no
more than that an application lived, ``heartbeat`` says so, too, and how often it does, as ``duration_ms``.
"""
COLLAPSED = f"fact IN ('{SEEN}', '{HEARTBEAT}')"
"""The SQL of the facts that are one for each day and run of an application, with the latest time."""
COLUMNS = {
    "fact": "STRING",
    "event_id": "STRING",
    "time_ms": "BIGINT",
    "kind": "STRING",
    "app_name": "STRING",
    "app_id": "STRING",
    "attempt": "STRING",
    "query_name": "STRING",
    "run_id": "STRING",
    "status": "STRING",
    "checkpoint_id": "BIGINT",
    "duration_ms": "BIGINT",
    "owed_ms": "BIGINT",
    "full_size": "BIGINT",
    "input_rows": "BIGINT",
    "error_class": "STRING",
    "exception_type": "STRING",
    "message": "STRING",
    "labels": "STRING",
    "dropped": "BIGINT",
    "executor_id": "STRING",
    "host": "STRING",
    "lifetime_ms": "BIGINT",
    "heap_highest": "BIGINT",
    "heap_limit": "BIGINT",
    "issue": "STRING",
    "subject": "STRING",
    "advice": "STRING",
    "lost_ms": "BIGINT",
    "lost_bytes": "BIGINT",
    "counter": "STRING",
    "counted": "BIGINT",
}
"""Of the facts, and their types. ``time_ms`` is since the epoch; ``full_size``, and of the heap, in bytes."""
_OF_COLLAPSED = ("fact", "time_ms", "app_name", "app_id", "attempt", "query_name")
_EXECUTOR_LOST = "ExecutorLostEvent"
_IS_EXECUTOR = f"event_name = '{_EXECUTOR_LOST}'"
_PERFORMANCE_ISSUE = "PerformanceIssueEvent"
_IS_ISSUE = f"event_name = '{_PERFORMANCE_ISSUE}'"
_TASK_COUNTER = "TaskCounterEvent"
_IS_HEARTBEAT = "event_name = 'HeartbeatEvent'"
_FACT_OF_EVENT = {
    "JobStatusChangeEvent": STATUS,
    "CheckpointEvent": CHECKPOINT,
    "JobFailureEvent": FAILURE,
    _EXECUTOR_LOST: FAILURE,
    _PERFORMANCE_ISSUE: ISSUE,
    _TASK_COUNTER: COUNTER,
    "CheckpointOverdueEvent": OVERDUE,
    "HeartbeatEvent": HEARTBEAT,
    "RecordsDroppedEvent": LOSS,
    "AllSubtasksStatusChangeEvent": SEEN,
    "BatchWillMissSlaEvent": SEEN,
    "SourceIdleEvent": SEEN,
    "TableTransactionEvent": SEEN,
}
_MOST_MS, _MOST = 10**12, 10**15
_NUMBERS = {
    "checkpoint_id": ("checkpointId", 0, 2**62),
    "duration_ms": ("durationMs", 0, _MOST_MS),
    "owed_ms": ("owedMs", 0, _MOST_MS),
    "full_size": ("fullSize", -1, _MOST),
    "input_rows": ("numInputRows", 0, _MOST),
    "dropped": ("count", 0, _MOST),
    "lifetime_ms": ("lifetimeMs", 0, _MOST_MS),
    "heap_highest": ("heapUsed.highest", 0, _MOST),
    "heap_limit": ("memoryLimit.heap", 0, _MOST),
    "lost_ms": ("lostMs", 0, _MOST_MS),
    "lost_bytes": ("lostBytes", 0, _MOST),
    "counted": ("count", 0, _MOST),
}
"""The attribute of each number, and the least and the most that it may be, so that no sum is too large."""
_TEXTS = {
    "kind": "job.kind",
    "app_name": "app_name",
    "app_id": "app_id",
    "attempt": "app_attempt_id",
    "query_name": "query_name",
    "run_id": "run_id",
    "exception_type": "exception.type",
    "executor_id": "executor_id",
    "host": "host",
    "issue": "issue",
    "subject": "subject",
    "advice": "advice",
    "counter": "counter",
}
_OF_EXECUTORS = ("executor_id", "host", "lifetime_ms", "heap_highest", "heap_limit")
"""The columns that executors have alone."""
_OF_ISSUES = ("issue", "subject", "advice", "lost_ms", "lost_bytes")
"""The columns that performance issues have alone."""
_OF_COUNTERS = ("counter", "counted")
"""The columns that counters of tasks have alone."""
_MESSAGE_CHARACTERS = 500
PROBLEMS = {
    "unreadable": "lines that are no JSON, or not such as events are",
    "no_id": "events without an id",
    "no_time": "events without a time",
    "time": "events of a time that cannot be",
    "no_job": "events that do not say whose they are",
    "status": "status changes to an unknown status",
    "duration": "checkpoints without a status or a duration",
    "dropped_day": "events of days that the store has dropped",
}
"""Why a record is not used."""


class Fact(NamedTuple):
    """A fact as the tables need it, but for single checkpoints; see ``COLUMNS``."""

    app_name: str
    fact: str
    kind: str | None
    query_name: str | None
    app_id: str | None
    attempt: str | None
    run_id: str | None
    status: str | None
    time_ms: int
    event_id: str
    duration_ms: int | None
    owed_ms: int | None
    error_class: str | None
    exception_type: str | None
    labels: str | None
    message: str | None
    executor_id: str | None
    host: str | None
    lifetime_ms: int | None
    heap_highest: int | None
    heap_limit: int | None
    issue: str | None
    subject: str | None
    advice: str | None
    lost_ms: int | None
    lost_bytes: int | None
    counter: str | None
    counted: int | None


@dataclass
class Reading:
    """How many records were read, and how many could be used.

    Attributes:
        records: lines, rows and log records, but for spans and metrics.
        facts: those that are kept individually: all except ``COLLAPSED`` ones.
        duplicates: facts that were there already, judging by their ids.
        problems: how many records were not used, by the keys of ``PROBLEMS``.
        examples: for each of these problems, a file with such a record.
        odd_numbers: values that are not numbers, or impossible ones; they count as missing.
        own: events from users' own code: their names are not the framework's.
        times: the possible times; events with other times are a problem.
    """

    records: int = 0
    facts: int = 0
    duplicates: int = 0
    problems: dict[str, int] = field(default_factory=dict)
    examples: dict[str, str] = field(default_factory=dict)
    odd_numbers: int = 0
    own: int = 0
    times: PossibleTimes = field(default_factory=PossibleTimes)


def classified(events: str, dialect: Dialect, times: PossibleTimes) -> str:
    """Return the SQL that gives all records as facts.

    Args:
        events: a relation with ``event_id``, ``event_name``: texts, null where the record lacks them;
            ``time_ms``: since the epoch; ``attributes``: map of texts; ``file``: that has the record;
            ``unreadable``: whether it is not such as events are; ``other``: whether it is of another kind, a
            span or a metric.
        dialect: of the database.
        times: the possible ones.

    Returns:
        A query for ``COLUMNS``, and ``file``; ``problem``: a key of ``PROBLEMS`` where the record cannot be
        used; ``odd_numbers``: how many of its values are no numbers; ``own``: whether it is a user's event.
    """
    texts = ", ".join(f"{_text(name, key)} AS {name}" for name, key in _TEXTS.items())
    number_texts = ", ".join(
        f"{_number_text(name, key)} AS {name}_text" for name, (key, *_) in _NUMBERS.items()
    )
    numbers = ", ".join(f"{_number(name, dialect)} AS {name}" for name in _NUMBERS)
    odd = " + ".join(
        f"CASE WHEN {name} IS NULL AND {name}_text IS NOT NULL THEN 1 ELSE 0 END" for name in _NUMBERS
    )
    # In two steps, because otherwise each use of a number would parse it again.
    return f"""
        WITH texts AS (
            SELECT event_id, event_name, time_ms, file, unreadable, {texts}, {number_texts},
                {_error_class()} AS error_class, {_message()} AS message,
                -- Not for Spark jobs and stages, where only the time matters.
                CASE WHEN attributes['job.kind'] IN ('application', 'query')
                    THEN coalesce(attributes['newJobStatus'], attributes['checkpointStatus']) END AS status,
                CASE WHEN event_name = 'JobFailureEvent' THEN {dialect.labels}
                    WHEN event_name = '{_TASK_COUNTER}' THEN attributes['labels']
                    ELSE attributes['cause'] END AS labels,
                {_fact()} AS fact,
                coalesce(event_name NOT IN ({_list(_FACT_OF_EVENT)}), false) AS own
            FROM {events} WHERE NOT other),
        typed AS (SELECT *, {numbers} FROM texts),
        judged AS (SELECT *, CASE WHEN {COLLAPSED} THEN 0 ELSE {odd} END AS odd_numbers,
            {_problem(times)} AS problem FROM typed)
        SELECT {", ".join(f"{_column(name)} AS {name}" for name in COLUMNS)}, file, problem, odd_numbers, own
        FROM judged"""


def together(relations: Sequence[str]) -> str:
    """Return the SQL of the facts of some relations."""
    columns = ", ".join(COLUMNS)
    return " UNION ALL ".join(f"SELECT {columns} FROM {relation}" for relation in relations)


def order_of_repeated() -> str:
    """Return the ``ORDER BY`` that puts first, of several facts with one id, the one that counts.

    It does not depend on the order of reading.
    """
    # Status first: FINISHED wins over CANCELED, because its source knew that the query's trigger was bounded.
    return ", ".join(f"{name} DESC NULLS LAST" for name in columns_of_repeated())


def columns_of_repeated() -> list[str]:
    """Return the columns by which facts with one id are compared, in this order."""
    return ["status", *(name for name in COLUMNS if name not in ("status", "event_id"))]


def day_of(time_ms: str) -> str:
    """Return the SQL of the UTC day of a column of ms since the epoch, in days since the epoch."""
    return f"CAST(floor({time_ms} / {DAY_MS}) AS BIGINT)"


def _column(name: str) -> str:
    if name == "event_id":
        # Those of a day and application are one.
        day = f"concat_ws(' ', fact, {day_of('time_ms')}, app_name, app_id, attempt, query_name)"
        return f"CASE WHEN {COLLAPSED} AND problem IS NULL THEN {day} ELSE event_id END"
    if name in _OF_COLLAPSED:
        return name
    if name == "duration_ms":
        return f"CASE WHEN fact <> '{SEEN}' THEN {name} END"
    column = f"substring(message, 1, {_MESSAGE_CHARACTERS})" if name == "message" else name
    return f"CASE WHEN NOT {COLLAPSED} THEN {column} END"


def _text(name: str, key: str) -> str:
    attribute = f"attributes['{key}']"
    if name in _OF_EXECUTORS:
        return f"CASE WHEN {_IS_EXECUTOR} THEN {attribute} END"
    if name in _OF_COUNTERS:
        return f"CASE WHEN event_name = '{_TASK_COUNTER}' THEN {attribute} END"
    return f"CASE WHEN {_IS_ISSUE} THEN {attribute} END" if name in _OF_ISSUES else attribute


def _number_text(name: str, key: str) -> str:
    if name == "duration_ms":
        return f"CASE WHEN {_IS_HEARTBEAT} THEN attributes['intervalMs'] ELSE attributes['{key}'] END"
    if name == "owed_ms":
        overdue = "event_name = 'CheckpointOverdueEvent'"
        since = f"coalesce(attributes['{key}'], attributes['sinceLastMs'])"
        return f"CASE WHEN {overdue} THEN {since} ELSE attributes['{key}'] END"
    return _text(name, key)


def _number(name: str, dialect: Dialect) -> str:
    _, least, most = _NUMBERS[name]
    number = dialect.integer.format(text=f"{name}_text")
    return f"CASE WHEN {number} BETWEEN {least} AND {most} THEN {number} END"


def _error_class() -> str:
    """Return the SQL of the error; an executor has attributes of its own."""
    return f"CASE WHEN {_IS_EXECUTOR} THEN attributes['reason'] ELSE attributes['errorClass'] END"


def _message() -> str:
    """Return the SQL of the message, and of the place in the code that raised a failure.

    Of an executor, it is Spark's sentence and what its exit code means.
    """
    of_executor = "concat_ws('; ', attributes['reason.message'], attributes['exitMeaning'])"
    said = f"substring(coalesce(attributes['exception.message'], ''), 1, {_MESSAGE_CHARACTERS - 200})"
    place = (
        "' (', attributes['code.file.path'], ':', coalesce(attributes['code.line.number'], ''), "
        "CASE WHEN attributes['code.function.name'] IS NULL THEN '' "
        "ELSE concat(', in ', attributes['code.function.name']) END, ')'"
    )
    return (
        f"CASE WHEN {_IS_EXECUTOR} THEN {of_executor} WHEN {_IS_ISSUE} THEN attributes['summary'] "
        f"WHEN attributes['code.file.path'] IS NOT NULL THEN concat({said}, {place}) "
        "ELSE attributes['exception.message'] END"
    )


def _fact() -> str:
    kinds = " ".join(f"WHEN event_name = '{name}' THEN '{fact}'" for name, fact in _FACT_OF_EVENT.items())
    return (
        # Spark jobs and stages have statuses, too, but there are too many: only their failures are kept.
        f"CASE WHEN event_name = 'JobStatusChangeEvent' AND attributes['job.kind'] IN ('job', 'stage') "
        f"THEN '{SEEN}' "
        # An executor that somebody wanted gone is no failure.
        f"WHEN {_IS_EXECUTOR} AND attributes['reason'] IN ({_list(sorted(EXPECTED))}) "
        f"THEN '{EXECUTOR}' "
        # A warning; what it was about, the stage's end says.
        f"WHEN {_IS_ISSUE} AND attributes['live'] = 'true' THEN '{SEEN}' {kinds} "
        # An event of the users' own code shows that their application lives.
        f"ELSE '{SEEN}' END"
    )


def _problem(times: PossibleTimes) -> str:
    statuses = _list(status.value for status in JobStatus)
    return f"""CASE
        WHEN unreadable OR event_name IS NULL AND event_id IS NULL THEN 'unreadable'
        WHEN event_id IS NULL THEN 'no_id'
        WHEN time_ms IS NULL THEN 'no_time'
        WHEN time_ms NOT BETWEEN {times.earliest_ms} AND {times.latest_ms} THEN 'time'
        WHEN app_name IS NULL OR kind IS NULL AND fact <> '{LOSS}' AND NOT {COLLAPSED}
            OR kind = 'query' AND query_name IS NULL THEN 'no_job'
        WHEN fact = '{STATUS}' AND coalesce(status NOT IN ({statuses}), true) THEN 'status'
        WHEN fact = '{CHECKPOINT}'
            AND (duration_ms IS NULL OR coalesce(status NOT IN ('COMPLETED', 'FAILED'), true)) THEN 'duration'
        END"""


def _list(texts: Iterable[str]) -> str:
    return ", ".join(f"'{text}'" for text in texts)
