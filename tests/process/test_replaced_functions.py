"""Functions of Python's that are replaced in a driver or a worker, and the program pickles."""

from __future__ import annotations

import subprocess
import sys

import pytest

INSTALLS = {
    "driver": "from spark_events.sources.driver.ending.process_exit import PROCESS_EXIT as of_driver; of_driver.install()",
    "worker": "from spark_events.task.failed_tasks import report_failures; report_failures()",
}
IMPORTS = "from sys import exit as leave, excepthook as hook; from os import _exit as leave_at_once"
WRITES = """
import pickle, sys
from pyspark import cloudpickle
functions = (leave, hook, leave_at_once)
def udf(status):
    (leave if status > 5 else leave_at_once)(status)
own = [module.dumps(functions, protocol) for module in (pickle, cloudpickle) for protocol in range(2, 6)]
pickle.dump((own, cloudpickle.dumps(udf), pickle.dumps([len, "x".join, sys.intern])), sys.stdout.buffer)
"""
READS = """
import os, pickle, sys
own, udf, others = pickle.load(sys.stdin.buffer)
for written in own:
    assert pickle.loads(written) == (sys.exit, sys.excepthook, os._exit), pickle.loads(written)
for name, value in pickle.loads(udf).__globals__.items():
    assert value is {"leave": sys.exit, "leave_at_once": os._exit}.get(name, value), value
length, join, intern = pickle.loads(others)
assert (length, join("ab"), intern) == (len, "axb", sys.intern)
print(sorted(module for module in sys.modules if module.startswith("spark_events")))
"""
ENDS = """
import multiprocessing, os, sys
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
if __name__ == "__main__":
    for leave in (os._exit, sys.exit):
        child = multiprocessing.get_context("spawn").Process(target=leave, args=(4,))
        child.start()
        child.join()
        print(child.exitcode)
    with ProcessPoolExecutor(1) as pool:
        print(type(pool.submit(os._exit, 3).exception()).__name__)
"""


@pytest.mark.parametrize("install", INSTALLS.values(), ids=INSTALLS)
@pytest.mark.parametrize("imported", ["before", "after"])
def test_another_process_unpickles_its_own(install: str, imported: str) -> None:
    """By pickle and cloudpickle, in a UDF, and whether they were imported before they were replaced or after."""
    first = (IMPORTS, install) if imported == "before" else (install, IMPORTS)
    written = subprocess.run(
        [sys.executable, "-c", "\n".join((*first, WRITES))], capture_output=True, check=False
    )
    assert written.stderr == b""

    read = subprocess.run(
        [sys.executable, "-c", READS], input=written.stdout, capture_output=True, check=False
    )

    assert (read.stderr, read.stdout) == (b"", b"[]\n")


@pytest.mark.parametrize("install", INSTALLS.values(), ids=INSTALLS)
def test_other_processes_end_by_them(install: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", f"{install}\n{ENDS}"], capture_output=True, text=True, check=False
    )

    assert (ended.stderr, ended.stdout) == ("", "4\n4\nBrokenProcessPool\n")
