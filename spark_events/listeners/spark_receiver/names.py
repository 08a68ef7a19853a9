"""The metrics of the OpenTelemetry Collector's apachesparkreceiver: names, attributes, units and sources.

A source is a figure of Spark's REST API, which the receiver reads as well, or a metric of the driver's own
metrics system. The receiver's documentation: opentelemetry-collector-contrib, receiver/apachesparkreceiver.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

STAGE_STATUS = "status"
"""The name of the stage's metric whose attributes are its status; its value is 1."""
STAGE_STATUSES = ("active", "complete", "pending", "failed")
_USED, _FREE = {"state": "used"}, {"state": "free"}
_ON_HEAP, _OFF_HEAP = {"location": "on_heap"}, {"location": "off_heap"}
_IN, _OUT = {"direction": "in"}, {"direction": "out"}
_LOCAL, _REMOTE = {"source": "local"}, {"source": "remote"}
_COMPLETED, _FAILED = {"result": "completed"}, {"result": "failed"}
_KILLED, _SKIPPED = {"result": "killed"}, {"result": "skipped"}
_MINOR, _MAJOR = {"gc_type": "minor"}, {"gc_type": "major"}


@dataclass(frozen=True, slots=True, eq=False)
class ReceiverMetric:
    """One series of a driver, an executor, a stage or a job.

    Attributes:
        name: below ``spark.driver``, ``spark.executor``, ``spark.stage`` or ``spark.job``.
        source: the figure that it shows.
        unit: the receiver's, in which the value is.
        grows: whether it is a monotonic sum, and not a gauge.
        attributes: besides those that name the driver, executor, stage or job.
    """

    name: str
    source: str
    unit: str
    grows: bool
    attributes: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))


def _gauge(name: str, source: str, unit: str, *attributes: Mapping[str, str]) -> ReceiverMetric:
    return ReceiverMetric(name, source, unit, False, _joined(attributes))


def _count(name: str, source: str, unit: str, *attributes: Mapping[str, str]) -> ReceiverMetric:
    return ReceiverMetric(name, source, unit, True, _joined(attributes))


def _joined(attributes: Sequence[Mapping[str, str]]) -> Mapping[str, str]:
    return MappingProxyType({key: value for some in attributes for key, value in some.items()})


_TASK, _STAGE, _JOB, _RECORD, _EVENT = "{ task }", "{ stage }", "{ job }", "{ record }", "{ event }"

OF_STAGES = (
    _gauge("task.active", "numActiveTasks", _TASK),
    _count("task.result", "numCompleteTasks", _TASK, _COMPLETED),
    _count("task.result", "numFailedTasks", _TASK, _FAILED),
    _count("task.result", "numKilledTasks", _TASK, _KILLED),
    _count("task.result_size", "resultSize", "bytes"),
    _count("executor.run_time", "executorRunTime", "ms"),
    _count("executor.cpu_time", "executorCpuTime", "ns"),
    _count("jvm_gc_time", "jvmGcTime", "ms"),
    _count("memory.spilled", "memoryBytesSpilled", "bytes"),
    _count("disk.spilled", "diskBytesSpilled", "bytes"),
    _count("memory.peak", "peakExecutionMemory", "bytes"),
    _count("io.size", "inputBytes", "bytes", _IN),
    _count("io.size", "outputBytes", "bytes", _OUT),
    _count("io.records", "inputRecords", _RECORD, _IN),
    _count("io.records", "outputRecords", _RECORD, _OUT),
    _count("shuffle.blocks_fetched", "shuffleRemoteBlocksFetched", "{ block }", _REMOTE),
    _count("shuffle.blocks_fetched", "shuffleLocalBlocksFetched", "{ block }", _LOCAL),
    _count("shuffle.fetch_wait_time", "shuffleFetchWaitTime", "ms"),
    _count("shuffle.io.disk", "shuffleRemoteBytesReadToDisk", "bytes"),
    _count("shuffle.io.read.size", "shuffleLocalBytesRead", "bytes", _LOCAL),
    _count("shuffle.io.read.size", "shuffleRemoteBytesRead", "bytes", _REMOTE),
    _count("shuffle.io.write.size", "shuffleWriteBytes", "bytes"),
    _count("shuffle.io.records", "shuffleReadRecords", _RECORD, _IN),
    _count("shuffle.io.records", "shuffleWriteRecords", _RECORD, _OUT),
    _count("shuffle.write_time", "shuffleWriteTime", "ns"),
)
_USED_ON_HEAP, _USED_OFF_HEAP = "usedOnHeapStorageMemory", "usedOffHeapStorageMemory"
FREE_STORAGE = {
    "freeOnHeapStorageMemory": ("totalOnHeapStorageMemory", _USED_ON_HEAP),
    "freeOffHeapStorageMemory": ("totalOffHeapStorageMemory", _USED_OFF_HEAP),
}
"""Figures that the REST API does not have, but their total and what is used."""
_FREE_ON_HEAP, _FREE_OFF_HEAP = FREE_STORAGE
OF_EXECUTORS = (
    _gauge("memory.usage", "memoryUsed", "bytes"),
    _gauge("disk.usage", "diskUsed", "bytes"),
    _gauge("task.limit", "maxTasks", _TASK),
    _gauge("task.active", "activeTasks", _TASK),
    _count("task.result", "completedTasks", _TASK, _COMPLETED),
    _count("task.result", "failedTasks", _TASK, _FAILED),
    _count("time", "totalDuration", "ms"),
    _count("gc_time", "totalGCTime", "ms"),
    _count("input_size", "totalInputBytes", "bytes"),
    _count("shuffle.io.size", "totalShuffleRead", "bytes", _IN),
    _count("shuffle.io.size", "totalShuffleWrite", "bytes", _OUT),
    _gauge("storage_memory.usage", _USED_ON_HEAP, "bytes", _ON_HEAP, _USED),
    _gauge("storage_memory.usage", _FREE_ON_HEAP, "bytes", _ON_HEAP, _FREE),
    _gauge("storage_memory.usage", _USED_OFF_HEAP, "bytes", _OFF_HEAP, _USED),
    _gauge("storage_memory.usage", _FREE_OFF_HEAP, "bytes", _OFF_HEAP, _FREE),
)
OF_JOBS = (
    _gauge("task.active", "numActiveTasks", _TASK),
    _count("task.result", "numCompletedTasks", _TASK, _COMPLETED),
    _count("task.result", "numSkippedTasks", _TASK, _SKIPPED),
    _count("task.result", "numFailedTasks", _TASK, _FAILED),
    _gauge("stage.active", "numActiveStages", _TASK),
    _count("stage.result", "numCompletedStages", _TASK, _COMPLETED),
    _count("stage.result", "numSkippedStages", _TASK, _SKIPPED),
    _count("stage.result", "numFailedStages", _TASK, _FAILED),
)
IN_ALL_STORAGE = ("diskUsed", _USED_ON_HEAP, _FREE_ON_HEAP, _USED_OFF_HEAP, _FREE_OFF_HEAP)
"""Figures of executors whose sum, in MiB, is a figure of the driver: its BlockManager knows all others."""
_BLOCKS = "block_manager.memory.usage"
_HIVE, _CODE = "hive_external_catalog", "code_generator"
_MEASURED, _QUEUE = "ExecutorMetrics", "LiveListenerBus.queue.appStatus"
OF_THE_DRIVER = (
    _gauge("block_manager.disk.usage", "diskUsed", "mb"),
    _gauge(_BLOCKS, _USED_ON_HEAP, "mb", _ON_HEAP, _USED),
    _gauge(_BLOCKS, _FREE_ON_HEAP, "mb", _ON_HEAP, _FREE),
    _gauge(_BLOCKS, _USED_OFF_HEAP, "mb", _OFF_HEAP, _USED),
    _gauge(_BLOCKS, _FREE_OFF_HEAP, "mb", _OFF_HEAP, _FREE),
    _count(f"{_HIVE}.file_cache_hits", "HiveExternalCatalog.fileCacheHits", "{ hit }"),
    _count(f"{_HIVE}.files_discovered", "HiveExternalCatalog.filesDiscovered", "{ file }"),
    _count(f"{_HIVE}.hive_client_calls", "HiveExternalCatalog.hiveClientCalls", "{ call }"),
    _count(
        f"{_HIVE}.parallel_listing_jobs", "HiveExternalCatalog.parallelListingJobCount", "{ listing_job }"
    ),
    _count(f"{_HIVE}.partitions_fetched", "HiveExternalCatalog.partitionsFetched", "{ partition }"),
    _count(f"{_CODE}.compilation.count", "CodeGenerator.compilationTime.count", "{ compilation }"),
    _gauge(f"{_CODE}.compilation.average_time", "CodeGenerator.compilationTime.mean", "ms"),
    _count(f"{_CODE}.generated_class.count", "CodeGenerator.generatedClassSize.count", "{ class }"),
    _gauge(f"{_CODE}.generated_class.average_size", "CodeGenerator.generatedClassSize.mean", "bytes"),
    _count(f"{_CODE}.generated_method.count", "CodeGenerator.generatedMethodSize.count", "{ method }"),
    _gauge(f"{_CODE}.generated_method.average_size", "CodeGenerator.generatedMethodSize.mean", "bytes"),
    _count(f"{_CODE}.source_code.operations", "CodeGenerator.sourceCodeSize.count", "{ operation }"),
    _gauge(f"{_CODE}.source_code.average_size", "CodeGenerator.sourceCodeSize.mean", "bytes"),
    _gauge("dag_scheduler.job.active", "DAGScheduler.job.activeJobs", _JOB),
    _count("dag_scheduler.job.count", "DAGScheduler.job.allJobs", _JOB),
    _count("dag_scheduler.stage.failed", "DAGScheduler.stage.failedStages", _STAGE),
    _gauge("dag_scheduler.stage.count", "DAGScheduler.stage.runningStages", _STAGE, {"status": "running"}),
    _gauge("dag_scheduler.stage.count", "DAGScheduler.stage.waitingStages", _STAGE, {"status": "waiting"}),
    _count("live_listener_bus.posted", "LiveListenerBus.numEventsPosted", _EVENT),
    _gauge("live_listener_bus.processing_time.average", f"{_QUEUE}.listenerProcessingTime.mean", "ms"),
    _count("live_listener_bus.dropped", f"{_QUEUE}.numDroppedEvents", _EVENT),
    _gauge("live_listener_bus.queue_size", f"{_QUEUE}.size", _EVENT),
    _count("jvm_cpu_time", "JVMCPU.jvmCpuTime", "ns"),
    _gauge("executor.memory.jvm", f"{_MEASURED}.JVMHeapMemory", "bytes", _ON_HEAP),
    _gauge("executor.memory.jvm", f"{_MEASURED}.JVMOffHeapMemory", "bytes", _OFF_HEAP),
    _gauge("executor.memory.execution", f"{_MEASURED}.OnHeapExecutionMemory", "bytes", _ON_HEAP),
    _gauge("executor.memory.execution", f"{_MEASURED}.OffHeapExecutionMemory", "bytes", _OFF_HEAP),
    _gauge("executor.memory.storage", f"{_MEASURED}.OnHeapStorageMemory", "bytes", _ON_HEAP),
    _gauge("executor.memory.storage", f"{_MEASURED}.OffHeapStorageMemory", "bytes", _OFF_HEAP),
    _gauge("executor.memory.pool", f"{_MEASURED}.DirectPoolMemory", "bytes", {"type": "direct"}),
    _gauge("executor.memory.pool", f"{_MEASURED}.MappedPoolMemory", "bytes", {"type": "mapped"}),
    _count("executor.gc.operations", f"{_MEASURED}.MinorGCCount", "{ gc_operation }", _MINOR),
    _count("executor.gc.operations", f"{_MEASURED}.MajorGCCount", "{ gc_operation }", _MAJOR),
    _count("executor.gc.time", f"{_MEASURED}.MinorGCTime", "ms", _MINOR),
    _count("executor.gc.time", f"{_MEASURED}.MajorGCTime", "ms", _MAJOR),
)


def api_figures() -> list[str]:
    """Return the names of the REST API's figures that the metrics of executors, stages and jobs show."""
    totals = {total for total, _ in FREE_STORAGE.values()}
    sources = {metric.source for metric in (*OF_EXECUTORS, *OF_STAGES, *OF_JOBS)}
    return sorted((sources | totals) - FREE_STORAGE.keys())


def driver_metrics() -> list[str]:
    """Return the names of the metrics of the driver's metrics system, each after its source's."""
    sources = {metric.source for metric in OF_THE_DRIVER} - set(IN_ALL_STORAGE)
    return sorted({source.removesuffix(".count").removesuffix(".mean") for source in sources})
