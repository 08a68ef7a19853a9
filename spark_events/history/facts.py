"""From stored events, the facts that the history is made of: typed, each once, and what could not be used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyspark.sql import Observation
from pyspark.sql import functions as F  # noqa: N812

from spark_events.api import JobStatus
from spark_events.history.plausible import DAY_MS, NUMBERS, PossibleTimes
from spark_events.history.stored_events import read_stored_events

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

STATUS, CHECKPOINT, FAILURE, OVERDUE, LOSS, SEEN = (
    "status",
    "checkpoint",
    "failure",
    "overdue",
    "loss",
    "seen",
)
"""The kinds of facts; ``seen`` is that something was heard of an application at all."""
SCHEMA = (
    "fact string, date date, event_id string, time_ms bigint, kind string, app_name string, app_id string, "
    "attempt string, query_name string, run_id string, status string, checkpoint_id bigint, "
    "duration_ms bigint, owed_ms bigint, full_size bigint, rows bigint, error_class string, "
    "exception_type string, message string, labels string, count bigint"
)
"""Of the facts. ``time_ms`` is since the epoch, ``date`` its day in UTC, ``full_size`` in bytes."""
_FACT_OF = {
    "JobStatusChangeEvent": STATUS,
    "CheckpointEvent": CHECKPOINT,
    "JobFailureEvent": FAILURE,
    "CheckpointOverdueEvent": OVERDUE,
    "RecordsDroppedEvent": LOSS,
    "AllSubtasksStatusChangeEvent": SEEN,
    "TableTransactionEvent": SEEN,
}
_NUMBERS = {
    "checkpoint_id": "checkpointId",
    "duration_ms": "durationMs",
    "owed_ms": "owedMs",
    "full_size": "fullSize",
    "rows": "numInputRows",
    "count": "count",
}
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
    """What was found at the paths.

    Attributes:
        records: lines, rows and log records, but for spans and metrics.
        facts: those that are kept one by one: not what only shows that an application lived.
        events: those that were used.
        duplicates: facts that were there already, by their ids.
        problems: how many records were not used, by the keys of ``PROBLEMS``.
        examples: for each of these, a file in which one stands.
        odd_numbers: values that ought to be numbers and are not, or not such as can be; they are taken as
            missing.
        own: events of names that are not the framework's: those of the users' own code.
        times: which can be; those of other events are a problem.
    """

    records: int = 0
    facts: int = 0
    events: int = 0
    duplicates: int = 0
    problems: dict[str, int] = field(default_factory=dict)
    examples: dict[str, str] = field(default_factory=dict)
    odd_numbers: int = 0
    own: int = 0
    times: PossibleTimes = field(default_factory=PossibleTimes)


class FactReader:
    """Reads the facts at some paths; how that went is known when an action has read them.

    Args:
        spark: the session.
        paths: as ``read_stored_events`` takes them.
        times: which can be; from 2009 to a day from now by default.

    Attributes:
        facts: of ``SCHEMA``, not yet each once.

    Raises:
        ConfigError: there is nothing at a path.
    """

    def __init__(self, spark: SparkSession, paths: Sequence[str], times: PossibleTimes | None = None) -> None:
        self._times = times or PossibleTimes()
        self._observed = Observation("reading")
        rows = _classified(read_stored_events(spark, paths), self._times)
        counted = [
            F.count(F.lit(1)).alias("records"),
            F.count(F.when(F.col("problem").isNull() & (F.col("fact") != SEEN), True)).alias("facts"),
            F.coalesce(F.sum("odd_numbers"), F.lit(0)).alias("odd_numbers"),
            F.count(F.when(F.col("problem").isNull() & F.col("own"), True)).alias("own"),
        ]
        for problem in PROBLEMS:
            is_it = F.col("problem") == problem
            counted.append(F.count(F.when(is_it, True)).alias(f"count_{problem}"))
            counted.append(F.min(F.when(is_it, F.col("file"))).alias(f"file_{problem}"))
        observed = rows.observe(self._observed, *counted).where("problem is null")
        self.facts: DataFrame = observed.select(*_columns_of_schema())

    def reading(self) -> Reading:
        """Return how reading went; waits for the first action on ``facts``."""
        found = self._observed.get
        problems = {name: found[f"count_{name}"] for name in PROBLEMS if found[f"count_{name}"]}
        return Reading(
            records=found["records"],
            facts=found["facts"],
            events=found["records"] - sum(problems.values()),
            problems=problems,
            examples={name: found[f"file_{name}"] for name in problems},
            odd_numbers=found["odd_numbers"],
            own=found["own"],
            times=self._times,
        )


def each_once(facts: DataFrame) -> DataFrame:
    """Return the facts without repeated ids, and of what was ``seen`` the last of each application and day.

    Where two records of one id differ, that which sorts last is taken: the same one in whatever order they
    come.
    """
    # What was seen has an id of its day and application in place of its own.
    of_day = F.concat_ws(" ", F.lit(SEEN), "date", "app_name", "app_id", "attempt")
    same = F.when(F.col("fact") == SEEN, of_day).otherwise(F.col("event_id"))
    rest = [name for name in _columns_of_schema() if name != "event_id"]
    # The status first: of FINISHED and CANCELED the former knows that the query's trigger was bounded.
    order = ["status", *(name for name in rest if name != "status")]
    once = facts.groupBy(same.alias("event_id")).agg(F.max(F.struct(*order)).alias("kept"))
    return once.select("kept.*", "event_id").select(*_columns_of_schema())


def date_of(time_ms: Any) -> Any:
    """Return the day in UTC of a column of ms since the epoch, whatever the session's time zone."""
    return F.date_from_unix_date(F.floor(time_ms / DAY_MS).cast("int"))


def _columns_of_schema() -> list[str]:
    return [part.split()[0] for part in SCHEMA.split(", ")]


def _classified(events: DataFrame, times: PossibleTimes) -> DataFrame:
    attributes = F.col("attributes")
    status = F.coalesce(attributes["newJobStatus"], attributes["checkpointStatus"])
    # Two steps, or each use of a number would parse it once more.
    texts = events.where("not other").select(
        "event_id",
        "event_name",
        "time_ms",
        "file",
        "unreadable",
        *(attributes[key].alias(name) for name, key in _TEXTS.items()),
        *(attributes[key].alias(f"{name}_text") for name, key in _NUMBERS.items() if name != "owed_ms"),
        F.when(F.col("event_name") == "CheckpointOverdueEvent", attributes["sinceLastMs"])
        .otherwise(attributes["owedMs"])
        .alias("owed_ms_text"),
        # Not of Spark jobs and stages, of which only the time matters.
        F.when(attributes["job.kind"].isin("application", "query"), status).alias("status"),
        F.when(F.col("event_name") == "JobFailureEvent", _labels(attributes))
        .otherwise(attributes["cause"])  # of a RecordsDroppedEvent
        .alias("labels"),
        _fact_of(F.col("event_name"), attributes["job.kind"]).alias("fact"),
        (~F.col("event_name").isin(*_FACT_OF)).alias("own"),
    )
    typed = texts.select("*", *(_number(name).alias(name) for name in _NUMBERS))
    odd = sum((F.col(name).isNull() & F.col(f"{name}_text").isNotNull()).cast("int") for name in _NUMBERS)
    return typed.select(
        "*",
        odd.alias("odd_numbers"),
        _problem(times).alias("problem"),
        # Of a time that cannot be, there may be no day either.
        date_of(F.when(_can_be(times), F.col("time_ms"))).alias("date"),
    ).withColumn("message", F.substring("message", 1, _MESSAGE_CHARACTERS))


def _number(name: str) -> Any:
    number = F.expr(f"try_cast({name}_text as bigint)")
    return F.when(number.between(*NUMBERS[name]), number)


def _fact_of(name: Any, kind: Any) -> Any:
    fact = F.lit(SEEN)  # what users' own code reports shows that their application lives
    for event, its in _FACT_OF.items():
        # Spark jobs have statuses, too, and they are many: of them, only the failures are kept.
        passing = (kind == "job") | (kind == "stage")
        of_it = F.when(passing, F.lit(SEEN)).otherwise(its) if its == STATUS else F.lit(its)
        fact = F.when(name == event, of_it).otherwise(fact)
    return fact


def _labels(attributes: Any) -> Any:
    pairs = F.map_entries(F.map_filter(attributes, lambda key, _: key.startswith(_LABEL)))
    shown = F.transform(
        pairs,
        lambda pair: F.concat(F.substring(pair["key"], len(_LABEL) + 1, 1_000), F.lit("="), pair["value"]),
    )
    return F.array_join(F.array_sort(shown), ", ")


def _can_be(times: PossibleTimes) -> Any:
    return F.col("time_ms").between(times.earliest_ms, times.latest_ms)


def _problem(times: PossibleTimes) -> Any:
    whose = F.col("app_name").isNull() | (F.col("kind").isNull() & ~F.col("fact").isin(LOSS, SEEN))
    whose = whose | ((F.col("kind") == "query") & F.col("query_name").isNull())
    bad_checkpoint = F.col("duration_ms").isNull() | ~F.coalesce(
        F.col("status").isin("COMPLETED", "FAILED"), F.lit(False)
    )
    bad_status = ~F.coalesce(F.col("status").isin(*(status.value for status in JobStatus)), F.lit(False))
    return (
        F.when(F.col("unreadable"), "unreadable")
        .when(F.col("event_name").isNull() & F.col("event_id").isNull(), "unreadable")
        .when(F.col("event_id").isNull(), "no_id")
        .when(F.col("time_ms").isNull(), "no_time")
        .when(~_can_be(times), "time")
        .when(whose, "no_job")
        .when((F.col("fact") == STATUS) & bad_status, "status")
        .when((F.col("fact") == CHECKPOINT) & bad_checkpoint, "duration")
    )
