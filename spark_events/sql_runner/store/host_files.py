"""An application's two files in the store: its orders, written by deployers, and its status, by itself.

All functions raise ``StoreError`` if the store cannot be read or written, ``DamagedFile`` if the file was
damaged, or is from another version of spark-events.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import orjson

from spark_events.api import JobStatus
from spark_events.sql_runner.store import layout
from spark_events.sql_runner.store.store import DamagedFile, Store
from spark_events.sql_runner.store.typed_values import with_types

RUN = "run"
STOP = "stop"


@dataclass(frozen=True, slots=True)
class Before:
    """What ran before a deployment, and runs again if that fails.

    Attributes:
        deployed: the manifest with its meta, as in ``DeployedQuery.values``.
        definitions: the statements that define its tables, in order.
    """

    deployed: dict[str, Any]
    definitions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Order:
    """What an application is to do with one query.

    Attributes:
        id: unique among all orders; a query that runs under a different order is stopped first.
        action: ``run`` or ``stop``.
        deployed: the manifest with its meta, as in ``DeployedQuery.values``.
        definitions: the statements that define its tables, in order.
        savepoint: for a stop, the id of the savepoint to make; empty for none.
        before: what is to run if the deployment that gave this order fails, or is killed; None if nothing
            is. A stop that has it is a step of a deployment: the query is wanted all the while.
    """

    id: str
    action: str
    deployed: dict[str, Any]
    definitions: tuple[str, ...] = ()
    savepoint: str = ""
    before: Before | None = None


@dataclass(frozen=True, slots=True)
class QueryStatus:
    """What has become of an order.

    Attributes:
        order: its id.
        state: as ``JobStatus``.
        since_ms: since when, in ms since the epoch.
        started: whether the first micro-batch of this order has passed, or there was nothing to read.
        run_id: Spark's run id.
        batch: the last finished micro-batch; None before the first.
        batch_ms: when it ended, in ms since the epoch.
        restarts: how often the query was restarted since the order.
        error: why it last failed; empty if it did not.
        error_ms: when that was, in ms since the epoch.
        recovered: whether it has run well since then.
        savepoint: the path of the savepoint that the stop made.
        progress_ms: the trigger that Spark last reported, in ms since the epoch; also without data.
        input_rate: the rows a second that it read.
        behind: how many offsets its sources had ahead of it; None if they do not say.
        watermark_lag_ms: how far its watermark was behind it, in ms; None without one.
        restarted_ms: when it was last restarted, in ms since the epoch, the latest first.
    """

    order: str
    state: str
    since_ms: int
    started: bool = False
    run_id: str = ""
    batch: int | None = None
    batch_ms: int | None = None
    restarts: int = 0
    error: str = ""
    savepoint: str = ""
    error_ms: int | None = None
    recovered: bool = False
    progress_ms: int | None = None
    input_rate: float | None = None
    behind: int | None = None
    watermark_lag_ms: int | None = None
    restarted_ms: tuple[int, ...] = ()

    @property
    def is_over(self) -> bool:
        """Whether the query is not running and will not start by itself."""
        return JobStatus(self.state).terminal

    @property
    def has_failed_to_start(self) -> bool:
        """Whether it failed before its first micro-batch had passed."""
        return bool(self.error) and not self.started


@dataclass(frozen=True, slots=True)
class HostStatus:
    """The status of an application and its queries.

    Attributes:
        application_id: Spark's.
        master: where it runs.
        started_ms: since when, in ms since the epoch.
        spark_version: Spark's version.
        queries: by their names.
    """

    application_id: str
    master: str
    started_ms: int
    spark_version: str
    queries: dict[str, QueryStatus] = field(default_factory=dict)


def read_orders(store: Store, host: str) -> dict[str, Order]:
    """Return the orders for an application, by the names of the queries."""
    path = layout.orders(host)
    data = store.read(path)
    if data is None:
        return {}
    with _understanding(store, path):
        return {name: _order(values) for name, values in orjson.loads(data)["orders"].items()}


def write_orders(store: Store, host: str, orders: Mapping[str, Order]) -> None:
    """Write the orders for an application; only one deployer at a time may do so."""
    store.write(layout.orders(host), orjson.dumps({"orders": orders}, option=orjson.OPT_INDENT_2))


def read_status(store: Store, host: str) -> HostStatus | None:
    """Return the last status of an application; None if it has never written one."""
    path = layout.status(host)
    data = store.read(path)
    if data is None:
        return None
    with _understanding(store, path):
        values = orjson.loads(data)
        queries = {name: _query_status(query) for name, query in values.pop("queries").items()}
        return with_types(HostStatus, {**values, "queries": queries})


def write_status(store: Store, host: str, status: HostStatus) -> None:
    """Write the status of an application."""
    store.write(layout.status(host), orjson.dumps(status, option=orjson.OPT_INDENT_2))


def _query_status(values: dict[str, Any]) -> QueryStatus:
    status = with_types(QueryStatus, values)
    JobStatus(status.state)  # raises for another one
    return status


def _order(values: dict[str, Any]) -> Order:
    order = with_types(Order, values)
    if order.action not in (RUN, STOP):
        raise ValueError(f"action: {order.action!r} is neither {RUN} nor {STOP}")
    return order


@contextmanager
def _understanding(store: Store, path: str) -> Iterator[None]:
    try:
        yield
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DamagedFile(
            f"store {store.url}: {path} is not what this version of spark-events writes ({error}); "
            "restore it, or remove it and deploy again: queries go on from their latest states"
        ) from error
