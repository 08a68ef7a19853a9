"""What 1,000 executors cost the driver: their heartbeats, and Spark's own metrics that they send.

CPU of the driver's JVM and of Python for what comes within ten seconds, as a share of one core. Heartbeats
are handed to the bridge by calls from Python, which Spark does not need: as many calls that do nothing are
measured in turn, and subtracted.
"""

from __future__ import annotations

import resource
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from bench.process_cpu import process_cpu_s
from bench.table import machine, write
from spark_events.api import ApplicationInfo
from spark_events.listeners import spark_records
from spark_events.listeners.spark_listeners import SparkListeners
from spark_events.runtime.registry import Registry
from spark_events.sources.configuration import read_configuration
from spark_events.sources.driver.bridge import DriverBridge
from spark_events.sources.driver.metrics_receiver import MetricsReceiver

_EXECUTORS, _STAGES, _SERIES = 1_000, 20, 200
_WITHIN_S = 10
_ROUNDS, _WARM_UP = 5, 2
_PREFIX = "token.app-1"
_SENDER = """
import socket, sys
prefix, (port, executors, series, first) = sys.argv[1], map(int, sys.argv[2:])
for executor in range(executors):
    names = ["jvm.heap.used", *(f"source{number}.value" for number in range(1, series))]
    lines = (f"{prefix}.{executor}.{name} {first + number} 1" for number, name in enumerate(names))
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(("\\n".join(lines) + "\\n").encode())
"""


def _listeners() -> tuple[Registry, SparkListeners]:
    """Return listeners of an application with all executors, and a reporter that serves their metrics."""
    conf = {
        "spark.metrics.reporter.prom.factory.class": "prometheus",
        "spark.metrics.reporter.prom.port": "0",
        "spark.metrics.reporter.prom.max-series": "100000",
    }
    configuration = read_configuration(conf, ApplicationInfo("bench", "app-1"))
    registry = Registry(configuration.setups)
    registry.start()
    registry.wait_opened(5_000)
    listeners = SparkListeners(registry, configuration.settings, configuration.enrichers, "4.3.0")
    listeners.on_record(
        {"Event": spark_records.APPLICATION_START, "App Name": "bench", "App ID": "app-1", "Timestamp": 1}
    )
    for number in range(_EXECUTORS):
        added = {"Event": spark_records.EXECUTOR_ADDED, "Executor ID": str(number), "Timestamp": 1}
        listeners.on_record({**added, "Executor Info": {"Host": "h", "Total Cores": 4}})
    return registry, listeners


def _heartbeats(context: Any) -> list[Any]:
    """Return a heartbeat of each executor, with measurements for each of its stages."""
    jvm, gateway = context._jvm, context._gateway
    names = jvm.org.apache.spark.metrics.ExecutorMetricType.numMetrics()
    nil = getattr(jvm.scala.collection.immutable, "Nil$").__getattr__("MODULE$")
    beats = []
    for executor in range(_EXECUTORS):
        values = gateway.new_array(jvm.long, names)
        for index in range(names):
            values[index] = (executor + 1) * (index + 1)
        metrics = jvm.org.apache.spark.executor.ExecutorMetrics(values)
        updates = jvm.scala.collection.mutable.HashMap()
        for stage in range(_STAGES):
            updates.put(jvm.scala.Tuple2(stage, 0), metrics)
        update = jvm.org.apache.spark.scheduler.SparkListenerExecutorMetricsUpdate
        beats.append(update(str(executor), nil, updates))
    return beats


def _rounds_of_heartbeats() -> Iterator[float]:
    """Yield for each round the CPU, in s, of what comes within ten seconds."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    session = builder.config("spark.log.level", "ERROR").getOrCreate()
    registry, listeners = _listeners()
    bridge = DriverBridge(session.sparkContext, 16 << 20, 0)
    beats = _heartbeats(session.sparkContext)
    pid = int(session.sparkContext._jvm.java.lang.ProcessHandle.current().pid())

    def cpu_s(call: Callable[[Any], object]) -> float:
        began = process_cpu_s(pid) + time.process_time()
        for number, beat in enumerate(beats):
            call(beat)
            if number % (_EXECUTORS // _WITHIN_S) == 0:
                time.sleep(1.0)  # as in a driver, where Python asks for records once a second
                for received_ms, record in bridge.drain(1_000, 0):
                    listeners.on_record(record, received_ms)
        return process_cpu_s(pid) + time.process_time() - began

    for _ in range(_ROUNDS + _WARM_UP):
        yield -cpu_s(bridge.java.equals) + cpu_s(bridge.java.onExecutorMetricsUpdate)
    registry.close(1_000)
    session.stop()


def _rounds_of_sources() -> Iterator[float]:
    """Yield for each round the CPU, in s, of receiving what all executors send within ten seconds."""
    registry, listeners = _listeners()
    receiver = MetricsReceiver("127.0.0.1", 0, _PREFIX)
    receiver.start()
    for number in range(_ROUNDS + _WARM_UP):
        arguments = map(str, (receiver.port, _EXECUTORS, _SERIES, number))
        began, received = time.process_time(), 0
        sender = subprocess.Popen([sys.executable, "-c", _SENDER, _PREFIX, *arguments])
        while received < _EXECUTORS * _SERIES:
            time.sleep(0.2)
            executors = receiver.take()
            received += sum(len(values) for values in executors.values())
            listeners.on_record({"Event": spark_records.EXECUTOR_SOURCES, "Executors": executors}, 1)
        assert sender.wait() == 0
        yield time.process_time() - began
    assert not receiver.dropped, receiver.dropped
    receiver.close()
    registry.close(1_000)


def _share(cpu_s: list[float]) -> str:
    percents = sorted(100 * each / _WITHIN_S for each in cpu_s[_WARM_UP:])
    return f"{statistics.median(percents):.2f} % ({percents[0]:.2f} to {percents[-1]:.2f})"


def main() -> None:
    """Measure, and write the table."""
    socket.setdefaulttimeout(60)
    memory = []
    sources = []
    for cpu_s in _rounds_of_sources():
        sources.append(cpu_s)
        memory.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    beats = list(_rounds_of_heartbeats())
    grown = (memory[-1] - memory[_WARM_UP]) / 1024
    write(
        "executors",
        [
            f"{_EXECUTORS:,} executors, CPU of the driver's JVM and Python as a share of one core, median of "
            f"{_ROUNDS} rounds of {_WITHIN_S} s, and the lowest and highest ({machine()}; `make bench`):",
            "",
            "| what they send | share of a core |",
            "| --- | --- |",
            f"| a heartbeat each, with {_STAGES} active stages | {_share(beats)} |",
            f"| {_SERIES} of Spark's own metrics each | {_share(sources)} |",
            "",
            f"Over the {_ROUNDS} rounds, the memory of the receiving process grew by {grown:.0f} MiB.",
        ],
    )


if __name__ == "__main__":
    main()
