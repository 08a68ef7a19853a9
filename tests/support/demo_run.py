"""One demo that has run, looked at by all tests of it: its text, its files, a collector and a Prometheus."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from tests.support.applications import cli
from tests.support.collector import Collector
from tests.support.file_log import Event, file_events
from tests.support.prometheus import PrometheusServer
from tests.support.requirements import need
from tests.support.waiting import free_port, wait_until

QUERY = "orders_per_customer"


def start_demo(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    """Start a demo that prints to ``out.txt``."""
    with (folder / "out.txt").open("w") as out:
        return subprocess.Popen(
            cli("demo", *arguments),
            env={**os.environ, "COLUMNS": "160", "SPARK_LOCAL_IP": "127.0.0.1"},
            cwd=folder,
            stdout=out,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )


@dataclass
class DemoRun:
    """What is left of it.

    Attributes:
        folder: where it ran.
        text: all that it printed.
        events: those of its file log.
        server: a Prometheus that has scraped it; None where there is no ``prometheus``.
        restarted_s: a time after its failure at which it ran again, in s since the epoch.
        ended_s: when it had ended.
    """

    folder: Path
    text: str
    events: list[Event]
    server: PrometheusServer | None
    restarted_s: float
    ended_s: float

    @property
    def prometheus(self) -> PrometheusServer:
        """The Prometheus that has scraped it; where there is none, skip the test."""
        need("prometheus", "prometheus")
        assert self.server is not None
        return self.server


def run_demo(folder: Path, collector: Collector | None) -> DemoRun:
    """Run a demo to its end, beside what there is of a collector and a Prometheus."""
    port = free_port()
    server = PrometheusServer(folder / "prometheus", port) if shutil.which("prometheus") else None
    if server is not None:
        server.start()
    to_collector = ("--otlp-endpoint", collector.grpc) if collector else ()
    process = start_demo(folder, "--output", "kept", "--prometheus-port", f"{port}-65535", *to_collector)
    try:
        restarted_s = _await_restart(server, process) if server else 0.0
        assert process.wait(180) == 0, (folder / "out.txt").read_text()
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        if server is not None:
            server.stop()
        raise
    text, events = (folder / "out.txt").read_text(), file_events(folder / "kept" / "events")
    return DemoRun(folder, text, events, server, restarted_s, time.time())


def _await_restart(server: PrometheusServer, process: subprocess.Popen[str]) -> float:
    """Return when it runs again, with all that a batch tells: not each progress record has a source's backlog."""
    again = (
        "increase(spark_query_number_of_completed_checkpoints_total[10s]) > 1"
        " and on () spark_query_num_restarts == 1 and on () spark_query_source_backlog"
    )

    def up_again() -> float | None:
        now = time.time()
        return now if server.query(again, now) or process.poll() is not None else None

    return float(wait_until(up_again, "it runs again"))
