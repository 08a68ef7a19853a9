"""An oracle of uptime that knows only what it did to processes, and a stopwatch."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.applications import App, cli
from tests.support.paths import APPS
from tests.support.waiting import wait_until

HEARTBEAT_MS = 500
PLANNED = ("stop",)
ENDS = ("stop", "exit 3", "raise", "poison", "TERM", "KILL all", "KILL python", "KILL jvm")


@dataclass
class Life:
    """One driver, as the stopwatch saw it; times are in s since the epoch.

    Attributes:
        up_s: when its query first committed.
        end: how it was ended.
        end_s: when.
        tolerance_s: by how much nobody can know that better.
    """

    up_s: float = 0.0
    end: str = ""
    end_s: float = 0.0
    tolerance_s: float = 0.0

    @property
    def planned(self) -> bool:
        """Whether it was stopped on purpose."""
        return self.end in PLANNED


@dataclass
class Sequence:
    """A random sequence of starts, idling, work, failures, kills and restarts of real drivers.

    Args:
        folder: of its files; its name is that of the application.
        seed: of the chance.
        lives: how many drivers it has.
        conf: more of their settings.
        gaps_s: how long it is down between two of them: one of these, and up to a second more, in s.
        lived: the drivers so far.
    """

    folder: Path
    seed: int
    lives: int = 3
    conf: Mapping[str, str] = field(default_factory=dict)
    gaps_s: tuple[float, ...] = (0.5, 1.5, 3.0)
    lived: list[Life] = field(default_factory=list)

    def run(self) -> None:
        """Go through it."""
        chance = random.Random(self.seed)
        (self.folder / "in").mkdir(parents=True)
        for number in range(self.lives):
            self.lived.append(self._live(chance, number))
            # How long it is down: no condition ends that.
            time.sleep(chance.choice(self.gaps_s) + chance.random())

    def _live(self, chance: random.Random, number: int) -> Life:
        way = chance.choice(("run", "attach"))
        app = str(APPS / "soak_driver.py")
        plain = [sys.executable, app, str(self.folder), "--attach"]
        (place := self.folder / f"life-{number}").mkdir()
        self._work("ok")
        conf = {
            "spark.events.reporter.file.factory.class": "file_log",
            "spark.events.reporter.file.path": str(self.folder / "events"),
            "spark.events.heartbeat.interval": f"{HEARTBEAT_MS}ms",
            "spark.sql.streaming.noDataProgressEventInterval": "1000",
            **self.conf,
        }
        driver = App(plain if way == "attach" else cli("run", app, str(self.folder)), conf, place)
        life = Life()
        committed = self._commits()
        driver.wait_for(lambda: self._commits() > committed, f"seed {self.seed}: a commit")
        life.up_s = self._time_of_commit(committed)
        for _ in range(chance.randrange(3)):
            time.sleep(chance.uniform(0.2, 2.0))  # idle
            committed = self._commits()
            self._work("ok")
            driver.wait_for(lambda: self._commits() > committed, "work is done")  # noqa: B023
        time.sleep(chance.uniform(0.0, 3.0))  # idle, at the end
        life.end = chance.choice(ENDS)
        self._end(driver, life, way)
        return life

    def _end(self, driver: App, life: Life, way: str) -> None:
        java = _java_of(driver.process.pid)
        python = driver.process.pid if way == "attach" else _python_of(java)
        life.end_s = time.time()
        if life.end == "TERM":
            driver.process.send_signal(signal.SIGTERM)
        elif life.end == "KILL all":
            driver.kill()
            life.tolerance_s = HEARTBEAT_MS / 1000
        elif life.end == "KILL python":
            os.kill(python, signal.SIGKILL)
        elif life.end == "KILL jvm":
            os.kill(java, signal.SIGKILL)
        elif life.end == "poison":
            self._work("poison")
            driver.process.wait(60)
            for path in (self.folder / "in").iterdir():
                if path.read_text() == "poison\n":
                    path.write_text("ok\n")  # it is mended
        else:
            (self.folder / "order").write_text(life.end)
        driver.process.wait(60)
        said = self.folder / "ended-at"
        if said.exists():  # the program's own stopwatch
            life.end_s = float(said.read_text())
            said.unlink()

    def _work(self, line: str) -> None:
        name = f"{time.time_ns()}.txt"
        written = self.folder / f".{name}"
        written.write_text(line + "\n")
        written.rename(self.folder / "in" / name)

    def _commits(self) -> int:
        return len(list((self.folder / "checkpoint" / "commits").glob("[0-9]*")))

    def _time_of_commit(self, number: int) -> float:
        """Return when a commit was written, in s since the epoch."""
        return (self.folder / "checkpoint" / "commits" / str(number)).stat().st_mtime


def _children(pid: int) -> list[int]:
    try:
        tasks = Path(f"/proc/{pid}/task").iterdir()
        return [int(child) for task in tasks for child in (task / "children").read_text().split()]
    except OSError:
        return []


def _java_of(pid: int) -> int:
    """Return the JVM among a process and its descendants."""
    waiting = [pid]
    while waiting:
        process = waiting.pop(0)
        if os.path.basename(os.readlink(f"/proc/{process}/exe")) == "java":
            return process
        waiting += _children(process)
    raise AssertionError(f"no JVM below {pid}")


def _python_of(java: int) -> int:
    return next(child for child in _children(java) if "spark-events-python" in _command(child))


def _command(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_bytes().decode()


def report(sequence: Sequence) -> tuple[dict[str, Any], float]:
    """Return what the report says now of a sequence that is over.

    Returns:
        Its rows of uptime by kind, and its "now", in s since the epoch: a command takes a while to start.
    """
    out = sequence.folder / "report.json"
    command = cli("report", str(sequence.folder / "events"), "--now", "--json", str(out), "--sla", "1h")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    whole = json.loads(out.read_text())
    return {row["kind"]: row for row in whole["uptime"]}, whole["until_ms"] / 1000


def await_lost(sequence: Sequence) -> None:
    """Wait until a driver that was killed at the end has been silent for long enough to be lost."""
    over_s = sequence.lived[-1].end_s + 12 * HEARTBEAT_MS / 1000
    wait_until(lambda: time.time() > over_s, "ten heartbeats have not come")


def expected(sequence: Sequence, until_s: float) -> dict[str, float]:
    """Return what the stopwatch says of the query until a moment, in s, and its counts."""
    up = down = 0.0
    lives = sequence.lived
    for life, after in zip(lives, (*lives[1:], None), strict=True):
        up += life.end_s - life.up_s
        if not life.planned:
            down += (after.up_s if after is not None else until_s) - life.end_s
    unplanned = sum(not life.planned for life in lives)
    return {"up": up, "down": down, "failures": unplanned, "restarts": len(lives) - 1}


@dataclass(frozen=True)
class Outage:
    """A time in which a query was down.

    Attributes:
        from_s, to_s: when it began, and was over, in s since the epoch; the last may go on.
        end: how its driver was ended.
    """

    from_s: float
    to_s: float
    end: str


def outages(sequence: Sequence, until_s: float) -> list[Outage]:
    """Return the outages that the stopwatch knows of, until a moment in s since the epoch."""
    lives = sequence.lived
    pairs = zip(lives, (*lives[1:], None), strict=True)
    return [
        Outage(life.end_s, after.up_s if after is not None else until_s, life.end)
        for life, after in pairs
        if not life.planned
    ]
