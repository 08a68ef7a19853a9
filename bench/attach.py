"""What ``spark_events.attach`` takes of an application's start, in starts of a bare Spark session.

Each round is a process of its own, as an application is: a session starts and counts a range, which is what a
bare one takes, and then attaches. Janino then compiles the driver bridge, while Python
imports.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile

from bench.table import machine, write

_APPLICATION = """
import json, sys, time
from pyspark.sql import SparkSession
began = time.perf_counter()
builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
for key, value in json.loads(sys.argv[1]).items():
    builder = builder.config(key, value)
session = builder.config("spark.driver.bindAddress", "127.0.0.1").getOrCreate()
assert session.range(1_000).count() == 1_000
bare = time.perf_counter()
import spark_events
spark_events.attach(session, strict=True)
attached = time.perf_counter()
session.stop()
print(json.dumps([bare - began, attached - bare]))
"""


def _round(folder: str) -> tuple[float, float]:
    """Return how long the session took to start, and the attach, in seconds."""
    conf = {
        "spark.events.reporter.file.factory.class": "file_log",
        "spark.events.reporter.file.path": folder,
        "spark.metrics.reporter.prom.factory.class": "prometheus",
        "spark.metrics.reporter.prom.port": "0",
    }
    command = [sys.executable, "-c", _APPLICATION, json.dumps(conf)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    bare, attach = json.loads(done.stdout.splitlines()[-1])
    return bare, attach


def main() -> None:
    """Measure, and write the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder:
        measured = [_round(f"{folder}/{number}") for number in range(rounds)]
    shares = [100 * attach / bare for bare, attach in measured]
    write(
        "attach",
        [
            f"Median of {rounds} processes, and the lowest and highest ({machine()}; `make bench`):",
            "",
            "| start of a session alone | attach adds | as a share |",
            "| --- | --- | --- |",
            f"| {statistics.median(bare for bare, _ in measured):.1f} s "
            f"| {statistics.median(attach for _, attach in measured):.2f} s "
            f"| {statistics.median(shares):.0f} % ({min(shares):.0f} to {max(shares):.0f}) |",
        ],
    )


if __name__ == "__main__":
    main()
