"""A real Jupyter kernel: what ends its application, and what only ends a cell."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from jupyter_client.manager import KernelManager, start_new_kernel

from tests.support.endings import ended
from tests.support.event_log_reading import read
from tests.support.file_log import Event, file_events, of_name, statuses
from tests.support.paths import REPO
from tests.support.spark import _BASE_CONF
from tests.support.waiting import wait_until

pytestmark = [
    pytest.mark.spark,
    pytest.mark.usefixtures("java"),
    pytest.mark.xdist_group("notebook"),
    pytest.mark.extended,
]
thorough = pytest.mark.thorough
_START = """
from pyspark.sql import SparkSession
builder = SparkSession.builder.master("local[1]").appName("notebook").config("spark.driver.memory", "512m")
for key, value in {conf!r}.items():
    builder = builder.config(key, value)
spark = builder.getOrCreate()
import spark_events, os, time, sys
attachment = spark_events.attach(spark)
spark.range(3).count()
jvm = spark._jvm
print(os.getpid(), jvm.java.lang.ProcessHandle.current().pid())
"""


_CRASH = """
field = jvm.java.lang.Class.forName("sun.misc.Unsafe").getDeclaredField("theUnsafe")
field.setAccessible(True)
field.get(None).putAddress(0, 0)
"""


class Notebook:
    """A kernel whose first cell attaches to a Spark application."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        conf = {
            **_BASE_CONF,
            "spark.events.reporter.file.factory.class": "file_log",
            "spark.events.reporter.file.path": str(folder / "events"),
            "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": (folder / "logs").as_uri(),
        }
        (folder / "logs").mkdir()
        environment = {**os.environ, "PYTHONPATH": str(REPO), "PYSPARK_PYTHON": sys.executable}
        self.manager: KernelManager
        self.manager, self.client = start_new_kernel(env=environment, cwd=str(folder))
        self.python, self.jvm = map(int, self.run(_START.format(conf=conf)).split()[-2:])

    def run(self, cell: str) -> str:
        """Run a cell, and return what it printed, and the error that it ended with."""
        out: list[str] = []

        def take(message: dict[str, dict[str, str]]) -> None:
            content = message["content"]
            out.append(content.get("text") or content.get("ename") or "")

        self.client.execute_interactive(cell, output_hook=take, timeout=120)
        return "".join(out)

    @property
    def events(self) -> list[Event]:
        """What was reported so far."""
        return file_events(self.folder / "events")

    def close(self) -> None:
        """End the kernel, whatever is left of it."""
        self.client.stop_channels()
        if self.manager.is_alive():
            self.manager.shutdown_kernel(now=True)
        self.manager.cleanup_resources()


@pytest.fixture
def notebook(tmp_path: Path) -> Iterator[Notebook]:
    running = Notebook(tmp_path)
    yield running
    running.close()


def interrupt(notebook: Notebook) -> None:
    """Interrupt a cell that runs, as the button does."""
    notebook.client.execute("time.sleep(600)")
    wait_until(lambda: notebook.client.get_iopub_msg(timeout=10)["msg_type"] == "execute_input", "it runs")
    notebook.manager.interrupt_kernel()


def logged(notebook: Notebook) -> tuple[str, str | None]:
    """Return the last status of the application that its event log tells, and by which signal it ended."""
    logs = notebook.folder / "logs"
    wait_until(lambda: not list(logs.rglob("*.inprogress")), "the log has its end")
    (log,) = logs.glob("[!.]*")
    of_application = [event for event in read(log).events if event.attributes["job_kind"] == "application"]
    last = of_application[-1].attributes
    return str(last["newJobStatus"]), last.get("exitSignal")


CELLS = {
    "an unhandled exception": lambda notebook: notebook.run("raise ValueError('in a cell')"),
    "sys.exit": lambda notebook: notebook.run("sys.exit(3)"),
    "interrupted": interrupt,
}


@pytest.mark.parametrize(
    "how", ["an unhandled exception", *(pytest.param(x, marks=thorough) for x in list(CELLS)[1:])]
)
def test_what_ends_a_cell_ends_no_application(notebook: Notebook, how: str) -> None:
    """It goes on, and shutting the kernel down is its end."""
    CELLS[how](notebook)
    # What is sent just after an interrupt is dropped by the kernel.
    wait_until(lambda: "6" in notebook.run("print(spark.range(6).count())"), "the next cell runs")
    assert statuses(notebook.events, "application") == ["CREATED", "RUNNING"]

    notebook.manager.shutdown_kernel()
    wait_until(lambda: ended(notebook.events), "its end is told")
    assert statuses(notebook.events, "application")[-1] == "FINISHED"
    assert not of_name(notebook.events, "JobFailureEvent")
    assert logged(notebook) == ("FINISHED", None)


def kill(whom: str, number: signal.Signals) -> Callable[[Notebook], None]:
    return lambda notebook: os.kill(getattr(notebook, whom), number)


ENDS = {
    "spark.stop()": (lambda notebook: notebook.run("spark.stop()"), "FINISHED", None, None, None),
    "os._exit": (lambda notebook: notebook.client.execute("os._exit(3)"), "FAILED", 3, None, None),
    "SIGTERM to Python": (kill("python", signal.SIGTERM), "FAILED", 143, "SIGTERM", None),
    "SIGTERM to the JVM": (kill("jvm", signal.SIGTERM), "FAILED", 143, "SIGTERM", None),
    "SIGKILL of Python": (kill("python", signal.SIGKILL), "FAILED", None, None, "assumed"),
    "SIGKILL of the JVM": (kill("jvm", signal.SIGKILL), "FAILED", 137, "SIGKILL", None),
    "the heap is full": (
        lambda notebook: notebook.client.execute(
            "spark.range(0, 400_000_000, 1, 1).selectExpr('collect_list(id)').collect()"
        ),
        "FAILED", 52, None, None,
    ),
    "a fatal error": (lambda notebook: notebook.client.execute(_CRASH), "FAILED", 134, "SIGABRT", None),
    "System.exit": (lambda notebook: notebook.client.execute("jvm.System.exit(3)"), "FAILED", 3, None, None),
    "Spark stops itself": (
        lambda notebook: notebook.run("spark._jsc.sc().stopInNewThread()"), "FAILED", None, None, None
    ),
}  # fmt: skip
SAMPLE = ("SIGTERM to Python", "SIGKILL of the JVM")


@pytest.mark.parametrize("how", [x if x in SAMPLE else pytest.param(x, marks=thorough) for x in ENDS])
def test_end(notebook: Notebook, how: str) -> None:
    """The end is told with its code and signal."""
    act, status, code, name, outcome = ENDS[how]
    act(notebook)
    wait_until(lambda: ended(notebook.events), "its end is told")
    last = of_name(notebook.events, "JobStatusChangeEvent", job_kind="application")[-1]["attributes"]

    assert last["newJobStatus"] == status
    assert (last.get("exitCode"), last.get("exitSignal"), last.get("outcome")) == (code, name, outcome)
    if name == "SIGTERM":
        assert logged(notebook) == ("FAILED", name)
