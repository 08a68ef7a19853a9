"""Files in a store that no spark-events has written, or that were damaged since: each is named."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import orjson
import pytest

from spark_events.api import ConfigError
from spark_events.sql_runner.deploy.decision import Action, Decision
from spark_events.sql_runner.deploy.placement import Placement
from spark_events.sql_runner.deploy.query_row import QueryRow
from spark_events.sql_runner.deploy.workspace import Workspace
from spark_events.sql_runner.manifest.folder import read_folder
from spark_events.sql_runner.store import layout
from spark_events.sql_runner.store.checkpoints import batches_before, begin_checkpoint, write_batches_before
from spark_events.sql_runner.store.deployed import DeployedQuery, read_deployed, write_deployed
from spark_events.sql_runner.store.history import Deployment, HistoryEntry, read_history
from spark_events.sql_runner.store.host_files import (
    HostStatus,
    QueryStatus,
    read_orders,
    read_status,
    write_orders,
    write_status,
)
from spark_events.sql_runner.store.lease import Lease
from spark_events.sql_runner.store.savepoints import make_savepoint, read_savepoint
from spark_events.sql_runner.store.store import DamagedFile, Store, StoreError
from tests.support.sql_orders import deployed_in, run_order
from tests.support.sql_truth_deploy import Known


@pytest.mark.parametrize("content", [b"\xff\xfe", b"[1]", b"{}", b'{"at_ms": 1, "new": 2}', b"[[[", b""])
def test_a_history(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "history" / "q").mkdir(parents=True)
    (tmp_path / "history" / "q" / "000000000000001-x.json").write_bytes(content)
    with pytest.raises(
        StoreError, match=r"history/q/000000000000001-x\.json is not what this version.*; remove it to leave"
    ):
        read_history(Store(str(tmp_path)), "q")


@pytest.mark.parametrize("content", [b"\xff\xfe\xff", b"[1]", b"name: q\nmeta: 3\n", b"meta: {a: 1}", b""])
def test_a_manifest(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manifests" / "q.yaml").write_bytes(content)
    with pytest.raises(ConfigError, match=r"manifests/q.yaml"):
        read_deployed(Store(str(tmp_path)), "q")


@pytest.mark.parametrize(
    ("key", "value"),
    [("beat_ms", "x"), ("lease_ms", None), ("who", 5), ("released", "no"), ("owner", {"pid": 1})],
)
def test_a_lease_with_a_value_of_another_type(store: Store, key: str, value: Any) -> None:
    Lease(store, "locks/l", "it", 30_000).take()
    _change(store, "locks/l/000000001.json", key, value)
    with pytest.raises(DamagedFile, match=r"locks/l/000000001\.json.* is not what this version"):
        Lease(store, "locks/l", "it", 30_000).holder()
    of_application = Lease(store, "locks/l", "application q", 30_000)
    of_deployment = Lease(store, "locks/l", "another deployment is running", 30_000, holder="deployment")
    for lease, holder in ((of_application, "application q"), (of_deployment, "deployment")):
        with pytest.raises(DamagedFile, match=f"; if no {holder} is running, remove this file"):
            lease.holder()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("started_ms", "x"),
        ("started_ms", True),
        ("application_id", None),
        ("queries", []),
        ("queries", {"q": 1}),
    ],
)
def test_a_status_with_a_value_of_another_type(store: Store, key: str, value: Any) -> None:
    write_status(store, HOST, HostStatus("app", "local", 1, "4.3.0"))
    _change(store, layout.status(HOST), key, value)
    with pytest.raises(DamagedFile, match=r"status\.json is not what this version"):
        read_status(store, HOST)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("since_ms", "x"),
        ("batch_ms", {}),
        ("state", "ASLEEP"),
        ("restarted_ms", ["x"]),
        ("restarted_ms", 5),
        ("input_rate", "x"),
        ("error", None),
    ],
)
def test_a_status_of_a_query_with_a_value_of_another_type(store: Store, key: str, value: Any) -> None:
    query = asdict(QueryStatus("o", "RUNNING", 1, input_rate=2, restarted_ms=(3,)))
    write_status(store, HOST, HostStatus("app", "local", 1, "4.3.0"))
    _change(store, layout.status(HOST), "queries", {"q": query})
    whole = read_status(store, HOST)
    assert whole is not None
    assert whole.queries["q"].restarted_ms == (3,)
    _change(store, layout.status(HOST), "queries", {"q": {**query, key: value}})
    with pytest.raises(DamagedFile, match=r"status\.json is not what this version"):
        read_status(store, HOST)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("action", "walk"),
        ("action", 5),
        ("deployed", "x"),
        ("definitions", 5),
        ("definitions", [1]),
        ("before", 5),
    ],
)
def test_an_order_with_a_value_of_another_type(store: Store, key: str, value: Any) -> None:
    order = asdict(run_order(deployed_in(HOST)))
    write_orders(store, HOST, {})
    _change(store, layout.orders(HOST), "orders", {"q": order})
    assert read_orders(store, HOST)["q"].id == order["id"]
    _change(store, layout.orders(HOST), "orders", {"q": {**order, key: value}})
    with pytest.raises(DamagedFile, match=r"wanted\.json is not what this version"):
        read_orders(store, HOST)


@pytest.mark.parametrize(("key", "value"), [("at_ms", "x"), ("version", None), ("result", 5)])
def test_a_history_with_a_value_of_another_type(store: Store, key: str, value: Any) -> None:
    HistoryEntry(store, "q", Deployment(1, "start", 1, "", "", "me"))
    (file,) = store.names(layout.history("q"))
    _change(store, f"{layout.history('q')}/{file}", key, value)
    with pytest.raises(StoreError, match=r"history/q/.* is not what this version"):
        read_history(store, "q")


@pytest.mark.parametrize(("key", "value"), [("query-version", "x"), ("checkpoint", 5), ("sink-folder", [])])
def test_a_meta_with_a_value_of_another_type(key: str, value: Any) -> None:
    values = deployed_in(HOST).values()
    with pytest.raises(ConfigError, match="m: its meta is not what a deployment writes"):
        DeployedQuery.parse({**values, "meta": {**values["meta"], key: value}}, "m")


def test_a_savepoint_that_says_odd_things_of_itself_is_not_complete(store: Store) -> None:
    meta = deployed_in(HOST).meta
    begin_checkpoint(store, meta.checkpoint, "a")
    savepoint = make_savepoint(store, "q", meta, "s")
    _change(store, f"{savepoint.path}/{layout.SAVEPOINT_COMPLETE}", "batch", "x")
    assert read_savepoint(store, savepoint.path) is None


@pytest.mark.parametrize(
    "content", [b"[]", b"{}", b"\xff", b'{"batchesBefore": "x"}', b'{"batchesBefore": []}']
)
def test_numbers_of_a_target_that_are_damaged(store: Store, content: bytes) -> None:
    write_batches_before(store, "c", 3)
    assert batches_before(store, "c") == 3
    store.write("c/spark-events-sink.json", content)
    with pytest.raises(DamagedFile, match=r"c/spark-events-sink\.json is not what this version"):
        batches_before(store, "c")


def _change(store: Store, path: str, key: str, value: Any) -> None:
    """Change one value in a file of JSON."""
    store.write(path, orjson.dumps({**orjson.loads(store.read(path) or b""), key: value}))


HOST = "session-default"
DAMAGED = b"\xff\xfe\xff"


@pytest.fixture
def workspace(store: Store) -> Workspace:
    """Give a store with a session that runs a query."""
    Lease(store, layout.host_lease(HOST), "session", 30_000).take()
    running = deployed_in(HOST)
    order = run_order(running)
    write_orders(store, HOST, {"q": order})
    write_status(
        store,
        HOST,
        HostStatus("app", "local", 1, "4.3.0", {"q": QueryStatus(order.id, "RUNNING", 1, started=True)}),
    )
    write_deployed(store, running)
    return Workspace(store.url, Placement())


class Unchanged(Known):
    """An analyst for whom a query is the one that is deployed."""

    def is_same_query(self, *_: object) -> bool:
        return True


def rows(workspace: Workspace) -> dict[str, QueryRow]:
    return {row.name: row for row in workspace.status().rows}


def test_status_names_a_damaged_manifest_and_shows_all_others(workspace: Workspace) -> None:
    workspace.store.write(layout.manifest("damaged"), DAMAGED)

    found = rows(workspace)
    assert (found["q"].state, found["q"].is_well) == ("RUNNING", True)
    assert (found["damaged"].state, found["damaged"].is_well) == ("UNKNOWN", False)
    assert "manifests/damaged.yaml" in found["damaged"].error


def test_a_query_that_runs_although_its_manifest_is_damaged_is_shown_with_both(workspace: Workspace) -> None:
    workspace.store.write(layout.manifest("q"), DAMAGED)

    row = rows(workspace)["q"]
    assert (row.state, row.version, row.is_well) == ("RUNNING", 1, False)
    assert "manifests/q.yaml" in row.error


@pytest.mark.parametrize("file", [layout.orders("session-b"), layout.status("session-b")])
def test_status_names_a_damaged_file_of_an_application_and_shows_the_others(
    workspace: Workspace, file: str
) -> None:
    write_deployed(workspace.store, _named("other", "session-b"))
    write_orders(workspace.store, "session-b", {})
    workspace.store.write(file, DAMAGED)

    found = rows(workspace)
    assert found["q"].state == "RUNNING"
    assert (found["other"].state, found["other"].is_well) == ("UNKNOWN", False)
    assert workspace.status().problems == (found["other"].error,)
    assert file in found["other"].error
    with pytest.raises(DamagedFile, match=file):
        workspace.stop("q", savepoint=False)


def test_status_names_a_damaged_lease_of_deployments(workspace: Workspace) -> None:
    file = f"{layout.DEPLOY_LEASE}/000000001.json"
    workspace.store.write(file, DAMAGED)

    assert rows(workspace)["q"].state == "RUNNING"
    (problem,) = workspace.status().problems
    assert file in problem


def test_a_query_whose_manifest_is_damaged_can_be_forgotten_but_not_stopped(workspace: Workspace) -> None:
    workspace.store.write(layout.manifest("damaged"), DAMAGED)
    with pytest.raises(ConfigError, match=r"manifests/damaged.yaml"):
        workspace.stop("damaged", savepoint=False)
    workspace.forget("damaged", state=False)

    assert set(rows(workspace)) == {"q"}


def test_a_query_that_will_find_its_checkpoint_gone_is_not_taken_for_one_that_runs(
    workspace: Workspace, tmp_path: Path
) -> None:
    """The application has just come back, and has not looked yet."""
    deployed, store = workspace.queries()["q"].recorded, workspace.store
    assert deployed is not None
    begin_checkpoint(store, deployed.meta.checkpoint, "a")
    for file in ("offsets/0", "commits/0"):
        store.write(f"{deployed.meta.checkpoint}/{file}", b"v1\n{}")
    savepoint = make_savepoint(store, "q", deployed.meta, "s")
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manifests" / "q.yaml").write_text("name: q\ntarget-table: t\nsql: SELECT 1\n")
    coming = HostStatus(
        "app", "local", 1, "4.3.0", {"q": QueryStatus(deployed.meta.deployment, "CREATED", 1)}
    )
    write_status(store, HOST, coming)

    def planned() -> Decision:
        analyst: Any = Unchanged([], "")
        (query,) = workspace.plan(analyst, read_folder(tmp_path / "manifests", None).or_fail())
        return query.decision

    assert planned().action is not Action.RESUME
    store.delete(deployed.meta.checkpoint)
    assert planned().action is Action.RESUME
    assert savepoint.path in planned().reason


def _named(name: str, host: str) -> DeployedQuery:
    return DeployedQuery.parse({**deployed_in(host).values(), "name": name}, "")
