"""What Spark does with a streaming query, as far as its checkpoint and a folder of files show it; without Spark.

A micro-batch is planned (its offsets are written), run (its rows are written into a file, and the file into the
folder's log, unless the log has the number), and committed. Each step can be the last one of its process.
"""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from spark_events.sql_runner.host import resuming
from spark_events.sql_runner.store.checkpoints import progress
from spark_events.sql_runner.store.deployed import DeployedQuery
from spark_events.sql_runner.store.store import Store


class Killed(BaseException):
    """Ends all threads of a simulated process at their next step."""


class Life:
    """A simulated process.

    Attributes:
        dead: whether it has been killed.
    """

    def __init__(self, is_writable: Callable[[], bool]) -> None:
        self.dead = False
        self._is_writable = is_writable
        self._goes_on = threading.Event()
        self._goes_on.set()

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """Let all its threads wait at their next step while a block runs."""
        self._goes_on.clear()
        try:
            yield
        finally:
            self._goes_on.set()

    def step(self, writes: bool = False) -> None:
        """Begin or end a step.

        Raises:
            Killed: it has been killed.
            OSError: the store cannot be written.
        """
        self._goes_on.wait()
        if self.dead:
            raise Killed
        if writes and not self._is_writable():
            raise OSError(28, "No space left on device")


class FakeQuery:
    """A streaming query that runs in a thread, with the methods that the runner uses.

    Args:
        life: its process.
        deployed: the query.
        store: has its checkpoint, in a local folder.
        folder: with the source, and the folders of the tables.
        before: what is added to the numbers of its micro-batches in the log of its target's folder.
    """

    def __init__(self, life: Life, deployed: DeployedQuery, store: Store, folder: Path, before: int) -> None:
        self.runId = uuid.uuid4()
        self._life, self._deployed, self._before = life, deployed, before
        self._checkpoint = Path(store.spark_url(deployed.meta.checkpoint))
        self._source = folder / "source"
        self._target = folder / str(deployed.manifest.target_table)
        conf = deployed.manifest.spark_properties
        self._at_once = int(conf["spark.at.once"])
        self._fails = "raise_error" in str(deployed.manifest.code)
        state = progress(store, deployed.meta.checkpoint)
        self._batch = state.begun if state.begun > state.committed else state.committed + 1
        self.after_batch = self._stopped = False
        self._failure: Exception | None = None
        self.lastProgress: dict[str, Any] | None = None
        self.status = {"isTriggerActive": False, "message": "Initializing"}
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    @property
    def isActive(self) -> bool:  # noqa: N802 - PySpark's name
        """Whether it runs."""
        return self._thread.is_alive()

    @property
    def runs_job(self) -> bool:
        """Whether a micro-batch runs."""
        return bool(self.status["isTriggerActive"])

    def exception(self) -> Exception | None:
        """Return why it failed."""
        return self._failure

    def stop(self) -> None:
        """Break it off."""
        self._stopped = True
        self._thread.join()

    def _run(self) -> None:
        try:
            while not self._stopped and not self.after_batch:
                self._life.step()
                self._trigger()
                time.sleep(0.002)
        except _BrokenOff:
            pass
        except Killed:
            pass
        except Exception as error:
            self._failure = error
        finally:
            self.status = {"isTriggerActive": False, "message": "Stopped"}

    def _trigger(self) -> None:
        files = sorted(path.name for path in self._source.glob("[0-9]*"))
        planned = self._read(self._batch)
        start = self._read(self._batch - 1) or 0
        if planned is None and start >= len(files):
            self.status = {"isTriggerActive": False, "message": "Waiting for data to arrive"}
            time.sleep(0.01)
            return
        self.status = {"isTriggerActive": True, "message": "Processing"}
        if planned is None:
            planned = min(start + self._at_once, len(files))
            self._create(self._checkpoint / "offsets" / str(self._batch), f"v1\n{planned}")
        if self._fails:
            raise ValueError("a bad version")
        self._add_batch(files[start:planned])
        self._create(self._checkpoint / "commits" / str(self._batch), "v1\n{}")
        self.lastProgress = {"batchId": self._batch, "durationMs": {"addBatch": 1}}
        self._batch += 1
        self.status = {"isTriggerActive": False, "message": "Waiting for next trigger"}

    def _add_batch(self, files: list[str]) -> None:
        number, log = self._batch + self._before, self._target / "_spark_metadata"
        latest = max((int(path.name) for path in log.glob("[0-9]*")), default=-1)
        if number <= latest:
            return
        rows = [json.loads(line) for file in files for line in (self._source / file).read_text().splitlines()]
        own = {
            "__query_name": self._deployed.manifest.name,
            "__query_version": self._deployed.meta.query_version,
        }
        part = self._target / f"part-{uuid.uuid4()}.json"
        self._create(part, "\n".join(json.dumps({**row, **own}) for row in rows), in_store=False)
        self._create(log / str(number), "v1\n" + json.dumps({"path": str(part)}), in_store=False)

    def _read(self, batch: int) -> int | None:
        path = self._checkpoint / "offsets" / str(batch)
        return int(path.read_text().split()[1]) if batch >= 0 and path.exists() else None

    def _create(self, path: Path, text: str, in_store: bool = True) -> None:
        """Write a file that must not exist yet; at once, as Spark does."""
        self._life.step(writes=in_store)
        if self._stopped:
            raise _BrokenOff
        path.parent.mkdir(parents=True, exist_ok=True)
        made = path.with_name(f".{path.name}.{uuid.uuid4()}.tmp")
        made.write_text(text)
        self._life.step()
        if path.exists():
            made.unlink()
            raise FileExistsError(f"{path}: another query writes there, too")
        made.rename(path)
        self._life.step()


class _BrokenOff(Exception):  # noqa: N818
    """Ends a query within a micro-batch."""


def start(life: Life, folder: Path, deployed: DeployedQuery, store: Store) -> FakeQuery:
    """Start a query as ``host.start`` does."""
    meta = resuming.begun(store, deployed)
    target = folder / str(deployed.manifest.target_table)
    log = (target / "_spark_metadata").glob("[0-9]*")
    last = max((int(path.name) for path in log), default=-1)
    state = progress(store, meta.checkpoint)
    before = resuming._numbered(f"file:{target}", meta.checkpoint, state, last, store)
    return FakeQuery(life, deployed, store, folder, before)
