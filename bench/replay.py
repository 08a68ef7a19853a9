"""MB of a log per second of CPU: a replay, against parsing each line and against Spark's own replay.

Each measurement is a process of its own that may use one core; they take turns. CPU time is measured, of all
of a process's threads, for other work on the machine changes it less than the time that passes. The start of
a process counts on neither side: not that of Spark's JVM and its session, and not the import of this package.
``--size`` is in bytes.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import orjson

from bench.process_cpu import process_cpu_s
from bench.table import machine, write
from spark_events.sources.event_log.reading.files import LogFiles
from spark_events.sources.event_log.replay import Replay
from tests.support.event_log_sample import SampleLog

_TASKS = 1_000
_KEPT_BYTES = 134_000_000
_WAYS = {
    "json": "`json.loads` of every line, the records dropped",
    "json_kept": "the same, the records kept (of the first 134 MB)",
    "orjson": "`orjson.loads` of every line, the records dropped",
    "orjson_kept": "the same, the records kept (of the first 134 MB)",
    "spark": "Spark's ReplayListenerBus with its AppStatusListener",
    "spans": "spark-events replay, events and spans to a file log",
    "replay": "**spark-events replay, events to a file log**",
}


def generate(path: Path, size: int) -> int:
    """Write a log of about ``size`` bytes, and return how many records it has."""
    log, records = SampleLog(cores=16), 0
    with path.open("wb") as file:
        for lines in (log.begin(), log.query(20)):
            for line in lines:
                records += 1
                file.write(line)
        while file.tell() < size:
            job = list(log.job(_TASKS))
            records += len(job)
            file.writelines(job)
        for line in log.end():
            records += 1
            file.write(line)
    return records


def _drop(loads: Callable[[bytes], object], path: Path) -> int:
    with path.open("rb") as file:
        for line in file:
            loads(line)
        return file.tell()


def _keep(loads: Callable[[bytes], object], path: Path) -> int:
    kept, size = [], 0
    with path.open("rb") as file:
        for line in file:
            kept.append(loads(line))
            size += len(line)
            if size >= _KEPT_BYTES:
                break
    return size


def _replay(path: Path, *kinds: str) -> int:
    with tempfile.TemporaryDirectory() as folder:
        conf = {}
        for kind in kinds:
            conf[f"spark.{kind}.reporter.file.factory.class"] = "file_log"
            conf[f"spark.{kind}.reporter.file.path"] = folder
        files = LogFiles(str(path))
        return sum(Replay(conf).run((files, log) for log in files.find()))


def _spark(path: Path) -> float:
    """Return the CPU seconds of the replay alone, as the History Server does it: without the JVM's start."""
    from pyspark import SparkConf, SparkContext

    conf = SparkConf().setMaster("local[1]").setAppName("bench").set("spark.ui.enabled", "false")
    context = SparkContext(conf=conf.set("spark.driver.memory", "8g"))
    jvm, settings = context._jvm, context._jsc.sc().conf()
    history = jvm.org.apache.spark.deploy.history
    assert history is not None
    status = jvm.org.apache.spark.status
    store = status.ElementTrackingStore(jvm.org.apache.spark.util.kvstore.InMemoryStore(), settings)
    none = getattr(jvm.scala, "None$").__getattr__("MODULE$")
    bus = jvm.org.apache.spark.scheduler.ReplayListenerBus()
    bus.addListener(status.AppStatusListener(store, settings, False, none, none))
    module = getattr(jvm.org.apache.spark.scheduler, "ReplayListenerBus$").__getattr__("MODULE$")
    stream = jvm.java.io.BufferedInputStream(jvm.java.io.FileInputStream(str(path)))
    pid = int(jvm.java.lang.ProcessHandle.current().pid())
    began = process_cpu_s(pid)
    bus.replay(stream, str(path), False, module.SELECT_ALL_FILTER())
    seconds = process_cpu_s(pid) - began
    context.stop()
    return seconds


def measure(way: str, path: Path) -> None:
    """Print the bytes and the CPU seconds of one way, and the largest memory of this process in bytes."""
    ways: dict[str, Callable[[], int]] = {
        "json": lambda: _drop(json.loads, path),
        "json_kept": lambda: _keep(json.loads, path),
        "orjson": lambda: _drop(orjson.loads, path),
        "orjson_kept": lambda: _keep(orjson.loads, path),
        "replay": lambda: _replay(path, "events"),
        "spans": lambda: _replay(path, "events", "traces"),
    }
    began = time.process_time()
    if way == "spark":
        size, seconds = path.stat().st_size, _spark(path)
    else:
        size, seconds = ways[way](), time.process_time() - began
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"bytes": size, "seconds": seconds, "memory": memory}))


def _measured(way: str, path: Path) -> tuple[float, float]:
    """Return MB per second of CPU and MiB of memory of one way, in a process on one core."""
    core = max(os.sched_getaffinity(0))
    done = subprocess.run(
        [sys.executable, "-m", "bench.replay", "--measure", way, str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=True,
        preexec_fn=lambda: os.sched_setaffinity(0, {core}),
    )
    found = json.loads(done.stdout.splitlines()[-1])
    return found["bytes"] / 1e6 / found["seconds"], found["memory"] / (1 << 20)


def _against(rounds: list[dict[str, tuple[float, float]]], one: str, way: str) -> str:
    """Return how many times as fast one way is as another, and from how many to how many in the rounds."""
    if way in ("replay", one):
        return ""
    ratios = [found[one][0] / found[way][0] for found in rounds]
    return f"{statistics.median(ratios):.1f} times ({min(ratios):.1f} to {max(ratios):.1f})"


def main() -> None:
    """Measure all ways in turn, and write the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--measure", nargs=2)
    parser.add_argument("--size", type=int, default=1_000_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    if options.measure:
        measure(options.measure[0], Path(options.measure[1]))
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "app-20261118120000-0001"
        records = generate(path, options.size)
        size = path.stat().st_size
        rounds = [{way: _measured(way, path) for way in _WAYS} for _ in range(options.rounds)]
    lines = [
        f"A log of {size / 1e6:,.0f} MB with {records:,} records, on one core; median of {len(rounds)} "
        f"rounds, in turn ({machine()}; `make bench`):",
        "",
        "| | MB per second of CPU | speed of the replay | of the replay with spans |",
        "| --- | --- | --- | --- |",
    ]
    for way, title in _WAYS.items():
        speed = statistics.median(found[way][0] for found in rounds)
        against = [_against(rounds, one, way) for one in ("replay", "spans")]
        lines.append(f"| {title} | {speed:,.0f} | {' | '.join(against)} |")
    memory = max(found["replay"][1] for found in rounds)
    lines += ["", f"The replay takes at most {memory:.0f} MiB of memory."]
    write("replay", lines)


if __name__ == "__main__":
    main()
