"""What reporting costs: CPU of the driver JVM and of Python for a job of many small JVM-only tasks.

Three ways in turn, several times, each in a process of its own: without reporters, with the file log, OTLP
and Prometheus, and with a Py4J callback listener that only counts. Ratios are of the same round.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench import table
from bench.sink import Sink

WAYS = ("none", "all three", "callback listener")
ROW = "| {} | {:.1f} | {:.2f} | {:.1f} | {} |"


def jvm_cpu_s(pid: int) -> float:
    """Return the CPU time of a process in seconds, user and system."""
    import os

    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def bridge_cpu_s(jvm: Any) -> float:
    """Return the CPU time of the listener-bus thread that the bridge runs on, in seconds."""
    threads = jvm.java.lang.management.ManagementFactory.getThreadMXBean()
    for number in threads.getAllThreadIds():
        info = threads.getThreadInfo(number)
        if info is not None and info.getThreadName() == "spark-listener-group-sparkEvents":
            return float(threads.getThreadCpuTime(number)) / 1e9
    return 0.0


def python_cpu_s() -> float:
    """Return the CPU time of this process in seconds, user and system."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


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


def measure(way: str, tasks: int, endpoint: str) -> None:
    """Run the job one way and print what it took; runs in a process of its own."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").appName("overhead").config("spark.ui.enabled", "false")
    builder = builder.config("spark.log.level", "OFF").config("spark.ui.showConsoleProgress", "false")
    folder = tempfile.TemporaryDirectory()
    if way == "all three":
        for key, value in {
            "spark.events.reporter.file.factory.class": "file_log",
            "spark.events.reporter.file.path": folder.name,
            "spark.events.reporter.otel.factory.class": "otlp",
            "spark.events.reporter.otel.exporter.endpoint": endpoint,
            "spark.metrics.reporter.prom.factory.class": "prometheus",
        }.items():
            builder = builder.config(key, value)
    spark = builder.getOrCreate()
    context = spark.sparkContext
    if way == "all three":
        import spark_events

        spark_events.attach(spark, strict=True)
    if way == "callback listener":
        from pyspark.java_gateway import ensure_callback_server_started

        ensure_callback_server_started(context._gateway)
        context._jsc.sc().addSparkListener(CountingListener())
    pid = int(context._jvm.java.lang.ProcessHandle.current().pid())
    spark.range(0, 500, 1, 500).write.format("noop").mode("overwrite").save()
    bridge = bridge_cpu_s(context._jvm)
    before = (jvm_cpu_s(pid), python_cpu_s(), time.monotonic())
    spark.range(0, tasks, 1, tasks).write.format("noop").mode("overwrite").save()
    wall = time.monotonic() - before[2]
    context._jsc.sc().listenerBus().waitUntilEmpty(60_000)
    time.sleep(1)  # what the reporters do behind the job counts as well
    used = [jvm_cpu_s(pid) - before[0], python_cpu_s() - before[1], wall]
    print(json.dumps([*used, bridge_cpu_s(context._jvm) - bridge]))
    spark.stop()


def run(way: str, tasks: int, endpoint: str) -> list[float]:
    """Measure one way in a new process: CPU of the JVM, of Python, wall time, the bridge's CPU, in s."""
    command = [
        sys.executable,
        "-m",
        "bench.overhead",
        "--way",
        way,
        "--tasks",
        str(tasks),
        "--endpoint",
        endpoint,
    ]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True)
    return [float(value) for value in json.loads(done.stdout.splitlines()[-1])]


def main() -> None:
    """Run all ways in turn and write the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--way", choices=WAYS)
    parser.add_argument("--tasks", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--endpoint", default="")
    options = parser.parse_args()
    if options.way:
        measure(options.way, options.tasks, options.endpoint)
        return
    sink = Sink()
    rounds = []
    for number in range(options.rounds):
        # Each round begins with another way, so that none profits from its place.
        order = WAYS[number % 3 :] + WAYS[: number % 3]
        rounds.append({way: run(way, options.tasks, sink.endpoint) for way in order})
        print(rounds[-1], file=sys.stderr)
    sink.close()
    table.write("overhead", report(rounds, options.tasks))


def report(rounds: list[dict[str, list[float]]], tasks: int) -> list[str]:
    """Return the table: medians, and the median of the ratios of each round."""
    lines = [
        f"{tasks} JVM-only tasks, median of {len(rounds)} rounds; `make bench` ({table.machine()}):",
        "",
        "| | CPU of the driver JVM, s | CPU of Python, s | wall, s | CPU against none |",
        "| --- | --- | --- | --- | --- |",
    ]
    for way in WAYS:
        jvm, python, wall = (statistics.median(r[way][i] for r in rounds) for i in range(3))
        ratio = statistics.median(sum(r[way][:2]) / sum(r["none"][:2]) for r in rounds)
        lines.append(ROW.format(way, jvm, python, wall, f"{(ratio - 1) * 100:+.1f} %"))
    share = statistics.median(r["all three"][1] / r["callback listener"][1] for r in rounds)
    own = statistics.median((r["all three"][1] + r["all three"][3]) / r["all three"][0] for r in rounds)
    lines += [
        "",
        f"Python's CPU with all three is {share:.3f} of the callback listener's. Counted by thread, the "
        f"bridge's listener-bus thread and all of Python took {own * 100:.2f} % of the JVM's CPU; what a whole "
        "process takes differs by more than that from run to run.",
    ]
    return lines


if __name__ == "__main__":
    main()
