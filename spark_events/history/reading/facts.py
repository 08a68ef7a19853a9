"""The facts of a history: the SQL that makes them from stored events, and why an event is none."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from spark_events.api import JobStatus
from spark_events.api.toolkit.formatting import path_without_secrets
from spark_events.history.reading.dialect import Dialect
from spark_events.history.reading.plausible import DAY_MS, PossibleTimes
from spark_events.listeners.executors.executor_ends import EXPECTED
from spark_events.runtime import event_names

STATUS, CHECKPOINT, FAILURE = "status", "checkpoint", "failure"
EXECUTOR, OVERDUE, LOSS, ISSUE, COUNTER, SEEN = "executor", "overdue", "loss", "issue", "counter", "seen"
HEARTBEAT = "heartbeat"
"""The kinds of facts.

``failure`` includes executors that were lost, ``executor`` is one that somebody wanted gone, ``seen`` says no
more than that an application lived, ``heartbeat`` says so, too, and how often it does, as ``duration_ms``.
"""
COLLAPSED = f"fact IN ('{SEEN}', '{HEARTBEAT}')"
"""The SQL of the facts that are one for each day and run of an application, with the latest time."""


def _is(event: str) -> str:
    """Return the SQL of whether an event has a name."""
    return f"event_name = '{event}'"


_IS_EXECUTOR = _is(event_names.EXECUTOR_LOST)
_IS_ISSUE = _is(event_names.PERFORMANCE_ISSUE)
_IS_HEARTBEAT = _is(event_names.HEARTBEAT)
KIND_OF_EVENT = {
    event_names.JOB_STATUS_CHANGE: STATUS,
    event_names.CHECKPOINT: CHECKPOINT,
    event_names.JOB_FAILURE: FAILURE,
    event_names.EXECUTOR_LOST: FAILURE,
    event_names.PERFORMANCE_ISSUE: ISSUE,
    event_names.TASK_COUNTER: COUNTER,
    event_names.CHECKPOINT_OVERDUE: OVERDUE,
    event_names.HEARTBEAT: HEARTBEAT,
    event_names.RECORDS_DROPPED: LOSS,
}
"""Those that are more than ``seen``; of a new one, ``_COLUMNS`` has the attributes that tables need."""
_MOST_MS, _MOST = 10**12, 10**15
_MESSAGE_CHARACTERS = 500


def _list(texts: Iterable[str]) -> str:
    return ", ".join(f"'{text}'" for text in texts)


class _Column(NamedTuple):
    """A column of facts, and where its value comes from.

    Attributes:
        sql: gives its value, of a number as text; ``{labels}`` stands for those of the dialect.
        most, least: that a number may be, so that no sum is too large; ``most`` is None of what is not read
            as a number.
        of_type: unless it is such a number.
        of_collapsed: whether facts that are one for each day have it.
    """

    name: str
    sql: str
    most: int | None = None
    least: int = 0
    of_type: str = "STRING"
    of_collapsed: bool = False


def _attribute(name: str, of_event: str = "") -> str:
    """Return the SQL of an attribute, or of one that counts in events of one name alone."""
    attribute = f"attributes['{name}']"
    return f"CASE WHEN {_is(of_event)} THEN {attribute} END" if of_event else attribute


def _when(condition: str, sql: str, otherwise: str) -> str:
    return f"CASE WHEN {condition} THEN {sql} ELSE {otherwise} END"


def _of_event() -> str:
    """Return the SQL of the kind of fact that an event is."""
    kinds = " ".join(f"WHEN {_is(name)} THEN '{fact}'" for name, fact in KIND_OF_EVENT.items())
    return (
        # Spark jobs and stages have statuses, too, but there are too many: only their failures are kept.
        f"CASE WHEN {_is(event_names.JOB_STATUS_CHANGE)} AND attributes['job_kind'] IN ('job', 'stage') "
        f"THEN '{SEEN}' "
        # An executor that somebody wanted gone is not a failure.
        f"WHEN {_IS_EXECUTOR} AND attributes['reason'] IN ({_list(sorted(EXPECTED))}) "
        f"THEN '{EXECUTOR}' "
        # A warning; what it was about, the stage's end says.
        f"WHEN {_IS_ISSUE} AND attributes['live'] = 'true' THEN '{SEEN}' {kinds} "
        # All others, those of the users' own code among them, show that the application lives.
        f"ELSE '{SEEN}' END"
    )


def _message() -> str:
    """Return the SQL of the message, and of the place in the code that raised a failure.

    Of an executor, it is Spark's sentence and what its exit code means.
    """
    of_executor = "concat_ws('; ', attributes['reasonMessage'], attributes['exitMeaning'])"
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


_COLUMNS = (
    _Column("fact", _of_event(), of_collapsed=True),
    _Column("event_id", "event_id"),
    _Column("time_ms", "time_ms", of_type="BIGINT", of_collapsed=True),
    _Column("kind", _attribute("job_kind")),
    _Column("app_name", _attribute("app_name"), of_collapsed=True),
    _Column("app_id", _attribute("app_id"), of_collapsed=True),
    _Column("attempt", _attribute("app_attempt_id"), of_collapsed=True),
    _Column("query_name", _attribute("query_name"), of_collapsed=True),
    _Column("run_id", _attribute("run_id")),
    _Column(
        "status",
        # Not for Spark jobs and stages, where only the time matters.
        "CASE WHEN attributes['job_kind'] IN ('application', 'query') "
        "THEN coalesce(attributes['newJobStatus'], attributes['checkpointStatus']) END",
    ),
    _Column("checkpoint_id", _attribute("checkpointId"), 2**62),
    _Column(
        "duration_ms", _when(_IS_HEARTBEAT, _attribute("intervalMs"), _attribute("durationMs")), _MOST_MS
    ),
    _Column(
        "owed_ms",
        _when(
            _is(event_names.CHECKPOINT_OVERDUE),
            "coalesce(attributes['owedMs'], attributes['sinceLastMs'])",
            _attribute("owedMs"),
        ),
        _MOST_MS,
    ),
    _Column("sla_ms", _attribute("slaMs"), _MOST_MS, least=1),
    _Column("full_size", _attribute("fullSize"), _MOST, least=-1),
    _Column("input_rows", _attribute("inputRows"), _MOST),
    # An executor has attributes of its own.
    _Column("error_class", _when(_IS_EXECUTOR, _attribute("reason"), _attribute("errorClass"))),
    _Column("exception_type", _attribute("exception.type")),
    _Column("message", _message()),
    _Column(
        "labels",
        f"CASE WHEN {_is(event_names.JOB_FAILURE)} THEN {{labels}} WHEN {_is(event_names.TASK_COUNTER)} "
        "THEN attributes['labels'] ELSE attributes['cause'] END",
    ),
    _Column(
        "dropped",  # of what a history has: spans and metrics are in none
        f"CASE WHEN coalesce(attributes['reporter_kind'], 'events') = 'events' "
        f"THEN {_attribute('count')} END",
        _MOST,
    ),
    _Column("executor_id", _attribute("executor_id", event_names.EXECUTOR_LOST)),
    _Column("host", _attribute("host", event_names.EXECUTOR_LOST)),
    _Column("lifetime_ms", _attribute("lifetimeMs", event_names.EXECUTOR_LOST), _MOST_MS),
    _Column("heap_highest", _attribute("heapUsed.highest", event_names.EXECUTOR_LOST), _MOST),
    _Column("heap_limit", _attribute("memoryLimit.heap", event_names.EXECUTOR_LOST), _MOST),
    _Column("issue", _attribute("issue", event_names.PERFORMANCE_ISSUE)),
    _Column("subject", _attribute("subject", event_names.PERFORMANCE_ISSUE)),
    _Column("advice", _attribute("advice", event_names.PERFORMANCE_ISSUE)),
    _Column("lost_ms", _attribute("lostMs", event_names.PERFORMANCE_ISSUE), _MOST_MS),
    _Column("lost_bytes", _attribute("lostBytes", event_names.PERFORMANCE_ISSUE), _MOST),
    _Column("counter", _attribute("counter", event_names.TASK_COUNTER)),
    _Column("counted", _attribute("count", event_names.TASK_COUNTER), _MOST),
    _Column("issue_id", _attribute("issueId", event_names.PERFORMANCE_ISSUE)),
    _Column("query_id", _attribute("query_id", event_names.JOB_STATUS_CHANGE)),
)
"""A new one is a line here, and one in ``Fact`` if the tables need it; what a store has already lacks it."""
_NUMBERS = tuple(column for column in _COLUMNS if column.most is not None)
COLUMNS = {column.name: column.of_type if column.most is None else "BIGINT" for column in _COLUMNS}
"""Of the facts, and their types. ``time_ms`` is since the epoch; ``full_size``, and of the heap, in bytes."""
CUT = "cut"
PROBLEMS = {
    "unreadable": "lines that are not JSON, or not events",
    CUT: "files that cannot be read to their end",
    "no_id": "events without an id",
    "no_time": "events without a time",
    "time": "events with an implausible time",
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
    sla_ms: int | None
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
    issue_id: str | None
    query_id: str | None


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

    @property
    def skipped(self) -> list[str]:
        """One sentence for each of the problems."""
        sentences = []
        for problem, count in self.problems.items():
            example = path_without_secrets(self.examples.get(problem) or "")
            problem_text = PROBLEMS[problem] + (f", {self.times}" if problem == "time" else "")
            of_one = "one is" if problem == CUT else "one is in"
            sentences.append(f"{count:,} skipped: {problem_text} ({of_one} {example})")
        return sentences


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
        used; ``odd_numbers``: how many of its values are not numbers; ``own``: whether it is a user's event.
    """
    texts = ", ".join(
        f"{column.sql.replace('{labels}', dialect.labels)} AS {_as_text(column)}" for column in _COLUMNS
    )
    numbers = ", ".join(f"{_number(column, dialect)} AS {column.name}" for column in _NUMBERS)
    odd = " + ".join(
        f"CASE WHEN {column.name} IS NULL AND {_as_text(column)} IS NOT NULL THEN 1 ELSE 0 END"
        for column in _NUMBERS
    )
    columns = ", ".join(f"{_value(column)} AS {column.name}" for column in _COLUMNS)
    until = "" if times.until_ms is None else f" AND (time_ms <= {times.until_ms} OR time_ms IS NULL)"
    # In two steps, because otherwise each use of a number would parse it again.
    return f"""
        WITH texts AS (
            SELECT event_name, file, unreadable, {texts},
                coalesce(event_name NOT IN ({_list(sorted(event_names.all_names()))}), false) AS own
            FROM {events} WHERE NOT other{until}),
        typed AS (SELECT *, {numbers} FROM texts),
        judged AS (SELECT *, CASE WHEN {COLLAPSED} THEN 0 ELSE {odd} END AS odd_numbers,
            {_problem(times)} AS problem FROM typed)
        SELECT {columns}, file, problem, odd_numbers, own FROM judged"""


def together(relations: Sequence[str]) -> str:
    """Return the SQL of the facts of some relations."""
    columns = ", ".join(COLUMNS)
    return " UNION ALL ".join(f"SELECT {columns} FROM {relation}" for relation in relations)


def order_of_repeated() -> str:
    """Return the ``ORDER BY`` that puts first, of several facts with one id, the one that counts.

    It does not depend on the order of reading.
    """
    return ", ".join(f"{expression} DESC NULLS LAST" for expression in columns_of_repeated())


def columns_of_repeated() -> list[str]:
    """Return the expressions by which facts with one id are compared, in this order: the highest counts."""
    # FINISHED wins over CANCELED, because its source knew that the query's trigger was bounded. Of an event,
    # the earliest time is right: who reads a compacted log may tell that a query runs when it goes on.
    time_first = f"CASE WHEN {COLLAPSED} THEN time_ms ELSE -time_ms END"
    return ["status", time_first, *(name for name in COLUMNS if name not in ("status", "event_id"))]


def day_of(time_ms: str) -> str:
    """Return the SQL of the UTC day of a column of ms since the epoch, in days since the epoch."""
    return f"CAST(floor({time_ms} / {DAY_MS}) AS BIGINT)"


def _as_text(column: _Column) -> str:
    return column.name if column.most is None else f"{column.name}_text"


def _number(column: _Column, dialect: Dialect) -> str:
    number = dialect.integer.format(text=_as_text(column))
    return f"CASE WHEN {number} BETWEEN {column.least} AND {column.most} THEN {number} END"


def _value(column: _Column) -> str:
    """Return the SQL of a column of what is kept; facts that are one for each day lack most."""
    name = column.name
    if name == "event_id":
        # Those of a day and application are one.
        day = f"concat_ws(' ', fact, {day_of('time_ms')}, app_name, app_id, attempt, query_name)"
        return f"CASE WHEN {COLLAPSED} AND problem IS NULL THEN {day} ELSE event_id END"
    if column.of_collapsed:
        return name
    if name == "duration_ms":
        return f"CASE WHEN fact <> '{SEEN}' THEN {name} END"
    value = f"substring(message, 1, {_MESSAGE_CHARACTERS})" if name == "message" else name
    return f"CASE WHEN NOT {COLLAPSED} THEN {value} END"


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
