"""A query's way is short: how many files a progress record passes through, up to the request that tells of it.

``python -m tests.listeners.test_way_of_a_record`` prints them.
"""

from __future__ import annotations

import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from spark_events.listeners.failures.failure_type import FailureTypeEnricher
from spark_events.listeners.settings import read_settings
from spark_events.listeners.spark_listeners import SparkListeners
from spark_events.runtime.registry import Registry
from spark_events.runtime.setup import read_all_setups
from tests.support.otlp_backend import Backend
from tests.support.paths import REPO
from tests.support.spark_records import application_start, batch_begins, progress, query_started
from tests.support.waiting import wait_until

MOST_TO_AN_EVENT = 29
"""Files of the product on the listeners' thread: from the record until each event and span is in a queue."""
MOST_TO_A_REQUEST = 51
"""And on those of the reporters: until a file has the events, and a collector."""
_OURS = (str(REPO / "spark_events"), str(REPO / "reporters"))


class Way:
    """The files of the product that were called into, by the names of threads, in the order of their calls."""

    def __init__(self) -> None:
        self.files: dict[str, dict[str, None]] = {}

    def on_call(self, frame: FrameType, event: str, argument: object) -> None:
        if event == "call" and (name := frame.f_code.co_filename).startswith(_OURS):
            path = Path(name).relative_to(REPO)
            self.files.setdefault(threading.current_thread().name, {})[str(path)] = None

    @property
    def to_an_event(self) -> list[str]:
        return list(self.files[threading.current_thread().name])

    @property
    def to_a_request(self) -> list[str]:
        return list(dict.fromkeys(path for files in self.files.values() for path in files))


@contextmanager
def traced() -> Iterator[Way]:
    """Trace this thread and those that begin from now on; what it has seen is dropped at the second call."""
    way = Way()
    threading.setprofile(way.on_call)
    try:
        yield way
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]


def way_of_progress(folder: Path) -> Way:
    """Return the way of a micro-batch's progress to a file log and to a collector, all in order."""
    backend = Backend()
    with traced() as way:
        setups, errors = read_all_setups(_conf(folder, backend))
        settings, wrong = read_settings({})
        assert not errors + wrong
        registry = Registry(setups)
        registry.start()
        registry.wait_opened(5_000)
        listeners = SparkListeners(registry, settings, [FailureTypeEnricher()], "4.3.0")
        for record in (application_start(), query_started(1), batch_begins(10, 0), progress(10, 0)):
            listeners.on_record(record)
        listeners.on_record(batch_begins(2_000, 1))
        _await_told(folder, backend, 1)
        way.files.clear()
        sys.setprofile(way.on_call)
        listeners.on_record(progress(2_000, 1))
        sys.setprofile(None)
        _await_told(folder, backend, 2)
    registry.close(5_000)
    backend.close()
    return way


def _conf(folder: Path, backend: Backend) -> dict[str, str]:
    events, spans = "spark.events.reporter.", "spark.traces.reporter."
    return {
        f"{events}otel.factory.class": "otlp",
        f"{events}otel.exporter.endpoint": backend.http,
        f"{events}otel.exporter.protocol": "http",
        f"{events}otel.journal.dir": str(folder / "journal"),
        f"{events}file.factory.class": "file_log",
        f"{events}file.path": str(folder),
        f"{spans}file.factory.class": "file_log",
        f"{spans}file.path": str(folder),
    }


def _await_told(folder: Path, backend: Backend, checkpoints: int) -> None:
    """Wait until the file and the collector have the events of so many checkpoints."""

    def all_there() -> bool:
        events = [line for path in folder.glob("*.events.*") for line in path.read_text().splitlines()]
        spans = [line for path in folder.glob("*.spans.*") for line in path.read_text().splitlines()]
        in_file = [sum('"Checkpoint' in line for line in lines) for lines in (events, spans)]
        return in_file == [checkpoints, checkpoints] and len(backend.taken) == len(events)

    wait_until(all_there, "all is delivered")


def test_a_query_is_followed_through_few_files(tmp_path: Path) -> None:
    way = way_of_progress(tmp_path)

    assert len(way.to_an_event) <= MOST_TO_AN_EVENT, way.to_an_event
    assert len(way.to_a_request) <= MOST_TO_A_REQUEST, way.to_a_request


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        way = way_of_progress(Path(temporary))
        for thread, files in way.files.items():
            sys.stdout.write(f"{thread}: {len(files)}\n" + "".join(f"  {path}\n" for path in files))
        sys.stdout.write(f"to an event {len(way.to_an_event)}, to a request {len(way.to_a_request)}\n")
