"""Makes records of what happened before the bridge was attached, and adds what Spark's records lack."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

from spark_events.jvm.janino import QUERIES, new
from spark_events.listeners.queries.micro_batch import parse_micro_batch
from spark_events.listeners.record_fields import (
    APP_ID,
    APP_NAME,
    EXECUTOR_ID,
    EXECUTOR_INFO,
    JOB_ID,
    PROPERTIES,
    RESOURCE_PROFILE_ID,
    RUN_ID,
    SPARK_PROPERTIES,
    STAGE_IDS,
    SUBMISSION_TIME,
    TIMESTAMP,
)
from spark_events.listeners.spark_records import (
    APPLICATION_START,
    ENVIRONMENT_UPDATE,
    EXECUTOR_ADDED,
    FOUND_RUNNING,
    INTERACTIVE,
    JOB_START,
    QUERY_STARTED,
    RESOURCE_PROFILE_ADDED,
    RESUMED_AFTER,
    record_time_ms,
)
from spark_events.runtime.log_once import logger
from spark_events.sources.attaching.attached_again import again_of
from spark_events.sources.interactive import is_interactive
from spark_events.task.local_properties import JOB_GROUP

Record = dict[str, Any]
_INTERVAL = re.compile(r"ProcessingTimeTrigger\((\d+)\)")


def attempt_id(scala_context: Any) -> str:
    """Return YARN's attempt id of a (Scala) SparkContext's application; empty without YARN."""
    attempt = scala_context.applicationAttemptId()
    return str(attempt.get()) if attempt.isDefined() else ""


def environment_of(conf: Mapping[str, str]) -> Record:
    """Return the EnvironmentUpdate that was posted before anybody could attach, as Spark makes it."""
    return {"Event": ENVIRONMENT_UPDATE, SPARK_PROPERTIES: {"spark.scheduler.mode": "FIFO", **conf}}


class DriverState:
    """Asks a live driver, through PySpark's SparkContext, for what its listener events do not say.

    Args:
        spark_context: it.
        attachment: 2 for the second attachment to its application, and so on.
    """

    def __init__(self, spark_context: Any, attachment: int) -> None:
        self._again = again_of(attachment)
        self._python_context = spark_context
        self._jvm = spark_context._jvm
        self._gateway = spark_context._gateway
        self._scala_context = spark_context._jsc.sc()

    @property
    def stopped(self) -> bool:
        """Whether ``SparkContext.stop`` has returned."""
        return self._python_context._jsc is None

    @property
    def has_successor(self) -> bool:
        """Whether the program has begun to start another SparkContext."""
        active = type(self._python_context)._active_spark_context
        return active is not None and active is not self._python_context

    def application_start(self) -> Record:
        """Return the ApplicationStart that was posted before anybody could attach."""
        return {
            "Event": APPLICATION_START,
            APP_NAME: self._scala_context.appName(),
            APP_ID: self._scala_context.applicationId(),
            TIMESTAMP: self._scala_context.startTime(),
            "User": self._scala_context.sparkUser(),
            "App Attempt ID": attempt_id(self._scala_context),
            INTERACTIVE: is_interactive(),
            **self._again,
        }

    def executors(self) -> Iterator[Record]:
        """Yield an ExecutorAdded for each executor that lives already, from Spark's status store."""
        executors = self._scala_context.statusStore().executorList(True)
        for index in range(executors.size()):
            executor = executors.apply(index)
            # The list includes the driver, which has cores only in local mode, where it is the executor.
            if executor.id() != "driver" or executor.totalCores():
                yield {
                    "Event": EXECUTOR_ADDED,
                    TIMESTAMP: executor.addTime().getTime(),
                    EXECUTOR_ID: executor.id(),
                    EXECUTOR_INFO: {
                        "Host": executor.hostPort().rsplit(":", 1)[0],
                        "Total Cores": executor.totalCores(),
                        RESOURCE_PROFILE_ID: executor.resourceProfileId(),
                    },
                }

    def resource_profiles(self) -> Iterator[Record]:
        """Yield a ResourceProfileAdded for each profile that exists already besides the configuration's."""
        profiles = self._scala_context.statusStore().resourceProfileInfo()
        for index in range(profiles.size()):
            profile = profiles.apply(index)
            if profile.id():
                as_java = self._jvm.scala.jdk.javaapi.CollectionConverters.asJava
                requests = dict(as_java(profile.executorResources()))
                yield {
                    "Event": RESOURCE_PROFILE_ADDED,
                    RESOURCE_PROFILE_ID: profile.id(),
                    "Executor Resource Requests": {
                        name: {"Amount": request.amount()} for name, request in requests.items()
                    },
                }

    def running_jobs(self) -> Iterator[Record]:
        """Yield a JobStart for each job that runs already, from Spark's status store."""
        statuses = self._gateway.jvm.java.util.ArrayList()
        statuses.add(self._jvm.org.apache.spark.JobExecutionStatus.RUNNING)
        jobs = self._scala_context.statusStore().jobsList(statuses)
        for index in range(jobs.size()):
            job = jobs.apply(index)
            stage_ids, group, submitted = job.stageIds(), job.jobGroup(), job.submissionTime()
            yield {
                "Event": JOB_START,
                JOB_ID: job.jobId(),
                SUBMISSION_TIME: submitted.get().getTime() if submitted.isDefined() else None,
                STAGE_IDS: [stage_ids.apply(number) for number in range(stage_ids.size())],
                PROPERTIES: {JOB_GROUP: group.get()} if group.isDefined() else {},
            }

    def running_queries(self, now_ms: int) -> Iterator[Record]:
        """Yield a QueryStarted for each streaming query that runs already."""
        for query in self._running():
            ids = {"id": query.id().toString(), RUN_ID: query.runId().toString()}
            details = {"name": query.name(), "time": now_ms, FOUND_RUNNING: True}
            yield self.complete_query({"Event": QUERY_STARTED, **ids, **details})

    def complete_query(self, record: Record) -> Record:
        """Add to a QueryStarted its checkpoint, and whether the query ends by itself."""
        try:
            return {**record, **self._query_details(record)}
        except Exception as error:  # Spark internals, through py4j: these details are not worth a failure
            logger.debug(
                "could not read the details of query %s from the driver: %r", record.get("id"), error
            )
            return record

    def _query_details(self, record: Record) -> Record:
        query = self._queries.withId(record["id"])
        if query is None:  # where Spark's threads are not as they are known to be
            query = self._listed().get(self._jvm.java.util.UUID.fromString(record["id"]))
        if query is None:  # it has ended already: unless the program has stopped it, it has reached its end
            return {"bounded": True}
        trigger = query.trigger().toString()
        interval = _INTERVAL.match(trigger)
        return {
            RESUMED_AFTER: self._resumed_after(query, record),
            "checkpointLocation": query.resolvedCheckpointRoot(),
            "bounded": trigger.startswith(("AvailableNow", "OneTime", "Once")),
            "continuous": trigger.startswith("ContinuousTrigger"),
            "triggerIntervalMs": int(interval.group(1)) or None if interval else None,
        }

    def _resumed_after(self, query: Any, record: Record) -> int | None:
        started_ms = record_time_ms(record)
        if record.get(FOUND_RUNNING) or started_ms is None or query.runId().toString() != record[RUN_ID]:
            return None
        return resumed_after(self._jvm, query, started_ms)

    def _running(self) -> list[Any]:
        try:
            if _CONNECT in self._python_context.getConf().get("spark.plugins", ""):
                return list(self._queries.running())
            # As attaching waits for it: without what has to be compiled first.
            return list(self._listed().values())
        except Exception as error:  # Spark internals, which no version promises
            logger.warning("the streaming queries that run already cannot be found: %r", error)
            return []

    def _listed(self) -> Any:
        """Return Spark's map, by id, of the queries of all sessions that share the default one's state."""
        session = self._jvm.org.apache.spark.sql.SparkSession.getDefaultSession()
        return session.get().sharedState().activeStreamingQueries() if session.isDefined() else {}

    @cached_property
    def _queries(self) -> Any:
        """``StreamingQueries.java``, which is compiled the first time."""
        return new(self._gateway, QUERIES.load(self._jvm, "StreamingQueries"))


_CONNECT = "SparkConnectPlugin"
_CLEARLY_OLDER_MS = 10_000
_NONE_KNOWN = -1
_TRIES = 20
_TRY_AGAIN_S = 0.05


def resumed_after(jvm: Any, query: Any, started_ms: int) -> int | None:
    """Ask a query that has just started for the last batch that earlier runs have committed.

    Args:
        jvm: py4j's view of the driver's JVM.
        query: Spark's StreamExecution.
        started_ms: when this run started, in ms since the epoch.

    Returns:
        The batch; -1 if earlier runs are known to have been, but not what they have committed. None for a
        query that is new, or of which this is not known.
    """
    committed = _committed_before(query)
    if committed is None and _is_older(jvm, query, started_ms):
        return _NONE_KNOWN
    return committed


def _committed_before(query: Any) -> int | None:
    """Return the last batch that was committed before this run; None if the run itself may have done it.

    The run goes on meanwhile. A batch is committed first, then there is progress of it, and then comes the
    next: so without progress, this run has committed one batch at most, and that is the current one.
    """
    try:
        latest = query.commitLog().getLatestBatchId()
        if latest.isEmpty():
            return None
        committed = int(latest.get())
        for _ in range(_TRIES):
            current = _current_batch(query)
            if query.lastProgress() is not None:
                return None
            if current is None or current > committed:
                return committed
            # Either it has just committed this batch, or it reads what was committed before. Both pass.
            time.sleep(_TRY_AGAIN_S)
    except Exception as error:  # Spark internals, which no version promises
        logger.debug("could not read the commits of a query: %r", error)
        return None
    return committed - 1 if committed > 0 else None


def _current_batch(query: Any) -> int | None:
    """Return the batch that a run has come to; None before it knows."""
    from py4j.protocol import Py4JJavaError  # comes with PySpark

    try:
        batch = parse_micro_batch(query.getBatchDescriptionString())
    except Py4JJavaError:  # a null pointer: it has not begun
        return None
    return batch.number if batch is not None else None


def _is_older(jvm: Any, query: Any, started_ms: int) -> bool:
    """Return whether the checkpoint was made clearly before this run started."""
    try:
        path = jvm.org.apache.hadoop.fs.Path(str(query.resolvedCheckpointRoot()), "metadata")
        hadoop_conf = query.sparkSession().sparkContext().hadoopConfiguration()
        made_ms = int(path.getFileSystem(hadoop_conf).getFileStatus(path).getModificationTime())
    except Exception as error:  # no such file, no permission: it is not known
        logger.debug("could not read the age of a checkpoint: %r", error)
        return False
    return 0 < made_ms <= started_ms - _CLEARLY_OLDER_MS
