"""Every way in which an application may end, how a test brings it about, and what is to be told of it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from spark_events_prometheus.linger import ask_to_leave

from tests.support.applications import App, AppRun, cli
from tests.support.file_log import Event, file_events, of_name, statuses, whole_lines
from tests.support.paths import APPS
from tests.support.waiting import free_port, is_listening, wait_until

ATTACH, RUN = "attach", "spark-events run"
PYTHON, JVM, LAUNCHED, GROUP = "Python", "JVM", "launched", "group"
KEY_ERROR = "'customer'"
MEMORY = "java.lang.OutOfMemoryError"


@dataclass(frozen=True)
class Told:
    """The end of the application, as it is to be told.

    Attributes:
        status: its last one.
        code, signal: the attributes ``exitCode`` and ``exitSignal``.
        says: a part of the failure's message.
        exception: the attribute ``exception.type``, if the case is about that.
        query: the last status of its query, if that is not the application's own.
        assumed: whether the event says that it is a guess.
    """

    status: str
    code: int | None = None
    signal: str | None = None
    says: str = ""
    exception: str | None = None
    query: str = ""
    assumed: bool = False

    @property
    def statuses(self) -> dict[str, str]:
        """The last ones of the application and of its query."""
        of_query = self.query or ("CANCELED" if self.status == "FINISHED" else self.status)
        return {"application": self.status, "query": of_query}

    @property
    def cell(self) -> str:
        """What the table in docs/events.md says of it."""
        parts = [self.status]
        if self.signal:
            parts.append(self.signal)
        elif self.code:
            parts.append(f"exit code {self.code}" if self.code != 3 else "exit code *n*")
        if self.assumed:
            parts.append("assumed")
        return ", ".join(parts)


@dataclass(frozen=True)
class Way:
    """A way to end.

    Attributes:
        name: its row in docs/events.md.
        how: what tests/apps/ends.py does.
        signals: what the test sends, and to which process.
        told: by how the application was started: what is to be told live.
        logged: the same, of what the event log tells; None where it has no end.
        log_may_lack_its_end: whether Spark may be unable to end its log, with or without spark-events.
        may_stop_spark: whether it may hit one of Spark's own threads first, which stops the SparkContext then.
        sample: how the application is started in each run of the tests; the others are for those with time.
    """

    name: str
    how: str
    told: dict[str, Told]
    logged: dict[str, Told | None]
    signals: tuple[tuple[str, signal.Signals], ...] = ()
    log_may_lack_its_end: bool = False
    may_stop_spark: bool = False
    sample: str = ""


def _alike(told: Told) -> dict[str, Told]:
    return {ATTACH: told, RUN: told}


_FINISHED = Told("FINISHED")
_RAISED = Told("FAILED", 1, says=KEY_ERROR, exception="KeyError")
_CODE = Told("FAILED", 3, says="exit code 3")
_CODE_AFTER_STOP = Told("FAILED", 3, says="exit code 3", query="CANCELED")
_TERM = Told("FAILED", 143, "SIGTERM", "the driver was ended by SIGTERM (exit code 143)")
_KILL = Told("FAILED", 137, "SIGKILL", "the driver was killed by SIGKILL (exit code 137)")
_NO_WORD = Told("FAILED", says="the driver's Python ended without a word", assumed=True)
_JVM_KILLED = Told("FAILED", 137, "SIGKILL", "the driver's JVM is gone (signal 9, exit code 137)")
_INTERRUPTED = Told("FAILED", 130, "SIGINT", exception="KeyboardInterrupt")
_FULL = Told("FAILED", 52, exception=MEMORY)
_CRASHED = Told("FAILED", 134, "SIGABRT", "the driver's JVM is gone (signal 6, exit code 134)")
_EXITED = Told("FAILED", 3, says="the driver's JVM is gone (exit code 3)")
_ENDED_INSIDE = Told("FAILED", says="the driver's JVM was ended from within")
STOPPED = Told("FAILED", says="Spark stopped its SparkContext by itself")
_NOBODY = {ATTACH: None, RUN: None}

WAYS = (
    Way("the program returns", "return", _alike(_FINISHED), _alike(_FINISHED)),
    Way("`spark.stop()`", "stop", _alike(_FINISHED), _alike(_FINISHED)),
    Way("`spark.stop()`, then `sys.exit(n)`", "stop-exit:3", _alike(_CODE_AFTER_STOP), _alike(_FINISHED)),
    Way(
        "an unhandled exception",
        "raise",
        _alike(_RAISED),
        _alike(_RAISED),
    ),
    Way("`sys.exit(n)`", "sys.exit:3", _alike(_CODE), _alike(_CODE)),
    Way("`os._exit(n)`", "os._exit:3", _alike(_CODE), {ATTACH: _CODE, RUN: _NO_WORD}, sample=ATTACH),
    Way("SIGINT (Ctrl-C)", "sleep", _alike(_INTERRUPTED), _alike(_INTERRUPTED), ((GROUP, signal.SIGINT),)),
    Way(
        "SIGTERM to Python",
        "sleep",
        _alike(_TERM),
        {ATTACH: _TERM, RUN: _NO_WORD},
        ((PYTHON, signal.SIGTERM),),
        sample=ATTACH,
    ),
    Way("SIGTERM to the JVM", "wait", _alike(_TERM), _alike(_TERM), ((JVM, signal.SIGTERM),)),
    Way(
        "SIGTERM to the process that was started",
        "sleep",
        _alike(_TERM),
        _alike(_TERM),
        ((LAUNCHED, signal.SIGTERM),),
        sample=RUN,
    ),
    Way(
        "SIGKILL of Python",
        "sleep",
        {ATTACH: _NO_WORD, RUN: _KILL},
        _alike(_NO_WORD),
        ((PYTHON, signal.SIGKILL),),
        sample=RUN,
    ),
    Way(
        "SIGKILL of the JVM",
        "wait",
        _alike(_JVM_KILLED),
        _NOBODY,
        ((JVM, signal.SIGKILL),),
        sample=ATTACH,
    ),
    Way(
        "SIGKILL of both",
        "sleep",
        {RUN: _KILL},
        _NOBODY,
        ((PYTHON, signal.SIGKILL), (JVM, signal.SIGKILL)),
    ),
    Way(
        "the JVM's heap is full",
        "heap",
        _alike(_FULL),
        _alike(_ENDED_INSIDE),
        may_stop_spark=True,
        sample=RUN,
    ),
    Way(
        "the JVM's Metaspace is full",
        "metaspace",
        _alike(Told("FAILED", 1, says="Metaspace")),
        _alike(Told("FAILED", 1, says="Metaspace")),
        log_may_lack_its_end=True,  # the classes that end it cannot be loaded any more
    ),
    Way("`System.exit(n)` in the JVM", "System.exit:3", _alike(_EXITED), _alike(_ENDED_INSIDE)),
    Way("a fatal error of the JVM", "crash", _alike(_CRASHED), _NOBODY),
    Way(
        "Spark stops its SparkContext by itself",
        "spark-stops",
        _alike(STOPPED),
        _alike(Told("FINISHED", assumed=True)),
    ),
)


RUNS = {"application": "RUNNING", "query": "RUNNING"}


class Ends:
    """An application that runs until it ends in some way.

    Args:
        way: how it is started: ``ATTACH`` or ``RUN``.
        how: what it does then.
        folder: of its files.
        conf: more of its settings.
    """

    def __init__(self, way: str, how: str, folder: Path, conf: dict[str, str] | None = None) -> None:
        self.folder = folder
        self.logs = folder / "logs"
        self.logs.mkdir()
        self._port = free_port()
        settings = {
            "spark.events.reporter.file.factory.class": "file_log",
            "spark.events.reporter.file.path": str(folder / "events"),
            "spark.traces.reporter.file.factory.class": "file_log",
            "spark.traces.reporter.file.path": str(folder / "events"),
            "spark.metrics.reporter.prom.factory.class": "prometheus",
            "spark.metrics.reporter.prom.port": str(self._port),
            "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": self.logs.as_uri(),
            "spark.events.heartbeat.interval": "1s",
            "spark.driver.memory": "512m",
            **(conf or {}),
        }
        app = str(APPS / "ends.py")
        plain = [sys.executable, app, how, str(folder), "--attach"]
        self.app = App(plain if way == ATTACH else cli("run", app, how, str(folder)), settings, folder)
        pids = folder / "pids"
        self.app.wait_for(lambda: pids.exists() and len(pids.read_text().split()) == 2, "its job runs")
        self.python, self.jvm = map(int, pids.read_text().split())
        self.app.wait_for(lambda: self._is_told_to_run(), "all that runs is told")
        self.app.wait_for(lambda: self.statuses_served() == RUNS, "Prometheus sees it")

    @property
    def events(self) -> list[Event]:
        """What it has reported so far."""
        return file_events(self.folder / "events")

    def statuses_served(self) -> dict[str, str]:
        """Return the statuses that Prometheus scrapes now, by what they are of; none if nobody answers."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/metrics", timeout=10) as answer:
                page = answer.read().decode()
        except OSError:
            return {}
        found = re.findall(r'^spark_(application|query)_status\{.*status="(\w+)"\} 1\.0', page, re.MULTILINE)
        return dict(found)

    def free_port(self) -> None:
        """Let whatever serves the end leave."""
        if ask_to_leave("127.0.0.1", self._port, 0):
            wait_until(lambda: not is_listening("127.0.0.1", self._port), "the port is free")

    @property
    def spans(self) -> list[Event]:
        """The spans that it has reported so far."""
        files = (self.folder / "events").glob("*.spans.*")
        return [json.loads(line) for file in files for line in whole_lines(file)]

    def go(self, signals: tuple[tuple[str, signal.Signals], ...] = ()) -> None:
        """Let it do what it is to do, and send it signals."""
        (self.folder / "go").touch()
        for whom, number in signals:
            if whom == GROUP:
                os.killpg(self.app.process.pid, number)
            else:
                pids = {PYTHON: self.python, JVM: self.jvm, LAUNCHED: self.app.process.pid}
                os.kill(pids[whom], number)

    @property
    def jvm_lives(self) -> bool:
        """Whether its JVM still runs."""
        return Path(f"/proc/{self.jvm}").exists()

    def wait_for(self, condition: Callable[[], bool], what: str) -> None:
        """Wait until its JVM has brought something about; a failure says what that does instead."""
        try:
            wait_until(condition, what)
        except AssertionError as late:
            stacks = "it is gone"
            if self.jvm_lives:
                stacks = subprocess.run(["jstack", str(self.jvm)], capture_output=True, text=True).stdout
            err = (self.folder / "stderr.txt").read_text()[-3000:]
            raise AssertionError(f"{late}; of the JVM: {stacks}\n{err}") from None

    def leave_nothing(self) -> None:
        """End its Python if that has outlived its JVM: it sleeps for ten minutes."""
        with suppress(FileNotFoundError, ProcessLookupError):
            if str(self.folder) in Path(f"/proc/{self.python}/cmdline").read_text():
                os.kill(self.python, signal.SIGKILL)

    def end(self) -> AppRun:
        """Wait until it has ended, and its end is told."""
        run = self.app.end(180)
        wait_until(lambda: ended(self.events), f"its end is told\n{run.err[-3000:]}")
        wait_until(lambda: "Application" in str(self.spans), "its span is told")  # by another file
        return run

    def _is_told_to_run(self) -> bool:
        events = self.events
        jobs = of_name(events, "JobStatusChangeEvent", job_kind="job")
        return (
            statuses(events, "query")[-1:] == ["RUNNING"]
            and any("query_name" not in job["attributes"] for job in jobs)
            and "HeartbeatEvent" in str(events)
        )


def ended(events: list[Event]) -> bool:
    """Return whether the end of the application is told."""
    told = statuses(events, "application")
    return bool(told) and told[-1] in ("FINISHED", "FAILED", "CANCELED")
