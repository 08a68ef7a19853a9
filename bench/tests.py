"""How long the tests take, in seconds and in starts of a bare Spark: machines differ, and so do hours.

``python -m bench.tests`` measures the yardstick alone, ``python -m bench.tests make test`` a command as well:
the median time in which a bare Spark session starts and counts a range, before and after the command.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time

_STARTS = 5
_BARE = """
from pyspark.sql import SparkSession
builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
session = builder.config("spark.driver.bindAddress", "127.0.0.1").getOrCreate()
assert session.range(1_000).count() == 1_000
session.stop()
"""


def bare_start_s() -> float:
    """Return the median time, in seconds, from a Python process' start to its end, with one small job."""
    environment = {name: value for name, value in os.environ.items() if name != "JDK_JAVA_OPTIONS"}
    took = []
    for _ in range(_STARTS):
        began = time.perf_counter()
        subprocess.run([sys.executable, "-c", _BARE], env=environment, check=True, capture_output=True)
        took.append(time.perf_counter() - began)
    return statistics.median(took)


def main(command: list[str]) -> int:
    """Print the yardstick, and what a command takes of it; return its exit code."""
    before = bare_start_s()
    print(f"a bare Spark session: {before:.1f} s, median of {_STARTS}", flush=True)
    if not command:
        return 0
    began = time.perf_counter()
    code = subprocess.run(command, check=False).returncode
    took, after = time.perf_counter() - began, bare_start_s()
    bare = statistics.mean((before, after))
    print(
        f"{' '.join(command)}: {took:.0f} s, {took / bare:.0f} bare sessions of {bare:.1f} s "
        f"({before:.1f} before, {after:.1f} after)"
    )
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
