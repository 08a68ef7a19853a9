"""The listeners of an application that a test tells records of."""

from __future__ import annotations

from typing import Any

from spark_events.api import (
    ApplicationInfo,
)
from spark_events.jobs.job_events import JobEvents
from spark_events.jobs.plan_records import STATEMENT_CREATED, STATEMENT_ENDED
from spark_events.lineage.datasets import Catalogs
from spark_events.listeners.settings import ListenerSettings
from spark_events.listeners.spark_listeners import SparkListeners
from spark_events.runtime.redaction import Redactor
from spark_events.runtime.registry import Registry
from spark_events.runtime.setup import read_all_setups
from tests.support.job_listeners import Collecting, OlderForm

PREFIX = "spark.job-status-changed.listener"
COLLECTING = "tests.support.job_listeners:CollectingFactory"
APPLICATION = ApplicationInfo("shop", "app-1")
_STREAMING = "org.apache.spark.sql.streaming.StreamingQueryListener$"


def _option(name: str) -> str:
    """Return the rest of a key from an argument's name; the part after the first two is the option's."""
    listener, *option = name.split("__", 2)[1:] if "__" in name else [name]
    rest = "".join(f".{part}" for part in option).replace("__", ".").replace("_", "-")
    return f".{listener}{rest}" if "__" in name else name


class Told:
    """The listeners of an application that the test tells records of."""

    def __init__(self, *secrets: str, **conf: str) -> None:
        keys = {PREFIX + _option(key): value for key, value in conf.items()}
        setups, errors = read_all_setups(keys, APPLICATION)
        assert not errors, errors
        Collecting.instances.clear()
        OlderForm.told.clear()
        self.registry = Registry(setups, Redactor(secrets))
        self.registry.start()
        assert self.registry.wait_opened(5_000) == []

        def make_handlers(context: Any, registry: Registry, version: str) -> list[JobEvents]:
            self.job_events = JobEvents(context, registry, version, Catalogs(), with_plans=True)
            return [self.job_events]

        self._listeners = SparkListeners(self.registry, ListenerSettings(), [], "4.3.0", make_handlers)
        self._time_ms = 1_000
        self.record("SparkListenerApplicationStart", **{"App Name": "shop", "App ID": "app-1"})

    def record(self, name: str, /, **fields: Any) -> None:
        self._time_ms += 1_000
        given = {"Event": name, "time": self._time_ms, "Timestamp": self._time_ms, **fields}
        self._listeners.on_record(given, self._time_ms)

    def tick(self, after_ms: int) -> None:
        self._listeners.tick(self._time_ms + after_ms)

    def close(self, timeout_ms: int = 5_000) -> None:
        self.registry.close(timeout_ms)


def lineage_record(sink: str = "/data/out", source: str = "/data/in") -> dict[str, Any]:
    return {
        "sources": [{"identity": {"paths": [source], "format": "parquet"}, "streaming": False}],
        "columns": [[0, "a", "int"]],
        "sinks": [
            {
                "identity": {"paths": [sink], "format": "parquet"},
                "modify": "INSERT",
                "columns": [["b", "int", 0]],
            }
        ],
        "groups": [{"0": 1}],
        "indirect": {},
    }


def statement(told: Told, number: int, failure: dict[str, str] | None = None, **more: Any) -> None:
    told.record(STATEMENT_CREATED, executionId=number, lineage=lineage_record(), **more)
    told.record(STATEMENT_ENDED, executionId=number, failure=failure)


def query_started(told: Told, run: str) -> None:
    told.record(
        f"{_STREAMING}QueryStartedEvent",
        id="q",
        runId=run,
        name="orders",
        timestamp="1970-01-01T00:00:05.000Z",
    )
