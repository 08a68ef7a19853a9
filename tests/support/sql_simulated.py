"""A world of random sequences in which processes are threads, and Spark is sql_engine: a sequence takes seconds."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from spark_events.api.event import now_ms
from spark_events.sql_runner.analysis.definitions import TableDefinitions
from spark_events.sql_runner.deploy import waiting
from spark_events.sql_runner.deploy.placement import Placement
from spark_events.sql_runner.deploy.workspace import Workspace
from spark_events.sql_runner.host import hosted_query
from spark_events.sql_runner.host.host import QueryHost
from spark_events.sql_runner.store import lease
from spark_events.sql_runner.store.clock import StoreClock
from spark_events.sql_runner.store.store import Store, StoreError
from tests.support import sql_truth_deploy
from tests.support.sql_engine import FakeQuery, Killed, Life, start
from tests.support.sql_processes import Said
from tests.support.sql_world import World
from tests.support.waiting import wait_until

_LIVES: dict[int, Life] = {}
_numbers = itertools.count(1)
_mine = threading.local()


@dataclass(frozen=True, slots=True)
class _Owner:
    """A simulated process as the holder of a lease."""

    number: int

    @classmethod
    def this_process(cls, _: str) -> _Owner:
        return cls(_mine.number)

    @property
    def is_dead(self) -> bool:
        life = _LIVES.get(self.number)
        return life is None or life.dead


class _MortalStore(Store):
    """A store whose process can be killed before and after each of its steps."""

    life: Life

    @contextmanager
    def _beside(self, path: str, data: bytes) -> Iterator[str]:
        self.life.step(writes=True)
        with super()._beside(path, data) as made:
            self.life.step()
            yield made

    def _copy_file(self, source: str, target: str) -> None:
        self.life.step(writes=True)
        super()._copy_file(source, target)

    def _move(self, source: str, target: str) -> None:
        super()._move(source, target)
        self.life.step()

    def _remove(self, path: str) -> None:
        self.life.step()
        super()._remove(path)
        self.life.step()

    def _listed(self, folder: str) -> set[str]:
        self.life.step()
        return super()._listed(folder)

    def read(self, path: str) -> bytes | None:
        self.life.step()
        return super().read(path)

    @classmethod
    def of(cls, url: str, life: Life) -> _MortalStore:
        store = cls(url)
        store.life = life
        return store


class _Thread:
    """A simulated deployer."""

    def __init__(self, world: SimulatedWorld, arguments: list[str]) -> None:
        self._life, self._number = world.new_life()
        self._said = Said(code=-9)
        ahead_ms = world.chance.choice(world.deployers_ahead_ms)
        self._clock = StoreClock(lambda: now_ms() + ahead_ms)
        self._given = sql_truth_deploy.arguments([world.store_url, *arguments])
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def kill(self) -> None:
        self._life.dead = True

    def suspended(self) -> AbstractContextManager[None]:
        return self._life.suspended()

    def result(self) -> Said:
        self._thread.join(300)
        assert not self._thread.is_alive(), "a deployer ends"
        self._life.dead = True
        return self._said

    def _run(self) -> None:
        _mine.number = self._number
        with suppress(Killed):
            workspace = Workspace(self._given.store, Placement(poll_ms=10, lease_ms=120_000, timeout_s=60))
            workspace.store.__class__ = _MortalStore
            workspace.store.life = self._life  # type: ignore[attr-defined]
            workspace.store.clock = self._clock
            with suppress(StoreError):
                workspace.store.set_clock()
            self._said.code = sql_truth_deploy.carry_out(workspace, self._given, self._say)

    def _say(self, **values: Any) -> None:
        if self._life.dead:
            raise Killed
        if "error" in values:
            self._said.error = values["error"]
        else:
            (self._said.decided if "action" in values else self._said.results)[values["name"]] = values


class _Session:
    """A simulated session application."""

    def __init__(self, world: SimulatedWorld) -> None:
        self._world = world
        self._host: QueryHost | None = None
        self._thread: threading.Thread | None = None
        self._spark: Any = None
        self._life: Life | None = None

    @property
    def runs(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def start(self) -> None:
        # A full store can keep it from taking its lease.
        def begin() -> bool:
            if not self.runs:
                self._begin()
            return self._world.workspace.link("session-default").is_alive

        wait_until(begin, "the session is there")

    def _begin(self) -> None:
        self._life, number = self._world.new_life()
        self._spark = SimulatedSpark(self._life, self._world.folder)
        store = _MortalStore.of(self._world.store_url, self._life)
        store.clock = StoreClock(lambda: now_ms() + self._world.session_ahead_ms)
        self._host = QueryHost(
            self._spark, store, "session-default", single=False, poll_s=0.01, lease_ms=120_000
        )
        host = self._host

        def run() -> None:
            _mine.number = number
            with suppress(Killed, Exception):
                host.run()

        self._thread = threading.Thread(target=run, daemon=True)
        self._thread.start()

    def kill(self, who: str) -> None:
        if self._life is None or self._thread is None:
            return
        if who == "jvm":
            self._spark.stopped = True  # its Python sees that, and ends
            self._spark.life.dead = True
        else:
            self._life.dead = self._spark.life.dead = True
        self._thread.join(60)
        self._life.dead = True

    def suspended(self) -> AbstractContextManager[None]:
        lives = [self._life, self._spark.life] if self._life is not None else []
        stack = ExitStack()
        for life in lives:
            stack.enter_context(life.suspended())
        return stack

    def end(self) -> None:
        if self._thread is not None and self._thread.is_alive():
            self._world.workspace.link("session-default").request_end()
            self._thread.join(60)
            assert not self._thread.is_alive(), "the session ends"

    def close(self) -> None:
        self.kill("both")


class SimulatedSpark:
    """The session of a simulated application."""

    version = "known"

    def __init__(self, life: Life, folder: Path) -> None:
        self.life = Life(life._is_writable)  # the JVM's
        self.folder = folder
        self.stopped = False
        self.sparkContext = self
        self.applicationId, self.master = "simulated", "local"

    @property
    def _jsc(self) -> SimulatedSpark:
        return self

    def sc(self) -> SimulatedSpark:
        return self

    def isStopped(self) -> bool:  # noqa: N802 - Spark's name
        return self.stopped

    def stopAfterBatch(self, query: FakeQuery) -> None:  # noqa: N802 - the runner's
        query.after_batch = True


class SimulatedWorld(World):
    """All of it in this process: see ``World``."""

    pace = 0.03

    def __init__(self, folder: Path, seed: int) -> None:
        super().__init__(folder, seed, store=str(folder / "store"))
        self.writable = True
        self.has_clocks = True
        self.session_ahead_ms = 0
        self.session: Any = _Session(self)
        self.disk: Any = _Disk(self)

    def new_life(self) -> tuple[Life, int]:
        """Begin a process that is killed, if at all, by its deployer's or session's ``kill``."""
        number = next(_numbers)
        _LIVES[number] = Life(lambda: self.writable)
        return _LIVES[number], number

    def set_session_clock(self, ahead_ms: int) -> None:
        """Set the clock of the session, while it runs."""
        self.session_ahead_ms = ahead_ms

    @property
    def workspace(self) -> Workspace:
        """The store, as deployers see it; also for them it can be full."""
        workspace = super().workspace
        workspace.store.__class__ = _MortalStore
        workspace.store.life = Life(lambda: self.writable)  # type: ignore[attr-defined]
        return workspace

    def command(self, arguments: list[str]) -> Any:
        """Start a deployer."""
        return _Thread(self, arguments)


class _Disk:
    mounted = True

    def __init__(self, world: SimulatedWorld) -> None:
        self._world = world

    def close(self) -> None:
        self._world.writable = True

    @contextmanager
    def full(self) -> Iterator[None]:
        self._world.writable = False
        try:
            yield
        finally:
            self._world.writable = True

    read_only = full


def simulate(patch: pytest.MonkeyPatch) -> None:
    """Let the runner use what is simulated."""
    patch.setattr(lease, "Owner", _Owner)
    patch.setattr(waiting, "_LOOK_EVERY_S", 0.01)
    patch.setattr(TableDefinitions, "in_force", lambda *_: nullcontext())
    patch.setattr(hosted_query, "_LOOK_EVERY_S", 0.003)
    patch.setattr(hosted_query, "_STOP_LOOK_EVERY_S", 0.002)
    patch.setattr(hosted_query, "open_session", lambda spark, *_: (spark, ()))
    patch.setattr(
        hosted_query,
        "start_query",
        lambda spark, deployed, store: start(spark.life, spark.folder, deployed, store),
    )
    patch.setattr(hosted_query, "entry_of", lambda spark: spark)
    patch.setattr(hosted_query, "_runs_job", lambda query, _: query.runs_job)
    patch.setattr(FakeQuery, "_jsq", property(lambda query: query), raising=False)
    patch.setattr(threading, "excepthook", lambda _: None)
