"""Writes event logs as Spark 4.3 does, of any size: jobs of SQL executions with their tasks, and a query."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

T0 = 1_795_000_000_000
APP_ID = "app-20261118120000-0001"
_STREAMING = "org.apache.spark.sql.streaming.StreamingQueryListener$"
_SQL = "org.apache.spark.sql.execution.ui."
QUERY, RUN = "4f0f6f9a-3a55-4f0a-9d6c-0a1b2c3d4e5f", "8c1d1f1e-5e0b-4d4b-8a43-6f7e8d9c0b1a"
_SQL_METRICS = ("duration", "number of output rows", "shuffle bytes written")
_INTERNAL = (
    "executorDeserializeTime",
    "executorDeserializeCpuTime",
    "executorRunTime",
    "executorCpuTime",
    "resultSize",
    "jvmGCTime",
    "resultSerializationTime",
)


def line(record: dict[str, Any]) -> bytes:
    """Return a record as Spark writes it."""
    return json.dumps(record, separators=(",", ":")).encode() + b"\n"


class SampleLog:
    """The lines of one application, in the order in which Spark would write them.

    Args:
        app_id: of the application.
        cores: how many tasks run at once.
        padding: how long plans, properties and the like are, in lines.
    """

    def __init__(self, app_id: str = APP_ID, cores: int = 8, padding: int = 100) -> None:
        self._app_id = app_id
        self._padding = padding
        self._cores = cores
        self._now = T0
        self._jobs = self._stages = self._tasks = 0

    def begin(self) -> Iterator[bytes]:
        """Yield what a log begins with."""
        yield line({"Event": "SparkListenerLogStart", "Spark Version": "4.3.0"})
        manager = {"Executor ID": "driver", "Host": "10.0.0.1", "Port": 40001}
        memory = {"Maximum Onheap Memory": 455501414, "Maximum Offheap Memory": 0}
        yield line(
            {
                "Event": "SparkListenerBlockManagerAdded",
                "Block Manager ID": manager,
                "Maximum Memory": 455501414,
                "Timestamp": T0,
                **memory,
            }
        )
        yield line(
            {
                "Event": "SparkListenerEnvironmentUpdate",
                "JVM Information": {"Java Version": "17.0.12"},
                "Spark Properties": {
                    f"spark.sample.{number}": "value" * 8 for number in range(self._padding)
                },
                "Hadoop Properties": {},
                "System Properties": {},
                "Metrics Properties": {},
                "Classpath Entries": {},
            }
        )
        yield line(
            {
                "Event": "SparkListenerApplicationStart",
                "App Name": "sample",
                "App ID": self._app_id,
                "Timestamp": T0,
                "User": "spark",
            }
        )
        yield line(
            {
                "Event": "SparkListenerExecutorAdded",
                "Timestamp": T0 + 10,
                "Executor ID": "1",
                "Executor Info": {
                    "Host": "10.0.0.2",
                    "Total Cores": self._cores,
                    "Log Urls": {},
                    "Attributes": {},
                    "Resources": {},
                    "Resource Profile Id": 0,
                },
            }
        )

    def end(self, exit_code: int = 0) -> Iterator[bytes]:
        """Yield what a log ends with."""
        self._now += 100
        yield line({"Event": "SparkListenerApplicationEnd", "Timestamp": self._now, "ExitCode": exit_code})

    def job(self, tasks: int, stages: int = 2, failing: int = 0) -> Iterator[bytes]:
        """Yield the records of one SQL execution with one job.

        Args:
            tasks: of each stage.
            stages: how many there are, one after the other.
            failing: how many tasks of the last stage fail once before they succeed.
        """
        job, first = self._jobs, self._stages
        self._jobs, self._stages = job + 1, first + stages
        self._now += 50
        infos = [self._stage_info(first + number, tasks) for number in range(stages)]
        yield line(
            {
                "Event": _SQL + "SparkListenerSQLExecutionStart",
                "executionId": job,
                "rootExecutionId": job,
                "description": f"save at Sample.scala:{job}",
                "details": "org.apache.spark.sql.DataFrameWriter.save(DataFrameWriter.scala:240)\n"
                * min(6, self._padding),
                "physicalPlanDescription": f"== Physical Plan ==\n* HashAggregate ({job})\n"
                + "+- plan\n" * 9 * self._padding,
                "sparkPlanInfo": {
                    "nodeName": "HashAggregate",
                    "simpleString": "HashAggregate",
                    "children": [],
                    "metadata": {},
                    "metrics": [],
                },
                "time": self._now,
                "modifiedConfigs": {},
                "jobTags": [],
            }
        )
        yield line(
            {
                "Event": "SparkListenerJobStart",
                "Job ID": job,
                "Submission Time": self._now + 1,
                "Stage Infos": infos,
                "Stage IDs": [first + number for number in range(stages)],
                "Properties": {"spark.sql.execution.id": str(job), "spark.rdd.scope.noOverride": "true"},
            }
        )
        for number, info in enumerate(infos):
            yield from self._stage(info, tasks, failing if number == stages - 1 else 0)
        self._now += 5
        yield line(
            {
                "Event": "SparkListenerJobEnd",
                "Job ID": job,
                "Completion Time": self._now,
                "Job Result": {"Result": "JobSucceeded"},
            }
        )
        yield line(
            {
                "Event": _SQL + "SparkListenerSQLExecutionEnd",
                "executionId": job,
                "time": self._now + 1,
                "errorMessage": "",
            }
        )

    def query(self, batches: int, error: str | None = None) -> Iterator[bytes]:
        """Yield the records of a streaming query."""
        ids = {"id": QUERY, "runId": RUN}
        self._now += 10
        started = {**ids, "name": "orders", "timestamp": _iso(self._now), "jobTags": []}
        yield line({"Event": _STREAMING + "QueryStartedEvent", **started})
        for batch in range(batches):
            begun = self._now = self._now + 1_000
            self._now += 400
            durations = {"triggerExecution": 400, "walCommit": 20, "addBatch": 300, "commitOffsets": 30}
            progress = {
                **ids,
                "name": "orders",
                "timestamp": _iso(begun),
                "batchId": batch,
                "batchDuration": 400,
                "numInputRows": 50,
                "durationMs": durations,
                "eventTime": {},
                "stateOperators": [],
                "sources": [],
                "sink": {"description": "NoopTable", "numOutputRows": 50},
            }
            yield line({"Event": _STREAMING + "QueryProgressEvent", "progress": progress})
        ended = {**ids, "exception": error, "errorClassOnException": None}
        yield line({"Event": _STREAMING + "QueryTerminatedEvent", **ended})

    # ----------------------------------------------------------------------------------------------------

    def _stage_info(self, stage: int, tasks: int) -> dict[str, Any]:
        storage = {
            "Use Disk": False,
            "Use Memory": False,
            "Use Off Heap": False,
            "Deserialized": False,
            "Replication": 1,
        }
        rdd = {
            "RDD ID": stage,
            "Name": "MapPartitionsRDD",
            "Callsite": "save at Sample.scala",
            "Parent IDs": [],
            "Storage Level": storage,
            "Barrier": False,
            "DeterministicLevel": "DETERMINATE",
            "Number of Partitions": tasks,
            "Number of Cached Partitions": 0,
            "Memory Size": 0,
            "Disk Size": 0,
        }
        return {
            "Stage ID": stage,
            "Stage Attempt ID": 0,
            "Stage Name": "save at Sample.scala",
            "Number of Tasks": tasks,
            "RDD Info": [rdd] * min(4, self._padding),
            "Parent IDs": [],
            "Details": "org.apache.spark.sql.DataFrameWriter.save(DataFrameWriter.scala:240)\n"
            * min(6, self._padding),
            "Accumulables": [],
            "Resource Profile Id": 0,
            "Shuffle Push Enabled": False,
            "Shuffle Push Mergers Count": 0,
        }

    def _stage(self, info: dict[str, Any], tasks: int, failing: int) -> Iterator[bytes]:
        submitted = self._now = self._now + 2
        begun = {**info, "Submission Time": submitted}
        yield line({"Event": "SparkListenerStageSubmitted", "Stage Info": begun, "Properties": {}})
        stage = info["Stage ID"]
        for first in range(0, tasks, self._cores):
            wave = range(first, min(first + self._cores, tasks))
            for index in wave:
                yield self._start(stage, index, 0)
            self._now += 40
            for index in wave:
                yield self._end(stage, index, 0, index < failing)
        for index in range(failing):
            yield self._start(stage, index, 1)
            self._now += 3
            yield self._end(stage, index, 1, False)
        ended = {**begun, "Completion Time": self._now}
        yield line({"Event": "SparkListenerStageCompleted", "Stage Info": ended})

    def _start(self, stage: int, index: int, attempt: int) -> bytes:
        self._tasks += 1
        return (
            '{"Event":"SparkListenerTaskStart","Stage ID":%d,"Stage Attempt ID":0,"Task Info":%s}\n'
            % (stage, self._info(index, attempt, 0, False, "[]"))
        ).encode()

    def _end(self, stage: int, index: int, attempt: int, failed: bool) -> bytes:
        n = 1 + (index * 31 + stage * 7) % 997
        names = [
            '{"ID":%d,"Name":"%s","Update":"%d","Value":"%d","Internal":true,"Count Failed Values":true,'
            '"Metadata":"sql"}' % (100 + number, name, n, n * index)
            for number, name in enumerate(_SQL_METRICS)
        ] + [
            '{"ID":%d,"Name":"internal.metrics.%s","Update":%d,"Value":%d,"Internal":true,'
            '"Count Failed Values":true}' % (200 + number, name, n, n * index)
            for number, name in enumerate(_INTERNAL)
        ]
        reason = _FAILED if failed else '{"Reason":"Success"}'
        return (
            '{"Event":"SparkListenerTaskEnd","Stage ID":%d,"Stage Attempt ID":0,"Task Type":"ShuffleMapTask",'
            '"Task End Reason":%s,"Task Info":%s,"Task Executor Metrics":{%s},"Task Metrics":%s}\n'
            % (
                stage,
                reason,
                self._info(index, attempt, self._now, failed, "[" + ",".join(names) + "]"),
                _EXECUTOR_METRICS,
                _METRICS % {"n": n},
            )
        ).encode()

    def _info(self, index: int, attempt: int, finished: int, failed: bool, accumulables: str) -> str:
        return (
            '{"Task ID":%d,"Index":%d,"Attempt":%d,"Partition ID":%d,"Launch Time":%d,"Executor ID":"1",'
            '"Host":"10.0.0.2","Locality":"PROCESS_LOCAL","Speculative":false,"Getting Result Time":0,'
            '"Finish Time":%d,"Failed":%s,"Killed":false,"Accumulables":%s}'
            % (
                self._tasks,
                index,
                attempt,
                index,
                self._now,
                finished,
                "true" if failed else "false",
                accumulables,
            )
        )


def small_log() -> bytes:
    """Return a log with all kinds of records that events come of."""
    log = SampleLog(padding=1)
    lines = [
        *log.begin(),
        *log.job(2, stages=1, failing=1),
        *log.query(2, "java.lang.RuntimeException: boom"),
        *log.end(),
    ]
    return b"".join(lines)


def _iso(time_ms: int) -> str:
    from datetime import datetime, timezone

    moment = datetime.fromtimestamp(time_ms / 1000, timezone.utc)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{time_ms % 1000:03d}Z"


_FAILED = (
    '{"Reason":"ExceptionFailure","Class Name":"java.lang.RuntimeException","Description":"bad row",'
    '"Stack Trace":[],"Full Stack Trace":"java.lang.RuntimeException: bad row","Accumulator Updates":[]}'
)
_EXECUTOR_METRICS = ",".join(
    f'"{name}":0'
    for name in (
        "JVMHeapMemory",
        "JVMOffHeapMemory",
        "OnHeapExecutionMemory",
        "OffHeapExecutionMemory",
        "OnHeapStorageMemory",
        "OffHeapStorageMemory",
        "OnHeapUnifiedMemory",
        "OffHeapUnifiedMemory",
        "DirectPoolMemory",
        "MappedPoolMemory",
    )
)
_METRICS = (
    '{"Executor Deserialize Time":3,"Executor Deserialize CPU Time":2000000,"Executor Run Time":%(n)d,'
    '"Executor CPU Time":%(n)d000000,"Peak Execution Memory":0,"Result Size":2157,"JVM GC Time":1,'
    '"Result Serialization Time":0,"Memory Bytes Spilled":0,"Disk Bytes Spilled":0,"Shuffle Read Metrics":{'
    '"Remote Blocks Fetched":0,"Local Blocks Fetched":8,"Fetch Wait Time":0,"Remote Bytes Read":%(n)d,'
    '"Remote Bytes Read To Disk":0,"Local Bytes Read":100,"Total Records Read":50,'
    '"Remote Requests Duration":0,"Push Based Shuffle":{"Corrupt Merged Block Chunks":0,'
    '"Merged Fetch Fallback Count":0,"Merged Remote Blocks Fetched":0,"Merged Local Blocks Fetched":0,'
    '"Merged Remote Chunks Fetched":0,"Merged Local Chunks Fetched":0,"Merged Remote Bytes Read":0,'
    '"Merged Local Bytes Read":0,"Merged Remote Requests Duration":0}},"Shuffle Write Metrics":{'
    '"Shuffle Bytes Written":%(n)d,"Shuffle Write Time":100,"Shuffle Records Written":5},"Input Metrics":{'
    '"Bytes Read":10,"Records Read":50},"Output Metrics":{"Bytes Written":0,"Records Written":0},'
    '"Updated Blocks":[]}'
)
