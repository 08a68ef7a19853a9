"""Deployments of several queries at a time, and what ends them together."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from spark_events.sql_runner.deploy.decision import Action, Decision
from spark_events.sql_runner.deploy.deployer import Deployer, DeployResult
from spark_events.sql_runner.deploy.host_link import HostLink
from spark_events.sql_runner.deploy.placement import Placement
from spark_events.sql_runner.deploy.planner import PlannedQuery
from spark_events.sql_runner.deploy.snapshot import Snapshot
from spark_events.sql_runner.deploy.waiting import Interrupted, Waiting
from spark_events.sql_runner.store import layout
from spark_events.sql_runner.store.history import read_history
from spark_events.sql_runner.store.host_files import Order, read_orders
from spark_events.sql_runner.store.lease import Lease
from spark_events.sql_runner.store.store import Store, StoreError
from tests.support.query_shop import HOST
from tests.support.waiting import wait_until


class Scripted(Deployer):
    """Deploys by a function of the test."""

    def __init__(self, store: Store, parallel: int, do: Callable[[str], DeployResult]) -> None:
        lease = Lease(store, layout.DEPLOY_LEASE, "", 60_000)
        super().__init__(store, lease, Placement(parallel=parallel), None)
        self.do = do

    def deploy(self, planned: PlannedQuery) -> DeployResult:
        return self.do(planned.name)


def planned(store: Store, name: str, *after: str) -> PlannedQuery:
    current = Snapshot(store).query(name, HOST)
    return PlannedQuery(name, Decision(Action.START, 1, ""), current, sink_folder="/x", after=after)


def done(name: str) -> DeployResult:
    return DeployResult(name, Action.START, 1, "done")


def test_so_many_are_deployed_at_a_time(store: Store) -> None:
    """Each waits until there are three of them; results come in the order of the decisions."""
    barrier = threading.Barrier(3, timeout=60)

    def together(name: str) -> DeployResult:
        barrier.wait()
        return done(name)

    names = ["c", "b", "a"]
    results = Scripted(store, 3, together).deploy_all([planned(store, name) for name in names])

    assert [result.name for result in results] == names


@pytest.mark.parametrize("parallel", [1, 4])
def test_who_leaves_is_deployed_first(store: Store, parallel: int) -> None:
    order: list[str] = []

    def note(name: str) -> DeployResult:
        order.append(name)
        return done(name)

    queries = [planned(store, "a", "b"), planned(store, "b", "c"), planned(store, "c")]
    results = list(Scripted(store, parallel, note).deploy_all(queries))

    assert order == ["c", "b", "a"]
    assert [result.name for result in results] == ["a", "b", "c"]


def test_who_waits_for_one_that_has_failed_is_left_as_it_was(store: Store) -> None:
    def fail(name: str) -> DeployResult:
        return DeployResult(name, Action.START, 1, "no", failed=name == "b")

    results = list(Scripted(store, 2, fail).deploy_all([planned(store, "a", "b"), planned(store, "b")]))

    assert [(result.name, result.failed, result.text) for result in results] == [
        ("a", True, "'b' still writes into /x; the query is left as it was"),
        ("b", True, "no"),
    ]
    (entry,) = read_history(store, "a")
    assert (entry.action, entry.version, entry.result) == ("start", 1, results[0].text)


@pytest.mark.parametrize("order", [("a", "b"), ("b", "a")])
def test_an_error_ends_the_waiting_of_all(store: Store, order: tuple[str, ...]) -> None:
    """As of a store that cannot be written, or of Ctrl-C."""
    ended: list[str] = []
    waits = threading.Event()

    def one_fails(name: str) -> DeployResult:
        if name == "a":
            waits.wait(60)
            raise StoreError("away")
        waits.set()
        try:
            deployer._steps.waiting.wait_for(lambda: None, 600)
        except Interrupted:
            ended.append(name)
            raise
        return done(name)

    deployer = Scripted(store, 2, one_fails)
    with pytest.raises(StoreError, match="away"):
        list(deployer.deploy_all([planned(store, name) for name in (*order, "c")]))

    assert ended == ["b"], "c has not begun"


def test_waiting_looks_at_least_once_and_once_more_at_the_end() -> None:
    looks: list[int] = []

    def look() -> int | None:
        looks.append(1)
        return len(looks) if len(looks) == 2 else None

    assert Waiting().wait_for(look, 0.1) == 2
    assert Waiting().wait_for(lambda: None, 0) is None


def test_orders_that_are_given_at_once_are_all_there(store: Store) -> None:
    """One file has all orders for an application."""
    names = [f"q{number}" for number in range(20)]
    threads = [
        threading.Thread(target=HostLink(store, HOST).give, args=(name, Order(name, "run", {})))
        for name in names
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(read_orders(store, HOST)) == sorted(names)


def test_an_application_that_starts_is_waited_for(store: Store) -> None:
    link, lease = HostLink(store, HOST), Lease(store, layout.host_lease(HOST), "", 30_000)
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(link.wait_alive(60, lambda: "")))
    thread.start()
    lease.take()
    thread.join(60)

    assert found == [None]
    wait_until(lambda: link.is_alive, "it is alive")
