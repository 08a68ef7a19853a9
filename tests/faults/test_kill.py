"""SIGKILL at any moment: what was stored is delivered by the next start, and nothing is invented."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spark_events.api import ApplicationInfo
from spark_events.listeners.spark_listeners import SparkListeners
from spark_events.listeners.spark_records import APPLICATION_START
from spark_events.runtime.registry import Registry
from spark_events.sources.configuration import read_configuration
from tests.support.applications import App
from tests.support.collector import Collector
from tests.support.fault_reporting import Reporting
from tests.support.file_log import file_events
from tests.support.otlp_backend import Backend
from tests.support.paths import APPS, REPO
from tests.support.waiting import free_port, wait_until

pytestmark = pytest.mark.collector


def run_and_kill(endpoint: str, folder: Path, journal: Path, first: int, after_s: float) -> int:
    """Let a process report events, kill it after a time, and return the number of the first not stored."""
    out = folder / "out.txt"
    with out.open("w") as file:
        process = subprocess.Popen(
            [sys.executable, str(APPS / "emit.py"), endpoint, str(journal), str(first)],
            stdout=file,
            env={**os.environ, "PYTHONPATH": str(REPO)},
        )
    wait_until(lambda: "started" in out.read_text(), "it has started")
    # To kill at a random moment is the point here; no condition could be awaited.
    threading.Event().wait(after_s)
    process.send_signal(signal.SIGKILL)
    process.wait()
    numbers = [int(line) for line in out.read_text().split("\n")[1:-1]]
    return max(numbers, default=first)


@pytest.mark.parametrize(
    "least", [6, pytest.param(12, marks=pytest.mark.extended), pytest.param(50, marks=pytest.mark.thorough)]
)
def test_killed_many_times(own_collector: Callable[..., Collector], tmp_path: Path, least: int) -> None:
    """Each driver goes on with the journal of the one before it; the collector is there, or away, at random."""
    chance = random.Random(7)
    collector = own_collector()
    collector.start()
    nobody = f"http://127.0.0.1:{free_port()}"
    stored = kills = 0
    while kills < least or stored <= 100:
        kills += 1
        # On a busy machine, many are killed before they have stored anything: later ones have more time.
        most_s = 0.3 * max(1.0, kills / least)
        endpoint = chance.choice((collector.grpc, nobody))
        stored = run_and_kill(endpoint, tmp_path, tmp_path / "journal", stored, chance.random() * most_s)
    last = Reporting(collector.grpc, tmp_path / "journal")
    wait_until(lambda: last.worker.delivery and not last.worker.depth, "all is delivered")
    last.close()
    ids = [f"e{number:07d}" for number in range(stored)]
    wait_until(lambda: set(collector.ids()) >= set(ids), "each stored event is in the collector's file")
    # Those that were being stored when the last process was killed may be there as well.
    assert max(collector.ids()) <= f"e{stored + 7:07d}"


DROPS = """
import sys, json, time
from pathlib import Path
from tests.support.fault_reporting import Reporting
from tests.support.waiting import wait_until
driver = Reporting(sys.argv[1], Path(sys.argv[2]), journal__max_bytes="256k")
driver.emit(2_000, body="x" * 500)
driver.stored()
spool = driver.worker.delivery.spool
wait_until(lambda: spool._in_flight is None, "what was dropped while it was being sent counts as dropped")
if sys.argv[3:]:
    driver.registry.losses.report()
print(json.dumps(driver.balance()), flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("told_before", [False, True])
def test_what_killed_drivers_have_dropped_is_told_by_the_next(
    tmp_path: Path, told_before: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """Of two at a time, too, each of which has a journal of its own; but not once more."""
    command = [sys.executable, "-c", DROPS, f"http://127.0.0.1:{free_port()}", str(tmp_path)]
    command += ["told"] * told_before
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    drivers = []
    for _ in range(2):
        driver = subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, text=True)
        assert driver.stdout is not None
        drivers.append((driver, json.loads(driver.stdout.readline())))
    for driver, _ in drivers:
        driver.kill()
        driver.communicate()
    dropped, left = (sum(told[name] for _, told in drivers) for name in ("dropped.journal_full", "queued"))
    backend = Backend()
    after = Reporting(backend.grpc, tmp_path)
    after.delivered(left)
    after.registry.losses.report()
    balance = after.balance()
    after.close()
    again = Reporting(backend.grpc, tmp_path)
    again.worker.wait_opened(60)
    again.registry.losses.report()
    counted_again = again.balance()
    again.close()
    backend.close()

    assert balance == counted_again == {"dropped.journal_full": dropped, "reported": left, "queued": 0}
    assert dropped + left == 4_000
    told = [
        record.getMessage()
        for record in caplog.records
        if "because the journal was full" in record.getMessage()
    ]
    assert len(told) == (not told_before)
    if told_before:
        return
    assert f"dropped {dropped:,} items" in told[0]
    assert f"; {dropped:,} of them in an earlier process" in told[0]


@pytest.mark.spark
@pytest.mark.parametrize(
    "kills", [1, pytest.param(2, marks=pytest.mark.extended), pytest.param(20, marks=pytest.mark.thorough)]
)
def test_killed_at_once(
    own_collector: Callable[..., Collector], tmp_path: Path, java: str, kills: int
) -> None:
    """Once ``attach`` has returned, the first events are in the journal, whatever happens to the driver."""
    collector = own_collector()
    prefix = "spark.events.reporter.otel."
    conf = {
        f"{prefix}factory.class": "otlp",
        f"{prefix}exporter.endpoint": collector.grpc,  # it is down
        f"{prefix}journal.dir": str(tmp_path / "journal"),
    }
    for number in range(kills):
        (folder := tmp_path / f"run-{number}").mkdir()
        run = App([sys.executable, str(APPS / "killed_at_once.py")], conf, folder).end()
        assert run.code == -signal.SIGKILL, run.err[-3000:]
    collector.start()
    next_start = Reporting(collector.grpc, tmp_path / "journal", "killed-at-once")
    wait_until(lambda: next_start.worker.delivery and not next_start.worker.depth, "all is delivered")
    next_start.close()
    collector.stop()
    told = [
        (record["attributes"]["app_id"], record["eventName"], record["attributes"].get("newJobStatus"))
        for record in collector.log_records()
    ]
    drivers = {app_id for app_id, *_ in told}
    first = (
        ("JobStatusChangeEvent", "CREATED"),
        ("JobStatusChangeEvent", "RUNNING"),
        ("HeartbeatEvent", None),
    )
    assert len(drivers) == kills
    for app_id in drivers:
        assert {(app_id, *what) for what in first} <= set(told)


def content(record: dict[str, Any]) -> tuple[Any, ...]:
    """Return what an event says, without its id and what only one of two sources knows."""
    attributes = record["attributes"]
    keys = ("app_id", "job_kind", "query_id", "run_id", "job_id", "stage_id", "newJobStatus", "checkpointId")
    return (record["eventName"], *(attributes.get(key) for key in keys), attributes.get("checkpointStatus"))


def replay(log: Path, conf: dict[str, str]) -> None:
    """Report what Spark's event log proves, by the same listeners and reporters as the driver."""
    records = [json.loads(line) for line in log.read_text().split("\n")[:-1]]
    start = next(record for record in records if record["Event"] == APPLICATION_START)
    found = read_configuration(conf, ApplicationInfo(start["App Name"], start["App ID"]))
    assert not found.problems
    registry = Registry(found.setups)
    registry.start()
    listeners = SparkListeners(registry, found.settings, found.enrichers)
    for record in records:
        listeners.on_record(record)
    wait_until(lambda: all(not worker.depth for worker in registry.workers), "all is delivered")
    registry.close(5_000)


@pytest.mark.extended
@pytest.mark.spark
@pytest.mark.parametrize("kills", [4, pytest.param(50, marks=pytest.mark.soak)])
@pytest.mark.timeout(900)
def test_killed_driver(
    own_collector: Callable[..., Collector], tmp_path: Path, java: str, kills: int
) -> None:
    """After a restart, and a replay of Spark's event log, the collector has every event that the log proves,
    and whatever came twice has the same id."""
    chance = random.Random(11)
    collector = own_collector()
    collector.start()
    logs = tmp_path / "logs"
    logs.mkdir()
    prefix = "spark.events.reporter.otel."
    ours = {
        f"{prefix}factory.class": "otlp",
        f"{prefix}exporter.endpoint": collector.grpc,
        f"{prefix}journal.dir": str(tmp_path / "journal"),
    }
    sparks = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": f"file://{logs}",
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
    }
    command = [sys.executable, str(APPS / "endless.py"), str(tmp_path / "checkpoints")]
    for number in range(kills):
        folder = tmp_path / f"run-{number}"
        folder.mkdir()
        app = App(command, {**sparks, **ours}, folder)
        app.wait_for_line("running")
        if chance.random() < 0.5:
            collector.stop()
        threading.Event().wait(chance.random() * 3)  # a random moment
        app.kill()
        collector.start()
    account = {
        "spark.events.reporter.file.factory.class": "file_log",
        "spark.events.reporter.file.path": str(tmp_path / "replayed"),
    }
    for log in logs.iterdir():
        replay(log, {**ours, **account})
    replayed = {event["eventId"] for event in file_events(tmp_path / "replayed")}
    assert replayed
    wait_until(lambda: set(collector.ids()) >= replayed, "the replay's events are there")
    collector.stop()
    ids: dict[tuple[Any, ...], set[str]] = {}
    for record in collector.log_records():
        if record["eventName"] in ("JobStatusChangeEvent", "CheckpointEvent"):
            ids.setdefault(content(record), set()).add(record["attributes"]["event.id"])

    assert {what: found for what, found in ids.items() if len(found) > 1} == {}
    assert len({what[1] for what in ids}) == kills
    assert len(set(collector.ids())) < len(collector.ids())  # some came twice: this test could fail
