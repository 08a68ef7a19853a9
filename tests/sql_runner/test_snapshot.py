"""A query as deployers see it: by what the store has of it, and by the orders of all applications."""

from __future__ import annotations

import pytest

from spark_events.sql_runner.deploy.snapshot import QuerySnapshot, Snapshot
from spark_events.sql_runner.store import layout
from spark_events.sql_runner.store.deployed import write_deployed
from spark_events.sql_runner.store.host_files import (
    STOP,
    HostStatus,
    Order,
    QueryStatus,
    read_orders,
    write_orders,
    write_status,
)
from spark_events.sql_runner.store.lease import Lease
from spark_events.sql_runner.store.store import Store
from tests.support.sql_orders import deployed_in, run_order


def query(store: Store) -> QuerySnapshot:
    return Snapshot(store).query("q", "session-default")


def test_a_new_query_is_to_run_in_the_default_application(store: Store) -> None:
    current = query(store)

    assert (current.deployed, current.order, current.version) == (None, None, 0)
    assert not current.pending
    assert current.host.link.host == "session-default"


def test_a_deployed_query_is_in_the_application_of_its_meta(store: Store) -> None:
    deployed = deployed_in("session-other")
    write_deployed(store, deployed)
    write_orders(store, "session-other", {"q": run_order(deployed)})
    current = query(store)

    assert current.deployed == deployed
    assert current.host.link.host == "session-other"
    assert not current.pending


def test_an_order_that_is_newer_than_the_manifest_is_pending(store: Store) -> None:
    ordered = deployed_in("session-other", version=2)
    write_deployed(store, deployed_in("session-default"))
    write_orders(store, "session-other", {"q": run_order(ordered)})
    current = query(store)

    assert current.deployed == ordered
    assert current.version == 2
    assert current.pending
    assert current.host.link.host == "session-other"


def test_a_query_with_a_stop_order_alone_is_listed_in_the_first_application_that_has_it(store: Store) -> None:
    for host in ("session-a", "session-b"):
        write_orders(store, host, {"q": Order("stop", STOP, {})})
    queries = Snapshot(store).queries(lambda name: "session-default")

    assert [snapshot.host.link.host for snapshot in queries.values()] == ["session-a"]


def test_orders_are_read_as_they_were_written(store: Store) -> None:
    orders = {"q": run_order(deployed_in("session-a")), "p": Order("x", STOP, {}, savepoint="s")}
    write_orders(store, "session-a", orders)

    assert read_orders(store, "session-a") == orders
    assert read_orders(store, "session-b") == {}


@pytest.mark.parametrize(
    ("last", "writes"),
    [
        pytest.param(None, False, id="an application that has come back"),
        pytest.param(("before", "RUNNING"), True, id="one that has not seen the order to stop"),
        pytest.param(("stop", "CANCELLING"), True, id="one that is stopping it"),
        pytest.param(("stop", "CANCELED"), False, id="one that has stopped it"),
    ],
)
def test_a_query_that_is_to_stop_writes_until_it_has(
    store: Store, last: tuple[str, str] | None, writes: bool
) -> None:
    deployed = deployed_in("session-default")
    write_deployed(store, deployed)
    write_orders(store, "session-default", {"q": Order("stop", STOP, deployed.values())})
    queries = {"q": QueryStatus(*last, since_ms=1)} if last else {}
    write_status(store, "session-default", HostStatus("app", "local", 1, "4.3.0", queries))
    Lease(store, layout.host_lease("session-default"), "", 30_000).take()

    assert query(store).may_write == writes
