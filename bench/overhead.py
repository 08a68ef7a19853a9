"""What reporting costs: CPU of the driver JVM and of Python for a job of many small JVM-only tasks.

In one driver, whose JVM is warm by then: without reporters and with the file log, OTLP and Prometheus in
turn, and at the end with a Py4J callback listener that only counts and cannot be taken off again. A round is
made of slices, in which the two ways alternate: a shared machine's speed drifts by more than the cost that is
looked for, and whole processes one after the other would show the drift alone.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from bench import table
from bench.process_cpu import process_cpu_s
from bench.sink import Sink

WAYS = ("none", "all three", "callback listener")
_SLICES = 5
_WARM_UP = 4
BRIDGE_THREAD = "spark-listener-group-sparkEvents"


class CountingListener:
    """A listener as one writes it with Py4J alone: each event of the bus is a call into Python."""

    class Java:
        implements = ["org.apache.spark.scheduler.SparkListenerInterface"]  # noqa: RUF012 - Py4J's form

    def __init__(self) -> None:
        self.count = 0

    def __getattr__(self, name: str) -> Any:
        if name.startswith("on"):
            return self._take
        raise AttributeError(name)

    def _take(self, event: Any) -> None:
        self.count += 1


class Driver:
    """A Spark driver with reporters attached, that can be measured with and without listeners."""

    def __init__(self, endpoint: str, folder: str) -> None:
        from pyspark.java_gateway import ensure_callback_server_started
        from pyspark.sql import SparkSession

        import spark_events

        conf = {
            "spark.ui.enabled": "false",
            "spark.log.level": "OFF",
            "spark.ui.showConsoleProgress": "false",
            "spark.events.reporter.file.factory.class": "file_log",
            "spark.events.reporter.file.path": folder,
            "spark.events.reporter.otel.factory.class": "otlp",
            "spark.events.reporter.otel.exporter.endpoint": endpoint,
            "spark.metrics.reporter.prom.factory.class": "prometheus",
        }
        self.spark = SparkSession.builder.master("local[2]").config(map=conf).getOrCreate()
        self.context = self.spark.sparkContext
        ensure_callback_server_started(self.context._gateway)
        self.bus = self.context._jsc.sc().listenerBus()
        self.jvm_pid = int(self.context._jvm.java.lang.ProcessHandle.current().pid())
        self.attachment = spark_events.attach(self.spark, strict=True)
        self.bridge = self.attachment._source._bridge
        self.bus.removeListener(self.bridge.java)

    def run(self, tasks: int) -> None:
        """Run the job, until the last listener has its last event."""
        self.spark.range(0, tasks, 1, tasks).write.format("noop").mode("overwrite").save()
        self.bus.waitUntilEmpty(120_000)

    @contextmanager
    def listening(self, way: str) -> Iterator[None]:
        """Listen one way."""
        if way == "all three":
            self.bridge.subscribe()
        try:
            yield
        finally:
            if way == "all three":
                self.bus.removeListener(self.bridge.java)

    def add_callback_listener(self) -> None:
        """Listen by Py4J callbacks from now on."""
        self.context._jsc.sc().addSparkListener(CountingListener())

    def measure(self, way: str, tasks: int) -> list[float]:
        """Return the CPU of the JVM, the CPU of Python, wall time, and the bridge's own CPU, in seconds."""
        with self.listening(way):
            before = self._clocks()
            self.run(tasks)
            wall = time.monotonic() - before[2]
            time.sleep(0.1)  # what the reporters do behind the job counts as well
            after = self._clocks()
        return [after[0] - before[0], after[1] - before[1], wall, after[3] - before[3]]

    def round(self, ways: Sequence[str], tasks: int) -> dict[str, list[float]]:
        """Measure several ways slice by slice in turn, and return their sums over all slices."""
        slices = [{way: self.measure(way, tasks // _SLICES) for way in ways} for _ in range(_SLICES)]
        return {way: [sum(values) for values in zip(*(s[way] for s in slices), strict=True)] for way in ways}

    def _clocks(self) -> list[float]:
        usage = resource.getrusage(resource.RUSAGE_SELF)
        python_s = usage.ru_utime + usage.ru_stime
        return [process_cpu_s(self.jvm_pid), python_s, time.monotonic(), self._bridge_cpu_s()]

    def _bridge_cpu_s(self) -> float:
        threads = self.context._jvm.java.lang.management.ManagementFactory.getThreadMXBean()
        for number in threads.getAllThreadIds():
            info = threads.getThreadInfo(number)
            if info is not None and info.getThreadName() == BRIDGE_THREAD:
                return float(threads.getThreadCpuTime(number)) / 1e9
        return 0.0


def main() -> None:
    """Run all ways in turn and write the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--tasks", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=10)
    options = parser.parse_args()
    sink = Sink()
    with tempfile.TemporaryDirectory() as folder:
        driver = Driver(sink.endpoint, folder)
        for _ in range(_WARM_UP):
            driver.run(options.tasks)
        rounds = []
        for number in range(options.rounds):
            # Each round begins with the other way, so that none profits from its place.
            order = WAYS[:2] if number % 2 else WAYS[1::-1]
            rounds.append(driver.round(order, options.tasks))
            print(rounds[-1], file=sys.stderr)
        driver.add_callback_listener()
        for measured in rounds:
            measured.update(driver.round(WAYS[2:], options.tasks))
        driver.spark.stop()
        driver.attachment.wait_closed()
    sink.close()
    table.write("overhead", report(rounds, options.tasks))


def report(rounds: list[dict[str, list[float]]], tasks: int) -> list[str]:
    """Return the table: medians, and the median of the ratios of the rounds."""
    lines = [
        f"{tasks} JVM-only tasks, median of {len(rounds)} rounds; `make bench` ({table.machine()}):",
        "",
        "| | CPU of the driver JVM | CPU of Python | wall time | CPU of both, compared with none |",
        "| --- | --- | --- | --- | --- |",
    ]
    for way in WAYS:
        jvm, python, wall = (statistics.median(r[way][i] for r in rounds) for i in range(3))
        ratios = sorted(sum(r[way][:2]) / sum(r["none"][:2]) for r in rounds)
        spread = "" if way == "none" else f" ({_percent(ratios[0])} to {_percent(ratios[-1])})"
        ratio = f"{_percent(statistics.median(ratios))}{spread}"
        lines.append(f"| {way} | {jvm:.1f} s | {python:.2f} s | {wall:.1f} s | {ratio} |")
    # What this bench itself asks of the driver is in all three ways alike.
    share = statistics.median(_added(r, "all three") / _added(r, "callback listener") for r in rounds)
    own = statistics.median((_added(r, "all three") + r["all three"][3]) / r["none"][0] for r in rounds)
    return [
        *lines,
        "",
        f"All three add {share:.3f} times the Python CPU that the callback listener adds. Counted by "
        f"thread, the bridge's listener-bus thread and Python take {own * 100:.2f} % of the JVM's CPU.",
    ]


def _added(measured: dict[str, list[float]], way: str) -> float:
    return measured[way][1] - measured["none"][1]


def _percent(ratio: float) -> str:
    return f"{(ratio - 1) * 100:+.1f} %"


if __name__ == "__main__":
    main()
