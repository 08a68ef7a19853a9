"""The facts of a history, made from stored events: typed, without duplicates; the rest is counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from spark_events.api import JobStatus
from spark_events.history.plausible import DAY_MS, PossibleTimes
from spark_events.history.stored_events import read_stored_events
from spark_events.listeners.executor_ends import EXPECTED

STATUS, CHECKPOINT, FAILURE = "status", "checkpoint", "failure"
OVERDUE, LOSS, SEEN = "overdue", "loss", "seen"
"""The kinds of facts; ``seen`` says no more than that an application lived."""
SCHEMA = (
    "fact string, date date, event_id string, time_ms bigint, kind string, app_name string, app_id string, "
    "attempt string, query_name string, run_id string, status string, checkpoint_id bigint, "
    "duration_ms bigint, owed_ms bigint, full_size bigint, rows bigint, error_class string, "
    "exception_type string, message string, labels string, count bigint"
)
"""Of the facts. ``time_ms`` is since the epoch, ``date`` its day in UTC, ``full_size`` in bytes."""
_COLUMNS = [column.split()[0] for column in SCHEMA.split(", ")]
EXECUTOR_LOST = "ExecutorLostEvent"
_FACT_OF_EVENT = {
    "JobStatusChangeEvent": STATUS,
    "CheckpointEvent": CHECKPOINT,
    "JobFailureEvent": FAILURE,
    EXECUTOR_LOST: FAILURE,
    "CheckpointOverdueEvent": OVERDUE,
    "RecordsDroppedEvent": LOSS,
    "AllSubtasksStatusChangeEvent": SEEN,
    "TableTransactionEvent": SEEN,
}
_MOST_MS, _MOST = 10**12, 10**15
_NUMBERS = {
    "checkpoint_id": ("checkpointId", 0, 2**62),
    "duration_ms": ("durationMs", 0, _MOST_MS),
    "owed_ms": ("owedMs", 0, _MOST_MS),
    "full_size": ("fullSize", -1, _MOST),
    "rows": ("numInputRows", 0, _MOST),
    "count": ("count", 0, _MOST),
}
"""The attribute of each number, and the least and the most that it may be, so that no sum is too large."""
_TEXTS = {
    "kind": "job.kind",
    "app_name": "app_name",
    "app_id": "app_id",
    "attempt": "app_attempt_id",
    "query_name": "query_name",
    "run_id": "run_id",
    "error_class": "errorClass",
    "exception_type": "exception.type",
    "message": "exception.message",
}
_LABEL = "failureLabel."
_MESSAGE_CHARACTERS = 500
PROBLEMS = {
    "unreadable": "lines that are no JSON, or not such as events are",
    "no_id": "events without an id",
    "no_time": "events without a time",
    "time": "events of a time that cannot be",
    "no_job": "events that do not say whose they are",
    "status": "status changes to an unknown status",
    "duration": "checkpoints without a status or a duration",
}
"""Why a record is not used."""


@dataclass
class Reading:
    """How many records were read, and how many could be used.

    Attributes:
        records: lines, rows and log records, but for spans and metrics.
        facts: those that are kept individually: all except ``seen`` ones.
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


class FactReader:
    """Reads the facts at some paths; the outcome is known once an action has read them.

    Args:
        paths: as ``read_stored_events`` takes them.

    Attributes:
        facts: of ``SCHEMA``, not yet each once.

    Raises:
        ConfigError: there is nothing at a path.
    """

    def __init__(self, spark: SparkSession, paths: Sequence[str], times: PossibleTimes) -> None:
        self._times = times
        self._observed = Observation("reading")
        rows = _classified(read_stored_events(spark, paths), times)
        metrics = [
            F.count(F.lit(1)).alias("records"),
            F.count(F.when(F.col("problem").isNull() & (F.col("fact") != SEEN), True)).alias("facts"),
            F.coalesce(F.sum("odd_numbers"), F.lit(0)).alias("odd_numbers"),
            F.count(F.when(F.col("problem").isNull() & F.col("own"), True)).alias("own"),
        ]
        for problem in PROBLEMS:
            file = F.when(F.col("problem") == problem, F.col("file"))
            metrics.append(F.count(file).alias(f"count_{problem}"))
            metrics.append(F.min(file).alias(f"file_{problem}"))
        usable = rows.observe(self._observed, *metrics).where("problem is null")
        self.facts: DataFrame = usable.select(*_COLUMNS)

    def reading(self) -> Reading:
        """Wait for the first action on ``facts``, and return how reading went."""
        metrics = self._observed.get
        counts = {problem: metrics[f"count_{problem}"] for problem in PROBLEMS}
        problems = {problem: count for problem, count in counts.items() if count}
        return Reading(
            records=metrics["records"],
            facts=metrics["facts"],
            problems=problems,
            examples={problem: metrics[f"file_{problem}"] for problem in problems},
            odd_numbers=metrics["odd_numbers"],
            own=metrics["own"],
            times=self._times,
        )


def each_once(facts: DataFrame) -> DataFrame:
    """Return the facts without repeated ids; of ``seen`` facts, only the last of each run and day.

    If two records with one id differ, the one that sorts last is kept, so their order does not matter.
    """
    # A ``seen`` fact is identified by its day and application instead of its own id.
    day_id = F.concat_ws(" ", F.lit(SEEN), "date", "app_name", "app_id", "attempt")
    event_id = F.when(F.col("fact") == SEEN, day_id).otherwise(F.col("event_id"))
    # Status first: FINISHED wins over CANCELED, because its source knew that the query's trigger was bounded.
    order = ["status", *(name for name in _COLUMNS if name not in ("status", "event_id"))]
    once = facts.groupBy(event_id.alias("event_id")).agg(F.max(F.struct(*order)).alias("kept"))
    return once.select("kept.*", "event_id").select(*_COLUMNS)


def date_of(time_ms: Any) -> Any:
    """Return the day in UTC of a column of ms since the epoch, whatever the session's time zone."""
    return F.date_from_unix_date(F.floor(time_ms / DAY_MS).cast("int"))


def _classified(events: DataFrame, times: PossibleTimes) -> DataFrame:
    """Return all records as facts, with the ``problem`` of those that cannot be used."""
    attributes = F.col("attributes")
    status = F.coalesce(attributes["newJobStatus"], attributes["checkpointStatus"])
    # In two steps, because otherwise each use of a number would parse it again.
    texts = events.where("not other").select(
        "event_id",
        "event_name",
        "time_ms",
        "file",
        "unreadable",
        *(_text(name, key, attributes) for name, key in _TEXTS.items()),
        *(attributes[key].alias(f"{name}_text") for name, (key, *_) in _NUMBERS.items() if name != "owed_ms"),
        F.when(F.col("event_name") == "CheckpointOverdueEvent", attributes["sinceLastMs"])
        .otherwise(attributes["owedMs"])
        .alias("owed_ms_text"),
        # Not for Spark jobs and stages, where only the time matters.
        F.when(attributes["job.kind"].isin("application", "query"), status).alias("status"),
        F.when(F.col("event_name") == "JobFailureEvent", _labels(attributes))
        .otherwise(attributes["cause"])  # of a RecordsDroppedEvent
        .alias("labels"),
        _fact_of(F.col("event_name"), attributes["job.kind"], attributes["reason"]).alias("fact"),
        (~F.col("event_name").isin(*_FACT_OF_EVENT)).alias("own"),
    )
    typed = texts.select("*", *(_number(name).alias(name) for name in _NUMBERS))
    odd_numbers = sum(
        (F.col(name).isNull() & F.col(f"{name}_text").isNotNull()).cast("int") for name in _NUMBERS
    )
    return typed.select(
        "*",
        odd_numbers.alias("odd_numbers"),
        _problem(times).alias("problem"),
        # An impossible time may not even have a day.
        date_of(F.when(_is_possible(times), F.col("time_ms"))).alias("date"),
    ).withColumn("message", F.substring("message", 1, _MESSAGE_CHARACTERS))


def _text(name: str, key: str, attributes: Any) -> Any:
    """Return a text of a fact; the failure of an executor is told by attributes of its own."""
    text = attributes[key]
    lost = F.col("event_name") == EXECUTOR_LOST
    if name == "error_class":
        text = F.when(lost, attributes["reason"]).otherwise(text)
    elif name == "message":
        text = F.when(lost, _loss_of_executor(attributes)).otherwise(text)
    return text.alias(name)


def _loss_of_executor(attributes: Any) -> Any:
    """Return which executor was lost, why, and how full its heap was."""
    heap, limit = (
        F.expr(f"round(try_cast(attributes['{key}'] as double) / {1 << 20})").cast("bigint")
        for key in ("heapUsed.highest", "memoryLimit.heap")
    )
    return F.concat_ws(
        "; ",
        F.concat(F.lit("executor "), attributes["executor_id"], F.lit(" on "), attributes["host"]),
        attributes["reason.message"],
        attributes["exitMeaning"],
        F.when(heap.isNotNull() & limit.isNotNull(), F.format_string("heap %d of %d MiB", heap, limit)),
    )


def _number(name: str) -> Any:
    number = F.expr(f"try_cast({name}_text as bigint)")
    _, least, most = _NUMBERS[name]
    return F.when(number.between(least, most), number)


def _fact_of(event_name: Any, job_kind: Any, lost_reason: Any) -> Any:
    fact = F.lit(SEEN)  # an event of the users' own code shows that their application lives
    for name, fact_of_event in _FACT_OF_EVENT.items():
        fact = F.when(event_name == name, F.lit(fact_of_event)).otherwise(fact)
    # An executor that somebody wanted gone is no failure.
    expected = (event_name == EXECUTOR_LOST) & lost_reason.isin(*EXPECTED)
    fact = F.when(expected, F.lit(SEEN)).otherwise(fact)
    # Spark jobs and stages have statuses, too, but there are too many: only their failures are kept.
    return F.when((fact == STATUS) & job_kind.isin("job", "stage"), F.lit(SEEN)).otherwise(fact)


def _labels(attributes: Any) -> Any:
    """Return the labels of a failure as one text, in order: ``team=payments, type=USER``."""
    pairs = F.map_entries(F.map_filter(attributes, lambda key, _: key.startswith(_LABEL)))
    labels = F.transform(
        pairs,
        lambda pair: F.concat(F.substring(pair["key"], len(_LABEL) + 1, 1_000), F.lit("="), pair["value"]),
    )
    return F.array_join(F.array_sort(labels), ", ")


def _is_possible(times: PossibleTimes) -> Any:
    return F.col("time_ms").between(times.earliest_ms, times.latest_ms)


def _problem(times: PossibleTimes) -> Any:
    nameless_query = (F.col("kind") == "query") & F.col("query_name").isNull()
    without_kind = F.col("kind").isNull() & ~F.col("fact").isin(LOSS, SEEN)
    bad_checkpoint = F.col("duration_ms").isNull() | ~F.coalesce(
        F.col("status").isin("COMPLETED", "FAILED"), F.lit(False)
    )
    bad_status = ~F.coalesce(F.col("status").isin(*(status.value for status in JobStatus)), F.lit(False))
    return (
        F.when(F.col("unreadable"), "unreadable")
        .when(F.col("event_name").isNull() & F.col("event_id").isNull(), "unreadable")
        .when(F.col("event_id").isNull(), "no_id")
        .when(F.col("time_ms").isNull(), "no_time")
        .when(~_is_possible(times), "time")
        .when(F.col("app_name").isNull() | without_kind | nameless_query, "no_job")
        .when((F.col("fact") == STATUS) & bad_status, "status")
        .when((F.col("fact") == CHECKPOINT) & bad_checkpoint, "duration")
    )
