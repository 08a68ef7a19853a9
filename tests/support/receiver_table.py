"""What the metrics of the collector's apachesparkreceiver are, from its documentation.md."""

from __future__ import annotations

from itertools import product

Attributes = tuple[tuple[str, str], ...]

_ATTRIBUTES = {
    "stage result": [("result", "completed", "failed", "killed")],
    "executor result": [("result", "completed", "failed")],
    "job result": [("result", "completed", "failed", "skipped")],
    "direction": [("direction", "in", "out")],
    "source": [("source", "local", "remote")],
    "location": [("location", "on_heap", "off_heap")],
    "location and state": [("location", "on_heap", "off_heap"), ("state", "used", "free")],
    "dag status": [("status", "waiting", "running")],
    "pool": [("type", "direct", "mapped")],
    "gc": [("gc_type", "major", "minor")],
    "": [],
}
# name, unit, monotonic sum or not (a gauge, or a sum that is not monotonic), attributes
_ROWS = """
spark.driver.block_manager.disk.usage | mb | no |
spark.driver.block_manager.memory.usage | mb | no | location and state
spark.driver.code_generator.compilation.average_time | ms | no |
spark.driver.code_generator.compilation.count | { compilation } | yes |
spark.driver.code_generator.generated_class.average_size | bytes | no |
spark.driver.code_generator.generated_class.count | { class } | yes |
spark.driver.code_generator.generated_method.average_size | bytes | no |
spark.driver.code_generator.generated_method.count | { method } | yes |
spark.driver.code_generator.source_code.average_size | bytes | no |
spark.driver.code_generator.source_code.operations | { operation } | yes |
spark.driver.dag_scheduler.job.active | { job } | no |
spark.driver.dag_scheduler.job.count | { job } | yes |
spark.driver.dag_scheduler.stage.count | { stage } | no | dag status
spark.driver.dag_scheduler.stage.failed | { stage } | yes |
spark.driver.executor.gc.operations | { gc_operation } | yes | gc
spark.driver.executor.gc.time | ms | yes | gc
spark.driver.executor.memory.execution | bytes | no | location
spark.driver.executor.memory.jvm | bytes | no | location
spark.driver.executor.memory.pool | bytes | no | pool
spark.driver.executor.memory.storage | bytes | no | location
spark.driver.hive_external_catalog.file_cache_hits | { hit } | yes |
spark.driver.hive_external_catalog.files_discovered | { file } | yes |
spark.driver.hive_external_catalog.hive_client_calls | { call } | yes |
spark.driver.hive_external_catalog.parallel_listing_jobs | { listing_job } | yes |
spark.driver.hive_external_catalog.partitions_fetched | { partition } | yes |
spark.driver.jvm_cpu_time | ns | yes |
spark.driver.live_listener_bus.dropped | { event } | yes |
spark.driver.live_listener_bus.posted | { event } | yes |
spark.driver.live_listener_bus.processing_time.average | ms | no |
spark.driver.live_listener_bus.queue_size | { event } | no |
spark.executor.disk.usage | bytes | no |
spark.executor.gc_time | ms | yes |
spark.executor.input_size | bytes | yes |
spark.executor.memory.usage | bytes | no |
spark.executor.shuffle.io.size | bytes | yes | direction
spark.executor.storage_memory.usage | bytes | no | location and state
spark.executor.task.active | { task } | no |
spark.executor.task.limit | { task } | no |
spark.executor.task.result | { task } | yes | executor result
spark.executor.time | ms | yes |
spark.job.stage.active | { task } | no |
spark.job.stage.result | { task } | yes | job result
spark.job.task.active | { task } | no |
spark.job.task.result | { task } | yes | job result
spark.stage.disk.spilled | bytes | yes |
spark.stage.executor.cpu_time | ns | yes |
spark.stage.executor.run_time | ms | yes |
spark.stage.io.records | { record } | yes | direction
spark.stage.io.size | bytes | yes | direction
spark.stage.jvm_gc_time | ms | yes |
spark.stage.memory.peak | bytes | yes |
spark.stage.memory.spilled | bytes | yes |
spark.stage.shuffle.blocks_fetched | { block } | yes | source
spark.stage.shuffle.fetch_wait_time | ms | yes |
spark.stage.shuffle.io.disk | bytes | yes |
spark.stage.shuffle.io.read.size | bytes | yes | source
spark.stage.shuffle.io.records | { record } | yes | direction
spark.stage.shuffle.io.write.size | bytes | yes |
spark.stage.shuffle.write_time | ns | yes |
spark.stage.status | { status } | no |
spark.stage.task.active | { task } | no |
spark.stage.task.result | { task } | yes | stage result
spark.stage.task.result_size | bytes | yes |
"""
PROMETHEUS_UNITS = {"ms": "_milliseconds", "ns": "_nanoseconds", "bytes": "_bytes", "mb": "_mb"}
"""What the collector adds to a name; nothing for units in braces."""


def _attributes(name: str) -> set[Attributes]:
    values = [[(key, value) for value in allowed] for key, *allowed in _ATTRIBUTES[name]]
    return {tuple(sorted(pairs)) for pairs in product(*values)}


METRICS: dict[str, tuple[str, bool, set[Attributes]]] = {
    name: (unit, monotonic == "yes", _attributes(attributes))
    for name, unit, monotonic, attributes in (
        [column.strip() for column in row.split("|")] for row in _ROWS.strip().splitlines()
    )
}
"""By name: the unit, whether it is a monotonic sum, and the sets of attributes that its points have."""


def prometheus_name(name: str) -> str:
    """Return the name that the collector's Prometheus exporter gives a metric of the receiver."""
    unit, monotonic, _ = METRICS[name]
    return name.replace(".", "_") + PROMETHEUS_UNITS.get(unit, "") + ("_total" if monotonic else "")
